package observe

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/clock"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
)

// sight is the result of one probe of a node.
type sight struct {
	sent, received time.Time
	server         time.Time // the node's clock; zero if TIME is denied
	// info and config are nil if this probe did not ask, and empty if refused.
	info   map[string]string
	config map[string]string // always has the fence; other parameters once a second
	// configError says why CONFIG was refused, configMissing that the server has no
	// CONFIG. Valid only with config.
	configError   string
	configMissing bool
	guards        *guardsSight             // nil if this probe did not ask
	fence         *userFenceSight          // of a node fenced by its ACL user; nil for other nodes, or if this probe did not ask
	writers       *string                  // users that the fence by ACL does not stop; nil if this probe did not ask
	open          *bool                    // whether it accepts commands without a password; nil if this probe did not ask
	notes         map[string]monitor.Limit // by topic; an empty one clears the note
}

// guardsSight has the guards that announce themselves on a node. If not known, they could
// not be read.
type guardsSight struct {
	known bool
	all   []announce.Guard
	locks []announce.Lock
	step  *announce.Step // of the node's clock; nil: none is announced
}

// watch follows one node: a pure step machine over probes and failures.
type watch struct {
	monitor.Node
	probed     bool
	reprobed   bool              // since this process was last stopped
	kept       bool              // the data that it had on disk survived, even a restart
	served     bool              // it accepted writes when it was last readable
	base       monitor.NodeState // according to the probe
	denied     error             // why the scan is refused; nil: it is not
	lastAnswer time.Time         // last proof of its incarnation
	fails      int               // failed scans in a row
	tells      bool              // it reports its changes
	proven     time.Time         // all earlier changes have been read, or a full read ended then
	tried      bool              // a scan has ended, successfully or for good
	db         int               // number of the database with the locks
	otherDB    int               // number of another one that has keys; -1: none is known
	clock      clock.Clock
	good       int64 // good replicas; -1: unknown
	maxLag     int64
	// From INFO: whether min-replicas-to-write is in force, whether the server reads its
	// data, what it is if not a master.
	inForce bool
	// byUser is the fence of a node that is fenced by its ACL user; nil: by
	// min-replicas-to-write. writable: it accepts writes as a replica.
	byUser   *userFenceSight
	unfenced bool // its fence method is "none"
	// cordoned is since when an operator keeps it out, also while it is restarted; zero: none
	// does. cordonOlder: it was found cordoned.
	cordoned    time.Time
	cordonOlder bool

	// earlySince is since when it was seen to serve before it may vote; zero: it does not.
	earlySince time.Time
	early      bool // proven, see [watch.serveEarly]
	earlyUntil time.Time

	remembered finding.BootSight // how it starts, as last told
	promised   promise           // when it rejoins, as an event says

	copies   copiesLeft
	writable bool
	ops      int64 // commands per second, including ours
	loading  bool
	foreign  string
	// wipesTold counts the wipes that the node has reported since its counters were last
	// read.
	wipesTold int64
	// rejoinsAt is when the incarnation rejoinsRun may vote, as guards last announced; zero: unknown.
	rejoinsAt  time.Time
	rejoinsRun string
	vouched    map[string]time.Time // by channel, without the time: until when a lock is held, by the node's clock, as last announced
	notes      map[string]monitor.Limit
	minute     monitor.Minute // the current one
	rtts       time.Duration  // sum over its answers
}

func newWatch(name, addr string, now time.Time) *watch {
	return &watch{
		Node: monitor.Node{Name: name, Addr: addr, Since: now, MinReplicasToWrite: -1, Keys: -1, Facts: monitor.UnknownFacts()},
		good: -1, otherDB: -1,
		notes: map[string]monitor.Limit{},
	}
}

