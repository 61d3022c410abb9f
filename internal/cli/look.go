package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// look is a snapshot of the cluster once all that is asked for has been read,
// and what needs time to be told has been told; or, with a bound, what is known
// when that is over. It says how far it is.
func (a *commandLine) look(ctx context.Context, cfg *config.Config, of app.Aim) (s *monitor.Snapshot, err error) {
	err = app.Watch(ctx, cfg, of, func(mon *monitor.Monitor) error {
		s, err = a.decided(ctx, mon, of)
		return err
	})
	return s, err
}

// decided waits for the first complete snapshot, and says how far it is.
func (a *commandLine) decided(ctx context.Context, mon *monitor.Monitor, of app.Aim) (*monitor.Snapshot, error) {
	defer a.reading(mon)()
	return app.Decided(ctx, mon, of)
}

// justCame reports whether the look has only just begun: what was there before it began is
// not known to be new.
func justCame(s *monitor.Snapshot) bool {
	return s.Settled.IsZero() || s.At.Sub(s.Settled) < justCameTime
}

// justCameTime is longer than any look that is made once.
const justCameTime = 10 * time.Second

// errIncomplete is returned when a look ended before everything had been read.
var errIncomplete = errors.New("not everything could be read")

// incomplete says on standard error which nodes have not been read to the end, and
// is the error for that; nil if all have been.
func (a *commandLine) incomplete(s *monitor.Snapshot) error {
	if s.Complete {
		return nil
	}
	var nodes []string
	for _, n := range s.Unread() {
		nodes = append(nodes, safetext.Printable(n.Node)+" "+safetext.Printable(n.Why))
	}
	fmt.Fprintf(a.errOut, "redlockctl: incomplete: locks and copies may be missing: %s\n", strings.Join(nodes, ", "))
	return silent{errIncomplete}
}

// describe says per node what came of an act, in groups: "ok: n1 n2, down: n3".
func describe(results []redlock.NodeResult) string {
	var order []string
	names := map[string][]string{}
	for _, r := range results {
		word := r.Status.String()
		if r.Status == redlock.StatusProtocol && r.Type != "" && r.Type != "string" {
			word = "a " + r.Type
		}
		if names[word] == nil {
			order = append(order, word)
		}
		names[word] = append(names[word], r.Node)
	}
	parts := make([]string, 0, len(order))
	for _, word := range order {
		parts = append(parts, word+": "+strings.Join(names[word], " "))
	}
	return strings.Join(parts, ", ")
}

// resultsOf are the nodes' results that an error of the lock core carries.
func resultsOf(err error) (*redlock.Error, []redlock.NodeResult) {
	var e *redlock.Error
	if errors.As(err, &e) {
		return e, e.Nodes
	}
	return nil, nil
}
