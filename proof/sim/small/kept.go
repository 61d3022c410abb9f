package small

import (
	"fmt"
	"slices"
	"time"

	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/redlock/attempt"
	"redlockctl/restartguard"
)

// keptHorizon is when the last moment of the kept model is.
const keptHorizon = 22 * time.Second

// keptNode is a master of the kept model. It starts fenced, and rejoins at any moment
// from D after its crash: the other models show that guards let it rejoin no earlier.
type keptNode struct {
	incarnation uint8
	fenced      bool
	lostAt      time.Duration
	token       uint8 // 1 and 2: of the clients
	ends        time.Duration

	set, to uint8 // the rival's SET, see node
	// ext is the extension, extIncarnation is that at the end of its connection.
	ext, extIncarnation uint8
	// put is a copy that is put back; putHeard: its answer reaches the holder.
	put, putIncarnation uint8
	known               attempt.Known // what the holder knows of its copy
	heardAt             time.Duration // when it last had an answer about it
	clean               bool          // the operator found it without the lock, in time
	deleted             bool          // by the operator, in this incarnation
}

// States of an extension.
const (
	extNone uint8 = iota
	extSent
	extCounts // it was done, and counts
	extNo
	extDown
)

// keptState is a state: the first client keeps its lock by extensions, masters restart, a
// rival makes an attempt, and an operator force-releases the lock.
type keptState struct {
	now                 time.Duration
	node                [nodeCount]keptNode
	until               time.Duration // end of the holder's validity
	start               time.Duration // of the extension
	asking, granted     bool
	afterTold           bool // it began when the operator had been told
	extensions, crashes int
	rival               client
	taking, told        bool
	takeBegan           time.Duration
	wrong               string // what must not be
}

type keptModel struct {
	Config
	*teller
	delay time.Duration
}

func newKeptModel(cfg Config, say *teller) *keptModel {
	return &keptModel{cfg, say, restartguard.DefaultDelay(lockTTL)}
}

func (x *keptModel) moment(s *keptState) time.Duration { return s.now }

func (x *keptModel) begin() keptState {
	s := keptState{extensions: x.Extensions, crashes: x.Crashes, until: validUntil(0)}
	copies := new(attempt.Copies)
	copies.Reset(nodeCount)
	for i := range s.node {
		copies.May(i, incarnationNames[1])
		s.node[i] = keptNode{incarnation: 1, token: 1, ends: lockTTL, known: copies.Of(i)}
	}
	x.say(0, "c", 0, "has the lock, valid until %s", trace.At(s.until))
	return s
}

var incarnationNames = [...]string{"", "1", "2", "3", "4", "5"}

func (x *keptModel) broken(s *keptState) string { return s.wrong }

func (x *keptModel) over(s *keptState) bool {
	underWay := slices.ContainsFunc(s.node[:], func(n keptNode) bool {
		return n.ext == extSent || n.put == setSent && n.putIncarnation == n.incarnation
	})
	believes := s.until > s.now
	if x.Taken {
		believes = believes && s.extensions > 0 // everything that can break is another
	}
	return !believes && !underWay
}

func (x *keptModel) moves(s *keptState, m []move) []move {
	add := func(possible bool, kind moveKind, i int) {
		if possible {
			m = append(m, move{kind, 0, uint8(i)})
		}
	}
	// A force-release from a holder that is alive allows two holders: then there is no
	// rival.
	add(s.rival.phase == clientWaiting && !x.Taken, moveBegin, 0)
	add(s.extensions > 0 && !s.asking && s.now < s.until, moveExtend, 0)
	add(x.Taken && !s.taking && s.now < s.until, moveTake, 0)
	for i := range s.node {
		n := &s.node[i]
		add(n.set == setSent, moveSet, i)
		add(n.ext == extSent, moveExtended, i)
		add(n.put == setSent, movePut, i)
		add(n.put == setSent && n.putIncarnation == n.incarnation, movePutUnheard, i)
		add(s.crashes > 0, moveRestart, i)
		add(n.fenced && s.now >= n.lostAt+x.delay, moveRejoin, i)
		add(s.taking && n.live(s.now) && n.token == 1 && !n.fenced, moveDelete, i)
		add(s.taking && !(n.live(s.now) && n.token == 1) && !n.clean && s.inTime(), moveDelete, i)
	}
	return append(m, move{moveTime, 0, 0})
}

