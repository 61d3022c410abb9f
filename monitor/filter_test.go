package monitor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

func TestFilterMatches(t *testing.T) {
	now := time.Now()
	nodes := []Node{{Name: "n1", State: NodeServing}, {Name: "n2", State: NodeServing}, {Name: "n3", State: NodeServing}}
	lock := func(key string, state LockState, held int, left time.Duration) Lock {
		l := Lock{Key: safetext.New(key), State: state, Held: held, Holder: safetext.New("Tok-" + key)}
		var end time.Time
		copies := make([]Copy, len(nodes))
		for i := range nodes {
			c := Copy{State: CopyAbsent}
			if i < held {
				c = Copy{State: CopyPresent, Type: "string", Token: l.Holder}
				if left > 0 {
					c.Expires = now.Add(left)
				}
			}
			copies[i] = c
		}
		l.Copies = PackCopies(copies...)
		if held >= 2 && left > 0 {
			end = now.Add(left)
		}
		return l.Timed(now.Add(-time.Hour), end)
	}
	full, bare := lock("Orders:42", LockHeld, 3, 4*time.Second), lock("orders:43", LockBareMajority, 2, 2*time.Minute)
	orphan, forever := lock("import job", LockOrphaned, 1, 30*time.Second), lock("stuck", LockNoTTL, 3, 0)
	odd := lock("näher\x1b[2J", LockOverTTL, 3, time.Hour)
	none := lock("state:held", LockNotALock, 0, 0)
	full.Form = &lockform.Form{Library: "redsync"}
	bare.Form = &lockform.Form{Library: "DistributedLock", Owner: safetext.New("web-7 (pid 811)")}
	bare = bare.Timed(now.Add(-time.Minute), bare.MajorityEnd())
	several := []*Lock{&full, &bare, &orphan, &forever, &odd, &none}
	for _, c := range []struct{ filter, want string }{
		{"", "Orders:42|orders:43|import job|stuck|näher|state:held"},
		{"ORDERS", "Orders:42|orders:43"},
		{"orders:4 !42", "orders:43"},
		{`"import job"`, "import job"},
		{`"state:held"`, "state:held"},
		{`!"import job" !stuck !orders !"state:"`, "näher"},
		{"NÄHER", "näher"},
		{`\x1b`, "näher"},
		{"state:held", "Orders:42"},
		{"state:not-a", "state:held"},
		{"state:overmaxttl", "näher"},
		{"holder:tok-orders:42", "Orders:42"},
		{"holder:web-7", "orders:43"},
		{"lib:redsync", "Orders:42"},
		{"lib:unknown state:orphaned", "import job"},
		{"!lib:unknown", "Orders:42|orders:43"},
		{"node:N3", "Orders:42|stuck|näher"},
		{"ttl<5s", "Orders:42"},
		{"ttl<=4s", "Orders:42"},
		{"ttl>1m", "orders:43|stuck|näher"},
		{"!ttl>1m", "Orders:42|import job|state:held"},
		{"age<=1m", "orders:43"},
		{"margin:0", "orders:43"},
		{"margin>=1", "Orders:42|stuck|näher"},
		{"copies:0", "state:held"},
		{"copies<2", "import job|state:held"},
		{"orders state:bare node:n1 ttl>5s", "orders:43"},
		// An invalid term excludes nothing.
		{"state: orders:42", "Orders:42"},
		{"ttl< orders:42", "Orders:42"},
	} {
		f := ParseFilter(c.filter).At(now)
		var got []string
		for _, l := range several {
			if f.Match(l, nodes) {
				got = append(got, strings.TrimSuffix(l.Key.Raw(), "\x1b[2J"))
			}
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q chooses %q, not %q", c.filter, got, c.want)
		}
	}
}

