package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"redlockctl/internal/child"
	"redlockctl/internal/private"
)

var (
	// ErrBusy is returned when another supervisor of the node is at work.
	ErrBusy = errors.New("another supervisor is at work")
	// ErrOutlived is returned when a server that an earlier supervisor started, or
	// something that it started, still runs.
	ErrOutlived = errors.New("the server of an earlier supervisor still runs")
)

// Config of a supervisor.
type Config struct {
	Terms
	// Dir keeps the record, in files named after the node. Other nodes may share
	// it, other users not.
	Dir string
	// Command is the server's program and its arguments. Env is its environment,
	// nil for this process's; what the service manager tells us is left out.
	Command []string
	Env     []string
	Log     *slog.Logger
	// Notify tells the service manager, in the words of sd_notify. May be nil.
	Notify func(state string)
}

const (
	// lingerPoll is how often it is tried if all that the server started has ended.
	lingerPoll = 20 * time.Millisecond
	// extendEvery is how often a service manager is told that we still wait, and
	// extendBy for how long it need not ask.
	extendEvery = 5 * time.Second
	extendBy    = 30 * time.Second
)

// CheckName says why a node's name cannot name its files.
func CheckName(name string) error {
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	switch {
	case name == "":
		return errors.New("the name of the node is empty")
	case len(name) > 64, strings.ContainsFunc(name, bad), strings.HasPrefix(name, "."), strings.HasPrefix(name, "-"):
		return fmt.Errorf("node name %q: letters, digits and . _ - only, at most 64, not beginning with . or -", name)
	}
	return nil
}

// Run supervises until the server has ended and is not to be started again, and
// returns its exit code; 0 if a signal ended the wait for its start. Signals are
// handed on to the server; SIGTERM and SIGINT also end the supervisor after it.
// It fails with [ErrBusy], [ErrOutlived], [ErrState] before anything was started,
// or when the server cannot be started.
func Run(cfg Config, signals <-chan os.Signal) (int, error) {
	switch {
	case cfg.Delay <= 0:
		return 0, fmt.Errorf("delay %s is not positive", cfg.Delay)
	case len(cfg.Command) == 0:
		return 0, errors.New("no command to supervise")
	}
	if err := CheckName(cfg.Node); err != nil {
		return 0, err
	}
	h, err := newHost()
	if err != nil {
		return 0, err
	}
	st, err := openStore(cfg.Dir, cfg.Node)
	if err != nil {
		return 0, err
	}
	own, err := st.lock(".supervisor.lock")
	if errors.Is(err, private.ErrLocked) {
		return 0, fmt.Errorf("%w on node %s in %s", ErrBusy, cfg.Node, cfg.Dir)
	}
	if err != nil {
		return 0, err
	}
	defer own.Close()
	private.Sweep(st.path(".json"))
	lifeLock, err := st.lock(".server.lock")
	if errors.Is(err, private.ErrLocked) {
		return 0, fmt.Errorf("%w, or something that it started: end it first (fuser %s)", ErrOutlived, st.path(".server.lock"))
	}
	if err != nil {
		return 0, err
	}
	sh := &shell{Config: cfg, host: h, store: st, lifeLock: lifeLock, seen: make(chan outcome)}
	defer func() { _ = sh.lifeLock.Close() }() // of nil it is an error, and nothing else
	return sh.run(signals)
}

// shell carries out what the step machine decides.
type shell struct {
	Config
	host     host
	store    store
	lifeLock *os.File // the lock that the next server inherits; nil while one has it
	seen     chan outcome
	quit     chan struct{} // closed to give up on what lingers; nil before the first start
	cmd      *exec.Cmd
	state    State
}

// outcome is what became of the server, and the lock that its end set free.
type outcome struct {
	Observation
	lifeLock *os.File
}

func (sh *shell) run(signals <-chan os.Signal) (int, error) {
	now := sh.host.now()
	memory := sh.store.load()
	if memory.Record != nil && sh.New {
		sh.Log.Warn("not new: there is a record of an earlier process", "node", sh.Node)
	}
	state, actions := Begin(sh.Terms, memory, now)
	sh.state = state
	if err := sh.do(actions); err != nil {
		return 0, err
	}
	sh.tellWait(now.At)
	for sh.state.Phase != PhaseOver {
		o := sh.observe(signals)
		if err := sh.step(o); err != nil {
			return 0, err
		}
	}
	if sh.quit != nil {
		close(sh.quit)
	}
	return sh.state.Status, nil
}

func (sh *shell) observe(signals <-chan os.Signal) Observation {
	var tick <-chan time.Time
	if sh.state.Phase == PhaseWaiting {
		left := sh.state.NotBefore - sh.host.now().At
		if left <= 0 {
			return Observation{About: Ticked}
		}
		// The timer runs on a clock that stands while the host is suspended: a
		// suspended supervisor only waits longer.
		t := time.NewTimer(min(left, extendEvery))
		defer t.Stop()
		tick = t.C
	}
	select {
	case <-tick:
		return Observation{About: Ticked}
	case o := <-sh.seen:
		if o.lifeLock != nil {
			sh.lifeLock = o.lifeLock
		}
		return o.Observation
	case s := <-signals:
		return Observation{About: Asked, Signal: s.(syscall.Signal)} // all signals are, on unix
	}
}

