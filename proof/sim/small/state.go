package small

import (
	"fmt"
	"time"

	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
)

type restartModel struct {
	Config
	*teller
	delay time.Duration
	after time.Duration
	// horizon is when the last moment is.
	horizon time.Duration
}

func newRestartModel(cfg Config, say *teller) *restartModel {
	x := &restartModel{Config: cfg, teller: say}
	x.delay = restartguard.DefaultDelay(lockTTL)
	x.after = restartguard.EarlyAfter(attemptBound)
	x.horizon = restartHorizon
	if cfg.EarlyRejoin {
		x.horizon = earlyHorizon
	}
	switch {
	case x.is("delay-0.9"):
		x.delay = x.delay * 9 / 10
	case x.is("early-without-bound"):
		x.after = 1
	}
	return x
}

// node is a master, and what the guard knows of it.
type node struct {
	master
	state restartguard.State
}

type master struct {
	up, closed         bool
	cordoned           bool // and so closed
	incarnation, wipes uint8
	token              uint8
	ends               time.Duration
	set, to            [clientCount]uint8 // to: the incarnation at the end of the connection, 0: none yet

	ahead       time.Duration // of its wall clock, by steps
	conn        int64         // of the guard
	removal     uint8
	removalConn int64

	// What the guard has read of its locks, and when; 0: nothing.
	readAt          time.Duration
	readToken       uint8
	readLeft        time.Duration
	readIncarnation uint8
}

func (n *master) live(now time.Duration) bool { return n.token != 0 && n.ends > now }

// state is a state of the model: a value, so that a step is made on a copy.
type state struct {
	scene
	node [nodeCount]node
}

// scene is a state without its nodes.
type scene struct {
	now                            time.Duration
	crashes, flushes, guardCrashes int
	steps, drains                  int
	client                         [clientCount]client
}

func (s *state) time() time.Time { return epoch.Add(s.now) }

func (n *node) forgets(now time.Duration) string {
	if !n.live(now) {
		return ""
	}
	return fmt.Sprintf(" and forgets the vote for c%d", n.token)
}

// States of a rejoin.
const (
	removalNone uint8 = iota
	removalSent
	removalDone // its answer is on its way
)

func params(closed bool) minreplicas.Params {
	p := minreplicas.Params{MinReplicas: minreplicas.FenceNone, MaxLag: 10}
	if closed {
		p.MinReplicas = minreplicas.FenceUp
	}
	return p
}

func (n *node) params() minreplicas.Params {
	if n.cordoned {
		return minreplicas.Params{MinReplicas: minreplicas.FenceCordon, MaxLag: 10}
	}
	return params(n.closed)
}
