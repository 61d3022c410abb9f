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

// A reaper is a second process of this program: the parent of the command. It holds a
// pipe that closes when redlockctl ends, however that happens, SIGKILL included, and then
// ends all that the command has started. It has nothing else to do, and is there before
// the command is.
//
// It is in a process group of its own, where no signal for redlockctl or for the command
// reaches it, but in their session: the parent of a job that stops must be.

// reaperName is the reaper's argv[0]. It does not contain the name of the program, and no
// argument that the user gave, so that a pkill -9 of redlockctl or of the command does not
// end the reaper with it.
const reaperName = "run-reaper"

// IsReaper reports whether a process with these arguments is to be a reaper.
func IsReaper(args []string) bool { return len(args) == 3 && args[0] == reaperName }

// order is what a reaper is told: the command to start. After it comes [leave], or nothing
// but the end of the pipe.
type order struct {
	Path  string
	Argv  []string
	Front bool // it gets the terminal
}

// leave is written behind the order when the command has ended by itself: what it leaves
// behind may go on.
const leave = '.'

// event is what a reaper tells.
type event struct {
	Started int           // the process, and its group
	Failed  syscall.Errno // why it could not be started
	Stopped syscall.Signal
	Ended   bool
	Status  syscall.WaitStatus // of that
}

// reapAgain is when the reaper looks again for what is still there: of a process that it
// inherits it hears nothing.
const reapAgain = 10 * time.Millisecond

// reaper is the state of that process. Everything happens on one goroutine, so that no
// process is reaped between the moment in which it is found and that in which it is sent
// a signal: its id cannot be that of another process.
type reaper struct {
	tell  *gob.Encoder
	chld  chan os.Signal
	group int // of the command, by its first process
	ended bool
}

// Reap is the whole life of a reaper, and returns its exit code.
func Reap(args []string) int {
	control, events, err := inherited(args)
	if err != nil {
		return 2
	}
	// The kernel ends the command with the thread that started it.
	runtime.LockOSThread()
	adopt()
	for _, s := range append(passedOn, syscall.SIGTTIN, syscall.SIGTTOU) {
		if !signal.Ignored(s) { // that the command inherits; a handler it does not
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	r := &reaper{tell: gob.NewEncoder(events), chld: make(chan os.Signal, 1)}
	signal.Notify(r.chld, syscall.SIGCHLD)
	from := bufio.NewReader(control)
	var o order
	if err := gob.NewDecoder(from).Decode(&o); err != nil {
		return 0 // redlockctl has ended before
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

// inherited are the ends of the pipes. The command must not have them.
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

// ended reports whether redlockctl has ended: on a machine without a free core the reaper
// may hear of the command when another client has the lock.
func ended(control *os.File) bool {
	at := []unix.PollFd{{Fd: int32(control.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(at, 0)
	return n > 0 || err != nil && err != unix.EINTR
}

// mayLeave waits for the end of redlockctl, or its word that the command's end was seen.
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
		why := syscall.EINVAL // a zero byte in an argument
		errors.As(err, &why)
		_ = r.tell.Encode(event{Failed: why})
		return false
	}
	r.group = pid
	_ = r.tell.Encode(event{Started: pid}) // where nobody hears it, the pipe tells us
	return true
}

// reap waits for every child that has ended; it fails where there is none any more.
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

// endAll ends the command's group, and where processes without a parent become ours, all
// that it has started. It returns when they have ended, except for those of other users,
// which we may not end.
func (r *reaper) endAll() {
	for {
		// The group is ended at one stroke: nothing in it can fork meanwhile. Once its first
		// process is reaped the group's id may be that of another.
		if !r.ended || !adopts {
			_ = syscall.Kill(-r.group, syscall.SIGKILL)
		}
		mine, others := children(), 0
		for _, pid := range mine {
			if syscall.Kill(pid, syscall.SIGKILL) == syscall.EPERM {
				others++
			}
		}
		// The children of those that have ended are ours now.
		if r.reap() != nil || r.ended && len(mine) > 0 && others == len(mine) {
			return
		}
		select {
		case <-r.chld:
		case <-time.After(reapAgain):
		}
	}
}
