package observe

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
)

// fullRead reads all keys that are sought once, a page at a time.
type fullRead struct {
	epoch uint32
	began time.Time
	next  time.Time // when to go on
	busy  time.Duration
	pace  int // with pauses of so many times as long as a page takes
	most  int // keys of a read

	pattern int
	cursor  uint64
	batch   []string // found and not read yet
	long    int      // keys whose names are too long
	part    float64  // of all keys that was passed
	stride  stride
	brought int64 // keys and pages of one pattern
}

func newFullRead(epoch uint32, now time.Time, pace int, keys []string) *fullRead {
	f := &fullRead{epoch: epoch, began: now, next: now, batch: slices.Clone(keys)}
	f.setPace(pace)
	return f
}

// setPace has the read go on at this pace.
func (f *fullRead) setPace(pace int) {
	if f.pace, f.most = pace, wire.BatchKeys; pace > 0 {
		f.most = batchBusy
	}
}

// step finds some keys, or reads some that it found; where that hurts nobody, both
// in one round trip. done: all have been.
func (f *fullRead) step(ctx context.Context, r *wire.Reader, s sought, count int64, wanted func([]string) []string, take func(sent, received time.Time, rows []table.Row) error) (done bool, err error) {
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
		case p.Refused != nil: // by the next steps, in another way
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

// found takes in a page of SCAN.
func (f *fullRead) found(p wire.Page, s sought, wanted func([]string) []string) {
	f.long += p.Long
	f.brought += 1 + int64(len(p.Keys))
	before := len(f.batch)
	for _, key := range p.Keys {
		// A key under two patterns is read once. Within one pattern SCAN may bring a
		// key twice, which does no harm.
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

// passedBy is the part of a server's table that SCAN has passed when it tells this
// cursor: the cursor counts up from its highest bit down.
func passedBy(cursor uint64) float64 { return float64(bits.Reverse64(cursor)) / (1 << 64) }

// stride finds out how many keys to ask for at once: more where a round trip takes
// long or most keys are none of ours, but never so many that the server's other
// clients wait for long.
type stride struct {
	times int64         // as many as the setting says
	most  int64         // of them, as far as is known by now
	least time.Duration // that a step took
	best  time.Duration // that one of as many keys took
	tries int           // of them
	fixed bool          // longer pages are more than a reply may bring
}

const (
	strideMost  = 16
	strideWork  = time.Millisecond // of a server for one step, and up to four of them
	strideLeast = 8                // steps before more keys are asked for: each may have waited for a processor or the network
	strideSlow  = 64               // that were all slow, before fewer are
)

func (s *stride) count(setting int64) int64 { return setting * max(1, s.times) }

// took takes in how long a step was.
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

// set has steps be of so many keys.
func (s *stride) set(times int64) { s.times, s.tries, s.best = times, 0, 0 }
