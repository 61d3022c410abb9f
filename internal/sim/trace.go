package sim

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// Line is one thing that happened in a schedule, in the order in which it did.
type Line struct {
	At   time.Duration // true time since the beginning
	Who  string        // c1 a client, n1 a master, g1 a guard, !! the witness
	Text string
}

// trace takes down what happens.
type trace struct{ lines []Line }

func (t *trace) add(now time.Duration, who, text string) {
	t.lines = append(t.lines, Line{now, who, text})
}

// at is a moment as a trace shows it.
func at(t time.Duration) string {
	if t == never {
		return "never"
	}
	return fmt.Sprintf("%.4f s", t.Seconds())
}

// span is a duration as a trace shows it.
func span(d time.Duration) string {
	switch {
	case d.Abs() < ms:
		return d.Round(time.Microsecond).String()
	case d.Abs() < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(ms).String()
}

func nodesOf(mask uint8) string {
	var names []string
	for i := range maxNodes {
		if mask>>i&1 != 0 {
			names = append(names, nodeName(i))
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// about says what a schedule is played with.
func (p *plan) about(r rules) string {
	var b strings.Builder
	masters := "masters"
	if p.n == 1 {
		masters = "master"
	}
	fmt.Fprintf(&b, "%d %s (quorum %d), %d clients, ", p.n, masters, redlock.Quorum(p.n), p.clients)
	switch {
	case r.noGuard:
		b.WriteString("no guard")
	case p.guards == 1:
		fmt.Fprintf(&b, "1 guard with D = %s", span(time.Duration(float64(restartguard.DefaultDelay(MaxTTL))*r.delay)))
	default:
		fmt.Fprintf(&b, "%d guards with D = %s", p.guards, span(time.Duration(float64(restartguard.DefaultDelay(MaxTTL))*r.delay)))
	}
	if p.guards > 1 && p.shorter && !r.noGuard {
		fmt.Fprintf(&b, ", and the second has %s", span(time.Duration(float64(restartguard.DefaultDelay(MaxTTL))*r.delay)/shorterBy))
	}
	fmt.Fprintf(&b, "; max TTL %s. ", span(MaxTTL))
	switch {
	case !p.fenced:
		b.WriteString("Masters start unfenced")
	case p.lagZero:
		b.WriteString("Masters come up with a boot fence that min-replicas-max-lag 0 switches off")
	default:
		b.WriteString("Masters start fenced")
	}
	if p.replicas {
		b.WriteString(", each with a replica")
	}
	b.WriteString(". ")
	var wrong []string
	rate := func(kind string, i int, ppm int64) {
		if ppm != 0 {
			wrong = append(wrong, fmt.Sprintf("%s%d %+.2f %%", kind, i+1, float64(ppm)/1e4))
		}
	}
	for i := range p.clients {
		rate("c", i, p.client[i].ppm)
	}
	for i := range p.n {
		rate("n", i, p.nodePPM[i])
	}
	if !r.noGuard {
		for i := range p.guards {
			rate("g", i, p.guard[i].ppm)
		}
	}
	if len(wrong) == 0 {
		b.WriteString("All clocks run at the right rate.")
	} else {
		fmt.Fprintf(&b, "Clocks that run fast or slow: %s.", strings.Join(wrong, ", "))
	}
	return b.String()
}
