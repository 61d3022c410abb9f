// Package report makes a page for a post-mortem from a record: the states of the nodes,
// when nothing could be locked, findings and actions, and the most important locks.
package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/record"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// Report is what happened in a span.
type Report struct {
	Cluster record.Cluster
	Since   time.Time
	Until   time.Time
	Lanes   []Lane // the verdict first, then each node
	Away    []Away // how long each node did not serve
	// Verdicts are the times in which the cluster was not safe, and VerdictsLeft how many older ones
	// are left out.
	Verdicts     []Part
	VerdictsLeft int
	Findings     []record.Finding
	Events       []record.Event // except those of findings
	// EventsLeft is how many older events of single locks are left out.
	EventsLeft int
	// Overlaps are the grants with which two clients relied on one lock.
	Overlaps record.Overlaps
	// Kept are the locks that were lost while this program kept them, or ran a command under them: by
	// the audit log of this machine. To the masters they only expired.
	Kept []audit.Entry
	// Lost are locks that lost their majority, and LostLeft how many more did.
	Lost     []record.Event
	LostLeft int
	// NotSeen are grants whose majority did not answer at their end, so that it is not known whether it was
	// lost, and NotSeenLeft how many more there are.
	NotSeen     []record.Grant
	NotSeenLeft int
	Longest     []record.Grant
	Busiest     []record.Use
	Patterns    []record.Minute
	Coverage    record.Coverage
	// LocksUnrecorded says that locks were not recorded then, and how to record them;
	// empty: they were.
	LocksUnrecorded string
	utc             bool
}

// Lane is the sequence of states of a node, or of the cluster.
type Lane struct {
	Name  string
	Parts []Part
}

// Part is a state with its share of the span.
type Part struct {
	State, Text string // Text: its cause at first
	From, To    time.Time
	X, Width    float64 // in percent
	Changes     int     // how often its cause changed
	Last        string  // its cause at the end, if it changed
}

// Said is the state with its cause: the first, the last, and how many there were in between.
func (p Part) Said() string {
	said := p.State
	if p.Text != "" {
		said += ": " + safetext.Escape(p.Text)
	}
	if p.Changes > 1 {
		said += "; " + view.Plural(p.Changes-1, "other cause")
	}
	if p.Changes > 0 {
		said += "; then " + safetext.Escape(p.Last)
	}
	return said
}

// short reports whether the part may begin and end within the same second.
func (p Part) short() bool { return p.To.Sub(p.From) < time.Second }

// goesOn adds a cause to a state that goes on.
func (p *Part) goesOn(cause string) {
	switch was := cmp.Or(p.Last, p.Text); {
	case cause == "" || cause == was:
	case was == "":
		p.Text = cause
	default:
		p.Last = cause
		p.Changes++
	}
}

// Away is how long a node, or the whole cluster, was not in its good state.
type Away struct {
	Name, State string
	Times       int
	Total       time.Duration
}

// Limits of each kind of entry on a page.
const (
	mostEvents = 500
	mostLocks  = 10
	mostLost   = 100
	// mostVerdicts are as many as fit on a screen.
	mostVerdicts = 20
)

