package table

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/redlock"
)

// votes says who has which node: 0 nobody, 1 the holder, 2 and more the others.
type votes string

// fewestLosses finds, by trying everything, how many copies the holder must lose before
// another token can reach the quorum. Each loss of a holder's copy costs one; it costs
// nothing when others acquire free nodes or release or lose their own copies. It does not
// use the formula.
func fewestLosses(start votes, quorum, tokens int) int {
	at := map[votes]int{start: 0}
	level := []votes{start}
	for cost := 0; ; cost++ {
		var next []votes
		for len(level) > 0 {
			v := level[len(level)-1]
			level = level[:len(level)-1]
			if at[v] < cost {
				continue
			}
			for t := 2; t <= tokens; t++ {
				if countOf(v, byte(t)) >= quorum {
					return cost
				}
			}
			for i := range v {
				become := func(t byte, price int) {
					b := []byte(v)
					b[i] = t
					w := votes(b)
					if known, ok := at[w]; ok && known <= cost+price {
						return
					}
					at[w] = cost + price
					if price == 0 {
						level = append(level, w)
					} else {
						next = append(next, w)
					}
				}
				switch v[i] {
				case 0:
					for t := 2; t <= tokens; t++ {
						become(byte(t), 0) // SET NX
					}
				case 1:
					become(0, 1) // lost with a restart
				default:
					become(0, 0) // released, expired, or lost
				}
			}
		}
		level = next
	}
}

func countOf(v votes, t byte) (n int) {
	for i := range v {
		if v[i] == t {
			n++
		}
	}
	return n
}

// For all clusters of up to seven nodes and all ways in which a holder and up to three
// others can share them: the margin is exactly the number of losses that keep all others
// out, it does not depend on the others' copies, and with an odd number of nodes the
// holder keeps its quorum that long.
func TestMarginByEnumeration(t *testing.T) {
	cases := 0
	for n := 1; n <= 7; n++ {
		quorum := redlock.Quorum(n)
		byOwn := map[int]int{} // number of the holder's copies → fewest losses
		var each func(v []byte, most byte)
		each = func(v []byte, most byte) {
			if len(v) < n {
				for k := byte(0); k <= min(most+1, 4); k++ { // tokens are numbered as they appear
					each(append(slices.Clone(v), k), max(most, k))
				}
				return
			}
			own := countOf(votes(v), 1)
			if own < quorum {
				return // nobody to protect: the margin is shown only with a majority
			}
			cases++
			// One more token than there are: a client that has no copy yet.
			losses := fewestLosses(votes(v), quorum, int(max(most, 1))+1)
			margin := monitor.CrashMargin(n, quorum, own)
			if losses != margin+1 {
				t.Errorf("%d nodes, votes %v: %d losses let another in, the margin is %d", n, v, losses, margin)
			}
			if was, ok := byOwn[own]; ok && was != losses {
				t.Errorf("%d nodes, votes %v: %d losses, and %d where the others have other copies", n, v, losses, was)
			}
			byOwn[own] = losses
			if keeps := own-margin >= quorum; keeps != (n%2 == 1) {
				t.Errorf("%d nodes, votes %v: after %d losses the holder keeps its quorum: %t", n, v, margin, keeps)
			}
			if shown := marginInTable(t, v, quorum); shown != margin {
				t.Errorf("%d nodes, votes %v: the table says %d; want %d", n, v, shown, margin)
			}
		}
		each(nil, 0)
	}
	if cases < 500 {
		t.Errorf("only %d cases", cases)
	}
}

// marginInTable returns the margin that the lock table computes from the votes.
func marginInTable(t *testing.T, v []byte, quorum int) int {
	t.Helper()
	now := time.Now()
	names := make([]string, len(v))
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i+1)
	}
	tab := New(names, quorum, time.Minute, time.Second, now, func(monitor.Event) {})
	for i, k := range v {
		tab.Reachable(i, false)
		if k > 0 {
			tab.Read(i, now, now, []Row{{Key: "job", Type: "string", TTL: 30 * time.Second, Len: 6, Prefix: fmt.Sprintf("token%d", k)}})
		}
		tab.Scanned(i, tab.Epoch(i), now, now)
	}
	tab.Refresh(now)
	l := tab.Locks().Get("job")
	if l == nil {
		t.Fatalf("votes %v: no lock", v)
	}
	return l.Margin()
}
