package watch

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/server/fences"
)

// DefaultCount is a good [Config] CountEvery: the counter shows a snapshot that is older.
const DefaultCount = time.Second

// Config configures a Guard.
type Config struct {
	// Delay is D, see [restartguard.Delay]; it must be positive. A longer one is always safe and
	// costs availability, because a node has no vote for that long. If another guard on the same
	// nodes has a longer D, that one counts.
	Delay time.Duration
	// Cluster is the name under which the guard announces itself.
	Cluster string
	// FirstContact is what to do with a serving node that is seen for the first time. Default
	// Adopt: fencing a whole running cluster is an outage.
	FirstContact restartguard.FirstContact
	// Poll is the pause between two observations of a node, and so how late a restart is seen.
	// Default 200 ms.
	Poll time.Duration
	// Timeout bounds dialling and the answer to one round of commands. Default 500 ms.
	Timeout time.Duration
	// Methods is how nodes are fenced, by name. Default: by min-replicas-to-write.
	Methods map[string]fences.Method
	// ClockStep is the smallest forward step of a node's clock that is a loss. 0: the smallest
	// that can be measured; negative: none is.
	ClockStep time.Duration
	// CountEvery is how often the counter key of a serving node is incremented; the key shows a
	// server that was restored from a snapshot. 0: there is no such key.
	CountEvery time.Duration
	// Memory is what the guard remembers beyond its own end; nil: nothing. It must stay open while
	// the guard runs.
	Memory *memory.Store
	// StartedFenced: whoever runs the guard has just started the nodes, and they started fenced.
	// So a young node is adopted, and its present start is reported as seen. For a lab.
	StartedFenced bool
	// N is how many nodes the cluster has; a guard may watch fewer. Default: those that it watches.
	N int
	// Patterns match all locks of the cluster, as SCAN does: a cordoned node without a copy under
	// them is drained. None: no node is ever drained.
	Patterns []string
	// Early lets nodes rejoin before D if the other nodes prove that no lock needs their votes.
	Early EarlyRejoin
	// OnEvent is called for each event, one at a time; it must not block.
	OnEvent func(restartguard.Event)
}

// complete returns the configuration with its defaults, or what is wrong with it.
func (cfg Config) complete(nodes int) (Config, error) {
	cfg.Poll = cmp.Or(cfg.Poll, restartguard.DefaultPoll)
	cfg.Timeout = cmp.Or(cfg.Timeout, restartguard.DefaultTimeout)
	cfg.N = cmp.Or(cfg.N, nodes)
	if cfg.StartedFenced && cfg.FirstContact == restartguard.Adopt {
		cfg.FirstContact = restartguard.AdoptYoung
	}
	switch {
	case nodes == 0:
		return cfg, errors.New("no nodes to guard")
	case cfg.Delay <= 0:
		return cfg, fmt.Errorf("delay %s is not positive", cfg.Delay)
	case cfg.Poll < 0:
		return cfg, fmt.Errorf("poll %s is negative", cfg.Poll)
	case cfg.Timeout < 0:
		return cfg, fmt.Errorf("timeout %s is negative", cfg.Timeout)
	case cfg.FirstContact > restartguard.AdoptYoung:
		return cfg, fmt.Errorf("first contact %d is not known", cfg.FirstContact)
	}
	return cfg, cfg.Early.check(cfg.Delay)
}

// EarlyRejoin is how nodes may rejoin before D, see [restartguard.Survey]. Zero value: never.
type EarlyRejoin struct {
	// AttemptBound is the longest time that an attempt or an extension of any client of the
	// cluster can take, from its first request until it is granted. 0: no early rejoin.
	AttemptBound time.Duration
	// Patterns match all locks of the cluster, as SCAN does.
	Patterns []string
}

func (e EarlyRejoin) check(delay time.Duration) error {
	switch {
	case e.AttemptBound < 0:
		return fmt.Errorf("attempt bound %s is negative", e.AttemptBound)
	case e.AttemptBound > 0 && len(e.Patterns) == 0:
		return errors.New("early rejoin needs the patterns of the locks")
	case e.AttemptBound > 0 && restartguard.EarlyAfter(e.AttemptBound) >= delay:
		return fmt.Errorf("early rejoin is of no use: the attempt bound %s is not below the delay %s", e.AttemptBound, delay)
	}
	return nil
}