// Make reads a report from a record.
func Make(r *record.Reader, in record.Span, utc bool) (*Report, error) {
	rep := &Report{Cluster: r.Cluster, Since: in.Since, Until: in.Until, utc: utc}
	before, err := r.StatesAt(in.Since)
	if err != nil {
		return nil, err
	}
	changes, err := r.States(in)
	if err != nil {
		return nil, err
	}
	states := append(before, changes...)
	if rep.Coverage, err = r.Coverage(in); err != nil {
		return nil, err
	}
	states = notRecorded(states, rep.Coverage.Gaps)
	restarts, err := r.Restarts(in)
	if err != nil {
		return nil, err
	}
	rep.lanes(states, restarts, in)
	if rep.Findings, err = r.Findings(in); err != nil {
		return nil, err
	}
	events, err := r.Causes("", in)
	if err != nil {
		return nil, err
	}
	events = record.Fold(slices.DeleteFunc(events, func(e record.Event) bool { return strings.HasPrefix(e.Kind, "finding") }))
	rep.Events, rep.EventsLeft = record.Latest(events, mostEvents)
	if rep.Overlaps, err = r.Overlaps(in, mostLocks); err != nil {
		return nil, err
	}
	if rep.Lost, err = r.LostMajorities(in); err != nil {
		return nil, err
	}
	rep.LostLeft = max(0, len(rep.Lost)-mostLost)
	rep.Lost = rep.Lost[:min(mostLost, len(rep.Lost))]
	if rep.NotSeen, rep.NotSeenLeft, err = r.NotSeen(in, rep.Coverage.Locks, mostLost); err != nil {
		return nil, err
	}
	if rep.Longest, err = r.Longest(in, mostLocks); err != nil {
		return nil, err
	}
	if rep.Busiest, err = r.Busiest(in, mostLocks); err != nil {
		return nil, err
	}
	if len(rep.Coverage.Locks) == 0 {
		rep.LocksUnrecorded = "locks were not recorded then: " + monitor.AdviceRecordLocks
	}
	rep.Patterns, err = r.Patterns(in, mostLocks)
	return rep, err
}

// KeptAndLost reports whether an entry of the audit log is the loss of a lock that was kept, or under
// which a command ran.
func KeptAndLost(e audit.Entry) bool {
	return e.Phase == audit.Failed && (e.Act == "keep" || e.Act == "run") && strings.HasPrefix(e.Detail, "lock lost: ")
}

// kept says how such a lock was lost.
func kept(e audit.Entry) string { return e.Detail + " (" + e.Act + " by " + e.Actor + ")" }

// notRecorded adds unknown states for the gaps of the record.
func notRecorded(states []record.State, gaps []record.Span) []record.State {
	nodes := map[string]bool{}
	for _, s := range states {
		nodes[s.Node] = true
	}
	for _, gap := range gaps {
		for node := range nodes {
			states = append(states, record.State{Node: node, State: unrecorded, At: gap.Since})
		}
	}
	slices.SortStableFunc(states, func(a, b record.State) int { return a.At.Compare(b.At) })
	return states
}

// lanes places the states of each node on the axis of the span.
func (rep *Report) lanes(states []record.State, restarts []record.Event, in record.Span) {
	by, starts := map[string][]record.State{}, map[string][]time.Time{}
	for _, s := range states {
		by[s.Node] = append(by[s.Node], s)
	}
	for _, e := range restarts {
		starts[e.Node] = append(starts[e.Node], e.At)
	}
	length := float64(in.Until.Sub(in.Since))
	for _, node := range slices.Sorted(maps.Keys(by)) {
		lane := Lane{Name: cmp.Or(node, "cluster")}
		for i, s := range by[node] {
			from, to := s.At, in.Until
			if from.Before(in.Since) {
				from = in.Since
			}
			if i+1 < len(by[node]) {
				to = by[node][i+1].At
			}
			if !to.After(from) {
				continue
			}
			part := Part{State: s.State, Text: s.Text, From: from, To: to, X: 100 * float64(from.Sub(in.Since)) / length, Width: 100 * float64(to.Sub(from)) / length}
			if n := len(lane.Parts); n > 0 && lane.Parts[n-1].State == s.State {
				lane.Parts[n-1].To, lane.Parts[n-1].Width = to, part.X+part.Width-lane.Parts[n-1].X
				lane.Parts[n-1].goesOn(s.Text)
			} else {
				lane.Parts = append(lane.Parts, part)
			}
		}
		if node == "" {
			rep.verdicts(lane.Parts)
		}
		rep.Lanes = append(rep.Lanes, lane)
		rep.Away = append(rep.Away, awayOf(lane.Name, lane.Parts, starts[node])...)
	}
}

