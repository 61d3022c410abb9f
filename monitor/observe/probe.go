package observe

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/crash"
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

// probe watches node i until ctx ends.
func (m *Monitor) probe(ctx context.Context, i int) {
	ctx, cancel := context.WithCancel(ctx)
	p := probing{monitor: m, node: i, patience: m.patience[i], reports: make(chan probeReport)}
	p.run(ctx)
	cancel()
	p.work.Wait()
}

// probing watches one node by one session after the other. Beside a session that is
// silent, it opens another: the connection may have been dropped without a word, as by a
// NAT. Whichever answers first goes on. When neither does for as long as patience lasts,
// the node does not answer; an answer that comes later counts all the same.
type probing struct {
	monitor  *Monitor
	node     int
	patience *wire.Patience
	reports  chan probeReport
	work     sync.WaitGroup

	sessions []*probeSession // at most two, the older first
	asked    time.Time       // since when an answer is awaited; zero: none is
	late     bool            // the node counts as not answering since then
	next     time.Time       // when to open a session if there is none
}

// probeSession is one session, as far as it has come.
type probeSession struct {
	cancel context.CancelFunc
	taken  bool      // its connection was accepted
	up     bool      // its connection is set up
	worked bool      // the node has answered on it
	asked  time.Time // since when it awaits an answer; zero: it awaits none
}

// probeReport is what a session tells: in this order that it is taken, up, asks, has heard of the
// node, has seen it; or that it has ended.
type probeReport struct {
	session *probeSession
	taken   bool
	up      bool
	asks    time.Time   // from when on the answer is awaited
	sight   *sight      // the result of a probe
	again   chan<- bool // to be told whether to probe again soon; with sight
	err     error       // why it has ended
}

func (p *probing) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		if len(p.sessions) == 0 && !p.next.After(now) {
			p.open(ctx, now)
		}
		timer.Reset(time.Until(p.check(ctx, now)))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case r := <-p.reports:
			if slices.Contains(p.sessions, r.session) {
				p.heard(r, time.Now())
			} else if r.again != nil {
				r.again <- false
			}
		}
	}
}

