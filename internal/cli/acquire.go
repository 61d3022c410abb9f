package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/redlock"
)

// grantJSON is the document of acquire and extend.
type grantJSON struct {
	Name         safetext.Text `json:"name"`
	NameBase64   string        `json:"name_base64,omitempty"`
	Token        safetext.Text `json:"token"`
	FencingToken uint64        `json:"fencing_token,omitempty"`
	TTLms        int64         `json:"ttl_ms"`
	ValidMs      int64         `json:"valid_ms"`
	Copies       int           `json:"copies"`
	N            int           `json:"n"`
	Quorum       int           `json:"quorum"`
	Nodes        []resultJSON  `json:"nodes"`
}

// failureJSON is the document of an act on a lock that failed. Error is
// contended, no quorum, not held, expired, refused, denied, invalid or failed.
type failureJSON struct {
	Name       safetext.Text `json:"name"`
	NameBase64 string        `json:"name_base64,omitempty"`
	Error      string        `json:"error"`
	ExitCode   int           `json:"exit_code"`
	Message    safetext.Text `json:"message"`
	Attempts   int           `json:"attempts,omitempty"`
	Nodes      []resultJSON  `json:"nodes,omitempty"`
	Tokens     []tokenJSON   `json:"tokens,omitempty"`
	Keys       []keyJSON     `json:"keys,omitempty"` // further ones of the same lock
}

// defaultTTL is the TTL of a lock taken by hand where none is given.
const defaultTTL = 30 * time.Second

// ttlFor is the TTL asked for, or the default within the cluster's max.
func ttlFor(given time.Duration, cfg *config.Config) time.Duration {
	if given != 0 {
		return given
	}
	if cfg.Cluster.MaxTTL > 0 {
		return min(defaultTTL, cfg.Cluster.MaxTTL)
	}
	return defaultTTL
}

const ttlUsage = "time to live, e.g. 20s (default 30s, or max_ttl where that is less)"

func (a *commandLine) acquireCommand() *cobra.Command {
	var ttl, wait time.Duration
	var fencing, keep bool
	cmd := outputs(&cobra.Command{
		Use:   "acquire NAME",
		Short: "Take a lock by hand",
		Long: `Takes the lock NAME and prints its token, how long it may be relied on, and what
each node said. Nothing extends it: it is gone when its TTL is over, unless
extend is called before. The token is the proof of ownership: keep it for extend
and release.

With --keep it is extended until redlockctl is interrupted, and released then; what
becomes of it meanwhile is told on standard error. Exit code 5 when it was lost.
"run" does the same around a command.

Exit code 3 when another token holds the lock, 4 when too few nodes serve.`,
		Example:           "redlockctl acquire job:1 --ttl 20s\nredlockctl acquire job:1 --wait 1m -o json\nredlockctl acquire deploy --keep",
		Args:              oneName("lock"),
		ValidArgsFunction: a.completeLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if wait < 0 {
				return usageError{fmt.Errorf("--wait %s is negative", wait)}
			}
			return a.act(func(cfg *config.Config, s *app.Spec) error {
				if wait > 0 {
					s.Redlock.Retries = redlock.UntilContextEnds
				}
				return nil
			}, func(cfg *config.Config, op *operator.Operator) error {
				name, want := args[0], ttlFor(ttl, cfg)
				try := ctx
				if wait > 0 {
					var cancel context.CancelFunc
					try, cancel = context.WithTimeout(ctx, wait)
					defer cancel()
				}
				var k *operator.KeptLock
				acquire := op.Acquire
				switch {
				case keep:
					acquire = func(ctx context.Context, name string, ttl time.Duration) (lock *redlock.Lock, err error) {
						opt := operator.KeepOptions{Fencing: fencing, KeepOptions: redlock.KeepOptions{Repaired: a.repaired(name)}}
						if k, err = op.KeepWith(ctx, name, ttl, opt); err != nil {
							return nil, err
						}
						return k.Lock(), nil
					}
				case fencing:
					acquire = op.AcquireFenced
				}
				progress := a.progress
				if wait > 0 {
					progress = func(what string) func() { return a.progressFor(what, wait) }
				}
				done := progress("trying to get the lock")
				lock, err := acquire(try, name, want)
				done()
				if err != nil && wait > 0 && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
					err = waited(wait, err)
				}
				if err != nil {
					return a.failed(name, err)
				}
				if keep {
					defer k.Stop()
				}
				if err := a.printGrant(ctx, "acquired", op, lock); err != nil {
					return fmt.Errorf("the token was lost, and \"%s\" stays locked until its TTL of %s is over: %w", safetext.Escape(name), lock.TTL(), err)
				}
				if !keep {
					return nil
				}
				return a.keep(ctx, name, k, func(ctx context.Context) error {
					_, err := k.Release(ctx)
					return err
				})
			})
		}),
	}, "table", "json", "jsonl")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, ttlUsage)
	cmd.Flags().BoolVar(&keep, "keep", false, "extend it until interrupted, and release it then")
	cmd.Flags().BoolVar(&fencing, "fencing", false, "draw a fencing token too: a number that grows with each grant")
	cmd.Flags().DurationVar(&wait, "wait", 0, "keep trying for so long (0: as often as [redlock] retries says)")
	return cmd
}

