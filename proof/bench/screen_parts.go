package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/monitor"
)

// usefulScreen is what the first line says once every node was looked at, or given
// up: a verdict.
func usefulScreen() (words []string) {
	for v := monitor.VerdictSafe; v <= monitor.VerdictUnavailable; v++ {
		words = append(words, strings.ToUpper(v.String()))
	}
	return words
}

// secondsRows are rows of the table of locks at 120×40: all that have a place.
const secondsRows = 35

// churning runs f while so many locks change in a second.
func (b *screenRun) churning(rate int, f func() error) error {
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer cancel()
	var changes atomic.Int64
	begun := time.Now()
	writers.Go(func() { churn(ctx, b.servers, b.locks, rate, &changes) })
	if err := f(); err != nil {
		return err
	}
	b.line("changes meanwhile", "/s", float64(changes.Load())/time.Since(begun).Seconds(), noLimit, "of %d that are wanted, each on five servers", rate)
	return nil
}

// starts measures how long the program takes to a first screen that is of use,
// on servers that hold next to nothing.
func (b *screenRun) starts() error {
	measure := func(what string, limit time.Duration) error {
		var all []time.Duration
		for range b.rounds(5, 15) {
			t, err := b.open()
			if err != nil {
				return err
			}
			d, ok := t.until(10*time.Second, usefulScreen()...)
			t.close()
			if !ok {
				return fmt.Errorf("%s: no useful screen in ten seconds:\n%s", what, t.tail())
			}
			all = append(all, d)
		}
		b.times(what, all, 100, limit)
		return nil
	}
	each := func(do func(*lab.Server) error) error {
		return errors.Join(do(b.servers[3]), do(b.servers[4]))
	}
	if err := measure("start → first useful screen, five healthy masters", 300*time.Millisecond); err != nil {
		return err
	}
	if err := each((*lab.Server).Kill); err != nil {
		return err
	}
	if err := measure("the same, two of them dead: nobody listens", time.Second); err != nil {
		return err
	}
	if err := each(func(s *lab.Server) error { return s.Start() }); err != nil {
		return err
	}
	if err := each((*lab.Server).Pause); err != nil {
		return err
	}
	err := measure("the same, two of them dead: nobody answers", time.Second)
	return errors.Join(err, each((*lab.Server).Resume))
}

// rest measures the program while only time passes: all visible rows show whole
// seconds, in a column for each node.
func (b *screenRun) rest(t *terminal) error {
	length := 30 * time.Second
	if b.quick {
		length = 12 * time.Second
	}
	expire := func(ttl time.Duration) error {
		const script = `for i = 1, ARGV[2] do redis.call('PEXPIRE', string.format('lock:%08d', i), ARGV[1]) end return 1`
		return command(context.Background(), b.servers, "EVAL", script, 0, ttl.Milliseconds(), 2*secondsRows)
	}
	if err := expire(98 * time.Second); err != nil {
		return err
	}
	// The page of locks; the row of a lock that ends in a minute and a half.
	if _, ok := t.press([]byte("2"), 5*time.Second, "9", "8"); !ok {
		return fmt.Errorf("no page of locks:\n%s", t.tail())
	}
	time.Sleep(4 * time.Second)
	ticks, n, begun := t.cpu(), t.bytes(), time.Now()
	time.Sleep(length)
	passed := time.Since(begun).Seconds()
	b.line("CPU, "+grouped(b.locks)+" locks at rest", "% of a core", 100*(t.cpu()-ticks).Seconds()/passed, 3, "over %.0f s", passed)
	b.line(fmt.Sprintf("bytes to the terminal, seconds tick on %d rows", secondsRows), "B/s", float64(t.bytes()-n)/passed, 2000, "")
	if err := expire(2 * time.Hour); err != nil {
		return err
	}
	time.Sleep(time.Second)
	if _, ok := t.press([]byte("1"), 5*time.Second, "1 overview"); !ok {
		return fmt.Errorf("no overview:\n%s", t.tail())
	}
	return nil
}

// kind is a kind of key, and what is drawn by nothing else: the row under the cursor where it
// moved, a letter of a filter that no name has, and a notice of the new order.
type kind struct {
	what  string
	press []string // in turn
	see   []string // "": it is not measured
	share int      // of the presses, one in so many
}

// moved is what a move of the cursor draws: the pointer, or where the rows move below it and it
// stays, another row in the colours of the cursor.
const moved = "▸"

// seen are the texts one of which shows what a key did.
func seen(see string) []string {
	if see == moved {
		return []string{moved, "\x1b[7m", "\x1b[48;"}
	}
	return []string{see}
}