// open starts a session.
func (p *probing) open(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	s := &probeSession{cancel: cancel}
	p.sessions = append(p.sessions, s)
	if p.asked.IsZero() {
		p.asked = now
	}
	p.work.Go(crash.Safe(func() {
		defer cancel()
		tell := func(r probeReport) error {
			r.session = s
			select {
			case p.reports <- r:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		_ = tell(probeReport{err: p.monitor.probeSession(ctx, p.node, tell)})
	}))
}

// check acts on silence. It returns when to check again.
func (p *probing) check(ctx context.Context, now time.Time) (next time.Time) {
	next = now.Add(time.Hour)
	if len(p.sessions) == 0 {
		next = p.next
	}
	if !p.asked.IsZero() && !p.late {
		due := silentFrom(p.asked, p.monitor.changes[p.node].Heard(), p.monitor.answerWithin(p.node))
		if !due.After(now) {
			if p.late = p.monitor.failed(p.node, p.silence()); !p.late {
				p.asked, next = now, now // this process was late, not the node
			}
		} else if due.Before(next) {
			next = due
		}
	}
	if len(p.sessions) == 0 {
		return next
	}
	if s := p.sessions[len(p.sessions)-1]; s.up && !s.asked.IsZero() {
		due := s.asked.Add(max(p.monitor.opt.ProbeEvery, p.patience.Timeout()))
		if !due.After(now) {
			p.drop(len(p.sessions) - 1)
			p.open(ctx, now)
		} else if due.Before(next) {
			next = due
		}
	}
	return next
}

// silentFrom returns from when on a node counts as not answering that was asked at a time
// and should answer within another. If it was heard since, on the connection that reports
// changes, then the network has lost the answer, perhaps twice, and it gets that time
// again, once.
func silentFrom(asked, heard time.Time, within time.Duration) time.Time {
	if heard.Before(asked) {
		return asked.Add(within)
	}
	if most := asked.Add(within); heard.After(most) {
		heard = most
	}
	return heard.Add(within)
}

// drop ends the n oldest sessions.
func (p *probing) drop(n int) {
	for _, s := range p.sessions[:n] {
		s.cancel()
	}
	p.sessions = p.sessions[n:]
}

// silence returns the failure of a node that does not answer.
func (p *probing) silence() error {
	if slices.ContainsFunc(p.sessions, func(s *probeSession) bool { return s.taken }) {
		return wire.ErrLate
	}
	return wire.DialError{Err: wire.ErrLate}
}

// heard takes in a report.
func (p *probing) heard(r probeReport, now time.Time) {
	s := r.session
	switch {
	case r.taken:
		s.taken = true
	case r.up:
		s.up = true
	case !r.asks.IsZero():
		if s.asked = r.asks; p.asked.IsZero() {
			p.asked = r.asks
		}
	case r.err != nil:
		p.ended(s, r.err, now)
	default: // it answers: the others are not needed
		for _, other := range p.sessions {
			if other != s {
				other.cancel()
			}
		}
		p.sessions = append(p.sessions[:0], s)
		s.asked, p.asked = time.Time{}, time.Time{}
		if r.sight != nil {
			s.worked, p.late = true, false
			r.again <- p.monitor.answered(p.node, *r.sight)
		}
	}
}

// ended takes in the end of a session.
func (p *probing) ended(s *probeSession, err error, now time.Time) {
	p.sessions = slices.DeleteFunc(p.sessions, func(other *probeSession) bool { return other == s })
	state := wire.StateOf(err)
	if state == monitor.NodeDown && s.worked {
		// Only this connection ended, as when an operator kills it. The next session
		// shows whether the node is down or denies us.
		p.next = now.Add(soonAgain)
		return
	}
	if len(p.sessions) > 0 && wire.IsSilence(err) {
		return // the other may still be answered
	}
	p.monitor.failed(p.node, err)
	pause := p.monitor.opt.ProbeEvery
	if state == monitor.NodeDenied {
		pause = max(pause, p.monitor.opt.InfoEvery) // the server logs each refusal
	}
	p.next = now.Add(pause)
	if !wire.IsSilence(err) {
		p.asked, p.late = time.Time{}, false
	}
}

// answerWithin returns how long node i may take to answer. Of a node of which nothing is
// known yet, the others tell.
func (m *Monitor) answerWithin(i int) time.Duration {
	if m.patience[i].Measured() {
		return m.patience[i].Answer()
	}
	var most time.Duration
	for _, p := range m.patience {
		if p.Measured() {
			most = max(most, p.Answer())
		}
	}
	if most == 0 {
		return m.patience[i].Answer()
	}
	return most
}

// probeSession probes on one connection until it breaks. The first probe reads
// everything: the run_id shows a restart before anything else is trusted.
func (m *Monitor) probeSession(ctx context.Context, i int, tell func(probeReport) error) error {
	s, err := wire.Dial(ctx, m.nodes[i].Within(resp.NewBudget(probeReply, probeExchange)), m.patience[i])
	if err != nil {
		return err
	}
	defer s.Close()
	if err := tell(probeReport{taken: true}); err != nil {
		return err
	}
	p := prober{Session: s, fenceUser: m.nodes[i].FenceUser(), tell: tell}
	// The first sight waits for the knock, which takes less round trips than it.
	knocked, open, wait := time.Now(), knock(ctx, m.nodes[i], m.patience[i]), time.After(m.patience[i].Answer())
	past := make(chan time.Time)
	close(past)
	var full time.Time
	for {
		begun := time.Now()
		first, whole := full.IsZero(), !full.After(begun)
		v, err := p.look(ctx, whole)
		if err != nil {
			return err
		}
		if whole {
			// All of it takes a small part of what a thin line has, which the nodes share.
			took := max(0, p.took-v.received.Sub(v.sent))
			full = begun.Add(max(m.opt.InfoEvery, untilWhole(took, len(m.nodes))))
			p.thin = took > thinWhole
		}
		again := begun.Sub(knocked) >= knockEvery
		if again {
			knocked, open = begun, knock(ctx, m.nodes[i], m.patience[i])
		}
		if first || again {
			v.writers = p.otherWriters(ctx, m.opt.LockPatterns)
		}
		select {
		case v.open = <-open:
			open = nil
		case <-wait:
		}
		wait = past
		suspect := make(chan bool, 1)
		if err := tell(probeReport{sight: &v, again: suspect}); err != nil {
			return err
		}
		pause := m.opt.ProbeEvery
		select {
		case soon := <-suspect:
			if soon {
				pause = min(pause, soonAgain)
			}
		case <-ctx.Done():
		}
		if err := sleep.For(ctx, pause-time.Since(begun)); err != nil {
			return err
		}
	}
}

// wholeShare is how many times as long as the answers to a whole probe of all nodes take
// there is until the next one. If they take more than thinWhole longer than a round trip,
// the next one is asked in parts, with pauses of thinPause times as long as a part took:
// others may use the line.
const (
	wholeShare = 8
	thinWhole  = 20 * time.Millisecond
	thinPause  = 3
	// wholeMost bounds that time: the answers also take long when this process does not run.
	wholeMost = 30 * time.Second
)

// untilWhole returns the time until the next whole probe of one of n nodes, of which the answers took
// this long.
func untilWhole(took time.Duration, n int) time.Duration {
	return min(time.Duration(wholeShare*n)*took, wholeMost)
}

// knockEvery is how often to test whether a server accepts commands without a password.
const knockEvery = time.Minute

// knock tells whether a server accepts commands from a client that does not log in; nil:
// unknown. A server in protected mode refuses strangers, and so does one with a password
// for the default user.
func knock(ctx context.Context, node *redlock.Node, patience *wire.Patience) <-chan *bool {
	open := make(chan *bool, 1)
	crash.Go(func() {
		// With RESP2 nothing is sent before the PING.
		client := redlock.ConnectOnce(node.Anonymous().Within(resp.NewBudget(probeReply, probeExchange)), patience.Setup(), func(opt *redis.Options) {
			opt.Protocol, opt.DB, opt.PoolSize = 2, 0, 2
		})
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, patience.Setup())
		defer cancel()
		if err := client.Ping(ctx).Err(); err == nil || wire.IsAnswer(err) {
			is := err == nil
			open <- &is
			return
		}
		open <- nil
	})
	return open
}

// prober remembers what its server refuses.
type prober struct {
	*wire.Session
	tell             func(probeReport) error // an error ends the session
	took             time.Duration           // how long the answers to a whole probe took
	thin             bool                    // because the line is thin, it seems
	ready            bool                    // the connection is set up
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
	p.Patience.Took(v.received.Sub(v.sent))
	if err := p.tell(probeReport{}); err != nil { // it answers
		return v, err
	}
	awaited := v.received
	if whole {
		awaited = awaited.Add(p.Patience.Answer()) // some KiB, which may pass a thin line
	}
	if err := p.tell(probeReport{asks: awaited}); err != nil {
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
	ctx, cancel := context.WithTimeout(ctx, 2*p.Patience.Setup())
	defer cancel()
	if !p.noTime {
		// The first command of a connection sets it up; that must not count as round
		// trip.
		if !p.ready {
			if err := p.Conn.Ping(ctx).Err(); err != nil && !wire.Refused(err) {
				return err
			}
			p.ready = true
			if err := p.tell(probeReport{up: true}); err != nil {
				return err
			}
		}
		v.sent = time.Now()
		if err := p.tell(probeReport{asks: v.sent}); err != nil {
			return err
		}
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
	if err := p.tell(probeReport{asks: v.sent}); err != nil {
		return err
	}
	err := p.Conn.Ping(ctx).Err()
	v.received = time.Now()
	return err
}

// ask reads INFO and CONFIG in one pipeline.
func (p *prober) ask(ctx context.Context, v *sight, sections []string, whole bool) error {
	infos := make([]*redis.StringCmd, len(sections))
	together := sections
	if whole && p.thin {
		together = nil
	}
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
	begun := time.Now()
	err := p.Pipeline(ctx, func(pipe redis.Pipeliner) {
		for k, param := range params { // first, so that INFO counts every CONFIG SET before this read
			configs[k] = pipe.ConfigGet(ctx, param)
		}
		for k, section := range together {
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
	p.took = time.Since(begun)
	if len(together) < len(sections) {
		for k, section := range sections {
			if infos[k], err = p.apart(ctx, section, v.received.Sub(v.sent)); err != nil {
				return err
			}
		}
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
		v.guards = &guardsSight{known: true, all: announce.DecodeAll(guards.Val()), locks: announce.DecodeLocks(guards.Val()), step: announce.DecodeStep(guards.Val())}
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

// apart reads a section of INFO after a pause that leaves the line to others; trip is a
// round trip.
func (p *prober) apart(ctx context.Context, section string, trip time.Duration) (info *redis.StringCmd, err error) {
	if err := p.tell(probeReport{}); err != nil { // it answers
		return nil, err
	}
	begun := time.Now()
	if err := p.tell(probeReport{asks: begun.Add(p.Patience.Answer())}); err != nil {
		return nil, err
	}
	err = p.Pipeline(ctx, func(pipe redis.Pipeliner) { info = pipe.Info(ctx, section) })
	took := max(0, time.Since(begun)-trip)
	p.took += took
	if err == nil {
		err = sleep.For(ctx, thinPause*took)
	}
	return info, err
}