func (n *keptNode) live(now time.Duration) bool { return n.token != 0 && n.ends > now }

// inTime reports whether what the operator finds counts for a force-release.
func (s *keptState) inTime() bool { return s.now-s.takeBegan <= attempt.SettleTime/2 }

func (s *keptState) time() time.Time { return epoch.Add(s.now) }

func (x *keptModel) make(s *keptState, m move) bool {
	i := int(m.at)
	n := &s.node[i]
	switch m.kind {
	case moveBegin:
		s.rival = client{phase: clientAsking, start: s.now}
		for k := range s.node {
			s.node[k].set, s.node[k].to = setSent, s.node[k].incarnation
		}
		x.say(s.now, "c", 1, "begins its attempt")
	case moveSet:
		x.arrive(s, i)
	case moveExtend:
		x.extend(s)
	case moveExtended:
		x.extended(s, i)
	case movePut:
		x.put(s, i, true)
	case movePutUnheard:
		x.put(s, i, false)
	case moveRestart:
		s.crashes--
		n.incarnation, n.fenced, n.lostAt, n.token, n.deleted = n.incarnation+1, true, s.now, 0, false
		x.say(s.now, "n", m.at, "crashes, and is back, empty and fenced")
	case moveRejoin:
		n.fenced = false
		x.say(s.now, "n", m.at, "rejoins")
	case moveTake:
		s.taking, s.takeBegan = true, s.now
		x.say(s.now, "o", 0, "takes the lock away")
	case moveDelete:
		x.remove(s, i)
	case moveTime:
		return x.pass(s)
	}
	return true
}

// pass advances time to the next moment at which something ends.
func (x *keptModel) pass(s *keptState) bool {
	next := (s.now/grid + 1) * grid
	stop := func(t time.Duration) {
		if t > s.now && t < next {
			next = t
		}
	}
	stop(s.until)
	if s.asking {
		stop(s.start + attemptBound)
	}
	if s.rival.phase == clientAsking {
		stop(s.rival.start + attemptBound)
	}
	if s.taking {
		stop(s.takeBegan + attempt.SettleTime/2 + 1)
	}
	copies := x.copies(s)
	for i := range s.node {
		n := &s.node[i]
		if n.token != 0 {
			stop(n.ends)
		}
		if n.fenced {
			stop(n.lostAt + x.delay)
		}
		if !copies.Counts(i) {
			stop(n.heardAt + attempt.SettleTime)
		}
	}
	if next > keptHorizon {
		return false
	}
	s.now = next
	x.say(s.now, "", 0, "time passes")
	if s.asking && s.now >= s.start+attemptBound {
		s.asking = false
		x.say(s.now, "c", 0, "cannot extend the lock in time")
	}
	if s.rival.phase == clientAsking && s.now >= s.rival.start+attemptBound {
		x.giveUp(s)
	}
	return true
}

// copies are what it knows, for the product's code to work on.
func (x *keptModel) copies(s *keptState) *attempt.Copies {
	c := new(attempt.Copies)
	c.Reset(nodeCount)
	for i := range s.node {
		c.Set(i, s.node[i].known)
	}
	return c
}

func (s *keptState) keep(c *attempt.Copies) {
	for i := range s.node {
		s.node[i].known = c.Of(i)
	}
}

func (x *keptModel) extend(s *keptState) {
	s.extensions--
	s.asking, s.granted, s.start, s.afterTold = true, false, s.now, s.told
	copies := x.copies(s)
	for i := range s.node {
		n := &s.node[i]
		n.ext, n.extIncarnation = extSent, n.incarnation
		if n.put != setNone { // its outcome is not known, and never will be
			copies.Repaired(i, redlock.StatusSlow, true, "", s.time())
			n.heardAt = s.now
			if n.put == setFailed {
				n.put = setNone
			}
		}
	}
	s.keep(copies)
	x.say(s.now, "c", 0, "asks for an extension")
}

