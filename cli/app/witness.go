package app

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/safetext"
)

// witnessEvery is how often a guard elsewhere is asked while the nodes are not seen.
const witnessEvery = 5 * time.Second

// witnesses asks the guards of [guard] witnesses for what they see, while somebody wants to know.
type witnesses struct {
	cluster string
	access  metrics.Access

	mu  sync.Mutex
	all []witness
}

type witness struct {
	addr   string
	asked  time.Time
	asking bool
	monitor.Witness
}

// witnessesOf returns the source of what the guards elsewhere see; nil: none is configured.
func witnessesOf(cfg *config.Config, getenv func(string) string) func() []monitor.Witness {
	if len(cfg.Guard.Witnesses) == 0 {
		return nil
	}
	w := &witnesses{cluster: cfg.Cluster.Name, access: metrics.Access{Password: getenv(config.URLPasswordVariable)}}
	for _, addr := range cfg.Guard.Witnesses {
		one := witness{addr: addr, Witness: monitor.Witness{Guard: "a guard"}}
		if u, err := url.Parse(addr); err == nil {
			one.Guard = "the guard at " + safetext.Escape(u.Host)
		}
		w.all = append(w.all, one)
	}
	return w.latest
}

// latest returns the last answers, and asks again beside that.
func (w *witnesses) latest() []monitor.Witness {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := make([]monitor.Witness, len(w.all))
	for i := range w.all {
		one := &w.all[i]
		said[i] = one.Witness
		if now := time.Now(); !one.asking && now.Sub(one.asked) >= witnessEvery {
			one.asking, one.asked = true, now
			addr := one.addr
			crash.Go(func() {
				t, err := metrics.ReadStatus(context.Background(), addr, w.cluster, w.access)
				w.take(i, t, err, time.Now())
			})
		}
	}
	return said
}

// take keeps an answer, or why there is none. An earlier answer stays, and shows its age.
func (w *witnesses) take(i int, t metrics.Status, err error, now time.Time) {
	if err == nil && t.Cluster != w.cluster {
		err = fmt.Errorf("it is one of the cluster %s", safetext.New(t.Cluster).Word())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &w.all[i]
	one.asking = false
	if one.Err = ""; err != nil {
		one.Err = safetext.Escape(err.Error())
		return
	}
	one.At, one.Serving = now, 0
	var others []string
	for _, name := range slices.Sorted(maps.Keys(t.Phases)) {
		if t.Phases[name] == restartguard.PhaseServing.String() {
			one.Serving++
		} else {
			others = append(others, safetext.Escape(name+" "+t.Phases[name]))
		}
	}
	if t.Sick != "" {
		others = append(others, "it is stuck: "+safetext.Escape(t.Sick))
	}
	one.Others = strings.Join(others, ", ")
}
