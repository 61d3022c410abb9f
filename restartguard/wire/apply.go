package wire

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// canaryPrefix begins the keys of canary writes.
const canaryPrefix = "redlockctl:canary:"

// Perform carries out an action and returns its outcome. Its only error is ErrBroken: the outcome
// is not known, and the connection cannot be used any more.
func (l *Conn) Perform(ctx context.Context, a restartguard.Action) (o restartguard.Observation, err error) {
	defer resp.Contain(&err, "an action")
	o = restartguard.Observation{RunID: a.RunID, Conn: l.id, Sent: time.Now()}
	if a.Kind == restartguard.Kill {
		return l.kill(ctx, a, o)
	}
	if a.Kind == restartguard.Count {
		return l.count(ctx, o)
	}
	if a.Kind == restartguard.Prove {
		o.About = restartguard.Proving
		canary, after, err := l.Prove(ctx)
		if err != nil {
			return o, err
		}
		var why error
		o.Canary, why = canary()
		o.Err = safetext.Error(why)
		if o.Params, err = after(); err != nil {
			o.Blind, o.Err = true, safetext.Error(err)
		}
		o.Reads = l.Codec.Words(o.Params)
		return o, nil
	}

	o.About = restartguard.Raising
	if a.Kind == restartguard.Remove {
		o.About = restartguard.Removing
	}
	set, err := l.Set(ctx, a.Value, a.SetLag, a.ReadOnly)
	if errors.Is(err, ErrBroken) {
		return o, err
	}
	o.Before, o.Err = set.before, safetext.Error(err)
	l.readBack(&o, set.After, set.Blind)
	return o, nil
}

// count increments the counter key. A refusal means nothing: the node may have been fenced a
// moment ago.
func (l Conn) count(ctx context.Context, o restartguard.Observation) (restartguard.Observation, error) {
	o.About = restartguard.Counting
	var counter *redis.IntCmd
	err := l.Send(ctx, func(p redis.Pipeliner) {
		counter = p.Incr(ctx, restartguard.CounterKey)
		p.PExpire(ctx, restartguard.CounterKey, restartguard.CounterTTL)
	})
	if err != nil {
		return o, err
	}
	o.Counter, err = counter.Result()
	o.Counted, o.Err = err == nil, safetext.Error(err)
	return o, nil
}

// Set reads the fence, sets it and reads it back in one pipeline, so that only single commands of
// others can come in between.
func (l Conn) Set(ctx context.Context, value int64, lag, readOnly bool) (setResult, error) {
	var before, after func() (minreplicas.Params, error)
	var sets []redis.Cmder
	err := l.Send(ctx, func(p redis.Pipeliner) {
		before = l.Codec.Ask(ctx, p)
		sets = l.Codec.Set(ctx, p, value, lag, readOnly)
		after = l.Codec.Ask(ctx, p)
	})
	if err != nil {
		return setResult{}, err
	}
	var r setResult
	r.before, _ = before()
	r.After, r.Blind = after()
	for _, c := range sets {
		if err := c.Err(); err != nil {
			return r, fmt.Errorf("%s SET: %w", l.Codec.Traits().Command, err)
		}
	}
	return r, nil
}

// Prove tries a write, and reads the fence after it.
func (l Conn) Prove(ctx context.Context) (canary func() (restartguard.Canary, error), after func() (minreplicas.Params, error), err error) {
	err = l.Send(ctx, func(p redis.Pipeliner) {
		canary = l.Codec.Canary(ctx, p, canaryPrefix+rand.Text())
		after = l.Codec.Ask(ctx, p)
	})
	return canary, after, err
}

// guardName is the name of guards' connections (CLIENT SETNAME), followed by a colon and the
// guard's id if it has a state directory.
const guardName = "redlockctl:guard"

// kill closes other connections and reads the fence afterwards. It is sent on the connection that
// read the run_id, because each incarnation of a server starts with new CLIENT IDs.
func (l *Conn) kill(ctx context.Context, a restartguard.Action, o restartguard.Observation) (restartguard.Observation, error) {
	o.About, o.Others = restartguard.Killing, a.Others
	var one, list *redis.Cmd
	several := a.All || a.Others
	all := several && l.id != 0 && !l.ManyClients // without its id it would close itself
	if a.Conn != 0 || all {
		putBack := l.roomFor(listReply)
		err := l.Send(ctx, func(p redis.Pipeliner) {
			if a.Conn != 0 {
				one = p.Do(ctx, "CLIENT", "KILL", "ID", a.Conn)
			}
			if all {
				list = p.Do(ctx, "CLIENT", "LIST")
			}
		})
		putBack()
		if err != nil {
			return o, err
		}
	}
	var why []error
	switch {
	case one == nil && (all || several && l.ManyClients):
	case one == nil:
		why = append(why, errors.New("the server does not tell CLIENT ID"))
	case one.Err() != nil:
		why = append(why, fmt.Errorf("CLIENT KILL: %w", one.Err()))
	default:
		o.Gone = true // also if it was closed already
	}
	if several && l.ManyClients {
		why = append(why, fmt.Errorf("CLIENT LIST is longer than %d MiB", listReply>>20))
	}
	var others []int64
	if list != nil {
		text, err := list.Text()
		if err != nil {
			why = append(why, fmt.Errorf("CLIENT LIST: %w", err))
		} else {
			match := func(name string) bool { return name == l.Name }
			if a.Others {
				match = isGuardName
			}
			others, o.Swept = connsNamed(text, match, l.id), true
		}
	}
	var after func() (minreplicas.Params, error)
	kills := make([]*redis.Cmd, len(others))
	err := l.Send(ctx, func(p redis.Pipeliner) {
		for i, id := range others {
			kills[i] = p.Do(ctx, "CLIENT", "KILL", "ID", id)
		}
		after = l.Codec.Ask(ctx, p)
	})
	if err != nil {
		return o, err
	}
	for _, c := range kills {
		if c.Err() != nil {
			o.Swept = false
			why = append(why, fmt.Errorf("CLIENT KILL: %w", c.Err()))
		}
	}
	o.Err = safetext.Error(errors.Join(why...))
	p, err := after()
	l.readBack(&o, p, err)
	return o, nil
}

// isGuardName reports whether a connection of that name is a guard's.
func isGuardName(name string) bool {
	return name == guardName || strings.HasPrefix(name, guardName+":")
}

// connsNamed returns the ids in a reply to CLIENT LIST of the connections that match by name,
// except one's own.
func connsNamed(list string, match func(name string) bool, own int64) (ids []int64) {
	for client := range serverinfo.Clients(list) {
		var id int64
		asked := false
		for field, v := range client {
			switch field {
			case "id":
				id, _ = strconv.ParseInt(v, 10, 64)
			case "name":
				asked = asked || match(v)
			}
		}
		if asked && id > 0 && id != own {
			ids = append(ids, id)
		}
	}
	return ids
}

type setResult struct {
	before, After minreplicas.Params
	Blind         error // why after could not be read
}
