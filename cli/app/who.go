package app

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/record"
	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// Removal is what is known on this machine of the last time that a lock was revoked, or force-released.
type Removal struct {
	At    time.Time      // zero: nothing is known
	By    monitor.Action // by the audit log; no actor: it does not say
	Grant *view.GrantDoc // what was removed, by the record; nil: it does not say
	Told  string         // until when its holder may rely on it, by the audit log; empty: it does not say
}

// Kept is where this machine keeps what is known of the removals of a cluster's locks.
type Kept struct {
	Cluster, Record, Audit string // its name; the paths of its record and of the audit log
	MaxTTL                 time.Duration
	Forced                 func() []monitor.Forced // see [observe.Options]; nil: nothing is logged
}

// KeptBy is where it is kept by a configuration.
func KeptBy(cfg *config.Config) Kept {
	k := Kept{Cluster: cfg.Cluster.Name, Record: cfg.Record.Path, Audit: cfg.Audit.Path, MaxTTL: cfg.Cluster.MaxTTL}
	if k.Audit != "" {
		k.Forced = followForced(&auditLines{path: k.Audit}, k.Cluster, k.MaxTTL)
	}
	return k
}

func (s *Spec) kept() Kept {
	return Kept{s.Monitor.ClusterName, s.Record.Path, s.Audit, s.Monitor.MaxTTL, s.Monitor.Forced}
}

// RemovalOf finds how a lock was revoked or force-released that nobody has acquired since, in the
// record and the audit log: it may also have been removed before, or the last time from another machine.
func (k Kept) RemovalOf(kind operator.RemovalKind, lock string, now time.Time) (found Removal) {
	if r, err := record.OpenReader(k.Record, k.Cluster); err == nil {
		defer r.Close()
		grants, _ := r.GrantsOf(lock, record.Span{Since: now, Until: now.Add(time.Hour)}, 1)
		if docs := PastGrants(grants); len(docs) > 0 && docs[0].How == kind.String()+"d" {
			found.Grant, found.At = &docs[0], docs[0].Ended
		}
	}
	lines, err := audit.Latest(k.Audit, 1, func(e audit.Entry) bool {
		return e.Phase == audit.Done && k.isRemoval(&e, kind, lock)
	})
	if err != nil || len(lines) == 0 {
		return found
	}
	e := &lines[0]
	if g := found.Grant; g != nil && strings.HasPrefix(e.TokenSHA, g.TokenSHA) || g == nil && now.Sub(e.Time) < cmp.Or(k.MaxTTL, time.Hour) {
		found.At, found.By, found.Told = e.Time, actionOf(e.Record), operator.RelianceIn(e.Detail, now)
	}
	return found
}

// ForceReleased returns when and by whom a lock was force-released that nobody has, or another client, and
// until when its holder may rely on it: nobody tells the holder. l is the lock
// now; nil: no copy is left. Empty: the holder does not, as far as is known here, or has it again. The
// text is not escaped.
func (k Kept) ForceReleased(lock string, l *monitor.Lock, now time.Time) string {
	if l != nil && l.ReliedOn() { // the record's last grant is the next client's
		if k.Forced == nil {
			return ""
		}
		for _, f := range slices.Backward(k.Forced()) {
			if f.Names(l) && f.Stands(l, now) {
				return "it was " + f.Told(now)
			}
		}
		return ""
	}
	r := k.RemovalOf(operator.ForceRelease, lock, now)
	relies := r.Told
	if r.Grant != nil {
		relies = view.Relies(r.Grant, now)
	}
	if relies == "" {
		return ""
	}
	r.By.At = r.At
	return "it was " + r.By.ToldAs(relies, now)
}

// overtakenWait is how long a removal that found nothing waits for the outcome of another one.
const overtakenWait = time.Second

// Overtaken is [Kept.ForceReleased] of a removal that found nothing: the copies are gone a moment before
// the log has the outcome of the one that removed them.
func (k Kept) Overtaken(ctx context.Context, lock string) string {
	k.awaitOutcome(ctx, lock)
	return k.ForceReleased(lock, nil, time.Now())
}

// TakenFrom says when and by whom a lock was force-released from the holder of a token who may rely on it; empty: it
// was not, as far as is known here. The text is not escaped.
func (k Kept) TakenFrom(ctx context.Context, lock, token string) string {
	if k.Forced == nil {
		return ""
	}
	k.awaitOutcome(ctx, lock)
	for _, f := range slices.Backward(k.Forced()) {
		if f.Lock == lock && f.Took(token) {
			return f.When(time.Now())
		}
	}
	return ""
}

// awaitOutcome waits a moment for the outcome of a force-release that is under way.
func (k Kept) awaitOutcome(ctx context.Context, lock string) {
	for end := time.Now().Add(overtakenWait); k.underWay(lock) && time.Now().Before(end); {
		if sleep.For(ctx, overtakenWait/5) != nil { // the log may be long
			return
		}
	}
}

// underWay reports whether a force-release of a lock has begun and has no outcome.
func (k Kept) underWay(lock string) bool {
	open := map[string]bool{}
	_ = audit.Read(k.Audit, func(e audit.Entry) error {
		switch {
		case e.Phase != audit.Intent:
			delete(open, e.ID)
		case k.isRemoval(&e, operator.ForceRelease, lock) && time.Since(e.Time) < 10*overtakenWait:
			open[e.ID] = true
		}
		return nil
	})
	return len(open) > 0
}

// isRemoval reports whether a line of the audit log is about such a removal of a lock.
func (k Kept) isRemoval(e *audit.Entry, kind operator.RemovalKind, lock string) bool {
	return e.Act == kind.String() && e.Cluster == k.Cluster && (e.Target == lock || e.Target == safetext.Escape(lock))
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
