package campaign

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"redlockctl/internal/child"
	"redlockctl/internal/sleep"
)

// program is redlockctl with some arguments, which is started again whatever ends it,
// as a service manager does.
type program struct {
	argv   []string
	log    string       // the path of what it writes
	before func() error // called before each start; may be nil
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
		cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
		cmd.Stdout, cmd.Stderr = log, log
		ended, err := child.Start(cmd, func() { _ = cmd.Wait() })
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.cmd = cmd
		p.mu.Unlock()
		<-ended
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ctx.Err() == nil && !p.mayEnd && ok && !status.Signaled() {
			return fmt.Errorf("%s has ended by itself: see %s", p.argv[1], p.log)
		}
	}
	return nil
}

// kill kills it, if it runs.
func (p *program) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.cmd.Process.Kill() == nil {
		p.kills++
	}
}

func (p *program) killed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kills
}
