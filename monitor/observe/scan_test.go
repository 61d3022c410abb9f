package observe

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor/wire"

	"redlockctl/monitor/table"
)

// A node is read at once if that disturbs nobody, otherwise with pauses.
func TestTheMastersWorkSetsThePace(t *testing.T) {
	for name, c := range map[string]struct {
		feed, patient bool
		task          task
		missing       bool
		want          int
	}{
		"the first read of an idle node":    {true, true, task{gap: true}, false, 0},
		"the first read of a busy node":     {true, true, task{gap: true, busy: true}, false, paceBusy},
		"by one who looks once":             {true, false, task{gap: true, busy: true}, false, 0},
		"after a flush":                     {true, true, task{busy: true}, true, paceBusy},
		"now and then":                      {true, true, task{}, false, paceShare},
		"where changes are seen by reading": {false, true, task{}, false, 0},
	} {
		l := follower{missing: c.missing, reader: &wire.Reader{Patient: c.patient}}
		if c.feed {
			l.feed = &wire.Feed{}
		}
		l.reader.Load.Begin(c.task.busy, time.Now())
		if got := l.pace(c.task); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
	w := newWatch("n1", "addr", time.Time{})
	w.answered(sight{info: map[string]string{"instantaneous_ops_per_sec": "250"}})
	if w.ops != 250 {
		t.Error(w.ops)
	}
}

// A feed that fails repeatedly is left alone for longer each time. A node that hangs now
// and then but works in between is not.
func TestFeedIsTriedAgain(t *testing.T) {
	now := time.Unix(1700000000, 0)
	for name, c := range map[string]struct{ well, most time.Duration }{
		"well for a minute or less": {30 * time.Second, feedRetryMost},
		"well for most of the time": {10 * time.Minute, feedRetry},
	} {
		var p feedPlan
		for range 10 {
			p.failed(errMute, now)
			p.failed(errMute, now.Add(10*time.Second))
			now = p.next.Add(c.well)
		}
		if p.pause != c.most {
			t.Errorf("%s: left alone for %s", name, p.pause)
		}
	}
}

func FuzzParseInfo(f *testing.F) {
	f.Add("# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n\r\n# Replication\r\nrole:master\r\n")
	f.Add("a:b:c\n:\n\x1b[2J:\xff\r")
	f.Fuzz(func(t *testing.T, text string) {
		fields := map[string]string{}
		wire.ParseInfo(text, fields)
		for name, value := range fields {
			if strings.ContainsAny(value, "\r\n\x1b\x00") {
				t.Errorf("%q: %q", name, value)
			}
		}
		w := newWatch("n1", "addr", time.Time{})
		w.answered(sight{info: fields, config: fields})
	})
}

// Keys that are usually gone when they are read are read less often.
func TestReadsInVainAreFewer(t *testing.T) {
	there, gone := table.Row{Type: "string"}, table.Row{Type: "none"}
	if coalesceFor([]table.Row{there, gone}) != coalesce || coalesceFor([]table.Row{gone, there, gone}) != coalesceGone {
		t.Error("the pause does not follow from what was gone")
	}
}

// A page of keys is as large as costs the server little, and as a thin line carries soon.
// A step that was slow for another reason (this machine or the network was busy) changes
// nothing, even if each step is.
func TestPagesAreAsLongAsTheServerBears(t *testing.T) {
	const setting = 250
	for name, c := range map[string]struct {
		perPage     time.Duration // of the server, for as many keys as configured
		perKey      time.Duration // of the line
		busy        time.Duration // no step waits for a processor for less
		least, most int64
	}{
		"a fast server":                 {10 * time.Microsecond, 0, 0, strideMost * setting, strideMost * setting},
		"a usual one":                   {250 * time.Microsecond, 0, 0, 400, 4 * setting},
		"a slow one":                    {10 * time.Millisecond, 0, 0, strideFew, 30},
		"far away, but fast":            {0, 0, 0, strideMost * setting, strideMost * setting},
		"over a thin line":              {0, 200 * time.Microsecond, 0, 25, 60},
		"over a thinner one":            {0, 10 * time.Millisecond, 0, strideFew, strideFew},
		"a usual one on a busy machine": {250 * time.Microsecond, 0, 5 * time.Millisecond, setting / 2, setting},
		"a fast one on a busy machine":  {10 * time.Microsecond, 0, 5 * time.Millisecond, setting, setting},
		"a slow one on a busy machine":  {10 * time.Millisecond, 0, 5 * time.Millisecond, strideFew, 45},
	} {
		s := stride{least: time.Millisecond}
		for i := range 400 {
			n := s.count(setting)
			line := time.Duration(n) * c.perKey
			took := time.Millisecond + time.Duration(n)*c.perPage/setting + line
			if i > 0 {
				took += c.busy
			}
			if i%4 != 1 {
				took += 30 * time.Millisecond // waited for a processor
			}
			s.took(took-line, line, strideWork, setting)
			if work := time.Duration(n) * c.perPage / setting; i > 60 && n > strideFew && work > 2*strideWork {
				t.Fatalf("%s: step %d costs the server %s", name, i, work)
			}
		}
		if got := s.count(setting); got < c.least || got > c.most {
			t.Errorf("%s: %d keys at once, not %d to %d", name, got, c.least, c.most)
		}
	}
}

// After a step of its clock, a node is read again soon: its copies end at other times. Once is enough.
func TestANodeIsReadAgainAfterAStep(t *testing.T) {
	now := time.Now()
	l := follower{feed: &wire.Feed{}, plan: &feedPlan{}, ended: now.Add(-time.Minute), due: now.Add(time.Hour)}
	step := task{epoch: 1, stepped: now.Add(-time.Second)}
	l.schedule(step, false, now)
	if l.due.After(now) {
		t.Errorf("it is due in %s", l.due.Sub(now))
	}
	l.ended, l.due = now, now.Add(time.Hour)
	l.schedule(step, false, now)
	if !l.due.After(now) {
		t.Error("it is read again and again")
	}
}

// After FLUSHALL, an urgent read does not wait for the end of a read in the background,
// and the node does not count as read.
func TestAFlushEndsAReadInTheBackground(t *testing.T) {
	now := time.Now()
	m, err := New(nodes(t, "n1"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.world.nodes[0].Read = 1
	l := follower{monitor: m, reader: &wire.Reader{}, feed: &wire.Feed{}, plan: &feedPlan{}, ended: now.Add(-time.Minute), busy: time.Second, due: now.Add(-time.Second)}
	l.full = newFullRead(1, now, paceShare, nil)
	l.schedule(task{epoch: 1}, true, now)
	if l.full != nil || l.due.After(now) || l.pace(task{}) == paceShare || m.world.nodes[0].Read != 0 {
		t.Errorf("%+v, read to %v", l, m.world.nodes[0].Read)
	}
	// An urgent read continues, however often the node is flushed, and another one
	// follows.
	l.missing, l.full = false, newFullRead(1, now, 0, nil)
	l.schedule(task{epoch: 1}, true, now)
	if l.full == nil || !l.missing {
		t.Errorf("%+v", l)
	}
}
