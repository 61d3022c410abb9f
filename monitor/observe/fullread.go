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
	case scanned, len(f.batch) >= f.most && (f.pace > 0 || !r.Fast()), namesLen(f.batch) > wire.BatchBytes:
		n, size := 0, 0
		for n < min(len(f.batch), f.most) && (n == 0 || size+len(f.batch[n]) <= wire.BatchBytes) {
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
		}
		if f.pace == 0 {
			count = f.stride.count(count)
		}
		p, err := r.Sweep(ctx, keys, f.cursor, string(s.patterns[f.pattern]), count)
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
			f.batch = f.batch[:0]
			if err := take(p.Sent, p.Received, p.Rows); err != nil {
				return false, err
			}
		}
		f.stride.took(p.Received.Sub(p.Sent))
		f.found(p.Page, s, wanted)
	}
	now := time.Now()
	f.busy += now.Sub(begun)
	f.next = now.Add(time.Duration(f.pace) * now.Sub(begun))
	return false, nil
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

// stride finds out how many keys to request at once: more if a round trip takes long or
// most keys are not wanted, but never so many that the server's other clients wait long.
type stride struct {
	times int64         // multiple of the setting
	most  int64         // largest multiple, as far as known
	least time.Duration // shortest step
	best  time.Duration // shortest step of the present multiple
	tries int           // steps with the present multiple
	fixed bool          // longer pages exceed the limit of a reply
}

const (
	strideMost  = 16
	strideWork  = time.Millisecond // work of a server for one step; up to four times as much is accepted
	strideLeast = 8                // steps before more keys are requested: each may have waited for a processor or the network
	strideSlow  = 64               // slow steps in a row before fewer are requested
)

func (s *stride) count(setting int64) int64 { return setting * max(1, s.times) }

// took records how long a step took.
func (s *stride) took(d time.Duration) {
	if s.fixed {
		return
	}
	if s.times == 0 {
		s.times, s.most = 1, strideMost
	}
	if s.tries++; s.tries == 1 || d < s.best {
		s.best = d
	}
	if s.least == 0 || d < s.least {
		s.least = d
	}
	switch over := s.best - s.least; {
	case s.times < s.most && s.tries >= strideLeast && over < max(3*strideWork/2, s.least/4):
		s.set(2 * s.times)
	case s.times > 1 && over > max(4*strideWork, s.least) && s.tries >= strideSlow:
		s.most = s.times / 2
		s.set(s.most)
	}
}

// set changes the multiple.
func (s *stride) set(times int64) { s.times, s.tries, s.best = times, 0, 0 }
