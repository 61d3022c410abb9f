package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"redlockctl/internal/lab"
)

// screenParts are what can be run alone, in the order in which they run.
var screenParts = []string{"starts", "lists", "rest", "keys", "seen"}

func screenBench(args []string) error {
	var b screenRun
	fs := b.flags("screen", strings.Join(screenParts, ", "))
	fs.IntVar(&b.locks, "locks", 100_000, "locks on each server")
	program := fs.String("program", "", "path of a redlockctl to measure, to compare two; default: one that is built from here")
	_ = fs.Parse(args)
	if b.only != "" && !slices.Contains(screenParts, b.only) {
		return fmt.Errorf("--only %q: it is one of %s", b.only, strings.Join(screenParts, ", "))
	}
	return b.run(*program)
}

func (b *screenRun) run(program string) error {
	dir, err := os.MkdirTemp("", "redlockctl-screen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if program == "" {
		program = filepath.Join(dir, "console")
		if out, err := exec.Command("go", "build", "-C", "../..", "-o", program, ".").CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	if b.servers, err = lab.StartServers(b.server, 5); err != nil {
		return err
	}
	defer b.servers.Close()
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, []byte("[cluster]\nname = \"bench\"\nmax_ttl = \"3h\"\n"+b.servers.NodesConfig()), 0o600); err != nil {
		return err
	}
	b.open = func() (*terminal, error) {
		return newTerminal(program, []string{"--no-guard", "--config", config}, []string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + dir, "XDG_STATE_HOME=" + dir, "PATH=" + os.Getenv("PATH")})
	}
	b.about("The screen", machine(b.servers, fact{"locks", grouped(b.locks) + " on each of five servers"}, fact{"terminal", fmt.Sprintf("%d×%d", columns, rows)})...)
	return errors.Join(b.parts(), b.writeJSON(b.json, b.lines))
}

// parts runs what is wanted.
func (b *screenRun) parts() error {
	if b.wants("starts") {
		if err := b.starts(); err != nil {
			return err
		}
	}
	if err := fill(b.servers, b.locks, 0); err != nil {
		return err
	}
	if b.wants("lists") {
		if err := errors.Join(b.lists(true), b.lists(false)); err != nil {
			return err
		}
	}
	if b.only == "starts" || b.only == "lists" {
		return nil
	}
	t, err := b.open()
	if err != nil {
		return err
	}
	defer t.close()
	if _, ok := t.until(listMost, grouped(b.locks)+" held"); !ok {
		return fmt.Errorf("not all locks are shown:\n%s", t.tail())
	}
	if b.wants("rest") {
		if err := b.rest(t); err != nil {
			return err
		}
	}
	if b.wants("keys") {
		if err := b.keys(t, "no changes"); err != nil {
			return err
		}
		for _, rate := range []int{1000, 2000} {
			if err := b.churning(rate, func() error { return b.keys(t, grouped(rate)+" changes/s") }); err != nil {
				return err
			}
		}
	}
	if b.wants("seen") {
		return b.churning(1000, func() error { return b.seen(t) })
	}
	return nil
}
