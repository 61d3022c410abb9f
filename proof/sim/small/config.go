package small

import (
	"fmt"
	"slices"
	"strings"

	"redlockctl/server/safetext"
)

// Config is a model: what may happen in it, and how often.
type Config struct {
	Crashes, Flushes, GuardCrashes int
	// Steps are steps of a master's wall clock that expire its vote while the guard is
	// away for a moment: the guard crashes, and starts again with its memory.
	Steps int
	// Drains are masters that are cordoned, counted, and uncordoned, whenever.
	Drains      int
	EarlyRejoin bool
	// Extensions, if any, select another model: a client keeps its lock by this many,
	// puts back the copies that masters have lost, and an operator may force-release it.
	Extensions int
	Taken      bool
	// Mutant is the name of one of [Mutants]; "": none.
	Mutant string
	// States bounds the number of visited states; 0: no bound.
	States int
}

// Models are those that can be visited whole within two minutes on one core.
func Models() []Config {
	return []Config{
		{Crashes: 1, Flushes: 1}, {Crashes: 1, GuardCrashes: 1}, {Crashes: 1, Steps: 1}, {Crashes: 1, Drains: 1}, {Crashes: 2}, {Crashes: 2, EarlyRejoin: true},
		{Crashes: 1, Extensions: 2}, {Extensions: 3, Taken: true},
	}
}

// String says what may happen in the model.
func (m Config) String() string {
	s := fmt.Sprintf("%d crashes", m.Crashes)
	if m.Crashes == 1 {
		s = "1 crash"
	}
	if m.Flushes > 0 {
		s += fmt.Sprintf(", %d FLUSHALL", m.Flushes)
	}
	if m.GuardCrashes > 0 {
		s += fmt.Sprintf(", %d restart of the guard", m.GuardCrashes)
	}
	if m.Steps > 0 {
		s += fmt.Sprintf(", %d step of a clock while the guard restarts", m.Steps)
	}
	if m.Drains > 0 {
		s += fmt.Sprintf(", %d cordon of a master that is emptied", m.Drains)
	}
	if m.EarlyRejoin {
		s += ", early rejoin"
	}
	if m.Extensions > 0 {
		s += fmt.Sprintf(", a lock that is kept by %d extensions", m.Extensions)
	}
	if m.Taken {
		s += " and force-released"
	}
	return s
}

// Mutant is a rule that a model can break.
type Mutant struct {
	Name, What string
	model      Config
}

// Model is the smallest model that shows it.
func (w Mutant) Model() Config {
	w.model.Mutant = w.Name
	return w.model
}

// Mutants has all mutants.
func Mutants() []Mutant {
	return []Mutant{
		{"no-guard", "no guard, and masters that start unfenced", Config{Crashes: 1}},
		{"delay-0.9", "waits for 0.9 × D", Config{Crashes: 1}},
		{"from-last-seen", "counts D from when the master was last seen alive", Config{Crashes: 1}},
		{"rejoin-retried", "sends a rejoin without answer again, to the next incarnation of the server", Config{Crashes: 2}},
		{"amnesia", "after its own restart takes a fenced master as free to rejoin", Config{Crashes: 1, GuardCrashes: 1}},
		{"wipes-ignored", "does not notice FLUSHALL", Config{Flushes: 1}},
		{"clock-unread", "after its own restart does not compare a master's clock with what it was before", Config{Steps: 1}},
		{"drain-uncounted", "takes a cordoned master for drained without counting its copies", Config{Crashes: 1, Drains: 1}},
		{"uncordon-cancels", "an uncordon ends the wait that a restart has earned", Config{Crashes: 1, Drains: 1}},
		{"early-without-bound", "early rejoin that does not wait until attempts from before the loss are over", Config{Crashes: 1, EarlyRejoin: true}},
		{"early-counts-lost-node", "early rejoin that counts the lost copy for one of the quorum", Config{Crashes: 1, EarlyRejoin: true}},
		{"repair-of-deleted", "copies are put back that were deleted", Config{Extensions: 3, Taken: true}},
		{"repair-unconfirmed", "copies are put back although no quorum has confirmed the lock", Config{Crashes: 1, Extensions: 2, Taken: true}},
		{"repair-late", "copies are put back when the validity of the lock has ended", Config{Crashes: 1, Extensions: 2}},
		{"repair-counts-at-once", "what was put back counts before it has settled", Config{Crashes: 1, Extensions: 2, Taken: true}},
		{"repair-overwrites", "a copy is put back in the place of another's", Config{Crashes: 1, Extensions: 2}},
		{"repair-through-fence", "a fenced master accepts a copy that is put back", Config{Crashes: 1, Extensions: 2}},
		{"early-ignores-losses", "early rejoin by the word of masters that have lost votes themselves", Config{Crashes: 2, EarlyRejoin: true}},
	}
}

// is reports whether this mutant is chosen.
func (m Config) is(mutant string) bool { return m.Mutant == mutant }

// Chosen returns the models to visit: that of a mutant, or all without one; early: those in which
// nodes rejoin before D.
func Chosen(mutant string, early bool) ([]Config, error) {
	if mutant == "" {
		return slices.DeleteFunc(Models(), func(m Config) bool { return early && !m.EarlyRejoin }), nil
	}
	var names []string
	for _, w := range Mutants() {
		if w.Name == mutant {
			return []Config{w.Model()}, nil
		}
		names = append(names, w.Name)
	}
	return nil, fmt.Errorf("has no mutant %q; there are %s", safetext.Escape(mutant), strings.Join(names, ", "))
}
