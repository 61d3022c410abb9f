package cli

import (
	"errors"
	"fmt"
	"strings"

	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// deniedError is a failure that comes of rights which the servers deny: they
// answer, and would be enough. Its exit code is 1, not that of a missing quorum,
// since nothing is wrong with the cluster.
type deniedError struct{ error }

func (e deniedError) Unwrap() error { return e.error }

// explained says what to do about rights that are missing, where they are what an
// act failed of. A node whose fence takes rights away is no such case: to the
// client it looks the same.
func (a *app) explained(err error) error {
	e, _ := resultsOf(err)
	if e == nil || errors.As(err, new(deniedError)) || !errors.Is(err, redlock.ErrNoQuorum) {
		return err
	}
	answer := 0
	var nodes []string
	why := ""
	for _, r := range e.Nodes {
		switch r.Status {
		case redlock.StatusOK, redlock.StatusHeld, redlock.StatusAbsent:
			answer++
		case redlock.StatusDenied:
			if a.fencedByRights[r.Node] {
				continue
			}
			answer++
			nodes = append(nodes, r.Node)
			if r.Err != nil {
				why = r.Err.Error()
			}
		}
	}
	if len(nodes) == 0 || answer < redlock.Quorum(len(e.Nodes)) {
		return err
	}
	return deniedError{fmt.Errorf("denied by %s: %s; the rights that are needed are printed by `redlockctl config acl operator`: %w",
		safetext.Escape(strings.Join(nodes, ", ")), safetext.Escape(why), err)}
}

// rightsFenced are the nodes whose fence takes rights away, by name.
func rightsFenced(cfg *config.Config) map[string]bool {
	fenced := map[string]bool{}
	for _, n := range cfg.Nodes {
		fenced[n.Name] = n.Method().Kind == restartguard.ACL
	}
	return fenced
}
