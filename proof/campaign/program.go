package campaign

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"redlockctl/base/child"
	"redlockctl/base/sleep"
)

// program is redlockctl with some arguments, which is started again whatever ends it,
// as a service manager does.
type program struct {
	argv   []string
	log    string       // the path of what it writes
	before func() error // called before each start; may be nil
	pre    []string     // a command that must succeed before each start; may be nil
	// mayEnd: it may end by itself, which else is an error.
	mayEnd bool

	mu    sync.Mutex
	cmd   *exec.Cmd
	kills int
}

// run keeps it running until ctx ends.
func (p *program) run(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	for ; ctx.Err() == nil; _ = sleep.For(ctx, 10*time.Millisecond) {
		if p.before != nil {
			if err := p.before(); err != nil {
				return err
			}
		}
		if p.pre != nil {
			if state, err := p.once(ctx, p.pre, log); err != nil {
				return err
			} else if !state.Success() {
				continue
			}
		}
		state, err := p.once(ctx, p.argv, log)
		if err != nil {
			return err
		}
		if status, ok := state.Sys().(syscall.WaitStatus); ctx.Err() == nil && !p.mayEnd && ok && !status.Signaled() {
			return fmt.Errorf("%s has ended by itself: see %s", p.argv[1], p.log)
		}
	}
	return nil
}

// once runs a command to its end.
func (p *program) once(ctx context.Context, argv []string, log *os.File) (*os.ProcessState, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	ended, err := child.Start(cmd, func() { _ = cmd.Wait() })
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.cmd = cmd
	p.mu.Unlock()
	<-ended
	return cmd.ProcessState, nil
}

// kill kills it, and reports whether it ran.
func (p *program) kill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.cmd.Process.Kill() != nil {
		return false
	}
	p.kills++
	return true
}

func (p *program) killed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kills
}
