package campaign

import (
	"fmt"
	"io"
	"time"
)

// Report is the result of a campaign.
type Report struct {
	Config
	Delay      time.Duration // D
	Took       time.Duration
	Grants     int
	Kills      int // of masters
	Voters     int // of which they had just voted
	GuardKills int // of guards
	WaitKills  int // while a server waited for its start
	Drained    int // masters that were restarted empty, of those killed
	Cuts       int // of guards from masters
	Rejoins
	Violations []Violation // two clients relied on one lock
}

// Clean reports whether nothing was found.
func (r *Report) Clean() bool { return len(r.Violations) == 0 && len(r.Faults) == 0 }

// Print writes the summary.
func (r *Report) Print(w io.Writer) {
	const most = 5
	for i, v := range r.Violations[:min(most, len(r.Violations))] {
		fmt.Fprintf(w, "VIOLATION  %d of %d: %s\n", i+1, len(r.Violations), v)
	}
	for i, f := range r.Faults[:min(most, len(r.Faults))] {
		fmt.Fprintf(w, "FAULT      %d of %d: %s\n", i+1, len(r.Faults), f)
	}
	who := [...]string{"with guard", "with a guard that is killed", "node wait --before-start", "WITHOUT GUARD"}[r.Guarding]
	if r.ACL {
		who += ", fence acl"
	}
	if r.Config.Early {
		who += ", early rejoin"
	}
	fmt.Fprintf(w, "%s, %d masters, %d clients, %d locks, max TTL %s, D %s, seed %d, took %s\n",
		who, r.Nodes, r.Clients, r.Resources, r.MaxTTL, r.Delay, r.Seed, r.Took.Round(10*time.Millisecond))
	fmt.Fprintf(w, "  masters killed                     %6d   (%d had just voted)\n", r.Kills, r.Voters)
	if r.Drains {
		fmt.Fprintf(w, "    cordoned and empty               %6d\n", r.Drained)
		fmt.Fprintf(w, "  guards cut off from masters        %6d   (%d guards, D %s and %s)\n", r.Cuts, r.Guards, r.waitsOf(0), r.waitsOf(1))
	}
	if r.GuardKills > 0 {
		fmt.Fprintf(w, "  guards killed                      %6d\n", r.GuardKills)
	}
	if r.Guarding == Delayed {
		fmt.Fprintf(w, "  waits killed                       %6d\n", r.WaitKills)
	}
	fmt.Fprintf(w, "  grants                             %6d\n", r.Grants)
	fmt.Fprintf(w, "  locks held by two                  %6d\n", len(r.Violations))
	if r.Guarding != Nothing {
		fmt.Fprintf(w, "  SETs accepted, start to rejoin     %6d\n", r.Accepted)
		fmt.Fprintf(w, "  rejoined                           %6d   (%s to %s after their start)\n", r.Rejoined, r.Shortest.Round(time.Millisecond), r.Longest.Round(time.Millisecond))
	}
	if r.Config.Early || r.Drains {
		fmt.Fprintf(w, "    before D                         %6d\n", r.Rejoins.Early)
	}
}
