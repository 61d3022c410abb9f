package announce

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/server/safetext"
)

// Prefix is the beginning of each announcement; Pattern matches all announcements.
const (
	Prefix  = "redlockctl:guard:"
	Pattern = Prefix + "*"

	version = "1"
	// MostDelay is the longest D that a guard may have. A longer announced D counts as
	// MostDelay.
	MostDelay = 24 * time.Hour

	mostChannel = 1024 // bytes of an announcement
	mostName    = 128  // bytes of a host or a cluster
	mostGuards  = 32   // of one node
	mostRun     = 12   // bytes of a run ID
)

// Boot is what a guard knows about a node's last start.
type Boot uint8

const (
	BootUnknown  Boot = iota // no start was seen
	BootFenced               // the last start was seen to be fenced
	BootUnfenced             // the last start was unfenced, see Exposed
)

var bootNames = [...]string{"unknown", "fenced", "unfenced"}

// String returns the word in the announcement.
func (b Boot) String() string { return bootNames[b] }

// Fence is what a guard knows of the fence of a node.
type Fence uint8

const (
	FenceUnknown  Fence = iota
	FenceNone           // the fence is down
	FenceUp             // the fence is up
	FenceCordoned       // an operator has cordoned the node
	FenceLeaks          // the fence is up, but a write got through, see Leak
)

var fenceNames = [...]string{"unknown", "none", "up", "cordoned", "leaks"}

// Use is what a guard knows of the use of its cluster.
type Use uint8

const (
	UseUnknown Use = iota // the guard does not say
	UseNone               // it has seen no node serve or restart
	UseSeen               // it has seen a node serve or restart
)

var useNames = [...]string{"", "none", "seen"}

// Guard is what a guard announces about itself and one node.
type Guard struct {
	ID      string        // letters and digits; unique
	Delay   time.Duration // D, in whole milliseconds
	Host    safetext.Text
	PID     int
	Cluster safetext.Text
	// Run is the beginning of the run ID of the incarnation that the guard knows, of which Boot
	// speaks; empty: an earlier version, which does not say.
	Run  string
	Boot Boot
	// Exposed is the longest time that the node may have served after an unfenced start;
	// 0: not known. Only with BootUnfenced.
	Exposed time.Duration
	Fence   Fence
	// Leak is why the fence does not hold; only with FenceLeaks.
	Leak safetext.Text
	Use  Use
	// MayVote is the time from which the node may vote, on the clock of the node with the
	// announcement, in whole milliseconds; zero: the guard knows of no loss.
	MayVote time.Time
	// NoLossSince is since when the guard has seen no loss of the node: since the last one, or since it met the
	// node; on the same clock. Zero: it does not say.
	NoLossSince time.Time
	// Wipes is how many calls of FLUSHALL, FLUSHDB, SWAPDB and DEBUG these times take into
	// account, by the counters of the incarnation.
	Wipes int64
	// Cordoned: the guard keeps the node cordoned, over any restart. Drained: the node has
	// no copy that a restart could lose.
	Cordoned, Drained bool
	// Absurd: the announced D was longer than MostDelay, and Delay is MostDelay.
	Absurd bool
}

// Same reports whether both announcements are from the same guard.
func (g Guard) Same(h Guard) bool { return g.ID == h.ID }

// RunOf returns what [Guard.Run] has of a run ID.
func RunOf(runID string) string { return runID[:min(len(runID), mostRun)] }

// About reports whether the guard speaks of the incarnation with this run ID, as far as it says.
func (g Guard) About(runID string) bool { return g.Run == "" || strings.HasPrefix(runID, g.Run) }

// Name returns the guard for people, safe to print: the beginning of its ID, and its host.
func (g Guard) Name() string {
	name := g.ID[:min(6, len(g.ID))]
	if !g.Host.Empty() {
		name += " on " + g.Host.String()
	}
	return name
}

// Channel returns the announcement. Delay and Exposed are rounded up; names that are too
// long are cut.
func (g Guard) Channel() string {
	f := url.Values{
		"id":      {g.ID},
		"d":       {strconv.FormatInt(ceilMs(g.Delay), 10)},
		"host":    {cut(g.Host.Raw())},
		"pid":     {strconv.Itoa(g.PID)},
		"cluster": {cut(g.Cluster.Raw())},
		"boot":    {g.Boot.String()},
	}
	if g.Run != "" {
		f.Set("run", g.Run)
	}
	if g.Boot == BootUnfenced && g.Exposed > 0 {
		f.Set("exposed", strconv.FormatInt(ceilMs(g.Exposed), 10))
	}
	if g.Fence != FenceUnknown {
		f.Set("fence", fenceNames[g.Fence])
	}
	if g.Fence == FenceLeaks {
		f.Set("leak", cut(g.Leak.Raw()))
	}
	if g.Use != UseUnknown {
		f.Set("use", useNames[g.Use])
	}
	for name, at := range map[string]time.Time{"vote": g.MayVote, "since": g.NoLossSince} {
		if !at.IsZero() {
			f.Set(name, strconv.FormatInt(at.UnixMilli(), 10))
		}
	}
	if g.Wipes > 0 {
		f.Set("wipes", strconv.FormatInt(g.Wipes, 10))
	}
	for name, is := range map[string]bool{"cordoned": g.Cordoned, "drained": g.Drained} {
		if is {
			f.Set(name, "1")
		}
	}
	return Prefix + version + ":" + f.Encode()
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), mostName)], "?") }