// verdicts lists the last times in which the cluster was not safe; those shorter than a second only if
// locks were in danger or could not be acquired.
func (rep *Report) verdicts(parts []Part) {
	rep.Verdicts = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool {
		grave := p.State == monitor.VerdictDanger.String() || p.State == monitor.VerdictUnavailable.String()
		return p.short() && !grave || p.State == monitor.VerdictSafe.String() || p.State == monitor.VerdictUnknown.String() || p.State == unrecorded
	})
	rep.VerdictsLeft = max(0, len(rep.Verdicts)-mostVerdicts)
	rep.Verdicts = rep.Verdicts[rep.VerdictsLeft:]
}

//go:embed page.html
var page string

// HTML writes the report as a self-contained page, light and dark, that loads nothing.
func (rep *Report) HTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"at": rep.at, "edge": rep.edge, "overlap": rep.overlap, "span": inAll, "safe": safetext.Escape, "held": held(rep.Until), "ended": rep.ended, "tone": tone, "what": what, "cleared": rep.cleared, "kept": kept, "notSeen": rep.notSeen,
	}).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, rep)
}

// Missing says what was not recorded, a gap a line.
func (rep *Report) Missing() []string {
	spans := func(all []record.Span) (out []view.SpanDoc) {
		for _, s := range all {
			out = append(out, view.SpanDoc(s))
		}
		return out
	}
	c := view.CoverageDoc{Gaps: spans(rep.Coverage.Gaps), LockGaps: spans(rep.Coverage.LockGaps)}
	return c.Lines(rep.utc)
}

// Left says which events are left out, and how to see them.
func (rep *Report) Left() string {
	return fmt.Sprintf("%s of locks left out: redlockctl history --limit %d shows all", view.Plural(rep.EventsLeft, "older event"), rep.EventsLeft+len(rep.Events))
}

// Overlapping counts the overlaps, says which are listed, and how to see all grants of their locks.
func (rep *Report) Overlapping() string {
	o := &rep.Overlaps
	if o.Count == 0 {
		return ""
	}
	which, name := "of each lock, the longest", "NAME"
	switch {
	case o.Locks == 1:
		which, name = "the longest", safetext.Escape(o.Longest[0].Lock)
	case o.Locks > len(o.Longest):
		which = fmt.Sprintf("of each of %d locks, the longest", len(o.Longest))
	}
	return fmt.Sprintf("%s of %s; %s is listed. All holders: redlockctl history %s --since %s --until %s", view.Plural(o.Count, "overlap"), view.Plural(o.Locks, "lock"), which, name,
		rep.Since.UTC().Format(time.RFC3339), rep.Until.UTC().Format(time.RFC3339))
}

// overlap says which two clients relied on a lock, and for how long.
func (rep *Report) overlap(o record.Overlap) string {
	until := "without end"
	if !o.Relied.IsZero() {
		until = "until " + rep.at(o.Relied)
	}
	who := func(g record.Grant) string {
		return safetext.Escape(cmp.Or(g.Owner, record.TokenName(g.Token[:min(6, len(g.Token))])))
	}
	more := ""
	if o.Others > 0 {
		more = fmt.Sprintf(", and %d more of this lock", o.Others)
	}
	both := view.Age(o.Both)
	if o.Later.Partly { // it was first seen then
		both += " or longer"
	}
	return fmt.Sprintf("%s got in while %s (since %s) relied on it %s: both for %s%s", who(o.Later), who(o.Earlier), rep.at(o.Earlier.Began), until, both, more)
}

// inAll is a total time; a short one is not none.
func inAll(d time.Duration) string {
	if d < time.Second {
		return "less than 1s"
	}
	return view.Age(d)
}

// at formats a time with date and zone.
func (rep *Report) at(t time.Time) string { return rep.format(t, "") }

