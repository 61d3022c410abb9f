package view

import (
	"strings"

	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// LeftToDo is what is missing until all masters are protected at their next crash: the names of
// the nodes that each step is about.
type LeftToDo struct {
	Down    []string // they do not answer
	Users   []string // without the users of redlockctl
	Hidden  []string // guards cannot be seen there
	Guard   []string // without a guard
	Start   []string // they would start unfenced, or it is not known how
	Unseen  []string // a guard watches them, and nothing shows how they would start
	Dangers int      // findings that are a danger
	Nodes   int      // of the cluster
}

// LeftToDoOf returns what a snapshot shows to be missing. It ignores nodes that do not answer, and
// those that lose nothing in a restart.
func LeftToDoOf(s *monitor.Snapshot) LeftToDo {
	l := LeftToDo{Nodes: len(s.Nodes)}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.State.Readable() {
			continue
		}
		switch monitor.ProtectionOf(n, nil) {
		case monitor.ProtectionHidden:
			l.Hidden = append(l.Hidden, n.Name)
		case monitor.ProtectionNone:
			l.Guard = append(l.Guard, n.Name)
			if !n.StartsFenced {
				l.Start = append(l.Start, n.Name)
			}
		case monitor.ProtectionUnfenced:
			l.Start = append(l.Start, n.Name)
		case monitor.ProtectionUnseen:
			l.Unseen = append(l.Unseen, n.Name)
		}
	}
	return l
}

// Text says in one line what is left to do, in the order of the run book that init writes; empty:
// nothing. init and status print it. It is safe to show.
func (l LeftToDo) Text() string {
	var parts []string
	say := func(names []string, before, after string) {
		if len(names) == 0 {
			return
		}
		of := "all masters"
		if len(names) < l.Nodes {
			of = safetext.Escape(strings.Join(names, ", "))
		}
		parts = append(parts, before+of+after)
	}
	say(l.Down, "reach ", "")
	say(l.Users, "make the users on ", "")
	say(l.Hidden, "allow this user to see guards on ", "")
	say(l.Guard, "run a guard for ", "")
	say(l.Start, "make ", " start fenced")
	say(l.Unseen, "see ", " start fenced, in a restart or by init --check")
	if l.Dangers > 0 {
		parts = append(parts, "remove "+Plural(l.Dangers, "danger")+" (redlockctl doctor)")
	}
	if len(parts) == 0 {
		return ""
	}
	return "left to do: " + strings.Join(parts, "; ") + ". The run book of \"redlockctl init\" has the commands"
}