// answered records a probe. restarted reports whether another incarnation answered than
// last time.
func (w *watch) answered(s sight) (restarted bool) {
	w.probed = true
	w.heard(s.received)
	w.RTT = s.received.Sub(s.sent)
	// Snapshots share the slice: it must not be written again.
	w.RTTs = append(slices.Clone(w.RTTs[max(0, len(w.RTTs)-rttsKept+1):]), w.RTT)
	w.measured(s.received, w.RTT, true)
	for topic, note := range s.notes {
		w.note(topic, note)
	}
	if s.info != nil {
		was := w.RunID
		restarted = w.readInfo(s.info)
		if w.RunID != was {
			w.StartedAfter = startedAfter(w.lastAnswer, s.sent, s.info)
			w.Guards = startUnseen(w.Guards, func(announce.Guard) bool { return was != "" }) // read from the former server
		}
		w.lastAnswer = s.sent
	}
	if s.config != nil {
		w.readConfig(s.config)
		w.Facts.ConfigError, w.Facts.ConfigMissing = s.configError, s.configMissing
	}
	if s.guards != nil {
		w.Guards = startUnseen(s.guards.all, func(g announce.Guard) bool { return !g.About(w.RunID) })
		w.GuardsKnown, w.GuardsDenied = s.guards.known, !s.guards.known
		w.noteStarts()
	}
	if s.fence != nil {
		w.byUser = s.fence
	}
	if s.writers != nil {
		w.Facts.Writers = *s.writers
	}
	if s.open != nil {
		w.Facts.Open = *s.open
	}
	w.Leak, w.ScriptsPass = w.leak(), w.passesScripts()
	w.base, w.Err = w.assess()
	was := w.Persistent
	if _, whole := s.config["appendonly"]; whole && s.info != nil {
		w.Facts.NoteData()
	}
	w.Persistent, _ = w.Facts.Durable()
	w.kept = was && w.Persistent
	if restarted {
		noteStart(&w.Facts, w.base, w.Uptime, s.received)
	}
	return restarted
}

// incarnation returns what s, the first answer of a server, says about it.
func (w *watch) incarnation(s sight) table.Incarnation {
	ahead := max(0, s.server.Sub(s.received)) // by as much its clock may have been set forward, and its uptime with it
	started := s.received.Add(-max(0, w.Uptime-ahead))
	waits := slices.ContainsFunc(w.Guards, func(g announce.Guard) bool { return g.MayVote.After(s.server) })
	switch wiped, known := w.wipedBefore(s); {
	case waits, w.Facts.Wipes > 0 && !known:
		// Its data was wiped, and it does not say when. Or a guard knows of a later loss: a clock that was
		// set forward makes the uptime too long.
		started = s.received
	case wiped.After(started):
		started = wiped
	}
	return table.Incarnation{
		Started: started,
		Fenced:  w.base == monitor.NodeFenced,
		Lost:    w.lostBefore(s),
		Keys:    w.Keys != 0,
		Fresh:   s.info["rdb_last_load_keys_loaded"] == "0" && s.info["aof_enabled"] == "0",
		Durable: w.kept,
	}
}

// wipedBefore returns a time after which the server's data was not wiped, if a guard knows: it
// announces of how many calls it knows.
func (w *watch) wipedBefore(s sight) (at time.Time, known bool) {
	for _, g := range w.Guards {
		if g.Wipes == w.Facts.Wipes+w.Facts.Debugs && g.Run != "" && !g.NoLossSince.IsZero() {
			return s.received.Add(g.NoLossSince.Sub(s.server)), true
		}
	}
	return time.Time{}, false
}

// lostBefore returns a time after which the server lost no vote, if a guard for which it waits knows
// of this incarnation and of each wipe: it may vote D after the last loss. Zero: none does.
func (w *watch) lostBefore(s sight) (at time.Time) {
	for _, g := range w.Guards {
		if g.Run == "" || !g.About(w.RunID) || !g.MayVote.After(s.server) || g.Wipes != w.Facts.Wipes+w.Facts.Debugs {
			continue
		}
		if lost := s.received.Add(g.MayVote.Add(-g.Delay).Sub(s.server)); lost.After(at) {
			at = lost
		}
	}
	return at
}

