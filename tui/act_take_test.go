package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlockctl/internal/operator"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// only is a screen with this lock alone.
func only(t *testing.T, locks ...monitor.Lock) *rig {
	t.Helper()
	s := monitortest.Degraded(monitortest.Epoch)
	s.Locks = monitor.NewLocks(locks...)
	return newRig(t, s, 120, 40)
}

// confirm fills in a dialog that asks for a reason and a name, and sends it.
func (r *rig) confirm(reason, typed string) {
	r.t.Helper()
	r.settle()
	r.typed(reason)
	r.press("tab")
	r.typed(typed)
	r.press("enter")
}

// sent fails unless exactly these calls were sent.
func (r *rig) sent(want ...string) {
	r.t.Helper()
	if got := r.acts.sent(); !slices.Equal(got, want) {
		r.t.Errorf("sent %q, not %q", got, want)
	}
}

func TestRevoke(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	r.press("R")
	r.sees("Revoke orders:42?", "n1 9s · n3 9s · n5 9s", "Now another client can get in: after 2 more restarts of nodes", "no more extensions; others wait until",
		"works on after that shares it", "Made by DistributedLock, web-7 (pid 811) (told by its token): its thread works on until it asks again")
	r.settle()
	r.press("enter")
	r.sees("! a reason is missing")
	r.typed("runs for hours")
	r.press("tab", "enter")
	r.sees("! the name is missing: type orders:42")
	nothingSent(t, r)
	r.typed("orders:42")
	r.press("enter")
	r.acts.results = []redlock.NodeResult{{Node: "n1", Status: redlock.StatusOK}, {Node: "n2", Status: redlock.StatusAbsent}}
	r.run()
	r.sent(fmt.Sprintf("revoke %q %q because %q", "orders:42", token42, "runs for hours"))
	r.sees("revoke orders:42: done", "1 copy revoked: it ends by itself", "n1 ● ok replaced by a tombstone", "n2 ○ absent held no copy")
}

func TestARevokeOnTooFewNodes(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	r.press("R")
	r.settle()
	r.typed("runs for hours")
	r.press("tab")
	r.typed("orders:42")
	r.press("enter")
	r.acts.results = []redlock.NodeResult{{Node: "n1", Status: redlock.StatusOK}, {Node: "n2", Status: redlock.StatusAbsent}}
	r.acts.err = operator.ErrPartly
	r.run()
	r.sees("revoke orders:42: done in part", "revoked on too few nodes", "n1 ● ok replaced by a tombstone")
}

func TestRevokeRefusesAChangedHolder(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	r.press("R")
	s := monitortest.Degraded(monitortest.Epoch)
	monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "orders:42", monitor.LockHeld, monitortest.TokenC, "30 - 30 ? 30"))
	r.push(s)
	r.confirm("dead", "orders:42")
	r.sees("! the holder changed since this was opened")
	nothingSent(t, r)
}

const holder = "6f1c3a52-9d0e-4b7f-8a21-c4d5e6f70819:54"

// redisson makes a lock of Redisson, a hash, on three of five nodes.
func redisson(form *lockform.Form) monitor.Lock {
	token := holder
	if form == nil {
		token = ""
	}
	l := monitortest.LockOf(monitortest.Epoch, "job:redisson", monitor.LockHeld, token, "9 - 9 ? 9")
	monitortest.Change(&l, func(c *monitor.Copy) {
		if c.State == monitor.CopyPresent {
			c.Type, c.Len = "hash", 1
		}
	})
	l.Form = form
	return l
}

// The plain lock of Redisson is removed by the field that names its holder, as in the
// CLI, and the dialog says what its form means.
func TestForceReleaseOfAHash(t *testing.T) {
	form := lockform.Recognize("job:redisson", "hash", holder, 1, monitortest.Epoch)
	r := only(t, redisson(form))
	r.press("R")
	r.refused("✗ revoke job:redisson: refused", "it is a hash, in whose place no tombstone can be put: force-release (X) removes it")
	r.press("X")
	r.sees("Force-release job:redisson?", "n1 9s · n3 9s · n5 9s", "Made by Redisson: its waiters are told by a message")
	r.confirm("host burnt down", "job:redisson")
	r.run()
	r.sent(fmt.Sprintf("force-release %q %q because %q", "job:redisson", holder, "host burnt down"))
}

