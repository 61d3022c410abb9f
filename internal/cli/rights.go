package cli

import (
	"errors"
	"fmt"
	"strings"

	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// deniedError is a failure that comes of rights which the servers deny: they
// answer, and would be enough. Its exit code is 1, not that of a missing quorum,
// since nothing is wrong with the cluster.
type deniedError struct{ error }

func (e deniedError) Unwrap() error { return e.error }

// explained says what to do about rights that are missing, where they are what an
// act failed of. A fence that takes rights away is no such case: this program is
// another user than the one who is fenced.
func explained(err error) error {
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
	return deniedError{fmt.Errorf("denied by %s: %s; the rights that are needed are printed by `redlockctl config acl --role operator`: %w",
		safetext.Escape(strings.Join(nodes, ", ")), safetext.Escape(why), err)}
}