// extended: an extension reaches a node, and its answer the holder.
func (x *keptModel) extended(s *keptState, i int) {
	n := &s.node[i]
	status := redlock.StatusOK
	switch {
	case n.extIncarnation != n.incarnation:
		status = redlock.StatusDown
	case !n.live(s.now):
		status = redlock.StatusAbsent
	case n.token != 1:
		status = redlock.StatusHeld
	default:
		n.ends = max(n.ends, s.now+lockTTL)
	}
	copies := x.copies(s)
	copies.Extended(i, status, incarnationNames[n.extIncarnation], s.time())
	n.heardAt = s.now
	switch {
	case status == redlock.StatusDown:
		n.ext = extDown
	case status == redlock.StatusOK && (copies.Counts(i) || x.is("repair-counts-at-once")):
		n.ext = extCounts
	default:
		n.ext = extNo
	}
	x.say(s.now, "n", uint8(i), "answers the extension: %s", status)
	if s.asking {
		x.decide(s, i)
	}
	s.keep(copies)
	x.putBack(s)
}

// decide passes the answers to the product's machine.
func (x *keptModel) decide(s *keptState, last int) {
	a, _ := attempt.Begin(attempt.Terms{N: nodeCount, Extend: true, Start: epoch.Add(s.start), TTL: lockTTL,
		Drift: drift, Wait: attemptBound, NotAfter: epoch.Add(s.until)})
	status := map[uint8]redlock.Status{extCounts: redlock.StatusOK, extNo: redlock.StatusAbsent, extDown: redlock.StatusDown}
	for i := range s.node {
		if st, ok := status[s.node[i].ext]; ok && i != last {
			a.Answer(i, st, epoch.Add(s.start))
		}
	}
	_, v := a.Answer(last, status[s.node[last].ext], s.time())
	switch v {
	case attempt.VerdictPending:
	case attempt.VerdictGranted:
		s.asking, s.granted, s.until = false, true, max(s.until, a.Until().Sub(epoch))
		x.say(s.now, "c", 0, "has extended the lock, valid until %s", trace.At(s.until))
		if s.afterTold {
			s.wrong = "c1 has extended its lock by an extension that began when it had been revoked or force-released"
		}
		x.believers(s)
	default:
		s.asking = false
		x.say(s.now, "c", 0, "cannot extend the lock: %s", v)
		if v == attempt.VerdictNotHeld {
			s.until = s.now
		}
	}
}

// putBack puts missing copies back after a granted extension.
func (x *keptModel) putBack(s *keptState) {
	if !s.granted && !x.is("repair-unconfirmed") || s.now >= s.until && !x.is("repair-late") {
		return
	}
	copies := x.copies(s)
	copies.Confirmed(epoch.Add(s.start))
	s.keep(copies)
	for i := range s.node {
		n := &s.node[i]
		if n.put != setNone || !copies.Missing(i) && !(x.is("repair-of-deleted") && copies.Absent(i)) {
			continue
		}
		if s.now >= s.until {
			s.wrong = "c1 puts back a copy of a lock that it does not hold any more"
		}
		n.put, n.putIncarnation = setSent, n.incarnation
		x.say(s.now, "c", 0, "puts the copy on %s back", nodeNames[i])
	}
}