// A form that must not be revoked or force-released is refused for each of its keys.
func TestFormsThatAreRefused(t *testing.T) {
	list := redisson(nil)
	monitortest.Change(&list, func(c *monitor.Copy) { c.Type = "list" })
	mixed := redisson(lockform.Recognize("job:redisson", "hash", holder, 1, monitortest.Epoch))
	monitortest.Change(&mixed, func(c *monitor.Copy) { c.Type = "zset" }, 0)
	fencing := monitortest.LockOf(monitortest.Epoch, "redlockctl:fencing:job", monitor.LockNotALock, "17", "i i i i i")
	fencing.Form = lockform.Recognize("redlockctl:fencing:job", "string", "17", 2, monitortest.Epoch)
	revoked := "redlockctl:revoked:" + strings.Repeat("a", 27)
	for _, c := range []struct {
		name   string
		lock   monitor.Lock
		revoke string
		force  string // "": allowed
	}{
		{"a read-write lock of Redisson", redisson(lockform.Recognize("job:redisson", "hash", "mode\n"+holder, 2, monitortest.Epoch)), "keeps its mode, its readers", "keeps its mode, its readers"},
		{"a hash that nobody knows", redisson(nil), "a hash, not a string", "a hash, not a string"},
		{"a list", list, "a list, not a string", "a list, not a string"},
		{"a hash on one node, a set on another", mixed, "not a string", "not a string"},
		{"a counter beside a lock", fencing, "must never go back", "must never go back"},
		{"what is revoked already", monitortest.LockOf(monitortest.Epoch, "job", monitor.LockRevoked, revoked, "9 9 9 9 9"), "it is revoked already", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := only(t, c.lock)
			r.press("R")
			r.refused(c.revoke)
			r.press("X")
			if c.force != "" {
				r.refused(c.force)
			} else if r.m.Dialog == nil || r.m.Dialog.Refusal {
				t.Errorf("the dialog of force-release: %v", r.m.Dialog)
			}
		})
	}
}

// threeKeys is one node-redlock lock over three resources.
func threeKeys(token string, keys ...string) monitor.Lock {
	l := monitortest.LockOf(monitortest.Epoch, keys[0], monitor.LockHeld, token, "9 9 9 9 9")
	for _, k := range keys {
		l = l.WithKeys(append(l.Keys(), safetext.New(k))...)
	}
	l.Form = lockform.Recognize(keys[0], "string", token, int64(len(token)), monitortest.Epoch)
	return l
}

// The keys of one lock are removed together, with one token.
func TestSeveralKeysOfOneLock(t *testing.T) {
	for _, verb := range []string{"force-release", "revoke"} {
		t.Run(verb, func(t *testing.T) {
			r := only(t, threeKeys(monitortest.TokenC, "a", "b", "c\x1b"))
			r.press(map[string]string{"force-release": "X", "revoke": "R"}[verb])
			r.sees(`3 keys with this token are one lock and go together: a; b; c\x1b`)
			r.confirm("dead", "a")
			r.acts.failing = map[string]error{"b": &redlock.Error{Op: verb, Resource: "b", Kind: redlock.ErrNotHeld}}
			r.acts.results = []redlock.NodeResult{{Node: "n1", Status: redlock.StatusOK}}
			r.run()
			var want []string
			for _, key := range []string{"a", "b", "c\x1b"} {
				want = append(want, fmt.Sprintf("%s %q %q because %q", verb, key, monitortest.TokenC, "dead"))
			}
			r.sent(want...)
			r.sees(verb+" a: done", "b: nothing of this token was left", `c\x1b: 1 copy`)
		})
	}
}

// A key that fails is reported, and the others are still removed; if all keys are gone,
// that is a failure.
func TestAKeyThatFails(t *testing.T) {
	gone := &redlock.Error{Op: "force-release", Resource: "x", Kind: redlock.ErrNotHeld}
	for _, c := range []struct {
		failing map[string]error
		says    []string
	}{
		{map[string]error{"b": errFake}, []string{"force-release a: done in part", `b: NOPERM \x1b[31mthis user`, "c: 1 copy deleted"}},
		{map[string]error{"a": gone, "b": gone, "c": gone}, []string{"force-release a: ", "no majority has this token"}},
	} {
		r := only(t, threeKeys(monitortest.TokenC, "a", "b", "c"))
		r.press("X")
		r.confirm("dead", "a")
		r.acts.failing = c.failing
		r.acts.results = []redlock.NodeResult{{Node: "n1", Status: redlock.StatusOK}}
		r.run()
		if len(r.acts.sent()) != 3 {
			t.Errorf("sent %q", r.acts.sent())
		}
		r.sees(c.says...)
	}
}

