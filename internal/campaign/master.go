package campaign

import (
	"context"
	"time"

	"redlockctl/redlock"
)

// master is a server that is killed.
type master interface {
	Node() *redlock.Node
	// crash kills it, and sees to its next start. lost is a moment before the end of
	// the incarnation, or the start of the next; zero if there was none to kill.
	crash(ctx context.Context) (lost time.Time, err error)
	// watch opens what asks the next incarnation whether it serves, and how many SETs
	// it has executed; !ok when it has ended.
	watch() (ask func(context.Context) (serves bool, sets int, ok bool), end func())
	end()
}
