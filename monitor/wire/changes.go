package wire

import (
	"errors"
	"sync"
	"time"
)

// Changes are the keys of one node that have to be read again: each once,
// however often it changes meanwhile, in the order in which it first did. It is
// bounded: of more than it keeps, a full read has to find out. The feed fills
// it, the reader empties it.
type Changes struct {
	Wake chan struct{} // there is something to do

	mu     sync.Mutex
	queue  []string
	queued map[string]struct{}
	bytes  int
	taken  uint64    // how many keys have been, of all
	all    bool      // any key may have changed
	wiped  bool      // the server says that all keys may be gone
	until  time.Time // all changes before have been put in here,
	mark   uint64    // and read when so many keys have been taken; zero until: nothing was told
	rate   flood
}

const (
	changesKept  = 100_000  // keys
	changesBytes = 32 << 20 // of their names
)

func NewChanges() *Changes {
	return &Changes{Wake: make(chan struct{}, 1), queued: map[string]struct{}{}}
}

// Add takes in keys that have changed.
func (c *Changes) Add(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if _, ok := c.queued[key]; ok {
			continue
		}
		if len(c.queue) >= changesKept || c.bytes+len(key) > changesBytes {
			c.drop()
			c.all = true
			break
		}
		c.queued[key] = struct{}{}
		c.queue = append(c.queue, key)
		c.bytes += len(key)
	}
	if len(keys) > 0 {
		Poke(c.Wake)
	}
}

func (c *Changes) drop() {
	c.taken += uint64(len(c.queue))
	c.queue, c.queued, c.bytes = nil, map[string]struct{}{}, 0
}

// Reset forgets everything: all is going to be read.
func (c *Changes) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
	c.all, c.wiped, c.until, c.rate = false, false, time.Time{}, flood{}
}

// flush says that all keys may be gone: the server's answer to FLUSHALL and FLUSHDB.
func (c *Changes) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.wiped = true, true
	Poke(c.Wake)
}

// Wiped reports, once, whether the server said that all keys may be gone. It is asked before
// keys are taken: what they say then is explained by it.
func (c *Changes) Wiped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wiped := c.wiped
	c.wiped = false
	return wiped
}

// told says that all changes before until are in here or have been taken.
func (c *Changes) told(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until, c.mark = until, c.taken+uint64(len(c.queue))
	Poke(c.Wake)
}

// Take removes up to n keys with not too long names. It is asked for when all
// that it gave before has been read: then until is the time before which
// nothing is missing, once, however much has come since; zero: it is not known.
func (c *Changes) Take(n, bytes int) (keys []string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken >= c.mark && !c.all {
		until = c.until
		c.until = time.Time{}
	}
	if len(c.queue) == 0 {
		return nil, until
	}
	k := 0
	for size := 0; k < len(c.queue) && k < n; k++ {
		if size += len(c.queue[k]); k > 0 && size > bytes {
			break
		}
		c.bytes -= len(c.queue[k])
		delete(c.queued, c.queue[k])
	}
	c.taken += uint64(k)
	keys, c.queue = c.queue[:k:k], c.queue[k:]
	if len(c.queue) == 0 {
		c.queue = nil
		if k >= 10_000 {
			c.queued = map[string]struct{}{}
		}
	}
	return keys, until
}

// flooded takes note of what was told in vain, and reports whether it is too much.
func (c *Changes) flooded(p push, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate.count(p, now)
}

// Everything tells, once, if any key may have changed.
func (c *Changes) Everything() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = false
	return all
}

func (c *Changes) Empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) == 0
}

// ErrFlood is returned when a node tells of so many changes of other keys that
// listening costs more than it brings.
var ErrFlood = errors.New("too many changes of other keys")

const (
	floodKeys  = 20_000  // other keys in a second
	floodBytes = 4 << 20 // of their names
	floodLasts = 3       // seconds in a row
)

// flood counts what is told in vain, second by second.
type flood struct {
	since       time.Time
	keys, bytes int
	seconds     int
}

// count reports whether it has been too much for too long.
func (f *flood) count(p push, now time.Time) bool {
	if d := now.Sub(f.since); d >= time.Second {
		if d < 2*time.Second && (f.keys > floodKeys || f.bytes > floodBytes) {
			f.seconds++
		} else {
			f.seconds = 0
		}
		f.since, f.keys, f.bytes = now, 0, 0
	}
	f.keys += p.other
	f.bytes += p.bytes
	return f.seconds >= floodLasts
}

func Poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Listen puts what the feed brings into the queue, until it breaks. keep chooses the keys.
func (f *Feed) Listen(queue *Changes, keep func(key []byte) bool) error {
	for {
		p, err := readPush(f.in, keep)
		if err != nil {
			return err
		}
		switch {
		case p.pong:
			if until := f.ponged(); !until.IsZero() {
				queue.told(until)
			}
		case p.all:
			queue.flush()
		default:
			queue.Add(p.keys...)
			if p.other > 0 && queue.flooded(p, time.Now()) {
				return ErrFlood
			}
		}
	}
}
