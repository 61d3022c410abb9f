package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// wordSet returns the words as a set.
func wordSet(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// randomID returns a new run_id, 40 hex digits.
func randomID() string {
	b := make([]byte, 20)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// embeddedVersion is the version of Redis that an embedded master reports.
const embeddedVersion = "7.0.0"

// stats are the figures of an incarnation in INFO.
type stats struct {
	runID   string
	replID  string
	started time.Time // by the master's own clock
	port    int
	calls   map[string]*calls // by the name in commandstats
}

type calls struct{ done, rejected int }

func newStats(started time.Time, port int) stats {
	return stats{runID: randomID(), replID: randomID(), started: started, port: port, calls: map[string]*calls{}}
}

func (s *stats) reset() { clear(s.calls) }

// containers are the commands that commandstats counts by subcommand.
var containers = wordSet("CLIENT", "CLUSTER", "COMMAND", "CONFIG", "MEMORY", "OBJECT", "PUBSUB", "SCRIPT", "XGROUP", "XINFO")

func (s *stats) count(cmd string, args []string, rejected bool) {
	name := strings.ToLower(cmd)
	if containers[cmd] && len(args) > 0 {
		name += "|" + strings.ToLower(args[0])
	}
	n := s.calls[name]
	if n == nil {
		// Names come from clients: do not let them fill the memory.
		if len(s.calls) >= 512 {
			return
		}
		n = &calls{}
		s.calls[name] = n
	}
	if rejected {
		n.rejected++
	} else {
		n.done++
	}
}