func (sh *shell) step(o Observation) error {
	now := sh.host.now().At
	old := sh.state
	next, actions := Step(sh.Terms, old, o, now)
	sh.state = next
	sh.tell(old, o)
	if err := sh.do(actions); err != nil {
		return err
	}
	switch next.Phase {
	case PhaseStarting:
		return sh.step(Observation{About: Launched})
	case PhaseWaiting:
		if old.Phase != PhaseWaiting {
			sh.tellWait(now)
		} else {
			sh.extend(now)
		}
	}
	return nil
}

// tell says what was seen, to people and to the service manager.
func (sh *shell) tell(old State, o Observation) {
	next := sh.state
	switch o.About {
	case Asked:
		sh.Log.Info("signal", "node", sh.Node, "signal", o.Signal.String())
		switch {
		case next.Phase != PhaseOver:
		case old.Phase == PhaseLingering:
			sh.Log.Warn("stopped; what the server has started still runs", "node", sh.Node)
		default:
			sh.Log.Info("stopped before the server was started", "node", sh.Node)
		}
	case Exited:
		sh.Log.Warn("the server's process has ended, something that it started still runs: D counts from the end of that",
			"node", sh.Node, "how", o.Exit.String(), "hint", "let the server stay in the foreground: daemonize no")
		sh.notify("STATUS=waiting for what the server has started to end")
	case Ended:
		sh.Log.Info("the server has ended", "node", sh.Node, "how", o.Exit.String())
	}
	if next.Stopping && !old.Stopping || next.Phase == PhaseOver && old.Phase != PhaseOver {
		sh.notify("STOPPING=1")
	}
}

// tellWait says from when on the server may start, and why.
func (sh *shell) tellWait(now time.Duration) {
	left := sh.state.NotBefore - now
	if left <= 0 {
		sh.Log.Info("may start at once", "node", sh.Node, "why", sh.state.Reason)
		return
	}
	sh.Log.Info("waiting before the start", "node", sh.Node, "wait", left.Round(time.Millisecond), "delay", sh.Delay, "why", sh.state.Reason)
	sh.extend(now)
}

func (sh *shell) extend(now time.Duration) {
	left := max(sh.state.NotBefore-now, 0).Round(time.Second)
	sh.notify(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=kept down for another %s: %s", extendBy.Microseconds(), left, sh.state.Reason))
}

func (sh *shell) notify(state string) {
	sh.Log.Debug("told the service manager", "node", sh.Node, "state", state)
	if sh.Notify != nil {
		sh.Notify(state)
	}
}

func (sh *shell) do(actions []Action) error {
	for _, a := range actions {
		var err error
		switch a.Kind {
		case Save:
			err = sh.store.save(a.Record)
		case Erase:
			err = sh.store.erase()
		case Forward:
			err = sh.cmd.Process.Signal(a.Signal)
			if errors.Is(err, os.ErrProcessDone) {
				err = nil
			}
		case Launch:
			if err := sh.launch(); err != nil {
				undo := sh.step(Observation{About: LaunchFailed})
				return errors.Join(fmt.Errorf("start %s: %w", sh.Node, err), undo)
			}
		}
		switch {
		case err == nil:
		case a.Must:
			return fmt.Errorf("the server is not started: %w", err)
		default:
			// What the disk says instead can only make the next wait longer.
			sh.Log.Error("cannot be done", "node", sh.Node, "err", err)
		}
	}
	return nil
}

// launch starts the server, and lets it inherit the lock.
func (sh *shell) launch() error {
	cmd := exec.Command(sh.Command[0], sh.Command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{sh.lifeLock}
	env := sh.Env
	if env == nil {
		env = os.Environ()
	}
	for _, v := range env {
		// What the service manager is told is our business.
		switch name, _, _ := strings.Cut(v, "="); name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	sh.quit = make(chan struct{})
	quit := sh.quit
	if _, err := child.Start(cmd, func() {
		_ = cmd.Wait() // how it ended is in its state
		sh.await(exitOf(cmd.ProcessState), quit)
	}); err != nil {
		return err
	}
	sh.cmd = cmd
	_ = sh.lifeLock.Close()
	sh.lifeLock = nil
	sh.Log.Info("the server was started", "node", sh.Node, "pid", cmd.Process.Pid)
	sh.notify(fmt.Sprintf("READY=1\nSTATUS=running, pid %d", cmd.Process.Pid))
	return nil
}

func exitOf(p *os.ProcessState) Exit {
	if ws, ok := p.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Signal: ws.Signal()}
	}
	return Exit{Code: p.ExitCode()}
}

// await tells of the end once nothing of the server is left.
func (sh *shell) await(exit Exit, quit <-chan struct{}) {
	for first := true; ; first = false {
		lifeLock, err := sh.store.lock(".server.lock")
		if err == nil {
			select {
			case sh.seen <- outcome{Observation{About: Ended, Exit: exit}, lifeLock}:
			case <-quit:
				_ = lifeLock.Close()
			}
			return
		}
		if first {
			select {
			case sh.seen <- outcome{Observation: Observation{About: Exited, Exit: exit}}:
			case <-quit:
				return
			}
		}
		t := time.NewTimer(lingerPoll)
		select {
		case <-quit:
			t.Stop()
			return
		case <-t.C:
		}
	}
}
