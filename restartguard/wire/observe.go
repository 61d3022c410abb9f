package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/boottime"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// Params reads only the fence.
func (l Conn) Params(ctx context.Context) (minreplicas.Params, error) {
	var params func() (minreplicas.Params, error)
	if err := l.Send(ctx, func(p redis.Pipeliner) { params = l.Codec.Ask(ctx, p) }); err != nil {
		return minreplicas.Params{}, err
	}
	return params()
}

// Look reads the node: it returns a Seen, or why the node could not be read.
func (l *Conn) Look(ctx context.Context) (o restartguard.Observation, err error) {
	defer resp.Contain(&err, "a look")
	o = restartguard.Observation{About: restartguard.Seen, Sent: time.Now()}
	clock, err := l.readWallClock(ctx)
	if err != nil {
		return o, err
	}
	o.Clock = clock
	// One section each: a server before 7.0 takes a single name.
	var server, replication, stats, commands, counter *redis.StringCmd
	var id *redis.IntCmd
	var guards *redis.StringSliceCmd
	var params func() (minreplicas.Params, error)
	err = l.Send(ctx, func(p redis.Pipeliner) {
		if !l.Introduced {
			id = p.ClientID(ctx)
			p.Do(ctx, "CLIENT", "SETNAME", l.Name)
		}
		server = p.Info(ctx, "server")
		replication = p.Info(ctx, "replication")
		stats = p.Info(ctx, "stats")
		commands = p.Info(ctx, "commandstats")
		if l.Counter {
			counter = p.Get(ctx, restartguard.CounterKey)
		}
		if l.ReadGuards {
			guards = p.PubSubChannels(ctx, announce.Pattern)
		}
		params = l.Codec.Ask(ctx, p)
	})
	if err != nil {
		return o, err
	}
	if guards != nil {
		l.Guards, l.GuardsErr = announce.DecodeAll(guards.Val()), guards.Err()
	}
	if id != nil {
		l.id, l.Introduced = id.Val(), true // 0 if it is denied
	}
	o.Conn, o.Peer = l.id, l.At()
	for _, c := range []*redis.StringCmd{server, replication, stats, commands} {
		if err := c.Err(); err != nil {
			return o, fmt.Errorf("INFO: %w", err)
		}
	}
	if err := readInfo(&o, server.Val(), replication.Val(), stats.Val(), commands.Val(), l.Codec.Traits().Sets); err != nil {
		return o, err
	}
	if counter != nil {
		o.Counter, err = counter.Int64()
		o.Counted = err == nil || errors.Is(err, redis.Nil)
	}
	p, err := params()
	l.readBack(&o, p, err)
	o.Lacking = lacksReplicas(replication.Val(), o.Params, o.Reads == "" && !o.Blind)
	return o, nil
}

// readWallClock reads the node's clock in a round trip of its own, because a shorter one is more
// precise. If the server denies TIME, the reading says so.
func (l Conn) readWallClock(ctx context.Context) (restartguard.Reading, error) {
	var now *redis.TimeCmd
	sent := boottime.Now()
	if err := l.Send(ctx, func(p redis.Pipeliner) { now = p.Time(ctx) }); err != nil {
		return restartguard.Reading{}, err
	}
	got := boottime.Now()
	if err := now.Err(); err != nil {
		return restartguard.Reading{Denied: IsDenied(err)}, nil
	}
	return restartguard.Reading{Sent: sent, Got: got, Wall: time.Duration(now.Val().UnixNano())}, nil
}

// readBack notes the fence as it was read, or why it could not be read.
func (l *Conn) readBack(o *restartguard.Observation, p minreplicas.Params, err error) {
	o.Params, o.Reads, o.Blind = p, l.Codec.Words(p), err != nil
	if o.Err == "" {
		o.Err = safetext.Error(err)
	}
}

// readInfo reads what a look needs from sections of INFO.
func readInfo(o *restartguard.Observation, server, replication, stats, commands string, sets []string) error {
	o.RunID = serverinfo.Field(server, "run_id")
	if !serverinfo.IsWord(o.RunID) {
		return errors.New("INFO server has no run_id")
	}
	up, _ := serverinfo.Number(server, "uptime_in_seconds")
	o.Up = time.Duration(min(up, math.MaxInt32)) * time.Second
	o.Role = serverinfo.Field(replication, "role")
	if !serverinfo.IsWord(o.Role) {
		return errors.New("INFO replication has no role")
	}
	if mode := serverinfo.Field(server, "redis_mode"); mode != "standalone" && serverinfo.IsWord(mode) {
		o.Role = mode
	}
	if f := serverinfo.Field(replication, "master_replid2"); serverinfo.IsWord(f) {
		o.Former = f
	}
	o.Commands, _ = serverinfo.Number(stats, "total_commands_processed")
	// A server that does not count evictions reports none.
	o.Evicted, _ = serverinfo.Number(stats, "evicted_keys")
	var err error
	if o.Wipes, err = CallsOf(commands, "flushall", "flushdb", "swapdb", "debug"); err != nil {
		return err
	}
	changes, err := CallsOf(commands, sets...)
	o.Configured = changes > 0
	return err
}

// lacksReplicas reports, by INFO replication, whether a node refuses writes because it wants more
// replicas than it has. If its parameters are not known, only a node without any replica certainly
// has too few.
func lacksReplicas(info string, p minreplicas.Params, known bool) bool {
	// The field exists only while both parameters are above 0.
	good, ok := serverinfo.Number(info, "min_slaves_good_slaves")
	switch {
	case !ok || known && (p.Fenced() || p.Cordoned()):
		return false
	case known:
		return !minreplicas.Accepts(p.MinReplicas, p.MaxLag, good)
	}
	return good == 0
}
