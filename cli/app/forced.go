package app

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/operator"
	"redlockctl/monitor"
)

// forcedLog knows by an audit log which locks of a cluster were force-released whose holders may rely
// on them. It is safe for concurrent use.
type forcedLog struct {
	lines   *auditLines
	cluster string
	maxTTL  time.Duration

	mu     sync.Mutex
	intent map[string]string // the hashes of the tokens that are to be taken, by the id of the action
	done   []forcedDone
}

type forcedDone struct {
	id string
	monitor.Forced
}

// followForced returns those that are known at each call, the latest last. The first call reads the whole
// log.
func followForced(lines *auditLines, cluster string, maxTTL time.Duration) func() []monitor.Forced {
	f := &forcedLog{lines: lines, cluster: cluster, maxTTL: maxTTL, intent: map[string]string{}}
	lines.takes = append(lines.takes, f.take)
	return f.now
}

func (f *forcedLog) now() (all []monitor.Forced) {
	f.lines.read()
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	f.done = slices.DeleteFunc(f.done, func(d forcedDone) bool { return !f.lasts(&d.Forced, now) })
	for _, d := range f.done {
		all = append(all, d.Forced)
	}
	return all
}

// lasts reports whether the holder may rely on the lock now. A lock without a TTL has no end: then it is
// told for as long as a lock may have been held otherwise.
func (f *forcedLog) lasts(one *monitor.Forced, now time.Time) bool {
	if one.Until.IsZero() {
		return now.Sub(one.At) < cmp.Or(f.maxTTL, time.Hour)
	}
	return one.Until.After(now)
}

// take takes a line of the log.
func (f *forcedLog) take(r *audit.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Act != operator.ForceRelease.String() || r.Cluster != f.cluster {
		return
	}
	if r.Phase == audit.Intent {
		f.intent[r.ID] += r.TokenSHA + " " + r.Detail + " "
		return
	}
	hashes := f.intent[r.ID] + r.TokenSHA
	delete(f.intent, r.ID)
	until, relies := operator.RelianceEnd(r.Detail)
	if r.Phase != audit.Done || !relies || slices.ContainsFunc(f.done, func(d forcedDone) bool { return d.id == r.ID }) {
		return
	}
	one := monitor.Forced{Action: actionOf(*r), Lock: r.Target, Until: until, Took: func(token string) bool {
		sha := audit.TokenSHA(token)
		return sha != "" && strings.Contains(hashes, sha)
	}}
	if f.lasts(&one, time.Now()) {
		f.done = append(f.done, forcedDone{r.ID, one})
	}
}
