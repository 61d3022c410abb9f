package wire

import (
	"errors"
	"sync"
	"time"
)

// Changes is a queue of the keys of one node that must be read again: each once, in the
// order of its first change. It is limited: beyond that, a full read finds the rest. The
// feed fills it, the reader empties it.
type Changes struct {
	Wake chan struct{} // the queue is not empty

	mu     sync.Mutex
	queue  []string
	queued map[string]struct{}
	bytes  int
	taken  uint64    // number of keys taken so far
	all    bool      // any key may have changed
	wiped  bool      // the server says that all keys may be gone
	until  time.Time // all earlier changes have been queued; zero: unknown
	mark   uint64    // and they have been read when this many keys have been taken
	heard  time.Time // when the node last answered a PING
	rate   flood
}

const (
	changesKept  = 100_000  // keys
	changesBytes = 32 << 20 // of key names
)

func NewChanges() *Changes {
	return &Changes{Wake: make(chan struct{}, 1), queued: map[string]struct{}{}}
}

// Add queues keys that have changed.
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

// Reset empties the queue: everything will be read.
func (c *Changes) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
	c.all, c.wiped, c.until, c.rate = false, false, time.Time{}, flood{}
}

// flush records that all keys may be gone: the server's push after FLUSHALL and FLUSHDB.
func (c *Changes) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.wiped = true, true
	Poke(c.Wake)
}

// Wiped reports, once, whether the server said that all keys may be gone. Call it before
// Take, because it explains what the keys show then.
func (c *Changes) Wiped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wiped := c.wiped
	c.wiped = false
	return wiped
}

// queuedUpTo records that all changes before until are queued or have been taken.
func (c *Changes) queuedUpTo(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until, c.mark = until, c.taken+uint64(len(c.queue))
	Poke(c.Wake)
}

// Heard returns when the node last answered on its feed; zero: never.
func (c *Changes) Heard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

func (c *Changes) hear(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = at
}

// Take removes up to n keys; bytes limits the sum of their names, except for the first.
// Call it when all earlier keys have been read: until is then the time before which no
// change is missing, returned once, however many came since; zero: unknown.
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

// flooded counts changes of other keys, and reports whether there are too many.
func (c *Changes) flooded(p push, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate.count(p, now)
}

// Everything reports, once, whether any key may have changed.
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

// ErrFlood is returned when a node reports so many changes of other keys that listening
// costs more than it saves.
var ErrFlood = errors.New("too many changes of other keys")

const (
	floodKeys  = 20_000  // other keys per second
	floodBytes = 4 << 20 // of their names
	floodLasts = 3       // seconds in a row
)

// flood counts the changes of other keys per second.
type flood struct {
	since       time.Time
	keys, bytes int
	seconds     int
}

// count reports whether there have been too many for too long.
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

// Listen queues the keys from the feed for which keep returns true, until the feed
// breaks.
func (f *Feed) Listen(queue *Changes, keep func(key []byte) bool) error {
	for {
		p, err := readPush(f.in, keep)
		if err != nil {
			return err
		}
		switch {
		case p.pong:
			queue.hear(time.Now())
			if until := f.ponged(); !until.IsZero() {
				queue.queuedUpTo(until)
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
