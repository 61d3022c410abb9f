package fence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
)

// paramFence is the method [fences.MinReplicas].
type paramFence struct{}

func (paramFence) Words(minreplicas.Params) string { return "" }

func (paramFence) Traits() traits {
	return traits{Command: "CONFIG", Refusal: "NOREPLICAS", Sets: []string{"config|set"}, Rewrites: []string{"config|rewrite"}}
}

// Ask reads each parameter by itself, because servers before 7.0 take a single name.
func (paramFence) Ask(ctx context.Context, p redis.Pipeliner) func() (minreplicas.Params, error) {
	minReplicas, maxLag := p.ConfigGet(ctx, minreplicas.Param), p.ConfigGet(ctx, minreplicas.LagParam)
	return func() (minreplicas.Params, error) { return paramsOf(minReplicas, maxLag) }
}

func paramsOf(minReplicas, maxLag *redis.MapStringStringCmd) (p minreplicas.Params, err error) {
	if p.MinReplicas, err = paramValue(minReplicas, minreplicas.Param); err != nil {
		return minreplicas.Params{}, err
	}
	if p.MaxLag, err = paramValue(maxLag, minreplicas.LagParam); err != nil {
		return minreplicas.Params{}, err
	}
	return p, nil
}

func (paramFence) Set(ctx context.Context, p redis.Pipeliner, value int64, lag, readOnly bool) []redis.Cmder {
	var sets []redis.Cmder
	if readOnly {
		sets = append(sets, p.ConfigSet(ctx, "replica-read-only", "yes"))
	}
	if lag {
		// First, so that the fence is never set without effect.
		sets = append(sets, p.ConfigSet(ctx, minreplicas.LagParam, strconv.Itoa(minreplicas.FenceLag)))
	}
	return append(sets, p.ConfigSet(ctx, minreplicas.Param, strconv.FormatInt(value, 10)))
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

// The canaries: a plain command, a script, and a script with the flags of a function, for which
// servers since 7.0 decide once before it runs. Each writes a key that lives for 1 ms.
const (
	canaryScript   = "return redis.call('set', KEYS[1], '1', 'NX', 'PX', '1')"
	canaryFunction = "#!lua\n" + canaryScript
)

// Canary tries each way in which a client can write. If one is accepted, there is no fence; all
// that the server supports must be refused with NOREPLICAS.
func (paramFence) Canary(ctx context.Context, p redis.Pipeliner, key string) func() (restartguard.Canary, error) {
	plain := p.SetArgs(ctx, key, "1", redis.SetArgs{Mode: "NX", TTL: time.Millisecond})
	script := p.Eval(ctx, canaryScript, []string{key})
	function := p.Eval(ctx, canaryFunction, []string{key})
	return func() (restartguard.Canary, error) {
		ways := []struct {
			name string
			err  error
		}{{"", plain.Err()}, {"script: ", script.Err()}, {"script with flags, as of functions: ", function.Err()}}
		for _, w := range ways {
			if (w.err == nil || errors.Is(w.err, redis.Nil)) && w.name != "" {
				return restartguard.CanaryAccepted, errors.New(scriptsPass)
			} else if w.err == nil || errors.Is(w.err, redis.Nil) {
				return restartguard.CanaryAccepted, nil
			}
		}
		for _, w := range ways {
			if !isNoReplicas(w.err) && !isUnknownScript(w.err) {
				return restartguard.CanaryRefused, fmt.Errorf("canary write: %s%w", w.name, w.err)
			}
		}
		return restartguard.CanaryFenced, nil
	}
}

// scriptsPass is why a fence does not hold that stops only plain commands.
const scriptsPass = "scripts write through it, as before Redis 6.0.17 and 6.2.7: upgrade the server"

// isNoReplicas reports whether a write was refused because of a fence. Before 7.0 a script says so
// in the middle of its error.
func isNoReplicas(err error) bool {
	return redis.IsNoReplicasError(err) || strings.Contains(err.Error(), ": -NOREPLICAS ")
}

// isUnknownScript reports whether a server does not support scripts with flags, and so no
// functions.
func isUnknownScript(err error) bool {
	text := err.Error()
	return strings.Contains(text, "Error compiling script") && strings.Contains(text, "'#'")
}
