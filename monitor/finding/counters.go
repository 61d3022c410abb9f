package finding

import (
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
)

// happened counts events on a node since this process first saw it, with the time of the
// last one.
type happened struct {
	evicted, refused, saves, backgroundSaves, configRewrites, aclSaves count64
}

type count64 struct {
	n  int64
	at time.Time
}

// lately reports whether the counter rose recently.
func (c count64) lately(now time.Time) bool { return c.n > 0 && now.Sub(c.at) < lately }

// nodeWatch follows the counters of one server.
type nodeWatch struct {
	runID string
	last  monitor.Facts
	since happened
}

// nodeWatches follows all nodes.
type nodeWatches []nodeWatch

// happened updates the counters from a snapshot and returns them by node name.
func (w *nodeWatches) happened(s *monitor.Snapshot) map[string]happened {
	if len(*w) != len(s.Nodes) {
		*w = make([]nodeWatch, len(s.Nodes))
	}
	out := map[string]happened{}
	for i := range s.Nodes {
		n, w := &s.Nodes[i], &(*w)[i]
		if n.RunID != w.runID {
			seen := w.runID != ""
			*w = nodeWatch{runID: n.RunID, last: n.Facts}
			if seen {
				// It restarted while we watched: everything that it counts is new.
				w.last.Evicted, w.last.Refused, w.last.Saves, w.last.BackgroundSaves, w.last.ConfigRewrites, w.last.Rewrites, w.last.ACLSaves = 0, 0, 0, 0, 0, 0, 0
			}
		}
		for _, c := range []struct {
			was, is int64
			to      *count64
		}{
			{w.last.Evicted, n.Facts.Evicted, &w.since.evicted},
			{w.last.Refused, n.Facts.Refused, &w.since.refused},
			{w.last.Saves, n.Facts.Saves, &w.since.saves},
			{w.last.BackgroundSaves + w.last.Rewrites, n.Facts.BackgroundSaves + n.Facts.Rewrites, &w.since.backgroundSaves},
			{w.last.ConfigRewrites, n.Facts.ConfigRewrites, &w.since.configRewrites},
			{w.last.ACLSaves, n.Facts.ACLSaves, &w.since.aclSaves},
		} {
			if c.was >= 0 && c.is > c.was {
				c.to.n, c.to.at = c.to.n+c.is-c.was, s.At
			}
		}
		w.last = n.Facts
		out[n.Name] = w.since
	}
	return out
}

// unreportedChanges reports keys that changed although the node did not report it.
func unreportedChanges(k known, n *monitor.Node, f *found) bool {
	f.Key = n.Facts.UnreportedKey
	return !n.Facts.UnreportedAt.IsZero() && k.At.Sub(n.Facts.UnreportedAt) < lately &&
		f.seen("%s, the last %s, e.g. %s", words.Count(n.Facts.Unreported, "key", "keys"), words.At(n.Facts.UnreportedAt, k.At), clip(n.Facts.UnreportedKey.Raw(), 60))
}

// lately is how long an action or an accident that leaves no state is reported.
const lately = 10 * time.Minute
