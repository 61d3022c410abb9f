package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"redlockctl/base/crash"
	"redlockctl/cli/app"
	"redlockctl/cli/flags"
	"redlockctl/cli/progress"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/server/safetext"
	"redlockctl/tui"
)

// plainHelp lists the commands of the plain console.
const plainHelp = "status, nodes, locks [FILTER], findings, help, q (quit): each and enter"

// plainConsole is the console for a screen reader: each change is printed once, as a
// sentence, and printed text never moves. Routine changes of locks are left out; the
// command locks lists them.
func (a *commandLine) plainConsole(ctx context.Context, shown tui.Cluster) error {
	if mon, ok := shown.Source.(*observe.Monitor); ok {
		if _, err := app.Settled(ctx, mon); err != nil {
			return nil // a signal: nothing has begun
		}
	}
	p := &speaker{commandLine: a, shown: shown, events: &eventPrinter{out: a.Out, weighty: true}}
	first := shown.Source.Snapshot()
	if n := len(first.Events); n > 0 {
		p.events.seq = first.Events[n-1].Seq
	}
	p.last = first
	p.tellReading(0)
	p.tellVerdict()
	p.tellNodes()
	p.tellFindings()
	fmt.Fprintln(a.Out, plainHelp)
	lines := a.typedLines(ctx)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case line, more := <-lines:
			if !more || !p.command(strings.TrimSpace(line)) {
				return nil
			}
		case <-shown.Source.Changed(p.last.Version):
			p.take(shown.Source.Snapshot())
		}
		if err := a.Lost(); err != nil {
			return a.Unwritten()
		}
	}
	return nil
}

// typedLines returns the lines of standard input. The channel is closed at the end of a
// terminal's input; otherwise the console runs until a signal.
func (a *commandLine) typedLines(ctx context.Context) <-chan string {
	lines := make(chan string)
	crash.Go(func() {
		read := bufio.NewScanner(a.In)
		for read.Scan() {
			select {
			case lines <- read.Text():
			case <-ctx.Done():
				return
			}
		}
		if a.InTTY {
			close(lines)
		}
	})
	return lines
}

// speaker is a plain console.
type speaker struct {
	*commandLine
	shown   tui.Cluster
	events  *eventPrinter
	last    *monitor.Snapshot
	verdict string // the last verdict printed, without its changing times
	// When reading began, and when its progress was last printed; zero: not reading, not
	// printed.
	reading, printed time.Time
}

func (p *speaker) context() *view.Context {
	ctx := p.ViewContext(p.last)
	ctx.Guard = p.guard()
	return ctx
}

func (p *speaker) guard() (g view.Guard) {
	if p.shown.Guard != nil {
		g = view.NewGuard(p.shown.Guard.ID(), p.shown.Guard.Status())
	}
	g.Configured = p.shown.Delay
	g.See(p.last)
	return g
}

// take prints what is new: events, and then the verdict if it changed.
func (p *speaker) take(s *monitor.Snapshot) {
	p.last = s
	p.tellReading(app.SettleTime)
	events, _ := p.shown.Source.EventsSince(p.events.seq)
	p.events.print(events)
	if p.verdictNow() != p.verdict {
		p.tellVerdict()
	}
}

// verdictNow returns the reasons of the verdict without the times in its sentence, which
// change all the time.
func (p *speaker) verdictNow() string {
	c := &p.last.Cluster
	b := &strings.Builder{}
	fmt.Fprint(b, c.Verdict, c.Missing, c.CanLose, c.Reason)
	for _, n := range p.last.Nodes {
		fmt.Fprint(b, "|", n.State)
	}
	for _, f := range p.last.Findings {
		if f.Severity == monitor.SeverityDanger {
			fmt.Fprint(b, "|", f.ID, f.Key.Raw())
		}
	}
	return b.String()
}

func (p *speaker) tellVerdict() {
	p.verdict = p.verdictNow()
	for _, h := range view.Headlines(p.context()) {
		p.say("%s: %s: %s", safetext.Escape(p.last.Cluster.Name), h.Verdict.Text, h.Text())
	}
}

// tellReading prints the progress of a long read now and then, and its end: until then
// locks may be missing.
func (p *speaker) tellReading(longer time.Duration) {
	r, ok := p.last.Reading()
	if !ok {
		if p.last.Complete && !p.printed.IsZero() {
			p.say("all keys are read: %s", view.Plural(p.last.Locks.Len(), "lock"))
		}
		p.reading, p.printed = time.Time{}, time.Time{}
		return
	}
	if p.reading.IsZero() {
		p.reading = p.last.At
	}
	if p.last.At.Sub(p.reading) >= longer && p.last.At.Sub(p.printed) >= progress.NextReport {
		p.printed = p.last.At
		p.say("%s: locks may be missing until all are read", view.ReadingText(p.context().Glyphs, r, p.last))
	}
}

func (p *speaker) tellNodes() {
	guard := p.guard()
	for _, n := range p.last.Nodes {
		text := n.State.String()
		if left, ok := guard.Countdown(&n, p.last.At); ok {
			text += ", rejoins in " + view.Remaining(left)
		} else if n.Early || n.State == monitor.NodeFenced {
			text += ", " + view.GuardCell(p.context(), &n).Text
		}
		locks := view.Plural(n.Locks, "lock")
		if n.Read < 1 && n.State.Answers() {
			locks += " so far"
		}
		p.say("node %s: %s, %s", safetext.Escape(n.Name), text, locks)
	}
}

func (p *speaker) tellFindings() {
	ctx := p.context()
	for i := range p.last.Findings {
		f := &p.last.Findings[i]
		p.say("%s: %s", ctx.Severity(f.Severity).Text, view.FindingTitle(ctx, f))
	}
}

// tellLocks prints the number of locks that match a filter, and lists them.
func (p *speaker) tellLocks(f *monitor.Filter) {
	found := matching(p.last, f.At(p.last.At))
	if f.Empty() {
		p.printLocks(p.last, found)
		return
	}
	of := view.Plural(p.last.Locks.Len(), "lock")
	if !p.last.Complete {
		of += " so far"
	}
	if len(found) > 0 {
		p.say("the filter matches %s of %s", view.Count(len(found)), of)
		p.printLocks(p.last, found)
		return
	}
	p.say("the filter matches none of %s", of)
	if hint := f.Hint(); hint != "" {
		p.say("filter: %s", safetext.Printable(hint))
	}
}

func (p *speaker) say(format string, args ...any) {
	fmt.Fprintf(p.Out, "%s  %s\n", view.Clock(p.last.At), fmt.Sprintf(format, args...))
}

// command runs a typed command; false: quit.
func (p *speaker) command(line string) bool {
	p.last = p.shown.Source.Snapshot()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "":
	case "q", "quit":
		return false
	case "status":
		p.tellVerdict()
		p.say("locks: %s", view.LocksText(p.last))
	case "nodes":
		p.tellNodes()
	case "findings":
		p.tellFindings()
		if len(p.last.Findings) == 0 {
			p.say("no findings")
		}
	case "locks":
		f, err := flags.Filter(rest, p.last.Nodes)
		if err != nil {
			p.say("%s", safetext.Printable(err.Error()))
			return true
		}
		p.tellLocks(&f)
	default:
		if word != "help" && word != "?" {
			p.say("there is no command %s", safetext.Escape(word))
		}
		fmt.Fprintln(p.Out, plainHelp)
	}
	return true
}
