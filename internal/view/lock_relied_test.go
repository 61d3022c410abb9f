package view

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// The texts about a lock say whether its holder may still rely on it, until when, and who
// else can acquire it.
func TestWhatIsSaidOfALockThatLostCopies(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 17, 25, 0, time.UTC)
	end := now.Add(18 * time.Second)
	lostAt := now.Add(-21 * time.Second)
	const a, b = "77c0aa3f-0d61-4b0c", "5d2aQ8kz0v1yTb3m"
	// A node has its state and the copy on it: a and b are tokens, L is a lost vote of a.
	type node struct {
		state   monitor.NodeState
		copy    byte
		rejoins time.Duration
		plain   bool // it is not verified to start fenced
	}
	serving, fenced, cordoned, down := monitor.NodeServing, monitor.NodeFenced, monitor.NodeCordoned, monitor.NodeDown
	for _, c := range []struct {
		name    string
		state   monitor.LockState
		holder  string
		nodes   []node
		earlier bool
		want    []string // facts and bars, a part of each line
		never   []string
		cell    string // WHO CAN GET IN
		row     string // STATE, COPIES, TTLS, ENDS and MARGIN on the screen
	}{
		{"one of three copies lost", monitor.LockLostMajority, a,
			[]node{{fenced, 'L', 30 * time.Second, false}, {serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, '-', 0, false}, {serving, '-', 0, false}}, false,
			[]string{"held until 22:17:43 (18.0s), cannot be extended", "Held: until 22:17:43 (18.0s)", "another client can get in: not before 22:17:43", "cannot be extended", "n1: lost 22:17:04 (restart), fenced ≥30s", "held until here"},
			[]string{"orphaned", "nobody", ": now"}, "not before :43", "lost maj. 2/5 ×▇▇·· 18s –"},
		{"every copy lost", monitor.LockLostMajority, a,
			[]node{{fenced, 'L', 30 * time.Second, false}, {fenced, 'L', 30 * time.Second, false}, {fenced, 'L', 30 * time.Second, false}, {serving, '-', 0, false}, {serving, '-', 0, false}}, false,
			[]string{"held until 22:17:43 (18.0s), cannot be extended", "not before 22:17:43", "n3: lost 22:17:04 (restart), fenced ≥30s"},
			[]string{"orphaned", "nobody", "no copy is"}, "not before :43", "lost maj. 0/5 ×××·· 18s –"},
		{"the node that lost it serves again", monitor.LockLostMajority, a,
			[]node{{serving, 'L', 0, false}, {serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, '-', 0, false}, {serving, '-', 0, false}}, false,
			[]string{"another client can get in: now", "n1: lost 22:17:04 (restart), serving"}, []string{"not before"}, "now", "lost maj. 2/5 ×▇▇·· 18s –"},
		{"the node that lost it rejoins before", monitor.LockLostMajority, a,
			[]node{{fenced, 'L', 15 * time.Second, false}, {serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, '-', 0, false}, {serving, '-', 0, false}}, false,
			[]string{"another client can get in: from 22:17:40, when n1 rejoins"}, []string{"not before"}, "from :40", "lost maj. 2/5 ×▇▇·· 18s –"},
		{"a node is silent", monitor.LockMayBeHeld, a,
			[]node{{serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, '-', 0, false}, {down, '?', 0, true}, {serving, '-', 0, false}}, false,
			[]string{"may be held until 22:17:43 (18.0s)", "Held: maybe, until 22:17:43 (18.0s)", "maybe now: n4 does not answer"}, []string{"orphaned", "nobody"}, "may now", "maybe held 2/5 ▇▇·?· 18s –"},
		{"bare majority, all start fenced", monitor.LockBareMajority, a,
			[]node{{serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, '-', 0, false}, {serving, '-', 0, false}}, false,
			[]string{"not before 22:17:43", "can be extended while no more nodes are lost"}, []string{"restart"}, "not before :43", "bare maj. 3/5 ▇▇▇·· 18s 0"},
		{"bare majority, a start not seen", monitor.LockBareMajority, a,
			[]node{{serving, 'a', 0, true}, {serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, '-', 0, false}, {serving, '-', 0, false}}, false,
			[]string{"after 1 more restart of a node that is not verified to start fenced"}, []string{"not before"}, "after 1 restart", "bare maj. 3/5 ▇▇▇·· 18s 0"},
		{"held everywhere", monitor.LockHeld, a,
			[]node{{serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, 'a', 0, false}}, false,
			[]string{"not before 22:17:43", "can be extended while at most 2 more nodes are lost"}, []string{"Means"}, "not before :43", "held 5/5 ▇▇▇▇▇ 18s 2"},
		{"two clients", monitor.LockSplit, b,
			[]node{{serving, 'b', 0, false}, {serving, 'a', 0, false}, {serving, 'a', 0, false}, {serving, 'b', 0, false}, {serving, 'b', 0, false}}, true,
			[]string{"the holder of " + a + " may rely on it until 22:17:43 too", "maybe now: the holder of " + a + " may rely on it"}, []string{"eft over", "not before"}, "may now", "split 3+2/5 ▇◇◇▇▇ 18s 0"},
		{"a left-over on a fenced node", monitor.LockHeld, b,
			[]node{{fenced, 'a', 30 * time.Second, false}, {serving, 'b', 0, false}, {serving, 'b', 0, false}, {serving, 'b', 0, false}, {serving, 'b', 0, false}}, false,
			[]string{"Left over: on n1, fenced: goes at 22:17:43", "n1: left over, fenced"}, []string{"Means"}, "not before :43", "held 4+1/5 ◇▇▇▇▇ 18s 1"},
		{"a left-over on a node that serves again", monitor.LockHeld, b,
			[]node{{serving, 'a', 0, false}, {serving, 'b', 0, false}, {serving, 'b', 0, false}, {serving, 'b', 0, false}, {serving, 'b', 0, false}}, false,
			[]string{"Left over: on n1, serving: goes at 22:17:43", "n1: left over, serving"}, []string{"Means"}, "not before :43", "held 4+1/5 ◇▇▇▇▇ 18s 1"},
		{"released, and left over on a cordoned node", monitor.LockOrphaned, a,
			[]node{{cordoned, 'a', 0, false}, {serving, '-', 0, false}, {serving, '-', 0, false}, {serving, '-', 0, false}, {serving, '-', 0, false}}, false,
			[]string{"Left over: on n1, cordoned: goes at 22:17:43", "no majority"}, []string{"another client can get in"}, "–", "orphaned 1/5 ▇···· – –"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
			l := monitor.Lock{Key: safetext.New("orders:42"), State: c.state, Holder: safetext.New(c.holder), Tokens: 1}
			var copies []monitor.Copy
			tokens := map[string]bool{}
			for i, n := range c.nodes {
				boot := announce.BootFenced
				if n.plain {
					boot = announce.BootUnfenced
				}
				one := monitor.Node{Name: "n" + string(rune('1'+i)), State: n.state, GuardsKnown: true, Guards: []announce.Guard{{ID: "g", Boot: boot}}}
				if n.rejoins > 0 {
					one.RejoinsAfter = now.Add(n.rejoins)
				}
				s.Nodes = append(s.Nodes, one)
				cp := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New(a), Len: int64(len(a)), Expires: end}
				switch n.copy {
				case '-':
					cp = monitor.Copy{}
				case '?':
					cp = monitor.Copy{State: monitor.CopyUnknown}
				case 'L':
					cp.State, cp.LostAt, cp.Cause = monitor.CopyLost, lostAt, monitor.LostByRestart
					l.Lost++
				case 'b':
					cp.Token = safetext.New(b)
				}
				if cp.State == monitor.CopyPresent {
					tokens[cp.Token.Raw()] = true
					if cp.Token == l.Holder {
						l.Held++
					}
				}
				copies = append(copies, cp)
			}
			l.Tokens, l.Copies = len(tokens), monitor.PackCopies(copies...)
			if l.Held >= 3 {
				l = l.Timed(now.Add(-time.Minute), end)
			} else if c.state != monitor.LockOrphaned {
				l = l.Until(end)
			}
			if c.earlier {
				l.Earlier = &monitor.Reliance{Token: safetext.New(a), Until: end}
			}
			ctx := &Context{Glyphs: &Unicode, Snap: s, Now: now}
			said := []string{LockEnd(ctx, &l)}
			for _, f := range LockFacts(ctx, &l) {
				if f.Label != "Means" || slices.Contains(c.never, "Means") {
					said = append(said, f.Label+": "+f.Text)
				}
			}
			for _, bar := range LockBars(ctx, &l, Axis(ctx, &l), 20) {
				said = append(said, bar.Node+": "+bar.Note.Text)
			}
			text := strings.Join(said, "\n")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not said:\n%s", want, text)
				}
			}
			for _, never := range c.never {
				if strings.Contains(text, never) {
					t.Errorf("%q is said:\n%s", never, text)
				}
			}
			ctx.Short = true
			columns := LockColumns(s.Nodes)
			cell := func(word string) string {
				i := slices.IndexFunc(columns, func(c Column[*monitor.Lock]) bool { return c.Word() == word })
				return columns[i].Cell(ctx, &l).Text
			}
			if got := cell("who-can-get-in"); got != c.cell {
				t.Errorf("WHO CAN GET IN: %q, not %q", got, c.cell)
			}
			var row []string
			for _, word := range []string{"state", "copies", "ttls", "ends", "margin"} {
				row = append(row, cell(word))
			}
			if got := strings.Join(row, " "); got != c.row {
				t.Errorf("row: %q, not %q", got, c.row)
			}
		})
	}
}

