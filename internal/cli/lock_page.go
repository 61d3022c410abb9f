package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// lockPageJSON is the document of locks NAME.
type lockPageJSON struct {
	clusterJSON
	Lock     *lockJSON     `json:"lock,omitempty"` // left out: no node that answers has a copy
	Findings []findingJSON `json:"findings"`       // that are about it
}

// lockOf is the lock that a name means: by its first key, or by a further one.
func lockOf(s *monitor.Snapshot, name string) *monitor.Lock {
	if l := s.Locks.Get(name); l != nil {
		return l
	}
	for l := range s.Locks.All() {
		for _, k := range l.Keys {
			if k.Raw() == name {
				return l
			}
		}
	}
	return nil
}

// unseen is the error of a lock that is not there, or of which nobody can say.
func unseen(s *monitor.Snapshot, name string) error {
	answer := answering(s)
	if !s.Complete {
		return fmt.Errorf("\"%s\": %w: no copy on those that could", safetext.Escape(name), errIncomplete)
	}
	if answer < s.Cluster.Quorum {
		return fmt.Errorf("\"%s\": %w: none of the %d of %d nodes that answer has a copy",
			safetext.Escape(name), redlock.ErrNoQuorum, answer, s.Cluster.N)
	}
	return operator.NotLocked(name, answer, s.Cluster.N)
}

// answering is how many nodes tell what is on them.
func answering(s *monitor.Snapshot) (n int) {
	for i := range s.Nodes {
		switch s.Nodes[i].State {
		case monitor.NodeServing, monitor.NodeFenced, monitor.NodeHeld:
			n++
		}
	}
	return n
}

// showLock prints one lock, and is an error where there is none; in a row of
// pictures it is none.
func (a *commandLine) showLock(s *monitor.Snapshot, name string, again bool) error {
	l := lockOf(s, name)
	doc := lockPageJSON{clusterJSON: clusterDoc(s), Findings: []findingJSON{}}
	if l != nil {
		one := lockDoc(l, s)
		doc.Lock = &one
	}
	var about []monitor.Finding
	for _, f := range s.Findings {
		if l != nil && f.Key == l.Key {
			about = append(about, f)
			doc.Findings = append(doc.Findings, findingDoc(f, s.At))
		}
	}
	printed := false
	if l != nil || again {
		var err error
		if printed, err = a.document(func() document { return doc }); err != nil {
			return err
		}
	}
	switch {
	case l == nil && !again:
		return unseen(s, name)
	case printed:
	case l == nil:
		fmt.Fprintf(a.out, "%s: no node that answers has a copy\n", safetext.Escape(name))
	default:
		a.printLock(a.out, s, l, about)
	}
	return nil
}

// printLock prints all that is known of a lock.
func (a *commandLine) printLock(w io.Writer, s *monitor.Snapshot, l *monitor.Lock, findings []monitor.Finding) {
	state := l.State.String()
	if a.color() {
		state = tones[lockTone(l.State)].Styled(state)
	}
	ends := "no majority"
	switch {
	case l.State == monitor.LockImmortal:
		ends = l.EndlessText()
	case !l.MajorityEnd.IsZero():
		ends = "ends in " + left(l.MajorityEnd.Sub(s.At))
	}
	if l.Held >= s.Cluster.Quorum {
		ends += ", " + strconv.Itoa(l.Margin()) + " more may be lost"
	}
	fmt.Fprintf(w, "%s: %s, %s copies, %s\n", l.Key, state, copiesOf(l, s), ends)
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "  %-10s %s\n", name, value)
		}
	}
	if l.Nobody {
		fact("holder", l.NobodyText())
	} else {
		fact("holder", l.Holder.String())
	}
	if f := l.Form; f != nil {
		fact("made by", madeBy(l, s.At))
		fact("owner", f.Owner.String())
		if !f.Created.IsZero() {
			fact("drawn", f.Created.Local().Format("2006-01-02 15:04:05")+" by the clock of its maker")
		}
		fact("refused", f.Refused)
		fact("take away", f.TakingAway)
	}
	for i, k := range l.Keys {
		name := "keys"
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(w, "  %-10s %s\n", name, k)
	}
	if l.Tokens > 1 {
		fact("tokens", strconv.Itoa(l.Tokens)+" different ones")
	}
	fact("seen for", seenFor(l, s))
	fmt.Fprintln(w)
	a.printCopies(w, s, l)
	a.printFindings(w, findings)
}

// axisWidth is how many cells the axis of remaining time has.
const axisWidth = 32

// printCopies draws what is left of each copy on one axis, on which the majority
// end is marked.
func (a *commandLine) printCopies(w io.Writer, s *monitor.Snapshot, l *monitor.Lock) {
	var longest time.Duration
	for _, c := range l.Copies.All() {
		longest = max(longest, c.Expires.Sub(s.At))
	}
	at := func(d time.Duration) int {
		if longest <= 0 {
			return 0
		}
		return int(min(max(d, 0), longest) * axisWidth / longest)
	}
	mark := -1
	if !l.MajorityEnd.IsZero() {
		mark = min(at(l.MajorityEnd.Sub(s.At)), axisWidth-1)
	}
	full, line := "█", "│"
	if a.ascii {
		full, line = "#", "|"
	}
	t := &table{head: []string{"NODE", "COPY", "REMAINING", "TOKEN"}}
	for i, n := range s.Nodes {
		if i >= l.Copies.Len() {
			break
		}
		c := l.Copies.At(i)
		token := c.Token.String()
		if c.State == monitor.CopyAbsent {
			token = ""
		}
		bar := make([]string, axisWidth)
		for j := range bar {
			switch {
			case j == mark:
				bar[j] = line
			case token != "" && (c.Expires.IsZero() || j < at(c.Expires.Sub(s.At))):
				bar[j] = full
			default:
				bar[j] = " "
			}
		}
		cell1 := a.copyCell(c, l, s)
		t.add(plain(n.Name), cell1, cell{text: strings.TrimRight(strings.Join(bar, ""), " ")}, cell{text: a.cut(token, 48)})
	}
	t.write(w, a.color())
	if mark >= 0 {
		fmt.Fprintf(w, "%s is when the holder falls below a quorum.\n", line)
	}
}

// printFindings are the findings about what is shown above.
func (a *commandLine) printFindings(w io.Writer, findings []monitor.Finding) {
	for _, f := range findings {
		fmt.Fprintf(w, "\n%s  %s  [%s]\n  %s\n  %s\n", strings.ToUpper(f.Severity.String()), f.Title, f.ID, a.clip(f.Evidence.String(), 400), f.Remedy)
	}
}
