package supervise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

const d = 10 * time.Second

func TestBegin(t *testing.T) {
	now := Moment{Boot: "b1", At: time.Hour}
	ended := func(ago, delay time.Duration) *Record {
		return &Record{Node: "n1", Boot: "b1", At: now.At - ago, Exact: true, Delay: delay}
	}
	with := func(r *Record, f func(*Record)) *Record { f(r); return r }
	for _, c := range []struct {
		name   string
		memory Memory
		isNew  bool
		wait   time.Duration
		saves  bool
		reason string
	}{
		{"no record waits D from now", Memory{}, false, d, true, "no record"},
		{"a new cluster starts at once", Memory{}, true, 0, false, "first start"},
		{"a known end waits for the rest of D", Memory{Record: ended(4*time.Second, d)}, false, 6 * time.Second, false, "process ended"},
		{"new says nothing where there is a record", Memory{Record: ended(4*time.Second, d)}, true, 6 * time.Second, false, "process ended"},
		{"an end long ago starts at once", Memory{Record: ended(time.Minute, d)}, false, -50 * time.Second, false, "process ended"},
		{"a longer D of the last life holds", Memory{Record: ended(4*time.Second, 3*d)}, false, 26 * time.Second, false, "process ended"},
		{"an unknown end is now", Memory{Record: with(ended(time.Minute, d), func(r *Record) { r.Running = true })}, false, d, true, "not seen"},
		{"an unknown end of a life with a longer D", Memory{Record: with(ended(time.Minute, 3*d), func(r *Record) { r.Running = true })}, false, 3 * d, true, "not seen"},
		{"another boot is now", Memory{Record: with(ended(time.Minute, d), func(r *Record) { r.Boot = "b0" })}, false, d, true, "another boot"},
		{"another node is now", Memory{Record: with(ended(time.Minute, d), func(r *Record) { r.Node = "n2" })}, false, d, true, "another node"},
		{"a time to come is now", Memory{Record: ended(-time.Millisecond, d)}, false, d, true, "time to come"},
		{"a negative time is now", Memory{Record: ended(2*time.Hour, d)}, false, d, true, "time to come"},
		{"damage is now, also for a new cluster", Memory{Damaged: "torn"}, true, d, true, "torn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, actions := Begin(Terms{Node: "n1", Delay: d, New: c.isNew}, c.memory, now)
			if s.NotBefore-now.At != c.wait || !strings.Contains(s.Reason, c.reason) || s.Phase != PhaseWaiting {
				t.Errorf("%s waits %s because %s", c.name, s.NotBefore-now.At, s.Reason)
			}
			if (len(actions) == 1) != c.saves {
				t.Errorf("actions %+v", actions)
			}
		})
	}
}