// ceilMs converts d to milliseconds, rounded up.
func ceilMs(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// Decode parses an announcement; ok is false if channel is not one. It ignores unknown
// fields, which a later version may have added.
func Decode(channel string) (Guard, bool) {
	var g Guard
	rest, ok := strings.CutPrefix(channel, Prefix+version+":")
	if !ok || len(channel) > mostChannel {
		return g, false
	}
	f, err := url.ParseQuery(rest)
	if err != nil {
		return g, false
	}
	g.ID = f.Get("id")
	d, ok := number(f.Get("d"))
	if !ok || d == 0 || !isID(g.ID) {
		return Guard{}, false
	}
	if g.Delay = d; d > MostDelay {
		g.Delay, g.Absurd = MostDelay, true
	}
	if b := slices.Index(bootNames[:], f.Get("boot")); b > 0 {
		g.Boot = Boot(b)
	}
	if run := RunOf(f.Get("run")); isID(run) {
		g.Run = run
	}
	if u := slices.Index(useNames[:], f.Get("use")); u > 0 {
		g.Use = Use(u)
	}
	if g.Boot == BootUnfenced {
		g.Exposed, _ = number(f.Get("exposed"))
	}
	if b := slices.Index(fenceNames[:], f.Get("fence")); b > 0 {
		g.Fence = Fence(b)
	}
	if g.Fence == FenceLeaks {
		g.Leak = safetext.New(cut(f.Get("leak")))
	}
	for name, to := range map[string]*time.Time{"vote": &g.MayVote, "since": &g.NoLossSince} {
		if at, err := strconv.ParseInt(f.Get(name), 10, 64); err == nil && at > 0 {
			*to = time.UnixMilli(at)
		}
	}
	if n, err := strconv.ParseInt(f.Get("wipes"), 10, 64); err == nil && n > 0 {
		g.Wipes = n
	}
	g.Cordoned, g.Drained = f.Get("cordoned") == "1", f.Get("drained") == "1"
	if pid, err := strconv.ParseInt(f.Get("pid"), 10, 32); err == nil && pid > 0 {
		g.PID = int(pid)
	}
	g.Host, g.Cluster = safetext.New(cut(f.Get("host"))), safetext.New(cut(f.Get("cluster")))
	return g, true
}

// number parses a number of milliseconds. A number that does not fit into a
// time.Duration counts as the longest one.
func number(s string) (time.Duration, bool) {
	if s == "" || len(s) > 19 {
		return 0, false
	}
	const most = int64(1<<63-1) / int64(time.Millisecond)
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, false
	}
	return time.Duration(min(n, uint64(most))) * time.Millisecond, true
}

// isID reports whether s is a valid guard id.
func isID(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// DecodeAll decodes the announcements among the names of channels, the greatest D first.
// A guard has two announcements while it changes them: the one with the greater D counts.
// If there are too many, those with the smallest D are dropped.
func DecodeAll(channels []string) []Guard {
	var all []Guard
	for _, c := range channels {
		g, ok := Decode(c)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(all, g.Same); i >= 0 {
			drained := g.Drained || all[i].Drained
			if g.Delay > all[i].Delay {
				all[i] = g
			}
			all[i].Drained = drained
			continue
		}
		all = append(all, g)
		if len(all) > 2*mostGuards {
			all = greatestFirst(all)
		}
	}
	return greatestFirst(all)
}

func greatestFirst(all []Guard) []Guard {
	slices.SortStableFunc(all, func(a, b Guard) int {
		return cmp.Or(cmp.Compare(b.Delay, a.Delay), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(len(all), mostGuards)]
}

// Every guard adds at least these parts of D to the longest TTL.
const (
	leastFactor = 0.01
	leastMargin = 50 * time.Millisecond
)

// Covers returns the longest TTL that D covers, always above 0.
func (g Guard) Covers() time.Duration {
	ttl := time.Duration(float64(g.Delay-leastMargin) / (1 + leastFactor))
	return max(ttl.Truncate(time.Millisecond), time.Millisecond)
}

// Least returns the guard with the smallest D; ok is false if there is none.
func Least(all []Guard) (least Guard, ok bool) {
	for _, g := range all {
		if !ok || g.Delay < least.Delay {
			least, ok = g, true
		}
	}
	return least, ok
}

// Greatest returns the greatest D of the guards, without the guard whose id is but; 0 if
// there are none.
func Greatest(all []Guard, but string) time.Duration {
	most := time.Duration(0)
	for _, g := range all {
		if g.ID != but {
			most = max(most, g.Delay)
		}
	}
	return most
}
