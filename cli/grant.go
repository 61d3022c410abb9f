package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// grantJSON is the document of acquire and extend.
type grantJSON struct {
	Name         safetext.Text    `json:"name"`
	Token        safetext.Text    `json:"token"`
	FencingToken uint64           `json:"fencing_token,omitempty"`
	TTLms        int64            `json:"ttl_ms"`
	ValidMs      int64            `json:"valid_ms"`
	Copies       int              `json:"copies"`
	N            int              `json:"n"`
	Quorum       int              `json:"quorum"`
	Nodes        []view.ResultDoc `json:"nodes"`
}

const ttlUsage = "time to live, e.g. 20s (default 30s, or max_ttl if that is shorter)"

const forceUsage = "also with a TTL beyond max_ttl, or beyond what a guard covers: a second client may then get the lock after a restart"

func (a *commandLine) printGrant(ctx context.Context, did string, op *operator.Operator, lock *redlock.Lock) error {
	results := op.Standing(ctx, lock)
	var on, off []redlock.NodeResult
	for _, r := range results {
		if r.Status == redlock.StatusOK {
			on = append(on, r)
		} else {
			off = append(off, r)
		}
	}
	now := time.Now()
	valid := max(0, lock.Until().Sub(now))
	n := len(results)
	if printed, err := a.Document("grant", grantJSON{
		Name: safetext.New(lock.Resource()), Token: safetext.New(lock.Token()), FencingToken: lock.FencingToken(), TTLms: lock.TTL().Milliseconds(), ValidMs: valid.Milliseconds(),
		Copies: len(on), N: n, Quorum: redlock.Quorum(n), Nodes: view.DocsOfResults(results, now),
	}); printed {
		return err
	}
	names := make([]string, len(on))
	for i, r := range on {
		names[i] = r.Node
	}
	copies := fmt.Sprintf("%d/%d on %s", len(on), n, strings.Join(names, " "))
	if len(off) > 0 {
		copies += "; " + describe(off)
	}
	fmt.Fprintf(a.Out, "%s %s\n", did, safetext.Escape(lock.Resource()))
	fmt.Fprintf(a.Out, "token   %s\n", safetext.Escape(lock.Token()))
	if n := lock.FencingToken(); n > 0 {
		fmt.Fprintf(a.Out, "fencing %d\n", n)
	}
	fmt.Fprintf(a.Out, "valid   %s of %s\n", view.Left(valid), lock.TTL())
	fmt.Fprintf(a.Out, "copies  %s\n", safetext.Escape(copies))
	return a.Unwritten()
}

// keptJSON is the document about the end of a kept lock, printed after its grantJSON.
type keptJSON struct {
	Name    safetext.Text  `json:"name"`
	State   string         `json:"state"` // released, held (it will expire) or lost
	KeptMs  int64          `json:"kept_ms"`
	ValidMs int64          `json:"valid_ms"`          // what is left of it
	LateMs  int64          `json:"late_ms,omitempty"` // how long after the end of its validity a loss was noticed
	By      safetext.Text  `json:"by"`
	Reason  *safetext.Text `json:"reason,omitempty"`
	Error   *safetext.Text `json:"error,omitempty"`
}

// retryFor allows any number of attempts within the time wait.
func retryFor(s *app.Spec, wait time.Duration) {
	if wait > 0 {
		s.Redlock.Retries = redlock.UntilContextEnds
	}
}

// trying shows that a lock is being acquired, and the time that is left.
func (a *commandLine) trying(wait time.Duration) (done func()) {
	if wait > 0 {
		return a.ProgressFor("trying to get the lock", wait)
	}
	return a.Progress("trying to get the lock")
}

// keepOptions reports when a copy of a kept lock was restored on a restarted node.
func (a *commandLine) keepOptions(name string) redlock.KeepOptions {
	return redlock.KeepOptions{Repaired: func(nodes []string) {
		a.Note("\"%s\": its copy was put back on %s", safetext.Escape(name), safetext.Printable(strings.Join(nodes, ", ")))
	}}
}

const keepForUsage = "with --keep: for how long (0: until interrupted)"

// keepsFor checks that --for is used with --keep.
func keepsFor(keep bool, span time.Duration) error {
	if span > 0 && !keep {
		return exit.Usagef("--for says how long --keep extends the lock: give both")
	}
	return nil
}

// keep waits until ctx ends or the kept lock is lost, and reports each change on standard
// error. Ctrl-Z does not suspend it: nothing would extend the lock.
func (a *commandLine) keep(ctx context.Context, cfg *config.Config, k *operator.KeptLock) error {
	name, is := k.Resource(), k.Terms()
	kept := view.KeptText(safetext.Escape(is.By), is.Since, is.End, safetext.Escape(is.Reason), time.Now())
	a.Note("\"%s\" is kept %s; an interrupt ends that", safetext.Escape(name), kept)
	defer unsuspended(func() {
		a.Note("\"%s\" is still kept: this command does not stop at Ctrl-Z, since nothing would extend the lock; an interrupt ends that", safetext.Escape(name))
	})()
	state, err := k.Hold(ctx, func(s redlock.KeeperState, why error) {
		if s == redlock.Lost {
			return // the normal end
		}
		line := fmt.Sprintf("\"%s\" is %s, valid for %s", safetext.Escape(name), s, view.Left(time.Until(k.Until())))
		if why != nil {
			line += ": " + why.Error()
		}
		a.Note("%s", safetext.Printable(line))
	})
	now := time.Now()
	left, lasted := max(0, k.Until().Sub(now)), now.Sub(is.Since)
	var loss operator.Loss
	if state == redlock.Lost {
		if loss = operator.LossOf(k.Until(), now); loss.Noticed() != "" {
			lasted = max(0, loss.At.Round(0).Sub(is.Since.Round(0))) // the machine may have slept
		}
		if by := app.KeptBy(cfg).TakenFrom(ctx, name, k.Token()); by != "" {
			err = fmt.Errorf("%w: %s", err, safetext.Escape(by))
		}
	}
	if state == redlock.Released {
		left = 0
	}
	doc := keptJSON{
		Name: safetext.New(name), State: state.String(),
		KeptMs: lasted.Milliseconds(), ValidMs: left.Milliseconds(), LateMs: loss.Late.Milliseconds(),
		By: safetext.New(is.By), Reason: safetext.Optional(is.Reason), Error: safetext.OptionalError(err),
	}
	printed, perr := a.Document("kept", doc)
	if !printed {
		more := ""
		switch over := !is.End.IsZero() && !time.Now().Before(is.End); {
		case state == redlock.Held:
			more = ", and runs out in " + view.Left(left)
		case state == redlock.Lost:
			more = loss.Noticed() + ": whatever was done under it must stop"
		case over:
			more = ": its time has passed"
		}
		_, perr = fmt.Fprintf(a.Out, "%s %s after %s%s\n", state, safetext.Escape(name), view.Left(lasted), more)
	}
	return errors.Join(err, perr)
}

// describe reports an action's result per node, in groups: "ok: n1 n2, down: n3".
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