// keys measures the time from a key to the bytes that draw what it does, beside what else
// happens.
func (b *screenRun) keys(t *terminal, beside string) error {
	n := b.rounds(150, 400)
	for _, k := range []kind{
		{"move", []string{"j", "j", "k"}, []string{moved, moved, moved}, 1},
		{"page, ends", []string{"\x1b[6~", "\x1b[6~", "\x1b[5~", "G", "g"}, []string{moved, moved, moved, moved, moved}, 1},
		{"filter", []string{"/", "Z", "Q", "X", "\x1b", "\x1b"}, []string{"", "Z", "Q", "X", "", ""}, 2},
		{"sort", []string{"s", "j"}, []string{"sorted", ""}, 4},
	} {
		var all []time.Duration
		for i := range n / k.share {
			time.Sleep(30*time.Millisecond + time.Duration(rand.IntN(70))*time.Millisecond)
			key, see := k.press[i%len(k.press)], k.see[i%len(k.press)]
			if see == "" {
				if _, err := t.master.Write([]byte(key)); err != nil {
					return err
				}
				time.Sleep(100 * time.Millisecond)
				continue
			}
			d, ok := t.press([]byte(key), 5*time.Second, seen(see)...)
			if !ok {
				return fmt.Errorf("no frame after %q:\n%s", key, t.tail())
			}
			all = append(all, d)
		}
		if k.what == "sort" { // as it was
			_, _ = t.master.Write([]byte(":sort state\r"))
		}
		_, _ = t.master.Write([]byte("\x1b"))
		time.Sleep(time.Second)
		b.times("key → frame, "+k.what+", "+grouped(b.locks)+" locks, "+beside, all, 99, 33*time.Millisecond)
	}
	return nil
}

// list is how the locks are listed, and a lock that has a row in sight then.
type list struct {
	what       string
	begin, end string // keys
	prefix     string // of the names of locks that have a row in sight
	ttl        string // of the locks; "": none, which is a danger, and named by the verdict too
	limit      time.Duration
}

// allLists are the orders, filters and columns in which a change has to be seen.
var allLists = []list{
	{"urgent first", "g", "", "lock:", "", 150 * time.Millisecond},
	{"sorted by name", ":sort name\rg", "", "aaaa:", "20000", 60 * time.Millisecond},
	{"reversed", ":sort name:desc\rg", "", "zzzz:", "20000", 60 * time.Millisecond},
	{"filtered", "/qqqq\r", "\x1b", "qqqq:", "20000", 60 * time.Millisecond},
	{"other columns", ":sort name\r:columns state owner\rg", ":columns default\r", "aaaa:", "20000", 60 * time.Millisecond},
	{"urgent first again", ":sort default\rg", "", "lock:", "", 150 * time.Millisecond},
	{"a danger, list scrolled to its end", "G", "g", "lock:", "", 300 * time.Millisecond},
}

// seen measures the time from a write on the masters to the name on the screen, in each way
// to list the locks. Each begins at the top: what ran before left the cursor anywhere, and the
// list follows its cursor.
func (b *screenRun) seen(t *terminal) error {
	time.Sleep(8 * time.Second) // until the first listing is sorted: it waits while the locks are read
	for _, l := range allLists {
		if err := t.typed(l.begin); err != nil {
			return err
		}
		if err := b.seenIn(t, l); err != nil {
			return fmt.Errorf("%s: %w", l.what, err)
		}
		if err := t.typed(l.end); err != nil {
			return err
		}
	}
	return nil
}

// typed types keys line by line, and gives the console time to sort many locks anew. The list follows its cursor:
// one that is put on the first row too early leaves the top of the list with its lock.
func (t *terminal) typed(keys string) error {
	for _, k := range strings.SplitAfter(keys, "\r") {
		if _, err := t.master.WriteString(k); err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
	}
	return nil
}

// seenIn counts from before the first write, and a quorum of them has to be seen. A name has
// capitals, none twice in a row nor where the one before had it, and nothing else on the
// screen has one at their place: it is drawn as a whole.
func (b *screenRun) seenIn(t *terminal, l list) error {
	var all []time.Duration
	for i := range b.rounds(40, 120) {
		var name strings.Builder
		for j := range 12 {
			name.WriteByte(byte('A' + (5*i+3*j)%26))
		}
		key := l.prefix + name.String()
		on := func(args ...any) error { return command(context.Background(), b.servers[:3], args...) }
		set := []any{"SET", key, "probe"}
		if l.ttl != "" {
			set = append(set, "PX", l.ttl)
		}
		d, ok := t.after(func() error { return on(set...) }, 5*time.Second, name.String())
		if err := on("DEL", key); err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s was never shown:\n%s", key, t.tail())
		}
		all = append(all, d)
		time.Sleep(300*time.Millisecond + time.Duration(rand.IntN(200))*time.Millisecond)
	}
	b.times("change on a master → on the screen, "+l.what, all, 99, l.limit)
	return nil
}

// churn changes so many locks a second: each gets a new token on all servers.
func churn(ctx context.Context, servers lab.Servers, locks, rate int, changes *atomic.Int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		const script = `for i = 1, #ARGV - 1 do redis.call('SET', ARGV[i], ARGV[#ARGV], 'PX', 7200000) end`
		args := []any{"EVAL", script, 0}
		for range rate / 50 {
			args = append(args, fmt.Sprintf("lock:%08d", 1+rand.IntN(locks)))
		}
		args = append(args, fmt.Sprintf("token-of-round-%08d", n))
		_ = command(ctx, servers, args...)
		changes.Add(int64(rate / 50))
	}
}