func kinds(actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		b.WriteString([]string{"save", "erase", "launch", "forward"}[a.Kind])
		if a.Kind == Save && a.Record.Running {
			b.WriteString("-running")
		}
		if a.Must {
			b.WriteString("!")
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func TestStep(t *testing.T) {
	term, hup := Observation{About: Asked, Signal: syscall.SIGTERM}, Observation{About: Asked, Signal: syscall.SIGHUP}
	end := Observation{About: Ended, Exit: Exit{Code: 3}}
	killed := Observation{About: Ended, Exit: Exit{Signal: syscall.SIGKILL}}
	type say struct {
		at      time.Duration // after the beginning
		o       Observation
		actions string
	}
	for _, c := range []struct {
		name   string
		once   bool
		says   []say
		phase  Phase
		status int
	}{
		{"it starts at D and no sooner", false, []say{
			{d - 1, Observation{}, ""}, {d, Observation{}, "save-running! launch"}, {d, Observation{About: Launched}, ""},
		}, PhaseRunning, 0},
		{"an end starts D anew", false, []say{
			{d, Observation{}, "save-running! launch"}, {d, Observation{About: Launched}, ""}, {2 * d, killed, "save"},
			{3*d - 1, Observation{}, ""}, {3 * d, Observation{}, "save-running! launch"},
		}, PhaseStarting, 137},
		{"once ends with the server's code", true, []say{
			{d, Observation{}, "save-running! launch"}, {d, Observation{About: Launched}, ""}, {2 * d, end, "save"},
		}, PhaseOver, 3},
		{"SIGTERM goes to the server, and ends us after it", false, []say{
			{d, Observation{}, "save-running! launch"}, {d, Observation{About: Launched}, ""}, {d, term, "forward"}, {d, hup, "forward"},
			{2 * d, end, "save"},
		}, PhaseOver, 3},
		{"SIGHUP goes to the server, and ends nobody", false, []say{
			{d, Observation{}, "save-running! launch"}, {d, Observation{About: Launched}, ""}, {d, hup, "forward"},
		}, PhaseRunning, 0},
		{"SIGTERM ends the wait", false, []say{{1, term, ""}, {d, Observation{}, ""}}, PhaseOver, 0},
		{"SIGHUP does not end the wait", false, []say{{1, hup, ""}}, PhaseWaiting, 0},
		{"a launch that failed leaves the record as it was", false, []say{
			{d, Observation{}, "save-running! launch"}, {d, Observation{About: LaunchFailed}, "save"},
		}, PhaseOver, 1},
		{"what lingers runs", false, []say{
			{d, Observation{}, "save-running! launch"}, {d, Observation{About: Launched}, ""}, {2 * d, Observation{About: Exited}, ""},
			{9 * d, Observation{}, ""}, {9 * d, hup, ""}, {9 * d, end, "save"}, {10*d - 1, Observation{}, ""},
		}, PhaseWaiting, 3},
		{"SIGTERM leaves what lingers, and the record that it runs", false, []say{
			{d, Observation{}, "save-running! launch"}, {d, Observation{About: Launched}, ""}, {2 * d, Observation{About: Exited}, ""}, {3 * d, term, ""},
		}, PhaseOver, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			terms := Terms{Node: "n1", Delay: d, Once: c.once}
			now := Moment{"b1", time.Minute}
			s, _ := Begin(terms, Memory{}, now)
			for i, say := range c.says {
				var actions []Action
				s, actions = Step(terms, s, say.o, now.At+say.at)
				if got := kinds(actions); got != say.actions {
					t.Fatalf("%d: %q, not %q", i, got, say.actions)
				}
			}
			if s.Phase != c.phase || s.Status != c.status {
				t.Errorf("phase %d, status %d", s.Phase, s.Status)
			}
		})
	}
}

func TestDelayWithoutEnd(t *testing.T) {
	s, _ := Begin(Terms{Node: "n1", Delay: math.MaxInt64}, Memory{}, Moment{"b1", time.Hour})
	if s.NotBefore != math.MaxInt64 {
		t.Errorf("not before %s", s.NotBefore)
	}
}

// world is a host with a disk, on which supervisors and servers live and die,
// and which knows when a server really ended.
type world struct {
	rand *rand.Rand
	// forge is what a broken supervisor would make of its memory.
	forge func(Memory, Moment) Memory

	at, booted time.Duration // real time, and that of the boot
	boots      int
	disk       Memory
	up         bool
	terms      Terms
	state      State

	runs    bool
	ended   time.Duration // the last real end
	promise time.Duration // the D that the last incarnation's clients rely on
	starts  int
	trace   []string
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8s ", w.at)+fmt.Sprintf(format, args...))
}

func (w *world) now() Moment { return Moment{Boot: fmt.Sprint("boot ", w.boots), At: w.at - w.booted} }

func (w *world) die() {
	if w.runs {
		w.runs, w.ended = false, w.at
	}
}

// do carries out actions, until the supervisor is killed in between them, and
// reports whether a server was started too early.
func (w *world) do(actions []Action) (early bool) {
	for _, a := range actions {
		if w.rand.IntN(12) == 0 {
			w.note("the supervisor is killed")
			w.up = false
			w.die()
			return false
		}
		switch a.Kind {
		case Save:
			if w.rand.IntN(12) == 0 {
				w.note("the disk fails")
				if a.Must {
					w.up = false
					return false
				}
				continue
			}
			r := a.Record
			w.disk = Memory{Record: &r}
		case Erase:
			w.disk = Memory{}
		case Launch:
			if w.rand.IntN(6) == 0 {
				w.note("the server cannot be started")
				var undo []Action
				w.state, undo = Step(w.terms, w.state, Observation{About: LaunchFailed}, w.now().At)
				w.up = false
				return w.do(undo)
			}
			w.note("the server starts")
			early = w.at-w.ended < max(w.promise, w.terms.Delay)
			w.runs, w.promise = true, w.terms.Delay
			w.starts++
			w.state, _ = Step(w.terms, w.state, Observation{About: Launched}, w.now().At)
		}
	}
	return early
}

// step is one thing that happens.
func (w *world) step() (early bool) {
	w.at += time.Duration(w.rand.Int64N(int64(d) * 2 / 3))
	tell := func(o Observation) bool {
		var actions []Action
		w.state, actions = Step(w.terms, w.state, o, w.now().At)
		early := w.do(actions)
		w.up = w.up && w.state.Phase != PhaseOver
		return early
	}
	switch n := w.rand.IntN(20); {
	case n == 0:
		w.die()
		w.up = false
		w.boots++
		w.booted = w.at
		if w.rand.IntN(2) == 0 {
			w.booted -= time.Duration(w.rand.Int64N(int64(2 * time.Hour)))
		}
		w.note("the disk goes on in a host that has been up for %s", w.at-w.booted)
	case n == 1:
		w.note("the supervisor is killed")
		w.up = false
		if w.rand.IntN(2) == 0 {
			w.die()
		}
	case n == 2 && !w.up:
		w.note("the record is damaged")
		w.disk = Memory{Damaged: "torn"}
		w.promise = 0 // a longer D of before is lost with it
	case n < 6 && w.runs:
		w.note("the server ends")
		w.die()
		if w.up {
			if w.rand.IntN(3) == 0 {
				tell(Observation{About: Exited})
				w.at += time.Duration(w.rand.Int64N(int64(d)))
			}
			return tell(Observation{About: Ended})
		}
	case !w.up && !w.runs: // one whose server lives refuses
		w.note("a supervisor starts")
		w.up = true
		w.terms = Terms{Node: "n1", Delay: d, Once: w.rand.IntN(2) == 0}
		if w.rand.IntN(4) == 0 {
			w.terms.Delay = 2 * d
		}
		m := w.disk
		if w.forge != nil {
			m = w.forge(m, w.now())
		}
		var actions []Action
		w.state, actions = Begin(w.terms, m, w.now())
		return w.do(actions)
	case w.up:
		return tell(Observation{About: Ticked})
	}
	return false
}

// play runs so many schedules, or until a server is started too early: then it
// returns the trace.
func play(schedules int, forge func(Memory, Moment) Memory) (starts int, trace []string) {
	for seed := range schedules {
		w := &world{rand: rand.New(rand.NewPCG(uint64(seed), 7)), forge: forge, booted: -time.Hour}
		for range 60 {
			if w.step() {
				return starts, append(w.trace, fmt.Sprintf("seed %d: the last end was at %s", seed, w.ended))
			}
		}
		starts += w.starts
	}
	return starts, nil
}

// No schedule of crashes starts a server sooner than D after its last end, and
// each way to believe too much is found out by the same schedules.
func TestNeverEarly(t *testing.T) {
	const schedules = 4000
	starts, trace := play(schedules, nil)
	if trace != nil {
		t.Fatalf("a server is started too early:\n%s", strings.Join(trace, "\n"))
	}
	if starts < schedules {
		t.Errorf("only %d starts in %d schedules", starts, schedules)
	}
	change := func(f func(r *Record, now Moment)) func(Memory, Moment) Memory {
		return func(m Memory, now Moment) Memory {
			if m.Record != nil {
				r := *m.Record
				f(&r, now)
				m.Record = &r
			}
			return m
		}
	}
	for name, forge := range map[string]func(Memory, Moment) Memory{
		"the start counts as the end": change(func(r *Record, _ Moment) { r.Running = false }),
		"the boot is not compared":    change(func(r *Record, now Moment) { r.Boot = now.Boot }),
		"another boot is its beginning": change(func(r *Record, now Moment) {
			if r.Boot != now.Boot {
				r.Boot, r.At, r.Running = now.Boot, 0, false
			}
		}),
		"the D of the last life is unknown": change(func(r *Record, _ Moment) { r.Delay = 0 }),
		"the end counts a second earlier":   change(func(r *Record, _ Moment) { r.At -= time.Second }),
		"damage is taken for a long wait": func(m Memory, now Moment) Memory {
			if m.Damaged != "" {
				return Memory{Record: &Record{Node: "n1", Boot: now.Boot, Delay: 1}}
			}
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, trace := play(schedules, forge); trace == nil {
				t.Error("not found")
			}
		})
	}
}
