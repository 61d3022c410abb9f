package finding

import (
	"fmt"
	"slices"
	"strings"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
)

// losses are the copies that locks have lost: which nodes lost one, and how.
type losses struct {
	nodes   []nodeLoss
	endless []string // the keys of the locks without an end
}

// nodeLoss is what one node lost.
type nodeLoss struct {
	causes [monitor.NumLossCauses]bool
	any    bool
}

// add adds the copies that a lock has lost.
func (s *losses) add(l *monitor.Lock) {
	if l.HeldUntil().IsZero() {
		s.endless = append(s.endless, clip(l.Key.Raw(), 60))
	}
	for i, c := range l.Copies.All() {
		if i >= len(s.nodes) {
			s.nodes = append(s.nodes, nodeLoss{})
		}
		if c.State == monitor.CopyLost {
			n := &s.nodes[i]
			n.any, n.causes[min(c.Cause, monitor.LostUnseen)] = true, true
		}
	}
}

// lostMajority: a holder relies on its lock until the end of a lost majority. While the
// nodes that lost its copies refuse writes, the only harm is that the lock cannot be
// extended.
func lostMajority(k known, f *found) bool {
	if !ofLocks(badLost, "a lock that lost its majority")(k, f) {
		return false
	}
	f.explainLoss(k, badLost)
	return true
}

// exposedLock: nodes that lost its copies serve before the holder's end, or will.
func exposedLock(k known, f *found) bool {
	if !ofLocks(badExposed, "another client can get a lock that its holder still relies on")(k, f) {
		return false
	}
	f.explainLoss(k, badExposed)
	return true
}

// explainLoss says how the copies were lost, who can get in, and what to find out.
func (f *found) explainLoss(k known, kind int) {
	var causes [monitor.NumLossCauses]bool
	var serving [monitor.NumLossCauses][]string // of each cause
	var serve, early []string
	all := k.locks[kind].lost.nodes
	for i := range min(len(all), len(k.Nodes)) {
		n := &k.Nodes[i]
		if !all[i].any {
			continue
		}
		serves := n.State == monitor.NodeServing
		if serves {
			serve = append(serve, n.Name)
		}
		for c, was := range all[i].causes {
			causes[c] = causes[c] || was
			switch {
			case !was || !serves:
			case n.Early && monitor.LossCause(c) != monitor.LostByDeletion:
				early = append(early, n.Name)
			default:
				serving[c] = append(serving[c], n.Name)
			}
		}
	}
	until, before, by := "the locks until they expire, and cannot extend them", " before that", "serve by then"
	if endless := k.locks[kind].lost.endless; endless != nil {
		slices.Sort(endless)
		until, before, by = "the locks without end: copies have no TTL", "", "rejoin"
		wait := ""
		if ending := f.Count - len(endless); ending > 0 {
			until = fmt.Sprintf("%s, and without end on %s, where copies have no TTL; they cannot extend them", words.Count(ending, "lock until its end", "locks until the end of each"), few(endless))
			wait = ", or wait until those with an end have expired"
		}
		f.Remedy = "Let the holders release the locks" + wait + ". Do not force-release them while their holders may work: that lets a second client in."
	}
	f.Consequence = howLost(causes) + " Their holders rely on " + until + ". "
	switch {
	case kind == badLost && k.locks[kind].perhaps:
		f.Consequence += "Whether another client can get in" + before + " is not known: nodes do not answer, or another client has a copy, with which it may reach a quorum."
		return
	case kind == badLost && serve == nil:
		f.Consequence += "While the nodes that lost the copies stay fenced, no other client gets in."
		return
	case kind == badLost:
		f.Consequence += "No other client gets in" + before + ", though " + lostAndServe(serve) + ": they are too few."
		return
	case serve == nil:
		f.Consequence += "Another client can get in" + before + ": nodes without a copy " + by + "."
	default:
		f.Consequence += "Another client can get in: " + lostAndServe(serve) + "."
	}
	do := []string{"Stop the holders, or let them finish before anybody else starts."}
	if early != nil {
		do = append(do, "Somebody let "+few(slices.Compact(early))+" rejoin before the time, or a guard did not fence in time: redlockctl node cordon, and node uncordon when the locks have expired.")
	}
	if names := serving[monitor.LostByDeletion]; names != nil {
		do = append(do, "Find out who deleted the copies on "+few(names)+": a person, a program, eviction, or a client whose release did not reach all nodes.")
	}
	unfenced := slices.Concat(serving[monitor.LostByRestart], serving[monitor.LostByWipe], serving[monitor.LostByClock])
	if slices.Sort(unfenced); unfenced != nil {
		why := " until the locks have expired: no guard watches, the start was unfenced, or somebody let it rejoin."
		if k.locks[kind].lost.endless != nil {
			why = ": no guard watches, the start was unfenced, somebody let it rejoin, or a guard did, as no fence lasts as long as a lock without a TTL."
		}
		do = append(do, "Find out why "+few(slices.Compact(unfenced))+" did not stay fenced"+why)
	}
	if names := serving[monitor.LostUnseen]; names != nil {
		do = append(do, "Find out how "+few(names)+" lost the copies: by a restart or a wipe of data without a fence, a deletion, eviction, or a release that did not reach all nodes.")
	}
	f.Remedy = strings.Join(do, " ")
}

// HowUnknown follows the losses of which nobody here knows the cause.
const HowUnknown = "; how is not known here"

// howLost says how copies were lost.
func howLost(causes [monitor.NumLossCauses]bool) string {
	var how []string
	for c, text := range map[monitor.LossCause]string{
		monitor.LostByRestart: "a restart", monitor.LostByWipe: "a wipe of data", monitor.LostByClock: "a step of a clock",
		monitor.LostByDeletion: "a deletion on some nodes",
	} {
		if causes[c] {
			how = append(how, text)
		}
	}
	slices.Sort(how)
	text := "Copies were lost"
	if how != nil {
		text += " by " + strings.Join(how, ", ")
	}
	if causes[monitor.LostUnseen] {
		if how != nil {
			text += "; others in a way that was not seen here"
		} else {
			text += ", as a guard saw" + HowUnknown
		}
	}
	return text + "."
}

func lostAndServe(names []string) string {
	if len(names) == 1 {
		return names[0] + " lost a copy and serves"
	}
	return few(names) + " lost copies and serve"
}

// few names some nodes.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], " "), len(names)-most)
}
