package view

import (
	"fmt"
	"slices"
	"strings"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
)

// Headline is one line about the state of a cluster: a verdict and its reasons, the worst
// first.
type Headline struct {
	Verdict Cell
	Parts   []HeadlinePart
}

// HeadlinePart is a reason in a headline, in full and brief. Why is added if everything
// fits.
type HeadlinePart struct{ Text, Brief, Why string }

func partOf(text string) HeadlinePart { return HeadlinePart{Text: text, Brief: text} }

// Headlines returns the state of a cluster, the worst first: what may give one lock to two
// clients, then the state of the nodes. The screen and status print them.
func Headlines(c *Context) []Headline {
	cl := &c.Snap.Cluster
	nodes := nodesHeadline(c)
	danger, ok := dangerHeadline(c)
	switch {
	case !ok:
		return []Headline{nodes}
	case cl.Verdict == monitor.VerdictUnavailable:
		return []Headline{nodes, danger}
	case cl.Serving >= cl.N && cl.Missing == "":
		danger.Parts = append(danger.Parts, nodes.Parts...)
		return []Headline{danger}
	}
	return []Headline{danger, nodes}
}

// dangerHeadline returns the first danger, and the number of others. Dangers that concern
// only nodes are in the line about nodes.
func dangerHeadline(c *Context) (Headline, bool) {
	dangers := slices.DeleteFunc(slices.Clone(c.Snap.Findings), func(f monitor.Finding) bool {
		return f.Severity != monitor.SeverityDanger || f.ID == "no-quorum"
	})
	if len(dangers) == 0 {
		return Headline{}, false
	}
	text := FindingTitle(c, &dangers[0])
	h := Headline{c.Verdict(monitor.VerdictDanger), []HeadlinePart{partOf(text)}}
	if n := len(dangers) - 1; n > 0 {
		h.Parts = append(h.Parts, partOf(Plural(n, "more danger")))
	}
	return h, true
}

// nodesHeadline returns the state of the nodes, whatever the state of single locks.
func nodesHeadline(c *Context) Headline {
	cl := &c.Snap.Cluster
	verdict := cl.Verdict
	if verdict == monitor.VerdictDanger {
		switch {
		case cl.Serving < cl.N:
			verdict = monitor.VerdictDegraded
		case cl.Missing != "":
			verdict = monitor.VerdictUnprotected
		default:
			verdict = monitor.VerdictSafe
		}
	}
	h := Headline{Verdict: c.Verdict(verdict)}
	add := func(p ...HeadlinePart) { h.Parts = append(h.Parts, p...) }
	missing := func(brief string) {
		if cl.Missing != "" {
			add(HeadlinePart{Text: c.Whole(cl.Missing), Brief: brief})
		}
	}
	switch verdict {
	case monitor.VerdictUnavailable:
		nothing := NothingText(c)
		add(HeadlinePart{Text: nothing, Brief: strings.Replace(nothing, "nothing can be locked", "no new locks", 1)})
		add(absentNodes(c)...)
		add(partOf(fmt.Sprintf("%d of %d nodes serve, a quorum is %d", cl.Serving, cl.N, cl.Quorum)))
	case monitor.VerdictUnknown:
		reason := c.Whole(cl.Reason)
		if reason == "" {
			reason = "looking" + c.Ellipsis
		}
		add(partOf(reason))
	case monitor.VerdictSafe:
		add(partOf(fmt.Sprintf("all %s serve", Plural(cl.N, "node"))), partOf(Losses(cl)))
	default:
		add(absentNodes(c)...)
		if cl.Serving >= cl.N {
			_, brief, _ := strings.Cut(c.Whole(cl.Missing), ": ")
			missing(brief)
			add(partOf(Losses(cl)))
		} else {
			missing("not protected")
			add(partOf(Losses(cl)))
		}
	}
	return h
}

// NothingText says that nothing can be locked, and until when, if that is known.
func NothingText(c *Context) string {
	text := "nothing can be locked"
	o := c.Guard.Outlook(c.Snap)
	if len(c.Guard.List) > 0 && !o.Possible() && !o.Until.IsZero() {
		text += " until " + Clock(o.Until)
	}
	return text
}

// Losses says how many more nodes may fail.
func Losses(cl *monitor.Cluster) string {
	switch n := cl.CanLose + 1; {
	case n <= 0:
		return "nothing can be locked"
	case n == 1:
		return "losing one more node stops all locking"
	case cl.Serving < cl.N:
		return fmt.Sprintf("losing %d more nodes stops all locking", n)
	default:
		return fmt.Sprintf("losing %d nodes stops all locking", n)
	}
}

// absentNodes names nodes that do not serve; of many the worst, and how many more there are.
func absentNodes(c *Context) (parts []HeadlinePart) {
	absent := c.Snap.NodesAbsent()
	more := max(0, len(absent)-words.MostNamed)
	for _, n := range absent[:len(absent)-more] {
		name := c.Escape(n.Name, 12)
		p := partOf(name + " " + n.State.String())
		if left, ok := c.Guard.Countdown(n, c.Now); ok {
			p.Text += ", rejoins in " + Remaining(left)
			p.Why = c.Whole(c.Guard.Status[n.Name].Reason)
			p.Brief = name + " " + n.State.String() + " " + Remaining(left)
		} else if at, ok := c.Guard.NotBefore(n, c.Now); ok {
			p.Text += ", rejoins " + notBefore(at, c.Now)
			p.Brief = name + " " + n.State.String() + " " + c.Our("≥") + Remaining(at.Sub(c.Now))
		} else if n.State == monitor.NodeDown && !c.Began && !n.Older && !n.Since.IsZero() {
			p.Text += " " + c.age(n.Since)
		}
		parts = append(parts, p)
	}
	if more > 0 {
		parts = append(parts, partOf(Count(more)+" more out"))
	}
	return parts
}

// Line returns the parts in at most w cells: brief ones if they do not fit, then without
// the last ones. The first part is always there.
func (h Headline) Line(g *Glyphs, w int) string {
	join := func(of func(HeadlinePart) string, n int) string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = of(h.Parts[i])
		}
		return strings.Join(texts, " "+g.Sep+" ")
	}
	full := func(p HeadlinePart) string { return p.Text }
	brief := func(p HeadlinePart) string { return p.Brief }
	if line := join(full, len(h.Parts)); Width(line) <= w {
		return line
	}
	for n := len(h.Parts); n > 0; n-- {
		if line := join(brief, n); Width(line) <= w {
			return line
		}
	}
	return g.Cut(join(brief, min(1, len(h.Parts))), w)
}

// Text returns all parts.
func (h Headline) Text() string {
	texts := make([]string, len(h.Parts))
	for i := range texts {
		if texts[i] = h.Parts[i].Text; h.Parts[i].Why != "" {
			texts[i] += " (" + h.Parts[i].Why + ")"
		}
	}
	return strings.Join(texts, "; ")
}