// edge formats the begin or the end of a part, with milliseconds if it is short.
func (rep *Report) edge(p Part, t time.Time) string {
	if p.short() {
		return rep.format(t, ".000")
	}
	return rep.at(t)
}

func (rep *Report) format(t time.Time, fraction string) string {
	switch {
	case t.IsZero():
		return "–"
	case rep.utc:
		return t.UTC().Format("2006-01-02 15:04:05" + fraction + "Z")
	}
	return t.Local().Format("2006-01-02 15:04:05" + fraction + "-07:00")
}

// what says what was found, with its node or its locks.
func what(f record.Finding) string {
	about := cmp.Or(f.Node, f.Lock)
	if about != "" {
		if about = safetext.Escape(about); f.Lock != "" && f.Locks > 1 {
			about += fmt.Sprintf(" and %d more", f.Locks-1)
		}
		about += ": "
	}
	return about + safetext.Escape(f.Title)
}

// cleared says when a finding was cleared, as far as is known.
func (rep *Report) cleared(f record.Finding) string {
	switch {
	case f.Cleared.IsZero():
		return "not cleared"
	case !f.Seen.IsZero():
		return fmt.Sprintf("cleared by %s (not seen since %s)", rep.at(f.Cleared), rep.at(f.Seen))
	}
	return "cleared " + rep.at(f.Cleared)
}

func held(until time.Time) func(g record.Grant) string {
	return func(g record.Grant) string {
		end := g.Ended
		if end.IsZero() {
			end = until
		}
		age := view.Age(end.Sub(g.Began))
		if g.Partly {
			age = "≥ " + age
		}
		return age
	}
}

// ended says how a grant ended.
func (rep *Report) ended(g record.Grant) string {
	switch {
	case g.How == "":
		return "still held"
	case !g.Ended.IsZero():
		return g.How
	case g.Until.IsZero():
		return g.How + ", may rely on it without end"
	}
	return g.How + ", may rely on it until " + rep.at(g.Until)
}

// notSeen describes a grant whose majority did not answer at its end.
func (rep *Report) notSeen(g record.Grant) string {
	who := ""
	if g.Owner != "" {
		who = " by " + safetext.Escape(g.Owner)
	}
	return "its majority did not answer and may be lost: held" + who + " until " + rep.at(g.Ended) + " as last known, or longer"
}

// tone returns the CSS class of a state.
func tone(state string) string {
	switch state {
	case "serving", "safe":
		return "good"
	case "fenced", "held", "cordoned", "loading", "unprotected", "degraded", "slow":
		return "warn"
	case "unknown", unrecorded:
		return "dim"
	}
	return "bad"
}

