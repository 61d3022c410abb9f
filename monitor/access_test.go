package monitor

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// nodeCase is a case of a node: its copy of the lock, its state, and how it would start.
type nodeCase struct {
	name    string
	copy    CopyState
	token   string
	state   NodeState
	fenced  bool // it starts fenced, under a guard
	rejoins bool // before the holder's end
	// supposed: the copy is assumed to be extended like the others; seen: the other
	// copies were, before their first expiry.
	supposed, seen bool
	brief          bool // its copy expires before the holder's end
	lasting        bool // the lock never expires: each fence ends before
}

var nodeCases = []nodeCase{
	{"own, starts fenced", CopyPresent, "a", NodeServing, true, false, false, false, false, false},
	{"own, starts unfenced", CopyPresent, "a", NodeServing, false, false, false, false, false, false},
	{"own, fenced", CopyPresent, "a", NodeFenced, true, false, false, false, false, false},
	{"own, fenced, starts unfenced", CopyPresent, "a", NodeFenced, false, false, false, false, false, false},
	{"lost, cordoned, starts unfenced", CopyLost, "a", NodeCordoned, false, false, false, false, false, false},
	{"free", CopyAbsent, "", NodeServing, true, false, false, false, false, false},
	{"lost, serves", CopyLost, "a", NodeServing, true, false, false, false, false, false},
	{"lost, fenced to the end", CopyLost, "a", NodeFenced, true, false, false, false, false, false},
	{"lost, rejoins before", CopyLost, "a", NodeFenced, true, true, false, false, false, false},
	{"lost, cordoned", CopyLost, "a", NodeCordoned, true, false, false, false, false, false},
	{"another client's", CopyPresent, "b", NodeServing, true, false, false, false, false, false},
	{"own, silent", CopyUnknown, "a", NodeSlow, true, false, false, false, false, false},
	{"own, silent, starts unfenced", CopyUnknown, "a", NodeSlow, false, false, false, false, false, false},
	{"own, down, starts fenced", CopyUnknown, "a", NodeDown, true, false, false, false, false, false},
	{"own, down, starts unfenced", CopyUnknown, "a", NodeDown, false, false, false, false, false, false},
	{"silent", CopyUnknown, "", NodeSlow, true, false, false, false, false, false},
	{"down, starts fenced", CopyUnknown, "", NodeDown, true, false, false, false, false, false},
	{"down, starts unfenced", CopyUnknown, "", NodeDown, false, false, false, false, false, false},
	{"own, expires before", CopyPresent, "a", NodeServing, true, false, false, false, true, false},
	{"own, silent, expires before", CopyUnknown, "a", NodeSlow, true, false, false, false, true, false},
	{"own, expires before, fenced", CopyPresent, "a", NodeFenced, true, false, false, false, true, false},
	{"own, expires before, rejoins before", CopyPresent, "a", NodeFenced, true, true, false, false, true, false},
}

// rivalWins tries everything that can happen before the holder's end: another client sets
// its key wherever it can; uncertain copies are released or are that client's; silent
// nodes serve; fenced nodes stay fenced or rejoin when it is time; and up to restarts
// nodes restart. It does not use the formula. doubt: what cannot be seen may happen;
// later: nodes may rejoin.
func rivalWins(nodes []nodeCase, quorum, restarts int, doubt, later bool) bool {
	if quorum == 0 {
		return true
	}
	if len(nodes) < quorum {
		return false
	}
	n, rest := nodes[0], nodes[1:]
	votes := func(n nodeCase, restarted bool) bool {
		switch {
		case restarted:
			return !n.fenced || n.lasting && n.copy == CopyPresent && n.token == "a" // before a guard fences it again, or after that
		case n.state == NodeFenced:
			return n.rejoins && later && (n.copy == CopyLost || n.brief)
		case n.state == NodeCordoned:
			return false
		case n.state == NodeDown, n.copy == CopyUnknown && n.token == "a": // it may have restarted, which was not seen
			return doubt && (!n.fenced || n.lasting) || n.supposed && (doubt && !n.seen || later && n.seen) || n.brief && later
		case n.token == "a" && n.copy != CopyLost:
			return n.brief && later // else its copy exists until the end
		case n.token == "b", n.state == NodeSlow:
			return doubt
		}
		return true
	}
	if votes(n, false) && rivalWins(rest, quorum-1, restarts, doubt, later) {
		return true
	}
	if restarts > 0 && votes(n, true) && rivalWins(rest, quorum-1, restarts-1, doubt, later) {
		return true
	}
	return rivalWins(rest, quorum, restarts, doubt, later)
}

