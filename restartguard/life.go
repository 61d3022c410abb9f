package restartguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

const (
	paramMinReplicas = "min-replicas-to-write"
	paramMaxLag      = "min-replicas-max-lag"

	// setLag is the server's own default of min-replicas-max-lag, in seconds.
	setLag = 10
)

// errBroken is returned when a connection failed: what was sent through it may
// have been carried out or not, and nothing more may be sent.
var errBroken = errors.New("no connection")

// life is one connection to one life of a server. Its client never dials
// again.
type life struct {
	client *redis.Client
}

// dial makes a life; it connects with the first command.
func dial(node *redlock.Node, timeout time.Duration) life {
	return life{node.OneLife(timeout, func(opt *redis.Options) {
		// A pool in which as many dials failed as it has places goes on trying in
		// the background, for a second after it was closed. There is one connection
		// all the same.
		opt.PoolSize = 2
	})}
}

func (l life) close() { _ = l.client.Close() }

// answered tells if err is nil or the server's own word, so that the
// connection is in order.
func answered(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply)
}

// send sends all commands at once and in order, and waits for the answers. It
// fails with errBroken if one of them has none, or if the server refused the
// connection.
func (l life) send(ctx context.Context, add func(redis.Pipeliner)) error {
	pipe := l.client.Pipeline()
	add(pipe)
	cmds, err := pipe.Exec(ctx)
	refused := err != nil
	for _, c := range cmds {
		if err := c.Err(); !answered(err) {
			return fmt.Errorf("%w: %w", errBroken, err)
		} else if err != nil {
			refused = false
		}
	}
	if refused {
		// A handshake that the server refuses (a wrong password) leaves the commands
		// without an error, although none was sent.
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// paramsCmd is a pending reading of the parameters. Each is asked for by itself,
// since a server before 7.0 takes a single name.
type paramsCmd struct {
	minReplicas, maxLag *redis.MapStringStringCmd
}

func askParams(ctx context.Context, p redis.Pipeliner) paramsCmd {
	return paramsCmd{p.ConfigGet(ctx, paramMinReplicas), p.ConfigGet(ctx, paramMaxLag)}
}

func (c paramsCmd) result() (Params, error) {
	minReplicas, err := paramValue(c.minReplicas, paramMinReplicas)
	if err != nil {
		return Params{}, err
	}
	maxLag, err := paramValue(c.maxLag, paramMaxLag)
	if err != nil {
		return Params{}, err
	}
	return Params{MinReplicas: minReplicas, MaxLag: maxLag}, nil
}

func paramValue(c *redis.MapStringStringCmd, name string) (int64, error) {
	m, err := c.Result()
	if err != nil {
		return 0, fmt.Errorf("CONFIG GET %s: %w", name, err)
	}
	v, ok := m[name]
	if !ok {
		return 0, fmt.Errorf("the server knows no %s", name)
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("CONFIG GET %s: %q is no number", name, v)
	}
	return n, nil
}

// params reads the fence alone.
func (l life) params(ctx context.Context) (Params, error) {
	var params paramsCmd
	if err := l.send(ctx, func(p redis.Pipeliner) { params = askParams(ctx, p) }); err != nil {
		return Params{}, err
	}
	return params.result()
}

// look reads the node: a Seen, or an error that says why it could not be read.
func (l life) look(ctx context.Context) (Observation, error) {
	o := Observation{About: Seen, Asked: time.Now()}
	// One section each: a server before 7.0 takes a single name.
	var server, replication, stats *redis.StringCmd
	var params paramsCmd
	err := l.send(ctx, func(p redis.Pipeliner) {
		server = p.Info(ctx, "server")
		replication = p.Info(ctx, "replication")
		stats = p.Info(ctx, "commandstats")
		params = askParams(ctx, p)
	})
	if err != nil {
		return o, err
	}
	for _, c := range []*redis.StringCmd{server, replication, stats} {
		if err := c.Err(); err != nil {
			return o, fmt.Errorf("INFO: %w", err)
		}
	}
	o.RunID = infoField(server.Val(), "run_id")
	if !isWord(o.RunID) {
		return o, errors.New("INFO server tells no run_id")
	}
	o.Role = infoField(replication.Val(), "role")
	if !isWord(o.Role) {
		return o, errors.New("INFO replication tells no role")
	}
	if o.Wipes, o.Configured, err = commandStats(stats.Val()); err != nil {
		return o, err
	}
	if o.Params, err = params.result(); err != nil {
		o.Blind, o.Err = true, show(err)
	}
	return o, nil
}

// do carries out an action and tells its outcome. Its error is errBroken: then
// the outcome is not known, and the connection is of no more use.
func (l life) do(ctx context.Context, a Action) (Observation, error) {
	o := Observation{RunID: a.RunID, Asked: time.Now()}
	if a.Kind == Prove {
		o.About = Proving
		canary, after, err := l.prove(ctx)
		if err != nil {
			return o, err
		}
		var why error
		o.Canary, why = canaryResult(canary)
		o.Err = show(why)
		if o.Params, err = after.result(); err != nil {
			o.Blind, o.Err = true, show(err)
		}
		return o, nil
	}

	o.About = Closing
	if a.Kind == Lift {
		o.About = Lifting
	}
	set, err := l.set(ctx, a.Value, a.SetLag)
	if errors.Is(err, errBroken) {
		return o, err
	}
	o.Before, o.Params, o.Err = set.before, set.after, show(err)
	if set.blind != nil {
		o.Blind = true
		if o.Err == "" {
			o.Err = show(set.blind)
		}
	}
	return o, nil
}

type setResult struct {
	before, after Params
	blind         error // why after could not be read
}

// set reads the fence, sets it, and reads it back, in one pipeline, so that
// nothing but a command between two of ours comes in between. Where
// min-replicas-max-lag is to be set, it comes first: the fence must not be up in
// name only.
func (l life) set(ctx context.Context, value int64, lag bool) (setResult, error) {
	var before, after paramsCmd
	var sets []*redis.StatusCmd
	err := l.send(ctx, func(p redis.Pipeliner) {
		before = askParams(ctx, p)
		if lag {
			sets = append(sets, p.ConfigSet(ctx, paramMaxLag, strconv.Itoa(setLag)))
		}
		sets = append(sets, p.ConfigSet(ctx, paramMinReplicas, strconv.FormatInt(value, 10)))
		after = askParams(ctx, p)
	})
	if err != nil {
		return setResult{}, err
	}
	var r setResult
	r.before, _ = before.result()
	r.after, r.blind = after.result()
	for _, c := range sets {
		if err := c.Err(); err != nil {
			return r, fmt.Errorf("CONFIG SET: %w", err)
		}
	}
	return r, nil
}

// prove tries a write that leaves nothing, a key that nobody else has for 1 ms,
// and reads the fence after it.
func (l life) prove(ctx context.Context) (canary *redis.StatusCmd, after paramsCmd, err error) {
	err = l.send(ctx, func(p redis.Pipeliner) {
		canary = p.SetArgs(ctx, "redlockctl:canary:"+rand.Text(), "1", redis.SetArgs{Mode: "NX", TTL: time.Millisecond})
		after = askParams(ctx, p)
	})
	return canary, after, err
}

func canaryResult(c *redis.StatusCmd) (Canary, error) {
	err := c.Err()
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return CanaryAccepted, nil
	case redis.IsNoReplicasError(err):
		return CanaryFenced, nil
	default:
		return CanaryRefused, fmt.Errorf("canary write: %w", err)
	}
}

// commandStats reads how often data were wiped in this life, and if parameters
// were changed. Before 7.0 the counter of CONFIG does not tell SET from GET, so
// there it is taken to be a GET.
func commandStats(info string) (wipes int64, configured bool, err error) {
	for line := range strings.Lines(info) {
		name, stats, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "cmdstat_flushall", "cmdstat_flushdb", "cmdstat_swapdb", "cmdstat_config|set":
		default:
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil || n < 0 {
			return 0, false, fmt.Errorf("INFO commandstats: %s has no count of calls", name)
		}
		if name == "cmdstat_config|set" {
			configured = n > 0
		} else {
			wipes += n
		}
	}
	return wipes, configured, nil
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && k == name {
			return v
		}
	}
	return ""
}

// isWord tells if s is a short word of ASCII letters and digits, so that it
// can be shown and compared without care.
func isWord(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// isDenied tells if the server does not let us: no right, wrong password, or
// CONFIG renamed away.
func isDenied(err error) bool {
	for _, p := range []string{"NOPERM", "NOAUTH", "WRONGPASS", "unknown command", "invalid password"} {
		if redis.HasErrorPrefix(err, p) {
			return true
		}
	}
	return redis.IsPermissionError(err) || redis.IsAuthError(err)
}

// isRefused tells if nobody listens at the address.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// show makes an error fit for a screen: it may hold a server's text.
func show(err error) string {
	if err == nil {
		return ""
	}
	return safetext.Escape(err.Error())
}