// startUnseen returns these announcements, in which no guard that speaks of an earlier incarnation
// has seen a start of the present one.
func startUnseen(all []announce.Guard, earlier func(announce.Guard) bool) []announce.Guard {
	if !slices.ContainsFunc(all, earlier) {
		return all
	}
	all = slices.Clone(all) // snapshots share it
	for i := range all {
		if earlier(all[i]) {
			all[i].Boot, all[i].Exposed = announce.BootUnknown, 0
		}
	}
	return all
}

// noteStarts remembers an unfenced start that a guard reports, until a guard reports a
// fenced one.
func (w *watch) noteStarts() {
	reported := func(boot announce.Boot) bool {
		return slices.ContainsFunc(w.Guards, func(g announce.Guard) bool { return g.Boot == boot })
	}
	w.StartedUnfenced = reported(announce.BootUnfenced) || w.StartedUnfenced && !reported(announce.BootFenced)
}

// booted records how the node will start, as far as its files and command line show.
func (w *watch) booted(s finding.BootSight) {
	w.remembered = s
	w.Facts.Data.NextKnown, w.Facts.Data.NextWeak = s.DataKnown, s.DataWeak
	w.Persistent, _ = w.Facts.Durable()
}

// failed records a failed probe.
func (w *watch) failed(err error, now time.Time) {
	w.probed = true
	switch {
	case !wire.IsSilence(err):
		w.heard(now) // of its host at least
	case w.SilentSince.IsZero():
		w.SilentSince = now
	}
	w.Guards, w.GuardsKnown, w.GuardsDenied = nil, false, false
	w.measured(now, 0, false)
	w.base = wire.StateOf(err)
	w.Err = safetext.New(wire.Sentence(err))
}

// heard records that something was heard of it.
func (w *watch) heard(at time.Time) {
	if w.HeardSince.IsZero() || !w.SilentSince.IsZero() {
		w.HeardSince = at
	}
	w.SilentSince, w.Heard = time.Time{}, at
}

// measured adds a probe to the current minute.
func (w *watch) measured(now time.Time, rtt time.Duration, answered bool) {
	m := &w.minute
	if m.At.IsZero() {
		m.At = now
	}
	for ; now.Sub(m.At) >= time.Minute; w.minute = (monitor.Minute{At: m.At.Add(time.Minute)}) {
		w.rtts = 0
		if gap := now.Sub(m.At); gap >= (minutesKept+1)*time.Minute { // a gap without measurements
			w.Minutes, m.At = nil, m.At.Add(gap.Truncate(time.Minute)-time.Minute)
			*m = monitor.Minute{At: m.At}
			continue
		}
		m.Offset = w.clock.Estimate(0)
		w.Minutes = append(slices.Clone(w.Minutes[max(0, len(w.Minutes)-minutesKept+1):]), *m)
	}
	if !answered {
		m.Failed++
		return
	}
	if m.Answered == 0 || rtt < m.Least {
		m.Least = rtt
	}
	m.Answered++
	m.Most = max(m.Most, rtt)
	w.rtts += rtt
	m.Mean = w.rtts / time.Duration(m.Answered)
}

// What to do about limits.
const (
	adviceFeed    = "Reach the server itself, Redis 6 or later: an older one, or a proxy in between, does not report changes."
	adviceSilence = "Find what holds up that connection: a proxy or a firewall that drops what is idle, or a server that stops now and then. It is tried again after a minute, later less often."
	adviceFlood   = "Narrow lock_patterns, or let the names of locks begin with something of their own: the node reports every change below that."
	adviceNames   = "Find out who writes such names: no lock has one."
	adviceScan    = "Find out why its keys cannot be read: look at its log and SLOWLOG, and for a proxy in between. Its locks are not known until then."
)

// note sets the limit of a topic; an empty one clears it.
func (w *watch) note(topic string, l monitor.Limit) {
	if l.Text == "" {
		delete(w.notes, topic)
	} else {
		w.notes[topic] = l
	}
}

const (
	rttsKept    = 60
	minutesKept = 60
)

// copiesLeft is how many copies a cordoned node had when all locks were last looked at, and when the
// last one expires.
type copiesLeft struct {
	count     int
	until, at time.Time
}