// For all clusters of three and five nodes in all of these cases: Access says exactly
// what can happen.
func TestAccessByEnumeration(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := now.Add(10 * time.Second)
	total := 0
	for _, world := range []struct {
		size           int
		supposed, seen bool
		earlier        bool // a client may rely on the lock beside its holder, whatever is left of its votes
		lasting        bool
	}{{size: 3}, {size: 5}, {3, true, false, false, false}, {3, true, true, false, false}, {5, true, false, false, false}, {5, true, true, false, false},
		{size: 3, earlier: true}, {size: 5, earlier: true}, {size: 3, lasting: true}, {size: 5, lasting: true}} {
		size, quorum := world.size, redlock.Quorum(world.size)
		var each func(chosen []nodeCase, from int)
		each = func(chosen []nodeCase, from int) {
			if len(chosen) < size { // the order of nodes does not matter
				for k := from; k < len(nodeCases); k++ {
					if world.lasting && (nodeCases[k].brief || nodeCases[k].state == NodeFenced && nodeCases[k].copy == CopyLost && !nodeCases[k].rejoins) {
						continue // a fenced node rejoins
					}
					each(append(chosen[:len(chosen):len(chosen)], nodeCases[k]), k)
				}
				return
			}
			total++
			s := &Snapshot{At: now, Cluster: Cluster{N: size, Quorum: quorum}}
			var copies []Copy
			spare := -quorum
			chosen = slices.Clone(chosen)
			for i, c := range chosen {
				if chosen[i].lasting = world.lasting; c.copy == CopyUnknown && c.token == "a" {
					chosen[i].supposed, chosen[i].seen = world.supposed, world.seen
				}
				n := Node{Name: fmt.Sprint("n", i+1), State: c.state, GuardsKnown: true, Guards: []announce.Guard{{ID: "g", Boot: announce.BootUnfenced}}}
				if c.fenced {
					n.Guards[0].Boot = announce.BootFenced
				}
				if n.RejoinsAfter = end.Add(time.Second); c.rejoins {
					n.RejoinsAfter = now.Add(4 * time.Second)
				}
				s.Nodes = append(s.Nodes, n)
				one := Copy{State: c.copy}
				if c.token != "" {
					one.Type, one.Token, one.Len, one.Expires = "string", safetext.New(c.token), 1, end
				}
				if world.lasting {
					one.Expires = time.Time{}
				}
				if c.brief {
					one.Expires = now.Add(4 * time.Second)
				}
				copies = append(copies, one)
				if c.state == NodeServing && c.copy == CopyPresent && c.token == "a" {
					spare++
				}
			}
			l := Lock{Copies: PackCopies(copies...), Holder: safetext.New("a"), Supposed: world.supposed}.Until(end)
			if world.lasting {
				l = l.Until(time.Time{})
				l.Unending = true
			}
			if world.seen {
				l = l.Timed(now, now.Add(4*time.Second))
			}
			if world.earlier {
				l.Earlier = &Reliance{Token: safetext.New("b"), Until: end}
			}
			got := s.Access(&l)
			want := Access{Now: rivalWins(chosen, quorum, 0, false, false), Restarts: -1, Spare: spare}
			want.Perhaps = !want.Now && (world.earlier || rivalWins(chosen, quorum, 0, true, false))
			if !want.Now && !want.Perhaps {
				if rivalWins(chosen, quorum, 0, true, true) {
					want.From = now.Add(4 * time.Second)
				}
				for k := 1; k <= size && want.Restarts < 0; k++ {
					if rivalWins(chosen, quorum, k, true, want.From.IsZero()) {
						want.Restarts = k
					}
				}
			}
			if got.Perhaps && !world.earlier && len(got.Unsure) == 0 {
				t.Errorf("%v: perhaps, and no node is unsure", chosen)
			}
			got.From = got.From.UTC()
			if got.Unsure = nil; !reflect.DeepEqual(got, want) {
				t.Errorf("%v:\n got %+v\nwant %+v", chosen, got, want)
			}
		}
		each(nil, 0)
	}
	if total < 5000 {
		t.Errorf("only %d cases", total)
	}
}
