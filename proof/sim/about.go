package sim

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/proof/sim/mutant"
	"redlockctl/proof/sim/schedule"
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// about says what a schedule is played with.
func about(p *schedule.Plan, r mutant.Rules) string {
	var b strings.Builder
	masters := "masters"
	if p.N == 1 {
		masters = "master"
	}
	fmt.Fprintf(&b, "%d %s (quorum %d), %d clients, ", p.N, masters, redlock.Quorum(p.N), p.Clients)
	switch {
	case r.NoGuard:
		b.WriteString("no guard")
	case p.Guards == 1:
		fmt.Fprintf(&b, "1 guard with D = %s", trace.Span(time.Duration(float64(restartguard.DefaultDelay(schedule.MaxTTL))*r.Delay)))
	default:
		fmt.Fprintf(&b, "%d guards with D = %s", p.Guards, trace.Span(time.Duration(float64(restartguard.DefaultDelay(schedule.MaxTTL))*r.Delay)))
	}
	if p.Guards > 1 && p.Shorter && !r.NoGuard {
		fmt.Fprintf(&b, ", and the second has %s", trace.Span(time.Duration(float64(restartguard.DefaultDelay(schedule.MaxTTL))*r.Delay)/schedule.ShorterBy))
	}
	fmt.Fprintf(&b, "; max TTL %s. ", trace.Span(schedule.MaxTTL))
	switch {
	case !p.Fenced:
		b.WriteString("Masters start unfenced")
	case p.LagZero:
		b.WriteString("Masters come up with a boot fence that min-replicas-max-lag 0 switches off")
	default:
		b.WriteString("Masters start fenced")
	}
	if p.Replicas {
		b.WriteString(", each with a replica")
	}
	b.WriteString(". ")
	var wrong []string
	rate := func(kind string, i int, ppm int64) {
		if ppm != 0 {
			wrong = append(wrong, fmt.Sprintf("%s%d %+.2f %%", kind, i+1, float64(ppm)/1e4))
		}
	}
	for i := range p.Clients {
		rate("c", i, p.Client[i].PPM)
	}
	for i := range p.N {
		rate("n", i, p.NodePPM[i])
	}
	if !r.NoGuard {
		for i := range p.Guards {
			rate("g", i, p.Guard[i].PPM)
		}
	}
	if len(wrong) == 0 {
		b.WriteString("All clocks run at the right rate.")
	} else {
		fmt.Fprintf(&b, "Clocks that run fast or slow: %s.", strings.Join(wrong, ", "))
	}
	return b.String()
}
