package observe

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
)

// fullRead reads all wanted keys once, a page at a time.
type fullRead struct {
	epoch uint32
	began time.Time
	next  time.Time // when to continue
	busy  time.Duration
	pace  int // a pause is this many times as long as a page takes
	most  int // limit of keys
	// shares is how many parts a thin line has: one is for this read, whose step begins so
	// many times as long after the last one as that took the line.
	shares int

	pattern int
	cursor  uint64
	batch   []string // found and not read yet
	long    int      // keys whose names are too long
	part    float64  // share of all keys that the scan has passed
	stride  stride
	brought int64 // keys and pages of one pattern
}

func newFullRead(epoch uint32, now time.Time, pace int, keys []string) *fullRead {
	f := &fullRead{epoch: epoch, began: now, next: now, batch: slices.Clone(keys)}
	f.setPace(pace)
	return f
}

// setPace sets the pace of the read.
func (f *fullRead) setPace(pace int) {
	if f.pace, f.most = pace, wire.BatchKeys; pace > 0 {
		f.most = batchBusy
	}
}

// step finds some keys or reads some that it found; in one round trip if that disturbs
// nobody. done: all keys are read.
func (f *fullRead) step(ctx context.Context, r *wire.Reader, s watchedKeys, count int64, wanted func([]string) []string, take func(sent, received time.Time, rows []table.Row) error) (done bool, err error) {
	begun := time.Now()
	scanned := f.pattern == len(s.patterns)
	switch {
	case scanned && len(f.batch) == 0:
		f.part = 1
		return true, nil
	case scanned, len(f.batch) >= f.most && (f.pace > 0 || !r.Fast() || r.IsThin()), namesLen(f.batch) > wire.BatchBytes:
		n, size, most := 0, 0, f.most
		if r.IsThin() {
			most = min(most, int(f.stride.count(count)))
		}
		for n < min(len(f.batch), most) && (n == 0 || size+len(f.batch[n]) <= wire.BatchBytes) {
			size += len(f.batch[n])
			n++
		}
		rows, sent, received, err := r.Read(ctx, f.batch[:n])
		if err != nil {
			return false, err
		}
		f.batch = f.batch[:copy(f.batch, f.batch[n:])]
		if err := take(sent, received, rows); err != nil {
			return false, err
		}
	default:
		var keys []string
		if f.pace == 0 && r.Fast() {
			keys = f.batch
			if r.IsThin() {
				keys = keys[:min(len(keys), int(f.stride.count(count)))]
			}
		}
		p, err := r.Sweep(ctx, keys, f.cursor, string(s.patterns[f.pattern]), f.stride.count(count))
		switch {
		case err != nil:
			return false, err
		case len(keys) == 0:
		case p.Refused != nil: // the next steps use another way
			if rows, sent, received, err := r.Read(ctx, f.batch[:1]); err != nil {
				return false, err
			} else if err := take(sent, received, rows); err != nil {
				return false, err
			}
			f.batch = f.batch[1:]
		default:
			f.batch = f.batch[:copy(f.batch, f.batch[len(keys):])]
			if err := take(p.Sent, p.Received, p.Rows); err != nil {
				return false, err
			}
		}
		line := r.Thin()
		most := strideWork
		if f.pace > 0 {
			most /= stridePart
		}
		f.stride.took(p.Received.Sub(p.Sent)-line, line, most, count)
		f.found(p.Page, s, wanted)
	}
	now := time.Now()
	f.busy += now.Sub(begun)
	f.next = now.Add(time.Duration(f.pace) * now.Sub(begun))
	if line := r.Thin(); r.Patient {
		f.next = latest(f.next, begun.Add(time.Duration(f.shares)*line))
	}
	return false, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func namesLen(keys []string) (n int) {
	for _, key := range keys {
		n += len(key)
	}
	return n
}

// found records a page of SCAN.
func (f *fullRead) found(p wire.Page, s watchedKeys, wanted func([]string) []string) {
	f.long += p.Long
	f.brought += 1 + int64(len(p.Keys))
	before := len(f.batch)
	for _, key := range p.Keys {
		// A key that matches two patterns is read once. Within one pattern, SCAN may
		// return a key twice, which does no harm.
		if s.keeps(key) && (f.pattern == 0 || !s.patterns[:f.pattern].Match([]byte(key))) {
			f.batch = append(f.batch, key)
		}
	}
	f.batch = f.batch[:before+len(wanted(f.batch[before:]))]
	passed := passedBy(p.Next)
	if f.cursor = p.Next; p.Next == 0 {
		f.pattern++
		f.brought = 0
		passed = 0
	}
	f.part = max(f.part, (float64(f.pattern)+passed)/float64(len(s.patterns)))
}

// passedBy returns the share of a server's table that SCAN has passed at this cursor,
// which counts up from its highest bit down.
func passedBy(cursor uint64) float64 { return float64(bits.Reverse64(cursor)) / (1 << 64) }

// stride finds out how many keys to request at once: as many as cost the server little,
// and as the line carries in little time. Its other clients wait for no longer.
type stride struct {
	keys  int64         // of a step; zero: none was made
	least time.Duration // shortest round trip
	best  time.Duration // shortest step of the present number of keys
	tries int           // steps with it
	fixed bool          // longer pages exceed the limit of a reply
	// how many keys were too many before, and how much longer than the shortest round trip
	// they took
	before int64
	over   time.Duration
	busy   bool // something else takes time, so that the work of many keys would not show
}

const (
	strideMost  = 16                    // most keys of a step, in multiples of the setting
	strideFirst = 4                     // part of the setting that the first step is: nothing is known of the line yet
	strideFew   = 16                    // least keys of a step, unless the setting is less
	strideWork  = time.Millisecond      // most work of a server for one step
	stridePart  = 3                     // part of it if other clients are at work
	strideLine  = 10 * time.Millisecond // most time of a thin line for one step
	strideTries = 8                     // steps before their number of keys changes: each may have waited for a processor or the network
)

// count returns the number of keys of the next step.
func (s *stride) count(setting int64) int64 {
	if s.keys == 0 {
		s.keys = setting / strideFirst
	}
	most := strideMost * setting
	if s.busy {
		most = setting
	}
	return min(max(s.keys, min(strideFew, setting)), most)
}

// took records how long a step took, and which part of that a thin line did.
func (s *stride) took(d, line, most time.Duration, setting int64) {
	if s.fixed {
		return
	}
	now := s.count(setting)
	if line > strideLine {
		s.set(max(now/4, now*int64(strideLine)/int64(line)))
		return
	}
	if s.tries++; s.tries == 1 || d < s.best {
		s.best = d
	}
	if s.least == 0 || d < s.least {
		s.least = d
	}
	if s.tries < strideTries {
		return
	}
	switch over := s.best - s.least; {
	case over > most && now < s.before && over > s.over/2+s.over*time.Duration(now)/time.Duration(2*s.before):
		// Fewer keys take almost as long: something else does, on a busy machine for example.
		s.least, s.before, s.tries, s.busy = s.best, 0, 0, true
	case over > most:
		s.before, s.over = now, over
		s.set(max(now/4, now*int64(most)/int64(over)))
	case over < most/2 && line < strideLine/2:
		s.set(2 * now)
	default:
		s.tries = 0
	}
}

// set changes the number of keys.
func (s *stride) set(keys int64) { s.keys, s.tries, s.best = keys, 0, 0 }