func TestFilterTellsItsBadTerms(t *testing.T) {
	nodes := []Node{{Name: "n1"}, {Name: "n2"}}
	for _, c := range []struct{ filter, says string }{
		{"orders !x state:held node:n2 ttl<5s margin:0", ""},
		{"orders:42 a<b x>5", ""}, // not a field: part of a name
		{"state:", "state:: what follows the colon?"},
		{`state:"no TTL" holder:"a b`, ""},
		{"state:hold", "state:hold: no state begins so"},
		{"state<5", "state takes a colon"},
		{"ttl:5s", "ttl is compared"},
		{"ttl<5", "a number with a unit is wanted"},
		{"ttl>-5s", "a number with a unit is wanted"},
		{"margin:x", "a number is wanted"},
		{"node:n9", "there is no such node"},
		{"!node:\x1b[2J", `node:\x1b[2j: there is no such node`},
	} {
		err := ParseFilter(c.filter).Check(nodes)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrFilter) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v, not %q", c.filter, err, c.says)
		}
	}
	if err := ParseFilter("node:n9").Check(nil); err != nil {
		t.Errorf("without nodes: %v", err)
	}
	if err := ParseFilter("state:x ttl:1").Check(nil); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two bad terms are told as %v", err)
	}
}

// An unclosed quote is reported at any position; inside a name it is part of the name.
func TestFilterTellsItsOpenQuotes(t *testing.T) {
	for filter, want := range map[string]bool{
		`"a`: true, `!"a b`: true, `state:"no`: true, `state:held|"no TT`: true, `STATE:"no`: true, `"a" state:held holder:"x`: true,
		``: false, `"a"`: false, `a"b`: false, `state:"no TTL"|split`: false, `"a"state:held`: false, `job:"x`: false, `holder:a"b`: false,
	} {
		if got := ParseFilter(filter).Unclosed(); got != want {
			t.Errorf("%q: an open quote is %t", filter, got)
		}
	}
}

func TestFilterProperties(t *testing.T) {
	for f, timed := range map[string]bool{"": false, "a": false, "ttl<5s": true, "!age>1m x": true, "margin:0": false} {
		if ParseFilter(f).Timed() != timed {
			t.Errorf("%q is timed: %v", f, !timed)
		}
	}
	if !ParseFilter("  ").Empty() || !ParseFilter("state:").Empty() || ParseFilter("x").Empty() {
		t.Error("which filters are empty?")
	}
	fields := FilterOffers("", nil)
	for _, field := range fields {
		// Each is a field: half typed, it is reported and not taken for a name.
		if err := ParseFilter(field).Check(nil); !errors.Is(err, ErrFilter) {
			t.Errorf("%q is offered, and is no field: %v", field, err)
		}
	}
	if !slices.Contains(fields, "state:") {
		t.Errorf("%q", fields)
	}
	var zero Filter
	if !zero.Match(&Lock{}, nil) || zero.Check(nil) != nil {
		t.Error("the zero filter does not choose all")
	}
}

func BenchmarkFilter(b *testing.B) {
	l := &Lock{Key: safetext.New("orders:invoice:2026-11:0000042"), Copies: PackCopies(make([]Copy, 5)...)}
	f := ParseFilter("zzz state:held")
	for b.Loop() {
		f.Match(l, nil)
	}
}

// Alternatives of a field and regular expressions select what they say, and an invalid
// one is reported.
func TestFilterAlternatives(t *testing.T) {
	nodes := []Node{{Name: "n1"}, {Name: "n2"}}
	lock := func(key string, s LockState) *Lock {
		return &Lock{Key: safetext.New(key), State: s, Copies: PackCopies(make([]Copy, 2)...)}
	}
	split, held := lock("job:12", LockSplit), lock("Order:x", LockHeld)
	for filter, want := range map[string][2]bool{
		"state:split|held": {true, true}, "!state:split|held": {false, false}, "state:split|orphaned": {true, false},
		"~^job:[0-9]+$": {true, false}, "~^ORDER": {false, true}, "!~x$": {true, false}, "job:*": {true, false},
		`state:"held"|split`: {true, true}, `state:split|"held"`: {true, true}, `State:"not a lock"|split Order`: {false, false},
	} {
		f := ParseFilter(filter)
		if err := f.Check(nodes); err != nil {
			t.Errorf("%s: %v", filter, err)
		}
		if got := [2]bool{f.Match(split, nodes), f.Match(held, nodes)}; got != want {
			t.Errorf("%s chooses %v", filter, got)
		}
	}
	for _, bad := range []string{"~(", "state:split|no-such", "node:n1|n9"} {
		if err := ParseFilter(bad).Check(nodes); !errors.Is(err, ErrFilter) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
