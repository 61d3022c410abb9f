package supervise

import (
	"fmt"
	"syscall"
	"time"
)

// Terms is what [Begin] and [Step] decide by.
type Terms struct {
	Node string
	// Delay is D: the least time from the end of a server's process to the start
	// of the next.
	Delay time.Duration
	// New: where there is no record at all, the server has never run, and starts
	// at once. It is right only for the first start of a new cluster.
	New bool
	// Once: the supervisor ends when the server does. Whoever starts the next
	// supervisor makes the next start.
	Once bool
}

// Moment is a point in time on a host's own clock.
type Moment struct {
	// Boot names the boot of the host. Moments of different boots cannot be
	// compared.
	Boot string
	At   time.Duration // since that boot, also while suspended
}

// Record is what is kept on disk about a node's last process.
type Record struct {
	Node string `json:"node"`
	// Running: the process was started, or was about to be, at Moment; its end is
	// not known. Otherwise it had ended by Moment.
	Running bool          `json:"running"`
	Boot    string        `json:"boot"`
	At      time.Duration `json:"at_ns"`
	// Exact: Moment is when the process was waited for, not just a moment after
	// its end.
	Exact bool `json:"exact,omitempty"`
	// Delay is D while the process ran.
	Delay time.Duration `json:"delay_ns"`
	// How it ended, for people.
	Exit string `json:"exit,omitempty"`
}

// Memory is what was found on disk.
type Memory struct {
	Record *Record // nil: none, or none that can be used
	// Damaged is why there is something that cannot be used; empty otherwise.
	Damaged string
}

// Exit is how a process ended.
type Exit struct {
	Code   int            // of one that ended by itself
	Signal syscall.Signal // that ended it; 0: none
}

// Status is the exit code as a shell gives it: 128 + the signal's number for a
// process that was ended by one.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Phase is what a supervisor is at.
type Phase uint8

const (
	PhaseWaiting   Phase = iota // until NotBefore
	PhaseStarting               // the start was ordered
	PhaseRunning                // the server runs
	PhaseLingering              // it has ended, and something that it started has not
	PhaseOver                   // the supervisor is done
)

// State is what a supervisor knows.
type State struct {
	Phase Phase
	// NotBefore is when the server may start, on the clock of Moment. Of
	// PhaseWaiting.
	NotBefore time.Duration
	Reason    string // why it waits, or starts at once
	// Last is what the disk says, or should say.
	Last *Record
	// Stopping: somebody asked for the end, so the server is not started again.
	Stopping bool
	// Status is the exit code of the supervisor. Of PhaseOver.
	Status int

	boot string
}

// ActionKind is what to do.
type ActionKind uint8

const (
	Save    ActionKind = iota // put Record on disk, durably
	Erase                     // there must be no record
	Launch                    // start the server
	Forward                   // send Signal to the server
)

// Action is an order to the shell. Orders are carried out one after the other.
type Action struct {
	Kind   ActionKind
	Record Record
	// Must: without this one done, none that follows may be done. What stood on
	// disk before would allow a start too early.
	Must   bool
	Signal syscall.Signal
}

// About says what an [Observation] tells of.
type About uint8

const (
	Ticked       About = iota // time has passed
	Launched                  // the server's process was made
	LaunchFailed              // it was not: nothing ran
	Exited                    // the process has ended, something that it started has not
	Ended                     // it has, and nothing that it started is left
	Asked                     // the supervisor received Signal
)

// Observation is what the shell has seen.
type Observation struct {
	About  About
	Exit   Exit           // of Exited and Ended
	Signal syscall.Signal // of Asked
}