// act runs f with what an act needs: the configuration, with prepare's changes
// to the spec, a client and the operator. A read-only run is refused first.
func (a *commandLine) act(prepare func(*config.Config, *app.Spec) error, f func(*config.Config, *operator.Operator) error) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	if err := mayAct(cfg); err != nil {
		return err
	}
	s, err := app.SpecOf(cfg)
	if err != nil {
		return err
	}
	if prepare != nil {
		if err := prepare(cfg, &s); err != nil {
			return err
		}
	}
	op, err := app.OpenOperator(s)
	if err != nil {
		return err
	}
	defer op.Close()
	return explained(f(cfg, op))
}

// printGrant prints a lock that was acquired or extended. The lock was decided
// by the first quorum of answers; those that had not come by then are looked up
// behind what was sent, so that the copies are there when the program ends and
// the count is the whole truth.
func (a *commandLine) printGrant(ctx context.Context, did string, op *operator.Operator, lock *redlock.Lock) error {
	results := lock.Nodes()
	if seen, err := op.Inspect(ctx, lock.Resource()); err == nil {
		for i, r := range seen {
			// Of a refusal the look tells who is there instead; the other answers stand:
			// a replica shows a copy that is no vote of its own.
			if s := results[i].Status; s != redlock.StatusUnanswered && s != redlock.StatusHeld {
				continue
			}
			results[i] = r
			if r.Status == redlock.StatusHeld && r.Token == lock.Token() {
				results[i] = redlock.NodeResult{Node: r.Node, Status: redlock.StatusOK}
			}
		}
	}
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
	if printed, err := a.document(func() document {
		return grantJSON{
			Name: text(lock.Resource()), NameBase64: base64Of(lock.Resource()), Token: text(lock.Token()), FencingToken: lock.FencingToken(), TTLms: ms(lock.TTL()), ValidMs: ms(valid),
			Copies: len(on), N: n, Quorum: redlock.Quorum(n), Nodes: resultDocs(results, now),
		}
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
	fmt.Fprintf(a.out, "%s %s\n", did, safetext.Escape(lock.Resource()))
	fmt.Fprintf(a.out, "token   %s\n", safetext.Escape(lock.Token()))
	if n := lock.FencingToken(); n > 0 {
		fmt.Fprintf(a.out, "fencing %d\n", n)
	}
	fmt.Fprintf(a.out, "valid   %s of %s\n", view.Left(valid), lock.TTL())
	fmt.Fprintf(a.out, "copies  %s\n", safetext.Escape(copies))
	return a.unwritten()
}

// failed is the error of an act on a lock; for --output json its document is
// printed too, so that a script need not read sentences.
func (a *commandLine) failed(name string, err error) error {
	err = explained(err)
	var perr error
	switch a.output {
	case "json":
		perr = printJSON(a.out, failureDoc(name, nil, err))
	case "jsonl":
		perr = printLine(a.out, failureDoc(name, nil, err))
	}
	return cmp.Or(perr, err)
}

// failureDoc is the document of a failure. Without results those that the error
// carries are told.
func failureDoc(name string, results []redlock.NodeResult, err error) failureJSON {
	err = explained(err)
	e, carried := resultsOf(err)
	if results == nil {
		results = carried
	}
	doc := failureJSON{
		Name: text(name), NameBase64: base64Of(name), Error: failureWord(err), ExitCode: int(exitOf(err)),
		Message: text(err.Error()), Nodes: resultDocs(results, time.Now()),
	}
	if e != nil {
		doc.Attempts = e.Attempts
	}
	return doc
}

// waited says what stood in the way of a wait that ran out.
func waited(wait time.Duration, err error) error {
	last, _ := resultsOf(err)
	if last == nil {
		return fmt.Errorf("%w: %w", redlock.ErrNoQuorum, err)
	}
	kind := redlock.ErrNoQuorum
	if errors.Is(err, redlock.ErrContended) {
		kind = redlock.ErrContended
	}
	e := &redlock.Error{Op: last.Op, Resource: last.Resource, Kind: kind, Attempts: last.Attempts, Nodes: last.Nodes}
	return fmt.Errorf("%w (waited %s)", e, wait)
}

func failureWord(err error) string {
	if errors.As(err, new(deniedError)) {
		return "denied"
	}
	switch exitOf(err) {
	case ExitContended:
		return "contended"
	case ExitNoQuorum:
		return "no quorum"
	case ExitNotOwner:
		if errors.Is(err, redlock.ErrExpired) {
			return "expired"
		}
		return "not held"
	case ExitRefused:
		return "refused"
	case ExitUsage:
		return "invalid"
	}
	return "failed"
}
