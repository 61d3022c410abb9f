//go:build unix

package run

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"redlockctl/internal/child"
)

// passedOn are the signals that a command gets from us: those that end or stop
// a job, those that mean what the program likes, and news of the window.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGCONT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// discarded is how long it takes to know that a stop of ourselves was discarded
// by the system, as it is where nobody could continue us.
const discarded = 200 * time.Millisecond

// job is a command in a process group of its own, so that all of it can be
// ended at once, and nothing else with it.
//
// On a terminal that makes it a job beside ours. It is put into the foreground
// when it asks for the terminal or, with standard streams on the terminal, from
// the beginning; then the terminal's signals reach it alone, and else us alone,
// who pass them on. When it is stopped from the keyboard we stop too, so that
// the shell sees its job stopped, and continue it when we are continued.
type job struct {
	cmd     *exec.Cmd
	group   int
	tty     *os.File            // nil: there is no terminal
	stopped chan syscall.Signal // the last one that stopped it
	ended   <-chan struct{}     // closed at its end
	status  syscall.WaitStatus  // after that

	front bool             // it had the terminal before we stopped
	again <-chan time.Time // our own stop was discarded
}

// startJob starts the command; with front it gets the terminal, if we have it.
func startJob(cmd *exec.Cmd, front bool) (*job, error) {
	c := &job{cmd: cmd, stopped: make(chan syscall.Signal, 1)}
	cmd.SysProcAttr = child.Attr()
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		c.tty = tty
		if front && c.foreground() == syscall.Getpgrp() {
			c.front = true
			cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(tty.Fd())
		}
	}
	var err error
	if c.ended, err = child.Start(cmd, c.wait); err != nil {
		c.close()
		return nil, err
	}
	c.group = cmd.Process.Pid
	// Only from here on, since a command inherits what is ignored: to take the
	// terminal back from the background would stop us.
	signal.Ignore(syscall.SIGTTOU)
	return c, nil
}

// wait waits for the end, and tells of stops, which [exec.Cmd.Wait] does not.
func (j *job) wait() {
	for {
		_, err := syscall.Wait4(j.cmd.Process.Pid, &j.status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err == nil && j.status.Stopped():
			select {
			case <-j.stopped:
			default:
			}
			j.stopped <- j.status.StopSignal()
		default:
			_ = j.cmd.Wait() // for what copies to streams that are no files; there is no process any more
			return
		}
	}
}

// close gives the terminal back to us.
func (j *job) close() {
	if j.tty == nil {
		return
	}
	if j.group != 0 && j.foreground() == j.group {
		j.give(syscall.Getpgrp())
	}
	_ = j.tty.Close()
}

// interrupted tells, after its end, if an interrupt from the keyboard ended it
// that nobody else has had.
func (j *job) interrupted() bool {
	return j.tty != nil && j.status.Signaled() && j.status.Signal() == syscall.SIGINT && j.foreground() == j.group
}

// send sends a signal to all of the group.
func (j *job) send(s syscall.Signal) { _ = syscall.Kill(-j.group, s) }

// end ends the group; one that is stopped must go on to hear of SIGTERM.
func (j *job) end(s syscall.Signal) {
	if j.send(s); s != syscall.SIGKILL {
		j.send(syscall.SIGCONT)
	}
}

// pass passes a signal on. Those without a meaning of their own are for the
// program that was started; its children would die of them.
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

// halted does what is to do when the command was stopped.
func (j *job) halted(by syscall.Signal) {
	if j.tty == nil || by == syscall.SIGSTOP {
		return // it was not the terminal, and whoever did it will continue it
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
	// The shell watches us and the others of our job. Until it continues us nothing
	// more happens here, not even an extension. Of the signals that stop a job, and
	// that are discarded where nobody could continue it, this is the one that does
	// stop us: a Go program that has once asked for SIGTSTP cannot be stopped by it
	// any more.
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

// foreground is the process group that has the terminal; 0 if that is unknown.
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

// interruptJob interrupts our job, and so ourselves.
func interruptJob() {
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(0, syscall.SIGINT)
}
