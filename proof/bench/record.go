package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// recordRun measures the flight recorder: what it costs at 1,000 changes of locks a second,
// how large it grows, and how fast it answers.
type recordRun struct {
	report
	grants int
}

func recordBench(args []string) error {
	var b recordRun
	fs := flag.NewFlagSet("record", flag.ExitOnError)
	quick := fs.Bool("quick", false, "a hundredth of the grants")
	fs.IntVar(&b.grants, "grants", 10_000_000, "grants in the record that is asked")
	_ = fs.Parse(args)
	if *quick {
		b.grants /= 100
	}
	dir, err := os.MkdirTemp("", "redlockctl-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return errors.Join(b.cost(filepath.Join(dir, "cost.db")), b.size(filepath.Join(dir, "size.db")))
}

// grantChurn is a source in which locks are acquired and released, so many times between two
// looks; each grant is a thousandth of a second after the one before.
type grantChurn struct {
	now    time.Time
	each   int
	most   int64 // 0: no end
	names  int
	seq    uint64
	made   atomic.Int64
	events []monitor.Event
}

func (c *grantChurn) Snapshot() *monitor.Snapshot {
	return &monitor.Snapshot{At: c.now, Settled: c.now, Cluster: monitor.Cluster{Name: "bench", N: 5, Quorum: 3}}
}

func (c *grantChurn) ChangedSince(uint64) ([]string, bool) { return nil, true }

func (c *grantChurn) EventsSince(uint64) ([]monitor.Event, uint64) {
	if c.seq == 0 { // the first read finds the existing locks
		c.seq++
		return nil, 0
	}
	c.events = c.events[:0]
	for range c.each {
		n := c.made.Load()
		if c.most > 0 && n >= c.most {
			break
		}
		c.made.Add(1)
		c.now = c.now.Add(time.Millisecond)
		key, token := safetext.New(fmt.Sprintf("orders:customer:%d", n%int64(c.names))), safetext.New(fmt.Sprintf("%024d", n))
		held := 500 * time.Microsecond
		if n%100 == 0 { // one in a hundred is held for minutes: a thousand and more at any moment
			key, held = safetext.New(fmt.Sprintf("jobs:%d", n/100%5000)), 2*time.Minute
		}
		ended := "released"
		if n%1000 == 501 { // one in a thousand is force-released, and another client gets in later
			ended = "force-released"
		}
		for i, kind := range []string{"acquired", ended} {
			c.seq++
			at := c.now.Add(time.Duration(i) * held)
			c.events = append(c.events, monitor.Event{Seq: c.seq, At: at, Kind: kind, Key: key, Token: token, Until: c.now.Add(held + 30*time.Second)})
		}
	}
	return c.events, 0
}

// cost writes 1,000 changes a second for twenty seconds.
func (b *recordRun) cost(path string) error {
	c := &grantChurn{now: time.Now().Add(-time.Minute), each: 500, names: 200}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r := record.New(record.Options{Path: path})
	before, began := processCPU(), time.Now()
	r.Run(ctx, c)
	if r.Err() != nil {
		return r.Err()
	}
	share := 100 * float64(processCPU()-before) / float64(time.Since(began))
	b.line("CPU at 1,000 changes/s", "% of a core", share, 5, "")
	return nil
}

// size fills a record and asks it.
func (b *recordRun) size(path string) error {
	grants := b.grants
	c := &grantChurn{now: time.Now().Add(-time.Duration(grants) * time.Millisecond), each: 100_000, most: int64(grants), names: 10_000}
	began := c.now
	ctx, cancel := context.WithCancel(context.Background())
	r := record.New(record.Options{Path: path, MaxSize: 16 << 30})
	done := make(chan struct{})
	go func() { r.Run(ctx, c); close(done) }()
	for c.made.Load() < int64(grants) && r.Err() == nil {
		time.Sleep(200 * time.Millisecond)
	}
	cancel()
	<-done
	if r.Err() != nil {
		return r.Err()
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	b.line("bytes a grant", "B", float64(info.Size())/float64(grants), 200, "of %d grants", grants)
	db, err := sql.Open("sqlite", path) // these grants were long ago, their recorder only now
	if err != nil {
		return err
	}
	_, err = db.Exec(`UPDATE runs SET began_ms = 0, locks_ms = 0`)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	reader, err := record.OpenReader(path, "")
	if err != nil {
		return err
	}
	defer reader.Close()
	all := record.Span{Since: began, Until: time.Now().Add(time.Hour)}
	half := began.Add(time.Duration(grants) * time.Millisecond / 2)
	for what, ask := range map[string]func(i int) error{
		"history NAME": func(i int) error {
			_, err := reader.GrantsOf(fmt.Sprintf("orders:customer:%d", i*97%c.names), all, 1000)
			return err
		},
		"what held at a moment": func(i int) error {
			m, err := reader.At(half.Add(time.Duration(i) * time.Second))
			if err == nil && m.Snapshot.Locks.Len() < 1000 && grants >= 1_000_000 {
				err = fmt.Errorf("only %d locks", m.Snapshot.Locks.Len())
			}
			return err
		},
		"the next event": func(i int) error {
			_, _, err := reader.Step(half.Add(time.Duration(i)*time.Second), i%2 == 0, fmt.Sprintf("orders:customer:%d", i*97%c.names))
			return err
		},
		"overlaps": func(int) error {
			o, err := reader.Overlaps(all, 10)
			if err == nil && o.Count == 0 {
				err = errors.New("no overlap")
			}
			return err
		},
		"patterns": func(int) error { _, err := reader.Patterns(all, 20); return err },
	} {
		var took []time.Duration
		for i := range 20 {
			start := time.Now()
			if err := ask(i); err != nil {
				return err
			}
			took = append(took, time.Since(start))
		}
		most := 100 * time.Millisecond
		if what == "overlaps" { // all overlaps, as in a report
			most = time.Second
		}
		b.times(what, took, 100, most)
	}
	return nil
}