// update looks at all locks again if that may say something else, at most once a second.
func (c *copiesLeft) update(count int, cordoned, now time.Time, lastEnd func() time.Time) {
	settled := now.Sub(cordoned) > 3*time.Second // what was written before is read
	if now.Sub(c.at) >= time.Second && !(settled && count == c.count && c.until.After(now)) {
		*c = copiesLeft{count, lastEnd(), now}
	}
}

// assess derives the node's state from the last probes.
func (w *watch) assess() (monitor.NodeState, safetext.Text) {
	switch {
	case w.foreign != "" && w.Leak != "":
		return monitor.NodeWrongRole, safetext.New(w.foreign + "; its fence does not hold: " + w.Leak)
	case w.foreign != "" && w.Role == "slave" && w.writable:
		return monitor.NodeWrongRole, safetext.New(w.foreign + "; it accepts writes (replica-read-only no)")
	case w.foreign != "":
		return monitor.NodeWrongRole, safetext.New(w.foreign)
	case w.loading:
		return monitor.NodeLoading, safetext.Text{}
	case w.Leak != "":
		return monitor.NodeServing, safetext.Text{}
	case w.byUser != nil:
		if state := w.userState(); state != monitor.NodeServing {
			return state, safetext.Text{}
		}
	}
	switch {
	case w.MinReplicasToWrite < 0:
		if w.inForce && w.good == 0 {
			return monitor.NodeFenced, safetext.Text{}
		}
	case w.MinReplicasToWrite == minreplicas.FenceCordon && w.maxLag != 0:
		return monitor.NodeCordoned, safetext.Text{}
	case !minreplicas.Accepts(w.MinReplicasToWrite, max(w.maxLag, -w.maxLag), w.good): // a lag that cannot be read counts as in force
		return monitor.NodeFenced, safetext.Text{}
	}
	return monitor.NodeServing, safetext.Text{}
}

// shown combines the states of the probe and of the scan.
func (w *watch) shown() monitor.NodeState {
	if w.denied != nil && w.base.Readable() {
		return monitor.NodeDenied
	}
	return w.base
}

// settled reports whether the first view knows enough of the node.
func (w *watch) settled() bool { return w.probed && (!w.base.Readable() || w.tried) }

// scanTries is how many scans in a row may fail before the first view is shown without
// the node.
const scanTries = 3

// snapshot returns the node to publish.
func (w *watch) snapshot(now time.Time, at time.Duration, locks int) monitor.Node {
	n := w.Node
	n.Locks = locks
	n.Offset = w.clock.Estimate(at)
	if n.State == monitor.NodeFenced && len(n.Guards) > 0 {
		n.RejoinsAfter = w.rejoinsAfter(&n, now)
	}
	if b := &w.remembered; b.RunID != "" && b.RunID == n.RunID {
		n.Remembered = b.Started
	}
	n.StartsFenced = w.remembered.Form == finding.BootFirm && !(w.remembered.ByMemory && len(n.Guards) > 0) // as Node.Started takes it
	w.serveEarly(&n, now)
	n.Early, n.EarlyUntil = w.early, w.earlyUntil
	n.LocksHidden = w.State == monitor.NodeDenied && w.base == monitor.NodeServing && w.Role == "master" && w.notes["info"].Text == ""
	n.Notes, n.Limits = nil, nil
	for _, topic := range slices.Sorted(maps.Keys(w.notes)) {
		l := w.notes[topic]
		n.Notes = append(n.Notes, l.Text)
		if l.Do != "" {
			n.Limits = append(n.Limits, l)
		}
	}
	n.WhyUnread = w.notes["scan"].Text
	switch {
	case !w.tells:
		n.UpTo = time.Time{}
	case n.WhyUnread == "" && n.Read >= 1 && now.Sub(w.proven) > mostBehind:
		n.WhyUnread = "its changes are late: known up to " + w.proven.Format("15:04:05")
	}
	n.Drift = w.clock.Drift()
	return n
}

// earlyProven is how long a node must be seen to serve before it may vote: a guard that lets it rejoin
// by the rule announces that a moment after it has removed the fence.
const earlyProven = 300 * time.Millisecond