// Begin decides what a supervisor does that starts at now, and has made sure
// that no process of an earlier one is left.
func Begin(t Terms, m Memory, now Moment) (State, []Action) {
	s := State{Phase: PhaseWaiting, boot: now.Boot}
	r := m.Record
	switch {
	case m.Damaged != "":
		return s.fromNow(t, r, now, "the record cannot be used ("+m.Damaged+"): the last end counts as now")
	case r == nil && t.New:
		s.NotBefore, s.Reason = now.At, "the first start of a new cluster: nothing to forget"
		return s, nil
	case r == nil:
		return s.fromNow(t, r, now, "there is no record: what may have run before counts as ended now")
	case r.Node != t.Node:
		return s.fromNow(t, r, now, "the record is of another node: the last end counts as now")
	case r.Boot != now.Boot:
		return s.fromNow(t, r, now, "the record is of another boot of the host: the last end counts as now")
	case r.Running:
		return s.fromNow(t, r, now, "the end of the last process was not seen: it counts as now")
	case r.At < 0 || r.At > now.At || r.Delay < 0:
		return s.fromNow(t, r, now, "the record is of a time to come: the last end counts as now")
	}
	s.Last = r
	s.NotBefore = after(r.At, max(t.Delay, r.Delay))
	s.Reason = "since the last process ended"
	return s, nil
}

// fromNow waits the whole of D, and says so on disk, so that a supervisor that
// follows this one need not begin anew.
func (s State) fromNow(t Terms, r *Record, now Moment, why string) (State, []Action) {
	delay := t.Delay
	if r != nil {
		delay = max(delay, r.Delay)
	}
	s.Last = &Record{Node: t.Node, Boot: now.Boot, At: now.At, Delay: delay}
	s.NotBefore, s.Reason = after(now.At, delay), why
	return s, []Action{{Kind: Save, Record: *s.Last}}
}

// Step decides what follows from an observation at now, which is the time since
// the boot of [Begin].
func Step(t Terms, s State, o Observation, now time.Duration) (State, []Action) {
	switch o.About {
	case Ticked:
		if s.Phase != PhaseWaiting || now < s.NotBefore {
			return s, nil
		}
		s.Phase = PhaseStarting
		return s, []Action{
			{Kind: Save, Must: true, Record: Record{Node: t.Node, Running: true, Boot: s.boot, At: now, Delay: t.Delay}},
			{Kind: Launch},
		}
	case Launched:
		if s.Phase == PhaseStarting {
			s.Phase = PhaseRunning
		}
		return s, nil
	case LaunchFailed:
		if s.Phase != PhaseStarting {
			return s, nil
		}
		s.Phase, s.Status = PhaseOver, 1
		if s.Last == nil {
			return s, []Action{{Kind: Erase}}
		}
		return s, []Action{{Kind: Save, Record: *s.Last}}
	case Exited:
		if s.Phase == PhaseRunning {
			s.Phase = PhaseLingering
		}
		return s, nil
	case Ended:
		return s.ended(t, o.Exit, now)
	case Asked:
		return s.asked(o.Signal)
	}
	return s, nil
}

func (s State) ended(t Terms, exit Exit, now time.Duration) (State, []Action) {
	if s.Phase != PhaseRunning && s.Phase != PhaseLingering {
		return s, nil
	}
	s.Last = &Record{Node: t.Node, Boot: s.boot, At: now, Exact: true, Delay: t.Delay, Exit: exit.String()}
	s.Status = exit.Status()
	s.Phase, s.NotBefore, s.Reason = PhaseWaiting, after(now, t.Delay), "since its process ended"
	if t.Once || s.Stopping {
		s.Phase = PhaseOver
	}
	return s, []Action{{Kind: Save, Record: *s.Last}}
}

func (s State) asked(sig syscall.Signal) (State, []Action) {
	stop := sig == syscall.SIGTERM || sig == syscall.SIGINT
	switch s.Phase {
	case PhaseWaiting:
		if stop {
			s.Phase, s.Status = PhaseOver, 0
		}
	case PhaseRunning:
		s.Stopping = s.Stopping || stop
		return s, []Action{{Kind: Forward, Signal: sig}}
	case PhaseLingering:
		// The record goes on saying that it runs, which is the truth.
		if stop {
			s.Phase, s.Status = PhaseOver, 1
		}
	}
	return s, nil
}

// after is t + d, at most the maximum.
func after(t, d time.Duration) time.Duration {
	if sum := t + d; sum >= t {
		return sum
	}
	return 1<<63 - 1
}
