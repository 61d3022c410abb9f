package app

import (
	"cmp"
	"context"
	"strings"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/record"
	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// Revocation is what is known on this machine of the revocation of a lock.
type Revocation struct {
	At    time.Time      // zero: nothing is known
	By    monitor.Action // by the audit log; no actor: it does not say
	Grant *view.GrantDoc // what was revoked, by the record; nil: it does not say
}

// RevocationOf finds the revocation of a lock that is revoked now, in the record and the audit
// log: the lock may also have been revoked before, or the last time from another machine.
func RevocationOf(cfg *config.Config, lock string, now time.Time) (found Revocation) {
	if r, err := record.OpenReader(cfg.Record.Path, cfg.Cluster.Name); err == nil {
		defer r.Close()
		grants, _ := r.GrantsOf(lock, record.Span{Since: now, Until: now.Add(time.Hour)}, 1)
		if docs := PastGrants(grants); len(docs) > 0 && docs[0].How == "revoked" {
			found.Grant, found.At = &docs[0], docs[0].Ended
		}
	}
	lines, err := audit.Latest(cfg.Audit.Path, 1, func(e audit.Entry) bool {
		return e.Act == "revoke" && e.Phase == audit.Done && e.Cluster == cfg.Cluster.Name && (e.Target == lock || e.Target == safetext.Escape(lock))
	})
	if err != nil || len(lines) == 0 {
		return found
	}
	e := &lines[0]
	if g := found.Grant; g != nil && strings.HasPrefix(e.TokenSHA, g.TokenSHA) || g == nil && now.Sub(e.Time) < cmp.Or(cfg.Cluster.MaxTTL, time.Hour) {
		found.At, found.By = e.Time, actionOf(e.Record)
	}
	return found
}

// ReliedOn is the lock of an answer, where a client relies on it, or may, whatever copies were
// found, and the snapshot that tells; no lock: nobody does, as far as can be seen; no snapshot:
// nobody could look. reading is that of [Aim].
func ReliedOn(ctx context.Context, cfg *config.Config, w *who.Answer, reading func(*observe.Monitor) func()) (*monitor.Lock, *monitor.Snapshot) {
	s, err := Look(ctx, cfg, Aim{Keys: lockform.PossibleSiblings(w.Key), Reading: reading})
	if err != nil {
		return nil, nil
	}
	if l := s.LockNamed(w.Key); l != nil && l.ReliedOn() {
		return l, s
	}
	return nil, s
}
