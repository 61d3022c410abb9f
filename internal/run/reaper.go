package run

import (
	"bufio"
	"encoding/gob"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"redlockctl/base/child"
	"redlockctl/base/crash"
)

// A reaper is a second process of this program and the parent of the command. It holds a
// pipe that closes when redlockctl ends for any reason, SIGKILL included. Then it ends all
// processes that the command has started. It does nothing else, and it starts before the
// command.
//
// Its process group is its own, so that signals for redlockctl or for the command do not
// reach it. Its session is theirs, because the parent of a job that stops must be in the
// same session.

// reaperName is the reaper's argv[0]. It contains neither the program's name nor an
// argument of the user, so that a pkill -9 of redlockctl or of the command does not hit the
// reaper.
const reaperName = "run-reaper"

// IsReaper reports whether a process with these arguments was started as a reaper.
func IsReaper(args []string) bool { return len(args) == 3 && args[0] == reaperName }

// order tells the reaper which command to start. After it the pipe carries [leave], or just
// closes.
type order struct {
	Path  string
	Argv  []string
	Front bool // give it the terminal
}

// leave is sent after the order when the command has ended by itself: processes that it
// left behind may run on.
const leave = '.'

// event is a report of the reaper.
type event struct {
	Started int           // pid of the command, which is also its process group
	Failed  syscall.Errno // why it could not be started
	Stopped syscall.Signal
	Ended   bool
	Status  syscall.WaitStatus // if Ended
}

// reapAgain is how often the reaper checks for remaining processes. It gets no signal about
// processes that it inherits.
const reapAgain = 10 * time.Millisecond

// reaper is the state of the reaper process. One goroutine does everything: no process is
// reaped between finding its pid and sending it a signal, so the pid cannot belong to
// another process.
type reaper struct {
	tell  *gob.Encoder
	chld  chan os.Signal
	group int // process group of the command
	ended bool
}

// Reap is the main function of a reaper; it returns the exit code.
func Reap(args []string) int {
	control, events, err := inherited(args)
	if err != nil {
		return 2
	}
	// Linux ends the command with the thread that started it.
	runtime.LockOSThread()
	adopt()
	for _, s := range append(passedOn, syscall.SIGTTIN, syscall.SIGTTOU) {
		if !signal.Ignored(s) { // the command inherits an ignored signal, but not a handler
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	r := &reaper{tell: gob.NewEncoder(events), chld: make(chan os.Signal, 1)}
	signal.Notify(r.chld, syscall.SIGCHLD)
	from := bufio.NewReader(control)
	var o order
	if err := gob.NewDecoder(from).Decode(&o); err != nil {
		return 0 // redlockctl has already ended
	}
	if ended(control) || !r.start(o) {
		return 0
	}
	left := make(chan bool, 1)
	crash.Go(func() { left <- mayLeave(from) })
	for {
		select {
		case <-r.chld:
			_ = r.reap()
		case leaving := <-left:
			if !leaving {
				r.endAll()
			}
			return 0
		}
	}
}

// inherited returns the ends of the pipes. The command must not inherit them.
func inherited(args []string) (control, events *os.File, err error) {
	var files [2]*os.File
	for i := range files {
		fd, err := strconv.Atoi(args[1+i])
		if err != nil {
			return nil, nil, err
		}
		syscall.CloseOnExec(fd)
		files[i] = os.NewFile(uintptr(fd), "")
	}
	return files[0], files[1], nil
}

// ended reports whether redlockctl has ended. Without a free core the reaper may read the
// order late, when another client already has the lock.
func ended(control *os.File) bool {
	at := []unix.PollFd{{Fd: int32(control.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(at, 0)
	return n > 0 || err != nil && err != unix.EINTR
}

// mayLeave waits until redlockctl ends, or confirms that it saw the command's end.
func mayLeave(control *bufio.Reader) bool {
	b, err := control.ReadByte()
	return err == nil && b == leave
}

func (r *reaper) start(o order) bool {
	attr := child.Attr()
	if o.Front {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			defer tty.Close()
			attr.Foreground, attr.Ctty = true, int(tty.Fd())
		}
	}
	pid, err := syscall.ForkExec(o.Path, o.Argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attr})
	if err != nil {
		why := syscall.EINVAL // also for a zero byte in an argument
		errors.As(err, &why)
		_ = r.tell.Encode(event{Failed: why})
		return false
	}
	r.group = pid
	_ = r.tell.Encode(event{Started: pid}) // an error means that redlockctl has ended; the pipe reports that too
	return true
}

// reap reaps every child that has ended; it fails if no children are left.
func (r *reaper) reap() error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || pid == 0:
			return err
		case pid != r.group || r.ended:
		case status.Stopped():
			_ = r.tell.Encode(event{Stopped: status.StopSignal()})
		default:
			r.ended = true
			_ = r.tell.Encode(event{Ended: true, Status: status})
		}
	}
}

// endAll ends the command's group and, on systems where orphaned processes become children
// of the reaper, everything that the command started. It returns when they have ended.
// Processes of other users cannot be ended and are not waited for.
func (r *reaper) endAll() {
	for {
		// One signal ends the whole group: nothing in it can fork in between. After its
		// first process is reaped, the group's id may belong to another group.
		if !r.ended || !adopts {
			_ = syscall.Kill(-r.group, syscall.SIGKILL)
		}
		mine, others := children(), 0
		for _, pid := range mine {
			if syscall.Kill(pid, syscall.SIGKILL) == syscall.EPERM {
				others++
			}
		}
		// Children of processes that have ended are now ours.
		if r.reap() != nil || r.ended && len(mine) > 0 && others == len(mine) {
			return
		}
		select {
		case <-r.chld:
		case <-time.After(reapAgain):
		}
	}
}