// put: a copy that is put back reaches a node, and perhaps its answer the holder.
func (x *keptModel) put(s *keptState, i int, heard bool) {
	n := &s.node[i]
	status := redlock.StatusOK
	switch {
	case n.putIncarnation != n.incarnation:
		status = redlock.StatusDown
	case n.fenced && !x.is("repair-through-fence"):
		status = redlock.StatusFenced
	case n.live(s.now) && !x.is("repair-overwrites"):
		status = redlock.StatusHeld
	default:
		switch {
		case n.fenced:
			s.wrong = fmt.Sprintf("%s, which is fenced, accepts a copy that is put back", nodeNames[i])
		case n.live(s.now) && n.token != 1:
			s.wrong = fmt.Sprintf("the copy of c2 on %s is replaced by one that is put back", nodeNames[i])
		}
		n.token, n.ends = 1, s.now+lockTTL
		x.say(s.now, "n", uint8(i), "gets a copy back")
	}
	if !heard {
		n.put = setFailed
		return
	}
	n.put = setNone
	copies := x.copies(s)
	copies.Repaired(i, status, true, incarnationNames[n.putIncarnation], s.time())
	n.heardAt = s.now
	s.keep(copies)
}

func (x *keptModel) arrive(s *keptState, i int) {
	n := &s.node[i]
	switch {
	case n.to != n.incarnation || n.fenced:
		n.set = setFailed
	case n.live(s.now):
		n.set = setNo
	default:
		n.set, n.token, n.ends = setYes, 2, s.now+lockTTL
		x.say(s.now, "n", uint8(i), "votes for c2")
	}
	if s.rival.phase != clientAsking {
		return
	}
	yes, no := 0, 0
	for k := range s.node {
		switch s.node[k].set {
		case setYes:
			yes++
		case setNo, setFailed:
			no++
		}
	}
	switch quorum := redlock.Quorum(nodeCount); {
	case yes >= quorum:
		s.rival.phase, s.rival.until = clientHolding, validUntil(s.rival.start)
		x.say(s.now, "c", 1, "is granted the lock, valid until %s", trace.At(s.rival.until))
		x.believers(s)
	case no > nodeCount-quorum:
		x.giveUp(s)
	}
}

func (x *keptModel) giveUp(s *keptState) {
	s.rival = client{phase: clientDone}
	for i := range s.node {
		n := &s.node[i]
		n.set = setNone
		if n.token == 2 {
			n.token = 0
		}
	}
	x.say(s.now, "c", 1, "gives up")
}

// believers reports two clients that rely on the lock.
func (x *keptModel) believers(s *keptState) {
	if s.until > s.now && s.rival.phase == clientHolding && s.rival.until > s.now {
		s.wrong = fmt.Sprintf("c1 relies on the lock until %s, and c2 until %s", trace.At(s.until), trace.At(s.rival.until))
	}
}

// remove is the operator's part on one node.
func (x *keptModel) remove(s *keptState, i int) {
	n := &s.node[i]
	if n.live(s.now) && n.token == 1 {
		n.token, n.deleted = 0, true
		x.say(s.now, "n", uint8(i), "loses its copy to the operator")
	}
	n.clean = n.clean || s.inTime()
	clean, deleted := 0, 0
	for k := range s.node {
		if s.node[k].clean {
			clean++
		}
		if s.node[k].deleted {
			deleted++
		}
	}
	if quorum := redlock.Quorum(nodeCount); !s.told && (clean >= quorum && deleted > 0 || deleted >= quorum) {
		s.told = true
		x.say(s.now, "o", 0, "is told that the lock is gone")
	}
}

// key hashes the whole state without what makes no difference.
func (x *keptModel) key(s *keptState) uint64 {
	k := *s
	if k.rival.phase != clientAsking {
		k.rival.start = 0
	}
	if !s.taking || !s.inTime() {
		k.takeBegan = 0
	}
	copies := x.copies(s)
	var nodes [nodeCount]uint64
	for i := range k.node {
		n := k.node[i]
		if !n.live(s.now) {
			n.token, n.ends = 0, 0
		}
		if !n.fenced {
			n.lostAt = 0
		}
		if n.set != setSent {
			n.to = 0
		}
		if n.ext != extSent {
			n.extIncarnation = 0
		}
		if n.put == setNone {
			n.putIncarnation = 0
		}
		if copies.Counts(i) {
			n.heardAt = 0
		}
		nodes[i] = keyOf(n)
	}
	slices.Sort(nodes[:])
	k.node = [nodeCount]keptNode{}
	return keyOf(struct {
		keptState
		nodes [nodeCount]uint64
	}{k, nodes})
}