func TestKeysThatChangedAreRefused(t *testing.T) {
	r := only(t, threeKeys(monitortest.TokenC, "a", "b", "c"))
	r.press("X")
	s := monitortest.Degraded(monitortest.Epoch)
	s.Locks = monitor.NewLocks(threeKeys(monitortest.TokenC, "a", "b"))
	r.push(s)
	r.confirm("dead", "a")
	r.sees("! its keys changed since this was opened")
	nothingSent(t, r)
}

// A missing right is not a fence, and the result says how to get the right.
func TestDeniedIsNotFenced(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.under("orders:42")
	r.press("X")
	r.confirm("dead", "orders:42")
	r.acts.err = &redlock.Error{Op: "force-release", Resource: "orders:42", Kind: redlock.ErrNoQuorum, Nodes: []redlock.NodeResult{
		{Node: "n1", Status: redlock.StatusDenied, Err: errFake}, {Node: "n2", Status: redlock.StatusFenced}}}
	r.run()
	r.sees("force-release orders:42: failed", "n1 ▲ denied", `NOPERM \x1b[31mthis user`, "redlockctl config acl operator prints the rights that its user needs", "n2 ◐ fenced")
}

// On the smallest screen, the effect, the risk, the fields and the verb of each dialog
// are visible.
func TestDialogsOnTheSmallestScreen(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		sees []string
	}{
		{"force-release", []string{"X"}, []string{"Effect all copies deleted now", "two clients will work on orders:42", "Reason >", "Type the name", "a reason is missing", "esc cancel"}},
		{"revoke", []string{"R"}, []string{"Effect no more extensions", "works on after that shares it", "Reason >", "Type the name", "a reason is missing", "esc cancel"}},
		{"marked", []string{"m", "m", "X"}, []string{"Force-release 2 marked locks?", "Effect of each: all copies deleted", "two clients", "Reason >", "Type \"2 locks\"", "a reason is missing", "esc cancel"}},
		{"fence", []string{"tab", "C"}, []string{"Effect", "NOTHING can be locked", "Reason >", "Type the name", "a reason is missing", "esc cancel"}},
		{"open", []string{"tab", "down", "J"}, []string{"Effect it accepts writes", "granted a second time", "Reason >", "Type the name", "a reason is missing", "esc cancel"}},
		{"acquire", []string{"a"}, []string{"Effect the name is held", "Name >", "TTL 30s", "Keep no", "the name of the lock is missing", "enter acquire", "esc cancel"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, monitortest.Degraded(monitortest.Epoch), minWidth, minHeight)
			r.under("orders:42")
			r.press(c.keys...)
			r.settle()
			r.sees(c.sees...)
		})
	}
}

// A revoked lock can be force-released, but the dialog does not advise to revoke it.
func TestForceReleaseOfWhatIsRevoked(t *testing.T) {
	const tombstone = "redlockctl:revoked:a91f00"
	r := only(t, monitortest.LockOf(monitortest.Epoch, "ov:1", monitor.LockOverTTL, tombstone, "7200 7200 7200 7200 7200"))
	r.press("X")
	r.sees("Force-release ov:1?", ", revoked already", "Risk it is revoked already and ends by itself", "two clients will work on ov:1")
	r.seesNot("revoke (R)")
	r.press("esc", "R")
	r.refused("it is revoked already: no other client gets it before its TTL expires")
}

