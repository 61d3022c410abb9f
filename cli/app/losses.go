package app

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/config"
	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/words"
	"redlockctl/server/safetext"
)

// TellLosses has findings say how copies were lost that only a guard saw, where the record of this
// machine knows what happened to their nodes. The findings of the snapshot stay as they are.
func TellLosses(cfg *config.Config, s *monitor.Snapshot, found []*monitor.Finding) {
	var how string
	for i, f := range found {
		if !strings.Contains(f.Consequence, finding.HowUnknown) {
			continue
		}
		if how == "" {
			if how = recordedLosses(cfg, s); how == "" {
				return
			}
		}
		told := *f
		told.Consequence = strings.Replace(f.Consequence, finding.HowUnknown, "; by the record here: "+how, 1)
		found[i] = &told
	}
}

// recordedLosses says what happened to the nodes that lost copies of locks in a way that only a guard
// saw, within the longest TTL: "n1 restart at 12:03:10"; empty: nothing is recorded.
func recordedLosses(cfg *config.Config, s *monitor.Snapshot) string {
	lost := map[string]bool{}
	for l := range s.Locks.All() {
		for i, c := range l.Copies.All() {
			if i < len(s.Nodes) && c.State == monitor.CopyLost && c.Cause == monitor.LostUnseen {
				lost[s.Nodes[i].Name] = true
			}
		}
	}
	r, err := record.OpenReader(cfg.Record.Path, cfg.Cluster.Name)
	if err != nil {
		return "" // history says why
	}
	defer r.Close()
	events, _ := r.Causes("", record.Span{Since: s.At.Add(-cmp.Or(cfg.Cluster.MaxTTL, time.Hour)), Until: s.At})
	kinds := []string{monitor.LostByRestart.String(), monitor.LostByWipe.String(), monitor.LostByClock.String()}
	var how []string
	for _, e := range events {
		if lost[e.Node] && slices.Contains(kinds, e.Kind) && !strings.Contains(e.Text, monitor.NoLoss) {
			how = append(how, safetext.Escape(e.Node)+" "+e.Kind+" at "+words.Moment(e.At.Local(), s.At))
		}
	}
	return strings.Join(how, ", ")
}
