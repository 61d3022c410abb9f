package observe

import (
	"fmt"
	"time"

	"redlockctl/monitor"
	"redlockctl/redlock"
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
	LockPatterns []string      // glob patterns of keys that are locks; default "*"
	Match        string        // only those that match this pattern too; "": all
	Keys         []string      // these keys alone, whatever the patterns say: nothing is scanned for
	NoLocks      bool          // nodes alone
	MaxTTL       time.Duration // of the cluster; 0: unknown, no TTL counts as too long
	Redlock      redlock.Options
	Timeout      time.Duration // of one command to a node; default 500 ms
	ProbeEvery   time.Duration // TIME probes; default 200 ms
	InfoEvery    time.Duration // INFO and CONFIG; default 1 s
	ScanEvery    time.Duration // least pause between full reads, where no gap asks for one; default 250 ms, 10 s for a node that tells of its changes
	ScanCount    int           // COUNT of SCAN; default 250
	EventsKept   int           // default 500
	// MaxMemory is how many bytes the locks of the cluster may take, what the garbage
	// collector leaves behind included, and keys that are none a quarter of it. Keys
	// that find no room are counted only, and a finding tells of it. Default
	// [DefaultMaxMemory].
	MaxMemory int64
	// Patient reads a node that has clients at work with pauses, the first time
	// too, so that they feel less of it: the first view takes up to four times as
	// long. What others have a node do is counted anew while it is read. It is for
	// those who watch for long, not for a single look.
	Patient bool
	// Fences is how nodes are fenced, by name, where it is not by
	// min-replicas-to-write: "acl" or "none", as in the configuration.
	Fences map[string]string
	// Meant are findings, by their IDs, that are meant to be here, as in a lab whose
	// masters share a host. They are not reported, and no note of a node tells what is seen by
	// scanning alone where limited-sight is among them.
	Meant []string
	// TakenBy tells who took a lock from the holder of this token, as far as that
	// is on record here; nil: nobody knows. It is asked when a lock has ended, and
	// must answer at once.
	TakenBy func(key, token string) (monitor.Taking, bool)
}

func (o Options) withDefaults() (Options, error) {
	if len(o.LockPatterns) == 0 {
		o.LockPatterns = []string{"*"}
	}
	if o.Redlock.NodeTimeout == 0 {
		o.Redlock.NodeTimeout = redlock.DefaultNodeTimeout
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