// A lock without a name cannot be acted on; the screen says so before it asks anything.
func TestTheEmptyNameIsRefusedAtOnce(t *testing.T) {
	for _, key := range []string{"R", "X"} {
		for _, marked := range []bool{false, true} {
			r := only(t, monitortest.LockOf(monitortest.Epoch, "", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9"))
			if marked {
				r.press("m")
			}
			r.press(key)
			r.refused("its name is empty, and a lock needs a name")
		}
	}
}

// Of a split lock, the chosen copies are removed: of one token, or of all, each compared
// with its own token. There is no default choice, and the text never promises a free name
// while copies stay.
func TestForceReleaseOfASplitLock(t *testing.T) {
	for _, c := range []struct {
		spaces int
		says   []string
		sent   string // the tokens
	}{
		{1, []string{"all copies deleted now: the name is free at once", "nobody holds job by these copies"}, `"aaaa" "bbbb"`},
		{2, []string{"all copies of this token deleted now", "other copies stay, so the name is not free: only their owner"}, `"aaaa"`},
		{3, []string{"all copies of this token deleted now", "other copies stay"}, `"bbbb"`},
	} {
		l := monitortest.LockOf(monitortest.Epoch, "job", monitor.LockSplit, "aaaa", "9 9 - - -")
		monitortest.Change(&l, func(c *monitor.Copy) {
			*c = monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("bbbb"), Len: 4, Expires: monitortest.Epoch.Add(9e9)}
		}, 3, 4)
		l.Tokens, l.Nobody = 2, true
		r := only(t, l)
		r.press("X")
		r.sees("Held by nobody: 2 + 2 of 5", "1: aaaa on n1 n2", "2: bbbb on n4 n5", "choose below whose copies go")
		r.settle()
		r.press("enter")
		r.sees("! whose copies? space chooses")
		for range c.spaces {
			r.press("space")
		}
		r.sees(c.says...)
		r.seesNot("two clients will work")
		r.press("tab")
		r.typed("both dead")
		r.press("tab")
		r.typed("job")
		r.press("enter")
		r.acts.results = []redlock.NodeResult{{Node: "n1", Status: redlock.StatusOK}}
		r.run()
		r.sent(fmt.Sprintf("force-release %q %s because %q", "job", c.sent, "both dead"))
	}
}

// The minority copies of a split lock are not those of its holder, which stays.
func TestTheRiskWhereAnotherHolds(t *testing.T) {
	l := monitortest.LockOf(monitortest.Epoch, "job", monitor.LockSplit, "aaaa", "9 9 9 - -")
	monitortest.Change(&l, func(c *monitor.Copy) {
		*c = monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("bbbb"), Len: 4, Expires: monitortest.Epoch.Add(9e9)}
	}, 3, 4)
	l.Tokens = 2
	for key, risk := range map[string]string{
		"X": "these copies have no quorum; those of the holder stay", "R": "these copies have no quorum; the holder has other ones, and is not told to stop",
	} {
		r := only(t, l)
		r.press(key)
		r.settle()
		r.press("enter", "space", "space", "space")
		r.sees("bbbb", risk)
		r.seesNot("nobody holds")
	}
}

// An orphaned copy has no holder at work, and a library that unlocks with a plain DEL is
// named as a risk.
func TestTheRiskFitsTheState(t *testing.T) {
	r := only(t, monitortest.LockOf(monitortest.Epoch, "job", monitor.LockOrphaned, "aaaa", "9 - - - -"))
	r.press("X")
	r.sees("nobody holds job by these copies: no token has a quorum")
	r.seesNot("two clients")
	r.press("esc", "R")
	r.sees("tombstones on 1 of 5 nodes, which keep others out of those until they expire")
	value := "ADDED:2026-01-01T00:00:00.000Z@host-7:0f8fad5b-d9cb-469f-a165-70867728950e"
	shed := monitortest.LockOf(monitortest.Epoch, "job-lock:prod:report", monitor.LockHeld, value, "9 9 9 9 9")
	shed.Form = lockform.Recognize("job-lock:prod:report", "string", value, int64(len(value)), monitortest.Epoch)
	r = only(t, shed)
	r.press("X")
	r.sees("ShedLock unlocks by a bare DEL")
}

// A dialog shows what is known of the holder for which it was opened, not of another one or of the
// tombstone of a second operator.
func TestADialogAfterSomebodyElseWasFaster(t *testing.T) {
	for _, c := range map[string]struct{ token, says string }{
		"the same holder":  {token42, ", first seen "},
		"it was revoked":   {"redlockctl:revoked:x", ", revoked meanwhile"},
		"somebody else is": {"another", ", no longer the holder"},
	} {
		s := monitortest.Degraded(monitortest.Epoch)
		r := newRig(t, s, 120, 40)
		r.under("orders:42")
		r.press("R")
		next := *s
		l := *s.Locks.Get("orders:42")
		if c.token != token42 {
			l.Holder = safetext.New(c.token)
			l = l.Timed(monitortest.Epoch, l.MajorityEnd())
		}
		next.Locks = monitor.NewLocks(l)
		r.push(&next)
		if r.sees("Revoke orders:42?", c.says); c.token != token42 {
			r.seesNot("first seen", "(0s ago)", "another client can get in", "can be extended", "Made by")
		} else {
			r.sees("another client can get in", "can be extended")
		}
	}
}
