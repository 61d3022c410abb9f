package observe

import (
	"fmt"
	"time"

	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
)

// Defaults of [Options].
const (
	DefaultTimeout    = 500 * time.Millisecond
	DefaultProbeEvery = 200 * time.Millisecond
	DefaultInfoEvery  = time.Second
	DefaultScanEvery  = 250 * time.Millisecond
	DefaultScanCount  = 250
)

// Options of a Monitor; the zero value of a field means its default.
type Options struct {
	ClusterName  string
	LockPatterns []string      // glob patterns of lock keys; default "*"
	Match        string        // only keys that match this pattern too; "": all
	Keys         []string      // only these keys, whatever the patterns say: nothing is scanned
	NoLocks      bool          // watch nodes only
	Warnings     bool          // [Monitor.Decided] waits for all warnings too, two seconds if there are any
	MaxTTL       time.Duration // of the cluster; 0: unknown, no TTL counts as too long
	Redlock      redlock.Options
	Timeout      time.Duration // of one command to a node; default 500 ms
	ProbeEvery   time.Duration // TIME probes; default 200 ms
	InfoEvery    time.Duration // INFO and CONFIG; default 1 s
	ScanEvery    time.Duration // shortest pause between full reads, unless there was a gap; default 250 ms, 10 s for a node that reports its changes
	ScanCount    int           // COUNT of SCAN; default 250
	EventsKept   int           // default 500
	// MaxMemory is how many bytes the locks of the cluster may use, including garbage;
	// keys that are not locks may use a quarter of it. Keys beyond that are only counted,
	// and a finding says so. Default [DefaultMaxMemory].
	MaxMemory int64
	// Patient adds pauses when a busy node is read, the first time too, to disturb its
	// clients less: the first view takes up to four times as long. The load of other
	// clients is measured again during the read. It is for long watches, not for a
	// one-shot view.
	Patient bool
	// Fences is how nodes are fenced, by name.
	Fences map[string]fences.Kind
	// Meant are IDs of findings that are intended here, as in a lab whose masters share a
	// host. They are not reported. If limited-sight is among them, no note of a node says
	// what only scanning shows.
	Meant []string
	// TakenBy returns who removed a lock from the holder of this token, as far as
	// recorded here; nil: unknown. It is called when a lock has ended, and must return at
	// once.
	TakenBy func(key, token string) (monitor.Action, bool)
	// ActedOn returns what an operator did to a node a moment ago, as far as recorded here;
	// nil: unknown. It must return at once.
	ActedOn func(node string) (monitor.Action, bool)
	// Forced returns the force-releases whose holders may still rely on the locks, as far as recorded
	// here, the latest last; nil: nothing is recorded. It is called once a second.
	Forced func() []monitor.Forced
	// Cordons returns the last cordon of each node that nobody ended, as far as recorded here; nil: nothing
	// is recorded. It is called once a second.
	Cordons func() map[string]monitor.Cordon
	// Recorded returns what a record here knows of grants that have not ended: of these locks, and of
	// all that lost their majority; nil: there is none. It is called once, when all nodes have been
	// read, with the locks of which a minority of copies was found.
	Recorded func(keys []string) []announce.Lock
	// Witnesses returns what guards on other hosts report about the nodes; nil: none is configured.
	// It is called for each snapshot in which too few nodes are seen from here, and must
	// return at once.
	Witnesses func() []monitor.Witness
}

func (o Options) withDefaults() (Options, error) {
	if len(o.LockPatterns) == 0 {
		o.LockPatterns = []string{"*"}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{
		{"timeout", &o.Timeout, DefaultTimeout},
		{"probe interval", &o.ProbeEvery, DefaultProbeEvery},
		{"info interval", &o.InfoEvery, DefaultInfoEvery},
		{"scan interval", &o.ScanEvery, DefaultScanEvery},
		{"max TTL", &o.MaxTTL, 0},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("%s %s is negative", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	if o.MaxMemory < 0 {
		return o, fmt.Errorf("max memory %d is negative", o.MaxMemory)
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = DefaultMaxMemory()
	}
	for _, d := range []struct {
		name  string
		value *int
		or    int
	}{{"scan count", &o.ScanCount, DefaultScanCount}, {"number of events kept", &o.EventsKept, 500}} {
		if *d.value < 0 {
			return o, fmt.Errorf("%s %d is negative", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	return o, nil
}
