package run

import (
	"encoding/gob"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"redlockctl/base/crash"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that are passed on to a command: those that stop or end a job,
// those with a meaning chosen by the program, and window changes.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGCONT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// discarded is the time after which a stop signal to ourselves counts as discarded. The
// kernel discards it if nobody could continue us.
const discarded = 200 * time.Millisecond

// job is a command in its own process group, so that the whole group can be ended and
// nothing else. Its parent is a reaper (reaper.go).
//
// On a terminal the command is a job beside ours. It is moved to the foreground when it
// asks for the terminal, or at once if standard streams are on the terminal. In the
// foreground it alone gets the terminal's signals; otherwise we get them and pass them on.
// When the keyboard stops the command, we stop too, so that the shell sees its job stopped;
// when the shell continues us, we continue the command.
type job struct {
	reaper  *exec.Cmd
	control *os.File // to the reaper, which ends everything when this closes without [leave]
	events  *gob.Decoder
	group   int
	tty     *os.File            // nil: no terminal
	stopped chan syscall.Signal // the signal that stopped it last
	ended   chan struct{}       // closed when the command has ended
	status  syscall.WaitStatus  // valid after ended
	broken  error               // valid after ended: the reaper did not report the status

	front bool             // it had the terminal before we stopped
	again <-chan time.Time // fires if our own stop was discarded
}

// startJob starts the command. With front the command gets the terminal, if we have it.
func startJob(cmd *exec.Cmd, front bool) (*job, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	j := &job{stopped: make(chan syscall.Signal, 1), ended: make(chan struct{})}
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		j.tty = tty
		j.front = front && j.foreground() == syscall.Getpgrp()
	}
	if err := j.start(cmd); err != nil {
		j.close()
		return nil, err
	}
	// SIGTTOU would stop us when we take the terminal back from the background. Ignore it
	// only now, because a command inherits ignored signals.
	signal.Ignore(syscall.SIGTTOU)
	crash.Go(j.watch)
	return j, nil
}

// start starts the reaper, which starts the command.
func (j *job) start(cmd *exec.Cmd) error {
	path, err := program()
	if err != nil {
		return err
	}
	orders, control, err := os.Pipe()
	if err != nil {
		return err
	}
	defer orders.Close()
	j.control = control
	events, told, err := os.Pipe()
	if err != nil {
		return err
	}
	defer told.Close()
	j.events = gob.NewDecoder(events)
	j.reaper = exec.Command(path)
	j.reaper.Args = []string{reaperName}
	j.reaper.Stdin, j.reaper.Stdout, j.reaper.Stderr, j.reaper.Env = cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env
	j.reaper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Pass the pipes to the reaper under unused numbers: the caller of this program may
	// have opened files for the command.
	for _, f := range []*os.File{orders, told} {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		j.reaper.Args = append(j.reaper.Args, strconv.Itoa(fd))
	}
	if err := j.reaper.Start(); err != nil {
		j.reaper = nil
		return fmt.Errorf("start %s: %v", reaperName, err) // not wrapped: the reaper is missing, not the command
	}
	if err := gob.NewEncoder(control).Encode(order{cmd.Path, cmd.Args, j.front}); err != nil {
		return err
	}
	// Only the reaper may hold the writing end, or its end would not be noticed.
	_ = told.Close()
	var e event
	switch err := j.events.Decode(&e); {
	case err != nil:
		return fmt.Errorf("%s ended before it started the command: %w", reaperName, err)
	case e.Failed != 0:
		return &fs.PathError{Op: "start", Path: cmd.Path, Err: e.Failed}
	}
	j.group = e.Started
	return nil
}

// watch receives the reaper's reports of stops and of the end.
func (j *job) watch() {
	defer close(j.ended)
	for {
		var e event
		switch err := j.events.Decode(&e); {
		case err != nil:
			j.broken = fmt.Errorf("%s was killed, and the command with it", reaperName)
			return
		case e.Ended:
			j.status = e.Status
			return
		}
		select {
		case <-j.stopped:
		default:
		}
		j.stopped <- e.Stopped
	}
}

// leave lets processes that the command left behind run on after its end.
func (j *job) leave() { _, _ = j.control.Write([]byte{leave}) }

// close ends what is left, unless [job.leave] was called, and takes the terminal back.
func (j *job) close() {
	if j.control != nil {
		_ = j.control.Close()
	}
	if j.reaper != nil {
		_ = j.reaper.Wait() // also waits for the goroutines that copy to streams which are not files
	}
	if j.tty == nil {
		return
	}
	if j.group != 0 && j.foreground() == j.group {
		j.give(syscall.Getpgrp())
	}
	_ = j.tty.Close()
}

// interrupted reports, after the command's end, whether an interrupt from the keyboard
// ended it and reached only the command.
func (j *job) interrupted() bool {
	return j.tty != nil && j.status.Signaled() && j.status.Signal() == syscall.SIGINT && j.foreground() == j.group
}

// send sends a signal to the whole group.
func (j *job) send(s syscall.Signal) { _ = syscall.Kill(-j.group, s) }

// end ends the group. A stopped group is continued, or it would not receive SIGTERM. With
// SIGKILL the reaper also ends processes outside the group.
func (j *job) end(s syscall.Signal) {
	if j.send(s); s != syscall.SIGKILL {
		j.send(syscall.SIGCONT)
		return
	}
	_ = j.control.Close()
}

// pass passes a signal on. Signals without a general meaning go only to the program that
// was started; its children would die of them.
func (j *job) pass(s syscall.Signal) {
	switch s {
	case syscall.SIGCONT:
		j.resume()
	case syscall.SIGUSR1, syscall.SIGUSR2:
		_ = syscall.Kill(j.group, s)
	default:
		j.send(s)
	}
}

// halted reacts to a stop of the command.
func (j *job) halted(by syscall.Signal) {
	if j.tty == nil || by == syscall.SIGSTOP {
		return // not stopped by the terminal: whoever stopped it will continue it
	}
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	switch front := j.foreground(); {
	case wants && front == syscall.Getpgrp():
		j.give(j.group)
		j.send(syscall.SIGCONT)
		return
	case front == j.group:
		j.front = true
		j.give(syscall.Getpgrp())
	default:
		j.front = j.front || wants
	}
	// The shell watches our whole job. Until it continues us, nothing happens here, not
	// even an extension. We use SIGTTIN because a Go program that has handled SIGTSTP once
	// can no longer be stopped by it. The kernel discards SIGTTIN too if nobody could
	// continue us.
	_ = syscall.Kill(0, syscall.SIGTTIN)
	j.again = time.After(discarded)
}

// resume continues the command.
func (j *job) resume() {
	j.again = nil
	if j.tty != nil && j.front && j.foreground() == syscall.Getpgrp() {
		j.give(j.group)
	}
	j.send(syscall.SIGCONT)
}

// foreground returns the process group that has the terminal; 0 if unknown.
func (j *job) foreground() int {
	group, err := unix.IoctlGetInt(int(j.tty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

func (j *job) give(group int) {
	_ = unix.IoctlSetPointerInt(int(j.tty.Fd()), unix.TIOCSPGRP, group)
}

// interruptJob sends SIGINT to our own job, this process included.
func interruptJob() {
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(0, syscall.SIGINT)
	time.Sleep(time.Second) // another thread may receive it: an exit before that would not be a death by signal
}
