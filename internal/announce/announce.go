package announce

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/safetext"
)

// Prefix begins each announcement; Pattern matches all of them.
const (
	Prefix  = "redlockctl:guard:"
	Pattern = Prefix + "*"

	version = "1"
	// MostDelay is the longest D that a guard may have, and the most that an
	// announced one counts for.
	MostDelay = 24 * time.Hour

	mostChannel = 1024 // bytes of an announcement
	mostName    = 128  // bytes of a host or a cluster
	mostGuards  = 32   // of one node
)

// Boot is what a guard knows of how a node came up.
type Boot uint8

const (
	BootUnknown  Boot = iota // no start of it was seen
	BootFenced               // its last start came up fenced: verified
	BootUnfenced             // its last start came up unfenced, see Exposed
)

var bootNames = [...]string{"unknown", "fenced", "unfenced"}

// String is the word that stands in the announcement.
func (b Boot) String() string { return bootNames[b] }

// Fence is what a guard knows of the fence of a node.
type Fence uint8

const (
	FenceUnknown  Fence = iota
	FenceNone           // it is down
	FenceUp             // it is up
	FenceCordoned       // it is an operator's
	FenceLeaks          // it is up, and a write got through, see Leak
)

var fenceNames = [...]string{"unknown", "none", "up", "cordoned", "leaks"}

// Use is what a guard knows of the use of its cluster.
type Use uint8

const (
	UseUnknown Use = iota // it does not say: it is of an earlier version
	UseNone               // it has seen no node serve, nor restart
	UseSeen               // it has
)

var useNames = [...]string{"", "none", "seen"}

// Guard is what a guard says of itself and of one node.
type Guard struct {
	ID      string        // letters and digits; tells it from all others
	Delay   time.Duration // D, in whole milliseconds
	Host    safetext.Text
	PID     int
	Cluster safetext.Text
	Boot    Boot
	// Exposed is how long the node was open after its last start, at most; 0: not
	// known. Only of BootUnfenced.
	Exposed time.Duration
	Fence   Fence
	// Leak is why the fence does not hold; of FenceLeaks.
	Leak safetext.Text
	Use  Use
	// Absurd: it announced more than MostDelay, which is what Delay is then.
	Absurd bool
}

// Same reports whether both are announcements of one guard.
func (g Guard) Same(h Guard) bool { return g.ID == h.ID }

// Channel is the announcement. Delay and Exposed are rounded up; names that are too
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
	return Prefix + version + ":" + f.Encode()
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), mostName)], "?") }

// ceilMs is d in milliseconds, rounded up.
func ceilMs(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// Decode reads an announcement; false: it is none. Fields that it does not know
// are of a later version, and are passed over.
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
	if pid, err := strconv.ParseInt(f.Get("pid"), 10, 32); err == nil && pid > 0 {
		g.PID = int(pid)
	}
	g.Host, g.Cluster = safetext.New(cut(f.Get("host"))), safetext.New(cut(f.Get("cluster")))
	return g, true
}

// number is a count of milliseconds, of which only as many count as fit into a
// time.Duration.
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

// isID reports whether s can be the id of a guard.
func isID(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// DecodeAll reads the names of channels. Of one guard, which has two announcements
// while it changes them, it keeps the one with the greater D. The greatest D come
// first, so that what is left out of too many is never the greatest.
func DecodeAll(channels []string) []Guard {
	var all []Guard
	for _, c := range channels {
		g, ok := Decode(c)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(all, g.Same); i >= 0 {
			if g.Delay > all[i].Delay {
				all[i] = g
			}
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

// Greatest is the greatest D that guards other than the one with this id announce;
// 0: there is none.
func Greatest(all []Guard, but string) time.Duration {
	most := time.Duration(0)
	for _, g := range all {
		if g.ID != but {
			most = max(most, g.Delay)
		}
	}
	return most
}