// Text writes the report for a terminal.
func (rep *Report) Text(w io.Writer) error {
	var b strings.Builder
	heading := func(s string) { fmt.Fprintf(&b, "\n%s\n", s) }
	fmt.Fprintf(&b, "%s: %s to %s\n", safetext.Escape(rep.Cluster.Name), rep.at(rep.Since), rep.at(rep.Until))
	for _, line := range rep.Missing() {
		fmt.Fprintln(&b, line)
	}
	heading("Not serving, not safe")
	for _, a := range rep.Away {
		fmt.Fprintf(&b, "  %-12s %-12s %s in all, %s\n", safetext.Escape(a.Name), a.State, inAll(a.Total), view.Plural(a.Times, "time"))
	}
	if rep.VerdictsLeft > 0 {
		fmt.Fprintf(&b, "  %s of the cluster left out\n", view.Plural(rep.VerdictsLeft, "older verdict"))
	}
	for _, p := range rep.Verdicts {
		fmt.Fprintf(&b, "  %s to %s  %s\n", rep.edge(p, p.From), rep.edge(p, p.To), p.Said())
	}
	switch {
	case len(rep.Lanes) == 0:
		fmt.Fprintln(&b, "  nothing was recorded then")
	case len(rep.Away) == 0:
		fmt.Fprintln(&b, "  never")
	}
	heading("Findings")
	for _, f := range rep.Findings {
		fmt.Fprintf(&b, "  %s  %-8s %s, %s\n", rep.at(f.Opened), f.Severity, what(f), rep.cleared(f))
	}
	heading("What happened")
	for _, e := range rep.Events {
		about := safetext.Escape(e.Text)
		if e.Lock != "" {
			about = safetext.Escape(e.Lock) + ": " + about
		}
		fmt.Fprintf(&b, "  %s  %-19s %s\n", rep.at(e.At), e.Kind, about)
	}
	if rep.EventsLeft > 0 {
		fmt.Fprintf(&b, "  %s\n", rep.Left())
	}
	heading("Overlaps: two clients relied on one lock")
	if line := rep.Overlapping(); line != "" {
		fmt.Fprintf(&b, "  %s\n", line)
	} else if rep.LocksUnrecorded == "" {
		fmt.Fprintln(&b, "  none, as far as was seen")
	}
	for _, o := range rep.Overlaps.Longest {
		fmt.Fprintf(&b, "  %s  %s: %s\n", rep.at(o.Later.Began), safetext.Escape(o.Lock), rep.overlap(o))
	}
	if len(rep.Kept) > 0 {
		heading("Lost while they were kept: by the audit log of this machine")
	}
	for _, e := range rep.Kept {
		fmt.Fprintf(&b, "  %s  %s: %s\n", rep.at(e.Time), safetext.Escape(e.Target), safetext.Escape(kept(e)))
	}
	heading("Lost their majority")
	for _, e := range rep.Lost {
		fmt.Fprintf(&b, "  %s  %s: %s\n", rep.at(e.At), safetext.Escape(e.Lock), safetext.Escape(e.Text))
	}
	switch {
	case rep.LostLeft > 0:
		fmt.Fprintf(&b, "  and %s\n", view.Plural(rep.LostLeft, "more lock"))
	case len(rep.Lost)+len(rep.NotSeen) == 0 && rep.LocksUnrecorded == "":
		fmt.Fprintln(&b, "  none, as far as was seen")
	}
	for _, g := range rep.NotSeen {
		fmt.Fprintf(&b, "  %s  %s: %s\n", rep.at(g.Ended), safetext.Escape(g.Lock), rep.notSeen(g))
	}
	if rep.NotSeenLeft > 0 {
		fmt.Fprintf(&b, "  and %s\n", view.Plural(rep.NotSeenLeft, "more grant"))
	}
	heading("Held longest")
	if rep.LocksUnrecorded != "" {
		fmt.Fprintf(&b, "  %s\n", rep.LocksUnrecorded)
	}
	hold := held(rep.Until)
	for _, g := range rep.Longest {
		fmt.Fprintf(&b, "  %-8s %s from %s, %s %s\n", hold(g), safetext.Escape(g.Lock), rep.at(g.Began), rep.ended(g), safetext.Escape(g.Owner))
	}
	heading("Granted most often: grants that began in this time")
	for _, u := range rep.Busiest {
		fmt.Fprintf(&b, "  %8s × %s, %d lost a majority", view.Count(u.Grants), safetext.Escape(u.Lock), u.Lost)
		if u.NotSeen > 0 {
			fmt.Fprintf(&b, ", %d not seen to the end", u.NotSeen)
		}
		fmt.Fprintln(&b)
	}
	heading("By pattern, in whole minutes: grants that ended, held p50 and p99, wait p50, lost, orphaned")
	for _, m := range rep.Patterns {
		fmt.Fprintf(&b, "  %8s  %-32s %s %s %s  %d %d\n", view.Count(m.Grants), safetext.Escape(m.Pattern), view.Milliseconds(m.HeldP50), view.Milliseconds(m.HeldP99), view.Milliseconds(m.WaitP50), m.Lost, m.Orphaned)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