// The document of a lock has the values of the page, and the number of a TTL that the
// screen shows as never.
func TestLockDocOfWhatIsReliedOn(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 17, 25, 0, time.UTC)
	nodes := []monitor.Node{{Name: "n1", State: monitor.NodeFenced, RejoinsAfter: now.Add(time.Minute)}, {Name: "n2", State: monitor.NodeServing}, {Name: "n3", State: monitor.NodeFenced, RejoinsAfter: now.Add(9 * time.Second)}}
	s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 3, Quorum: 2}, Nodes: nodes}
	one := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("a"), Len: 1, Expires: now.Add(20 * time.Second)}
	lost := one
	lost.State, lost.LostAt, lost.Cause = monitor.CopyLost, now.Add(-3*time.Second), monitor.LostByWipe
	lock := func(end time.Time, copies ...monitor.Copy) *monitor.Lock {
		l := monitor.Lock{Key: safetext.New("k"), State: monitor.LockLostMajority, Holder: one.Token, Held: 1, Tokens: 1, Lost: 1, Copies: monitor.PackCopies(copies...)}.Until(end)
		return &l
	}
	text := func(l *monitor.Lock) string {
		b, err := json.Marshal(DocOfLock(l, s))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	got := text(lock(one.Expires, lost, one, monitor.Copy{}))
	for _, want := range []string{`"held_until":"2026-11-20T22:17:45Z"`, `"can_get_in":{"when":"not before","at":"2026-11-20T22:17:45Z"`, `"lost":1`,
		`{"node":"n1","state":"lost","type":"string","token":"a","length":1,"ttl_ms":20000,"lost_at":"2026-11-20T22:17:22Z","lost_by":"data wiped"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	const ms = 9_000_000_000_000_000_000
	far := one
	far.Expires = time.UnixMilli(now.UnixMilli() + ms)
	l := lock(far.Expires, lost, far, monitor.Copy{})
	if got := text(l); !strings.Contains(got, `"ttl_ms":9000000000000000000`) || strings.Contains(got, "held_until") {
		t.Error(got)
	}
	ctx := &Context{Glyphs: &Unicode, Snap: s, Now: now}
	if bars := LockBars(ctx, l, Axis(ctx, l), 20); bars[1].Left.Text != "never" || bars[1].Bar.Text != "" {
		t.Errorf("%+v", bars)
	}
	if got := lockEnds(ctx, l).Text + " " + copyCell(ctx, l, 1).Text; got != "never never" {
		t.Error(got)
	}
}

// What only the guard in this process knows about the starts of nodes is used in JSON as
// on the screen.
func TestWhoCanGetInIsOneAnswer(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 17, 25, 0, time.UTC)
	guard := &monitor.GuardView{Nodes: map[string]monitor.GuardedNode{"n1": {Known: true, Verified: true}, "n2": {Known: true, Verified: true}}}
	s := &monitor.Snapshot{At: now, Guard: guard, Cluster: monitor.Cluster{N: 3, Quorum: 2},
		Nodes: []monitor.Node{{Name: "n1", State: monitor.NodeServing}, {Name: "n2", State: monitor.NodeServing}, {Name: "n3", State: monitor.NodeServing}}}
	copied := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("a"), Len: 1, Expires: now.Add(20 * time.Second)}
	l := monitor.Lock{Key: safetext.New("k"), Holder: copied.Token, Held: 2, Tokens: 1, Copies: monitor.PackCopies(copied, copied, monitor.Copy{})}.Timed(now, copied.Expires)
	for _, c := range []struct {
		guard *monitor.GuardView
		cell  string
		json  bool // restarts let another client acquire the lock
	}{{guard, "not before 22:17:45", false}, {nil, "after 1 restart", true}} {
		s.Guard = c.guard
		doc := DocOfLock(&l, s)
		if got := lockAccess(&Context{Glyphs: &Unicode, Snap: s, Now: now}, &l).Text; got != c.cell || (doc.Access.Restarts != nil) != c.json {
			t.Errorf("%s, %+v", got, doc.Access)
		}
	}
}

// When a copy was lost before the view began, nobody knows the time, and none is shown.
func TestALossOfUnknownTimeHasNone(t *testing.T) {
	n, one := monitor.Node{Name: "n1", State: monitor.NodeServing}, monitor.Copy{State: monitor.CopyLost, Cause: monitor.LostByRestart}
	if got := lostText(&Context{}, &n, one); got != "lost (restart), serving" {
		t.Errorf("%q", got)
	}
	one.Cause = monitor.LostUnseen
	if got := lostText(&Context{}, &n, one); got != "lost, serving" {
		t.Errorf("%q", got)
	}
}

// Since when a lock is held has one answer: the record's, if it goes further back than this program.
func TestHeldSinceIsTheRecords(t *testing.T) {
	now := time.Now()
	l := monitor.Lock{Key: safetext.New("job"), Holder: safetext.New("token"), Held: 2}.Timed(now.Add(-3*time.Second), now.Add(time.Minute))
	s := &monitor.Snapshot{At: now, Settled: now.Add(-3 * time.Second), Cluster: monitor.Cluster{N: 3, Quorum: 2}}
	grant := GrantDoc{Lock: l.Key, TokenSHA: tokenSHA(l.Holder)[:16], Began: now.Add(-26 * time.Second)}
	ended, other, partly := grant, grant, grant
	ended.Ended, other.TokenSHA, partly.Partly = now, tokenSHA(safetext.New("other"))[:16], true
	for name, c := range map[string]struct {
		grants []GrantDoc
		want   string
	}{
		"not recorded":            {nil, "≥3s, since " + Clock(now.Add(-3*time.Second))},
		"recorded":                {[]GrantDoc{ended, grant}, "26s, since " + Clock(grant.Began)},
		"ended, or another token": {[]GrantDoc{ended, other}, "≥3s, since " + Clock(now.Add(-3*time.Second))},
		"before the record":       {[]GrantDoc{partly}, "≥26s, since " + Clock(grant.Began)},
	} {
		ctx := &Context{Glyphs: &Unicode, Snap: s, Now: now, Holders: c.grants}
		if got := heldFact(ctx, &l); got.Label != "Held" || got.Text != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Copies on nodes that refuse writes keep nobody out, and the page says so as long as that holds.
func TestCopiesThatKeepNobodyOut(t *testing.T) {
	s := monitortest.Safe(monitortest.Epoch)
	l := monitortest.LockOf(monitortest.Epoch, "orders:42", monitor.LockOrphaned, monitortest.TokenA, "9 - - - -")
	ctx := &Context{Glyphs: &Unicode, Snap: s, Now: monitortest.Epoch}
	for state, want := range map[monitor.NodeState]string{monitor.NodeServing: "blocks others until it expires", monitor.NodeCordoned: "keeps nobody out", monitor.NodeFenced: "keeps nobody out"} {
		s.Nodes[0].State = state
		if f := LockFacts(ctx, &l)[0]; f.Label != "Means" || !strings.Contains(f.Text, want) {
			t.Errorf("%s: %+v", state, f)
		}
	}
}

// Of several tokens that may each have a majority, none is left over, also on nodes that are fenced.
func TestNothingIsLeftOverOfAContestedLock(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 17, 25, 0, time.UTC)
	s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
	var copies []monitor.Copy
	for i, token := range []string{"a", "a", "b", "b", ""} {
		s.Nodes = append(s.Nodes, monitor.Node{Name: "n" + string(rune('1'+i)), State: monitor.NodeFenced})
		copies = append(copies, monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New(token), Len: 1, Expires: now.Add(time.Minute)})
	}
	copies[4] = monitor.Copy{}
	l := monitor.Lock{Key: safetext.New("k"), State: monitor.LockSplit, Contested: true, Holder: safetext.New("a"), Held: 2, Tokens: 2, Copies: monitor.PackCopies(copies...)}.Until(now.Add(time.Minute))
	for _, f := range LockFacts(&Context{Glyphs: &Unicode, Snap: s, Now: now}, &l) {
		if f.Label == "Left over" || f.Label == "Holder" && f.Text != "not known: 2 + 2 of 5" {
			t.Errorf("%+v", f)
		}
	}
}

// A client got the vote of a node that started unfenced, while another one relies on the lock. With the
// free nodes it reaches a quorum: its copy is not left over, though its node is fenced by now.
func TestAVoteOnAFencedNodeCounts(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 17, 25, 0, time.UTC)
	s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
	var copies []monitor.Copy
	for i, token := range []string{"a", "a", "", "", "b"} {
		n := monitor.Node{Name: "n" + string(rune('1'+i)), State: monitor.NodeServing}
		if i == 4 {
			n.State, n.RejoinsAfter = monitor.NodeFenced, now.Add(time.Minute)
		}
		s.Nodes = append(s.Nodes, n)
		c := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New(token), Len: 1, Expires: now.Add(time.Minute)}
		if token == "" {
			c = monitor.Copy{}
		}
		copies = append(copies, c)
	}
	l := monitor.Lock{Key: safetext.New("k"), State: monitor.LockLostMajority, Holder: safetext.New("a"), Held: 2, Tokens: 2, Copies: monitor.PackCopies(copies...)}.Until(now.Add(time.Minute))
	c := &Context{Glyphs: &Unicode, Snap: s, Now: now}
	for _, f := range slices.Concat(LockFacts(c, &l), MarginFacts(c, &l)) {
		if f.Label == "Left over" || f.Label == "Margin" && f.Text != "another client can get in: maybe now: n5 has a copy of another token, which may reach a quorum with it" {
			t.Errorf("%+v", f)
		}
	}
}