// serveEarly decides whether the node serves before it may vote. n is what is published of it.
func (w *watch) serveEarly(n *monitor.Node, now time.Time) {
	until, early := n.ServesBeforeAnnounced(now)
	switch {
	case early && w.earlySince.IsZero():
		w.earlySince = w.Heard
	case early:
		w.early = w.early || w.Heard.Sub(w.earlySince) >= earlyProven
	case w.early && n.State == monitor.NodeServing && !n.Offset.Valid && w.earlyUntil.After(now):
		return // the measurement of its clock has just begun again
	default:
		w.earlySince, w.early = time.Time{}, false
	}
	if w.earlyUntil = (time.Time{}); w.early {
		w.earlyUntil = until
	}
}

// perhapsEarly reports whether it is about to be decided that the node serves early.
func (w *watch) perhapsEarly() bool { return !w.earlySince.IsZero() && !w.early }

// rejoinsAfter returns the moment before which no guard lets a fenced node rejoin: as the guards
// announce it, so that every view has the same, or D after the earliest possible start. A guard that
// cannot read the node's clock sharply does not announce it, for a moment, and a stop of this process
// ends our own measurement of that clock: the last time that was announced counts on.
func (w *watch) rejoinsAfter(n *monitor.Node, now time.Time) time.Time {
	if at, known := n.MayRejoin(now); known {
		w.rejoinsAt, w.rejoinsRun = at, n.RunID
		return at
	}
	if !w.rejoinsAt.IsZero() && w.rejoinsRun == n.RunID {
		return w.rejoinsAt
	}
	if n.StartedAfter.IsZero() {
		return time.Time{}
	}
	return n.StartedAfter.Add(n.Guards[0].Delay)
}

// mostBehind is how long a node that reports its changes may prove nothing. It is pinged
// every pingSeldom, and an answer proves what happened before the previous ping.
const mostBehind = 2*pingSeldom + time.Second

// noteCordon records after a change of state whether an operator keeps the node out. A restarted server has forgotten
// the cordon until a guard sets it again. Both are one cordon.
func (w *watch) noteCordon(was monitor.NodeState, restarted bool) {
	switch {
	case w.State == monitor.NodeCordoned && (w.cordoned.IsZero() || was == monitor.NodeFenced && !restarted):
		w.cordoned, w.cordonOlder = w.Since, w.Older
	case w.State == monitor.NodeCordoned:
		w.Since, w.Older = w.cordoned, w.cordonOlder
	case w.State == monitor.NodeServing, !restarted && (w.State == monitor.NodeFenced || was == monitor.NodeFenced):
		w.cordoned = time.Time{}
	}
}

// stateEvent returns the event for a change of state; false: none is needed.
func (w *watch) stateEvent(was monitor.NodeState, now time.Time) (monitor.Event, bool) {
	level, kind, text := monitor.LevelNotice, w.State.String(), ""
	switch w.State {
	case monitor.NodeServing:
		switch was {
		case monitor.NodeUnknown:
			return monitor.Event{}, false
		case monitor.NodeFenced, monitor.NodeCordoned:
			kind, text = "rejoined", "accepts writes again"
		default:
			kind, text = "up", "is up and accepts writes"
		}
	case monitor.NodeFenced:
		if w.byUser != nil && w.MinReplicasToWrite < minreplicas.FenceCordon {
			text = "is fenced: it refuses the writes of the lock clients' user"
			break
		}
		text = "is fenced: it refuses writes (min-replicas-to-write " + strconv.FormatInt(w.MinReplicasToWrite, 10) + ")"
		if w.MinReplicasToWrite < 0 {
			text = "is fenced: it refuses writes"
		}
	case monitor.NodeCordoned:
		text = "is cordoned by an operator: it refuses writes, and no guard lets it rejoin"
	case monitor.NodeLoading:
		text = "is loading its data"
	case monitor.NodeUnknown:
		return monitor.Event{}, false
	default:
		level, text = monitor.LevelAlarm, "is "+kind+": "+w.Err.Raw()
	}
	return monitor.NodeEvent(now, level, kind, w.Name, "%s %s", w.Name, text), true
}
