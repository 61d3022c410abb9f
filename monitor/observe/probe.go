package observe

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/monitor"
	"redlockctl/monitor/wire"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
)

// infoSections are requested one by one: not every server supports several at once, and
// an unknown section gives an empty reply.
var infoSections = [...]string{"server", "replication", "memory", "persistence", "clients", "stats", "keyspace", "cluster", monitor.FactSection}

// fenceParameters are read with every probe, so that a fence is seen at once.
var fenceParameters = [...]string{"min-replicas-to-write", "min-replicas-max-lag", "replica-read-only"}

var otherParameters = [...]string{"maxmemory-policy", "appendonly", "appendfsync", "no-appendfsync-on-rewrite"}

// Limits, in bytes, of a node's reply to one command of a probe and of a whole exchange.
const (
	probeReply    = 1 << 20 // a section of INFO; usually a few KiB
	probeExchange = 4 << 20
)

// soonAgain is the pause before the next sample, which tells a clock step from a short
// delay.
const soonAgain = 20 * time.Millisecond

// probe watches node i until ctx ends, in one session after the other.
func (m *Monitor) probe(ctx context.Context, i int) {
	for ctx.Err() == nil {
		worked, err := m.probeSession(ctx, i)
		if ctx.Err() != nil {
			return
		}
		if worked && wire.StateOf(err) == monitor.NodeDown {
			// Only this connection ended, as when an operator kills it. The next session
			// shows whether the node is down or denies us.
			_ = sleep.For(ctx, soonAgain)
			continue
		}
		m.failed(i, err)
		pause := m.opt.ProbeEvery
		if wire.StateOf(err) == monitor.NodeDenied {
			pause = max(pause, m.opt.InfoEvery) // the server logs each refusal
		}
		_ = sleep.For(ctx, pause)
	}
}

// probeSession probes on one connection until it breaks. The first probe reads
// everything: the run_id shows a restart before anything else is trusted. worked: the
// node has answered.
func (m *Monitor) probeSession(ctx context.Context, i int) (worked bool, err error) {
	s, err := wire.Dial(ctx, m.nodes[i].Within(resp.NewBudget(probeReply, probeExchange)), m.opt.Timeout)
	if err != nil {
		return false, err
	}
	defer s.Close()
	p := prober{Session: s, fenceUser: m.nodes[i].FenceUser()}
	var full, knocked time.Time
	for {
		begun := time.Now()
		whole := full.IsZero() || begun.Sub(full) >= m.opt.InfoEvery
		if whole {
			full = begun
		}
		v, err := p.look(ctx, whole)
		if err != nil {
			return worked, err
		}
		worked = true
		if knocked.IsZero() || begun.Sub(knocked) >= knockEvery {
			knocked, v.open = begun, knock(ctx, m.nodes[i], m.opt.Timeout)
			v.writers = p.otherWriters(ctx, m.opt.LockPatterns)
		}
		pause := m.opt.ProbeEvery
		if m.answered(i, v) {
			pause = min(pause, soonAgain)
		}
		_ = sleep.For(ctx, pause-time.Since(begun))
		if ctx.Err() != nil {
			return worked, ctx.Err()
		}
	}
}

// knockEvery is how often to test whether a server accepts commands without a password.
const knockEvery = time.Minute

// knock reports whether a server accepts commands from a client that does not log in;
// nil: unknown. A server in protected mode refuses strangers, and so does one with a
// password for the default user.
func knock(ctx context.Context, node *redlock.Node, timeout time.Duration) *bool {
	// With RESP2 nothing is sent before the PING.
	client := node.Anonymous().Within(resp.NewBudget(probeReply, probeExchange)).OneConnection(timeout, func(opt *redis.Options) {
		opt.Protocol, opt.DB, opt.PoolSize = 2, 0, 2
	})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := client.Ping(ctx).Err()
	if err != nil && !wire.IsAnswer(err) {
		return nil
	}
	open := err == nil
	return &open
}

// prober remembers what its server refuses.
type prober struct {
	*wire.Session
	ready            bool // the connection is set up
	noTime, noConfig bool
	fenceUser        string // ACL user by which the node is fenced; "": min-replicas-to-write
	noFence          bool   // whether that user is fenced may not be read
}

