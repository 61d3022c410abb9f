package who

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"redlockctl/server/safetext"
)

// world simulates applications with pools on one node: each command uses a connection of
// its pool, and servers report whole seconds.
type world struct {
	r     *rand.Rand
	now   float64
	last  map[int64]float64 // when a connection was last used
	apps  int
	conns int
	fifo  bool
	next  []int
}

func (w *world) use(app int) {
	c := 0
	if w.fifo {
		w.next[app]++
		c = w.next[app] % w.conns
	} else {
		for c < w.conns-1 && w.r.IntN(4) == 0 { // usually the first one is free
			c++
		}
	}
	w.last[int64(app*w.conns+c+1)] = w.now
}

func (w *world) list(apps func(int) bool) List {
	l := List{At: time.Unix(0, int64(w.now*1e9)), Server: w.now}
	for app := range w.apps {
		for c := range w.conns {
			if id := int64(app*w.conns + c + 1); apps(app) {
				l.Conns = append(l.Conns, Conn{ID: id, Name: safetext.New(fmt.Sprint("app", app)), Cmd: "evalsha", Idle: int(math.Floor(w.now) - math.Floor(w.last[id]))})
			}
		}
	}
	return l
}

// run watches, for some seconds, a lock that app 0 extends; the others send busy commands
// per second. It returns the most likely of the listed ones.
func (w *world) run(seconds, every, busy float64, listed func(int) bool) (Candidate, int) {
	var t Tally
	w.last, w.next, w.now = map[int64]float64{}, make([]int, w.apps), 1000+w.r.Float64()
	for id := range w.apps * w.conns {
		w.last[int64(id+1)] = 900
	}
	const step = 0.01
	end, extend, control, least := w.now+seconds, w.now+every*w.r.Float64(), w.now, 0.0
	for ; w.now < end; w.now += step {
		for app := 1; app < w.apps; app++ {
			if w.r.Float64() < busy*step {
				w.use(app)
			}
		}
		switch {
		case w.now >= extend:
			extend += every
			w.use(0)
			w.now += 0.002
			t.Event("token", true, w.list(listed))
			least = w.now + 0.2
		case w.now >= control && w.now >= least:
			t.Control(w.list(listed))
			control = w.now + 0.25 + 0.3*w.r.Float64()
		}
	}
	c, n := t.Holder("token")
	return c[0], n
}

// TestInference: of 20 applications the holder is named, in nearly all runs with pools
// that reuse the last connection; and if the holder is not in the list, nobody is named.
func TestInference(t *testing.T) {
	everybody := func(int) bool { return true }
	for name, c := range map[string]struct {
		watch  float64 // seconds
		busy   float64 // commands per second of each of the others
		fifo   bool
		listed func(int) bool
		least  int // minimum of correct claims in 50
	}{
		"quiet":        {20, 0.1, false, everybody, 45},
		"busy":         {20, 2, false, everybody, 40},
		"FIFO pools":   {60, 0.5, true, everybody, 5},
		"one is away":  {20, 2, false, func(app int) bool { return app != 0 }, 0},
		"away, FIFO":   {20, 2, true, func(app int) bool { return app != 0 }, 0},
		"very busy":    {20, 20, false, everybody, 0},
		"away, silent": {20, 0.1, false, func(app int) bool { return app != 0 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{r: rand.New(rand.NewPCG(1, 2)), apps: 20, conns: 10, fifo: c.fifo}
			right, wrong := 0, 0
			for range 50 {
				switch got, n := w.run(c.watch, 1+w.r.Float64(), c.busy, c.listed); {
				case got.P < Sure || n < LeastEvents:
				case got.Group.Name == "app0":
					right++
				default:
					wrong++
				}
			}
			t.Logf("%d right, %d wrong, %d abstained", right, wrong, 50-right-wrong)
			if wrong > 0 || right < c.least {
				t.Errorf("%d right and %d wrong of 50; want %d or more, and none", right, wrong, c.least)
			}
		})
	}
}

// TestOneEventNamesNobody, whatever its ratio.
func TestOneEventNamesNobody(t *testing.T) {
	w := &world{r: rand.New(rand.NewPCG(3, 4)), apps: 20, conns: 10}
	for range 50 {
		if got, n := w.run(3, 2.9, 1, func(int) bool { return true }); n >= LeastEvents || got.P >= Sure {
			t.Errorf("%+v of %d events", got, n)
		}
	}
}

// TestLateListIsNoEvidence: if the change may have been in the previous second, the
// holder looks idle; if it cannot have been, another client made it.
func TestLateListIsNoEvidence(t *testing.T) {
	for _, c := range []struct{ delay, least, most float64 }{{0.5, 0.99, 1.01}, {0.05, 0, 0.2}} {
		var tally Tally
		l := List{At: time.Unix(1000, 0), Server: 1000.3, Delay: c.delay, Conns: []Conn{{ID: 1, Name: safetext.New("app0"), Cmd: "evalsha", Idle: 1}}}
		tally.Event("token", true, l)
		if got := tally.ratio(Group{Name: "app0"}, tally.events["token"][0].nodes[0], nil); got < c.least || got > c.most {
			t.Errorf("%g s late: ratio %g", c.delay, got)
		}
	}
}

// A request for a known holder does not wait for another one after the known one has lost
// the lock; a request without one does.
func TestAKnownHolderHasLostTheLock(t *testing.T) {
	for _, known := range []*Answer{nil, {Key: "job:1", Token: safetext.New("t"), Group: &Group{Name: "billing"}}} {
		c := newCase(nil, "job:1")
		c.nodes, c.names = make([]nodeState, 3), []string{"n1", "n2", "n3"}
		c.remember(known, time.Now())
		for node := range c.nodes {
			if c.sure(time.Now()) {
				t.Fatalf("sure before all %d nodes were heard", len(c.nodes))
			}
			c.take(report{list: List{Node: node, At: time.Now()}})
		}
		if c.sure(time.Now()) != (known != nil) {
			t.Errorf("known %v: sure is %v", known != nil, known == nil)
		}
	}
}
