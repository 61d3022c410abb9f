package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/redlock"
)

// keptJSON is the document with which a lock ends that was kept: printed after
// that of its grant.
type keptJSON struct {
	Name       safetext.Text  `json:"name"`
	NameBase64 string         `json:"name_base64,omitempty"`
	State      string         `json:"state"` // released, held (it runs out by itself) or lost
	KeptMs     int64          `json:"kept_ms"`
	ValidMs    int64          `json:"valid_ms"` // what is left of it
	Error      *safetext.Text `json:"error,omitempty"`
}

// keptLock is a lock that is being extended.
type keptLock interface {
	State() redlock.KeeperState
	Until() time.Time
	Err() error
	Changes() <-chan redlock.KeeperState
	Stop()
}

// repaired tells that a copy of a lock that is kept was put back, on nodes that have
// restarted.
func (a *commandLine) repaired(name string) func(nodes []string) {
	return func(nodes []string) {
		fmt.Fprintf(a.errOut, "redlockctl: \"%s\": its copy was put back on %s\n", safetext.Escape(name), safetext.Printable(strings.Join(nodes, ", ")))
	}
}

// keep waits while a lock is extended, until ctx ends or the lock is lost, and
// tells each change on standard error. release gives the lock back; nil: it runs
// out by itself.
func (a *commandLine) keep(ctx context.Context, name string, k keptLock, release func(context.Context) error) error {
	began := time.Now()
	fmt.Fprintf(a.errOut, "redlockctl: \"%s\" is extended until this is interrupted\n", safetext.Escape(name))
	for ctx.Err() == nil && k.State() != redlock.Lost {
		select {
		case <-ctx.Done():
		case s, more := <-k.Changes():
			if !more {
				break
			}
			told := fmt.Sprintf("\"%s\" is %s, valid for %s", safetext.Escape(name), s, view.Left(time.Until(k.Until())))
			if err := k.Err(); err != nil {
				told += ": " + err.Error()
			}
			fmt.Fprintf(a.errOut, "redlockctl: %s\n", safetext.Printable(told))
		}
	}
	doc := keptJSON{Name: text(name), NameBase64: base64Of(name), KeptMs: ms(time.Since(began))}
	err := k.Err()
	switch {
	case k.State() == redlock.Lost:
		k.Stop()
		doc.State = "lost"
		err = fmt.Errorf("\"%s\": %w: %w", safetext.Escape(name), redlock.ErrNotHeld, cmp.Or(err, redlock.ErrExpired))
	case release != nil:
		doc.State = "released"
		if err = release(context.WithoutCancel(ctx)); err != nil {
			doc.State = "held"
		}
	default:
		k.Stop()
		doc.State, err = "held", nil
	}
	doc.ValidMs = max(0, ms(time.Until(k.Until())))
	if doc.State == "released" {
		doc.ValidMs = 0
	}
	if err != nil {
		doc.Error = optional(err.Error())
	}
	var perr error
	switch a.output {
	case "json":
		perr = printJSON(a.out, doc)
	case "jsonl":
		perr = printLine(a.out, doc)
	default:
		more := ""
		if doc.State == "held" {
			more = ", and runs out in " + view.Left(time.Until(k.Until()))
		}
		_, perr = fmt.Fprintf(a.out, "%s %s after %s%s\n", doc.State, safetext.Escape(name), view.Left(time.Since(began)), more)
	}
	return errors.Join(err, perr)
}