// look probes once.
func (p *prober) look(ctx context.Context, whole bool) (v sight, err error) {
	defer resp.Contain(&err, "a probe")
	v = sight{notes: map[string]monitor.Limit{}}
	if whole {
		p.noTime, p.noConfig, p.noFence = false, false, false // rights may have been granted since
	}
	if err := p.time(ctx, &v); err != nil {
		return v, err
	}
	infos := []string{}
	switch {
	case whole:
		infos = infoSections[:]
	case p.noConfig:
		infos = []string{"server", "replication", "persistence"}
	}
	if err := p.ask(ctx, &v, infos, whole); err != nil {
		return v, err
	}
	return v, nil
}

// time measures the round trip and reads the node's clock.
func (p *prober) time(ctx context.Context, v *sight) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	if !p.noTime {
		// The first command of a connection sets it up; that must not count as round
		// trip.
		if !p.ready {
			if err := p.Conn.Ping(ctx).Err(); err != nil && !wire.Refused(err) {
				return err
			}
			p.ready = true
		}
		v.sent = time.Now()
		server, err := p.Conn.Time(ctx).Result()
		v.received = time.Now()
		switch {
		case err == nil:
			v.server = server
			v.notes["time"] = monitor.Limit{}
			return nil
		case !wire.Refused(err):
			return err
		}
		p.noTime = true
		v.notes["time"] = monitor.Limit{Text: "TIME denied: its clock is not seen", Do: monitor.AdviceRights}
	}
	v.sent = time.Now()
	err := p.Conn.Ping(ctx).Err()
	v.received = time.Now()
	return err
}

// ask reads INFO and CONFIG in one pipeline.
func (p *prober) ask(ctx context.Context, v *sight, sections []string, whole bool) error {
	infos := make([]*redis.StringCmd, len(sections))
	var params []string
	if !p.noConfig {
		params = append(params, fenceParameters[:]...)
		if whole {
			params = append(params, otherParameters[:]...)
			params = append(params, monitor.FactParameters[:]...)
		}
	}
	configs := make([]*redis.MapStringStringCmd, len(params))
	var guards *redis.StringSliceCmd
	var fence *userFence
	err := p.Pipeline(ctx, func(pipe redis.Pipeliner) {
		for k, param := range params { // first, so that INFO counts every CONFIG SET before this read
			configs[k] = pipe.ConfigGet(ctx, param)
		}
		for k, section := range sections {
			infos[k] = pipe.Info(ctx, section)
		}
		guards = pipe.PubSubChannels(ctx, announce.Pattern)
		if p.fenceUser != "" && !p.noFence {
			fence = askUserFence(ctx, pipe, p.fenceUser)
		}
	})
	if err != nil {
		return err
	}
	if len(infos) > 0 {
		v.info = map[string]string{}
		denied := false
		for _, cmd := range infos {
			switch err := cmd.Err(); {
			case err == nil:
				wire.ParseInfo(cmd.Val(), v.info)
			case wire.Says(err, "NOPERM"):
				denied = true
			case wire.Says(err, "NOAUTH", "LOADING", "BUSY", "MASTERDOWN"), !wire.IsAnswer(err):
				return err
			}
		}
		v.notes["info"] = monitor.Limit{}
		if denied {
			v.notes["info"] = monitor.Limit{Text: "INFO denied: restarts and roles are not seen", Do: monitor.AdviceRights}
		}
	}
	switch err := guards.Err(); {
	case err == nil:
		v.guards = &guardsSight{known: true, all: announce.DecodeAll(guards.Val()), locks: announce.DecodeLocks(guards.Val())}
		v.notes["guards"] = monitor.Limit{}
	case wire.Says(err, "NOAUTH", "LOADING", "BUSY"), !wire.IsAnswer(err):
		return err
	default:
		v.guards = &guardsSight{}
		v.notes["guards"] = monitor.Limit{Text: "PUBSUB denied: guards are not seen", Do: monitor.AdviceRights}
	}
	if fence != nil {
		if v.fence, err = fence.read(); err != nil {
			return err
		}
		p.noFence = !v.fence.known
	} else if p.fenceUser != "" {
		v.fence = &userFenceSight{}
	}
	if whole || !p.noConfig {
		v.config = map[string]string{}
	}
	for _, cmd := range configs {
		switch err := cmd.Err(); {
		case err == nil:
			for k, value := range cmd.Val() {
				v.config[strings.ToLower(k)] = value
			}
		case wire.Says(err, "NOAUTH", "LOADING", "BUSY"), !wire.IsAnswer(err):
			return err
		default:
			p.noConfig = true
			v.configError, v.configMissing = safetext.Escape(err.Error()), wire.Says(err, "ERR unknown command")
		}
	}
	return nil
}
