package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/restart"
	"redlockctl/restartguard"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// cordon watches whether a node that was cordoned stays so.
type cordon struct {
	cfg   *config.Config
	name  string
	since time.Time // when it was cordoned, or later

	runID string    // in which it was seen cordoned
	lacks time.Time // since when a later incarnation is not cordoned
}

// againWithin is how long a guard takes to cordon a node again after a restart, at most.
const againWithin = 10 * time.Second

// Cordoned fails with [restart.ErrUncordoned] if a node, cordoned at since, is not cordoned any more.
func Cordoned(ctx context.Context, cfg *config.Config, name string, since time.Time) error {
	c := cordon{cfg: cfg, name: name, since: since}
	_, err := c.look(ctx)
	return err
}

// look returns "" if the node is cordoned, and what it is if a guard may cordon it again after a
// restart. It fails with [restart.ErrUncordoned] if somebody ended the cordon.
func (c *cordon) look(ctx context.Context) (is string, err error) {
	node, method, err := NodeOf(c.cfg, c.name)
	if err != nil {
		return "", err
	}
	if method.Kind == fences.None {
		method = fences.Method{} // as an operator cordons it
	}
	o, err := oneshot.Inspect(ctx, node, method)
	switch {
	case err != nil:
		return "", err
	case o.Blind:
		return "", errors.New("the fence cannot be read: " + o.Err)
	}
	fenced, cordoned := o.Fenced()
	if cordoned {
		c.runID, c.lacks = o.RunID, time.Time{}
		return "", nil
	}
	if fenced && c.runID != "" && o.RunID != c.runID {
		if c.lacks.IsZero() {
			c.lacks = time.Now()
		}
		if time.Since(c.lacks) < againWithin {
			return "it restarted and is fenced; a guard has to cordon it again", nil
		}
	}
	return "", c.ended(o, fenced)
}

// ended says who ended the cordon, if the audit log of this machine has that, and what it means.
func (c *cordon) ended(o restartguard.Observation, fenced bool) error {
	by, name := "", safetext.Escape(c.name)
	if e, ok := latestOn(c.cfg.Audit.Path, c.cfg.Cluster.Name, c.name, c.since, "node uncordon", "node rejoin"); ok {
		by = " by " + safetext.Escape(e.Actor) + " (" + safetext.Escape(e.Reason) + ")"
	}
	means := name + " serves and may have new copies"
	switch {
	case fenced && c.runID != "" && o.RunID != c.runID:
		return fmt.Errorf("%w: %s restarted and was not cordoned again: it serves as soon as its guards let it rejoin", restart.ErrUncordoned, name)
	case fenced:
		means = name + " serves as soon as its guards let it rejoin, and may have new copies then"
	}
	return fmt.Errorf("%w%s: %s", restart.ErrUncordoned, by, means)
}

// CordonedBy says when a node was cordoned that is cordoned now, by whom and why, if the audit log of this
// machine has that: "at 12:03:10 by ops@host: disk".
func CordonedBy(cfg *config.Config, name string) string {
	if cfg.Audit.Path == "" {
		return ""
	}
	if c, ok := followCordons(&auditLines{path: cfg.Audit.Path}, cfg.Cluster.Name).now()[name]; ok {
		return safetext.Escape(c.Told(time.Now()))
	}
	return ""
}

// latestOn returns the latest of these actions of a person on a node of a cluster since a moment, by
// the audit log at path, unless it failed.
func latestOn(path, cluster, node string, since time.Time, acts ...string) (audit.Entry, bool) {
	if path == "" {
		return audit.Entry{}, false
	}
	found, err := audit.Latest(path, 1, func(e audit.Entry) bool {
		return e.Cluster == cluster && e.Target == node && slices.Contains(acts, e.Act) && e.Phase != audit.Failed && !e.Time.Before(since)
	})
	if err != nil || len(found) == 0 {
		return audit.Entry{}, false
	}
	return found[0], true
}
