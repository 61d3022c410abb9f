package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"

	"redlockctl/base/private"
	"redlockctl/internal/config"
	"redlockctl/tui"
	"redlockctl/tui/prefs"
)

// fewProcessors are so few that work on very many locks and the collection of garbage can have them
// all: a key would wait for its turn in this process. With more threads than that, the machine
// shares them out, and one that has just been woken goes first.
const fewProcessors = 4

// OnMachine adds to the options of the screen what a machine gives it: where it
// keeps what was chosen, a clipboard, and when it goes on after it was stopped.
func OnMachine(opt tui.Options, getenv func(string) string) tui.Options {
	if getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < fewProcessors {
		runtime.GOMAXPROCS(fewProcessors)
	}
	if path := config.StateDir(getenv, "ui.json"); path != "" {
		opt.Store = uiStore{path}
	}
	opt.Clipboard, opt.Resumed = clipboard(getenv), resumed()
	opt.Profile = colorprofile.Env([]string{"TERM=" + getenv("TERM"), "COLORTERM=" + getenv("COLORTERM"), "WT_SESSION=" + getenv("WT_SESSION")})
	return opt
}

// uiStore keeps the screen's preferences in a file. It is nobody else's: a
// filter in the history may name holders.
type uiStore struct{ path string }

const (
	mostUI = 1 << 20         // bytes of it that are read
	uiWait = 2 * time.Second // for another console that changes it
)

var errDamaged = errors.New("is damaged")

// Load reads the file; one that is not there holds the defaults. What is wrong comes first in an error, and
// the path last: a narrow screen cuts it.
func (s uiStore) Load() (p prefs.Preferences, err error) {
	doc, err := s.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return p, s.failed("cannot be read", err)
	}
	if err := json.Unmarshal(doc, &p); err != nil {
		return prefs.Preferences{}, fmt.Errorf("ui.json %w (%s: %w)", errDamaged, s.path, err)
	}
	return p, nil
}

func (s uiStore) read() ([]byte, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostUI))
}

// failed is an error of the file with its cause before its path.
func (s uiStore) failed(what string, err error) error {
	cause := err
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		cause = at.Err
	}
	return fmt.Errorf("ui.json %s: %w (%s)", what, cause, s.path)
}

// Change reads the file and replaces it as a whole, while no other console does so: no reader sees
// half a file, and no console undoes another's change. A damaged file is replaced.
func (s uiStore) Change(change func(*prefs.Preferences)) error {
	if err := s.change(change); err != nil {
		return s.failed("cannot be written", err)
	}
	return nil
}

func (s uiStore) change(change func(*prefs.Preferences)) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	lock, err := private.Open(s.path+".lock", os.O_RDWR|os.O_CREATE, 0o600, private.Nobody)
	if err != nil {
		return err
	}
	defer lock.Close() // which gives the lock back
	if err := private.Lock(lock, false, uiWait); err != nil {
		return err
	}
	p, err := s.Load()
	if err != nil && !errors.Is(err, errDamaged) {
		return err
	}
	change(&p)
	doc, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return private.Replace(s.path, append(doc, '\n'))
}

// clipboard is how text is put into a clipboard, beside what the terminal is asked to; nil:
// the terminal alone is enough. Its error says why the text could not be copied.
func clipboard(getenv func(string) string) func(context.Context, string) error {
	var puts []func(context.Context, string) error
	for _, argv := range clipboardPrograms(getenv) {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			continue
		}
		puts = append(puts, func(ctx context.Context, text string) error {
			_, err := runProgram(ctx, text, path, argv[1:]...)
			return err
		})
		break
	}
	switch tmux, err := exec.LookPath("tmux"); {
	case getenv("TMUX") != "" && err == nil:
		puts = append(puts, func(ctx context.Context, text string) error { return byTmux(ctx, tmux, text) })
	case getenv("STY") != "" && len(puts) == 0:
		return func(context.Context, string) error {
			return errors.New("screen does not pass it on to the terminal; tmux does")
		}
	}
	if len(puts) == 0 {
		return nil
	}
	return func(ctx context.Context, text string) error {
		var failed []error
		for _, put := range puts {
			failed = append(failed, put(ctx, text))
		}
		if slices.Contains(failed, nil) {
			return nil // one of them has it
		}
		return failed[len(failed)-1]
	}
}

// clipboardPrograms are the programs that write to the clipboard of this machine.
func clipboardPrograms(getenv func(string) string) (programs [][]string) {
	switch {
	case getenv("SSH_CONNECTION") != "": // the person sits at another machine
		return nil
	case runtime.GOOS == "darwin":
		return [][]string{{"pbcopy"}}
	}
	if getenv("WAYLAND_DISPLAY") != "" {
		programs = append(programs, []string{"wl-copy"})
	}
	if getenv("DISPLAY") != "" {
		programs = append(programs, []string{"xclip", "-selection", "clipboard"}, []string{"xsel", "--clipboard", "--input"})
	}
	return programs
}

// byTmux hands text to tmux, which sends it on to the terminal in which it is shown. By
// default tmux drops what a program inside asks the terminal for, and passes nothing through.
func byTmux(ctx context.Context, tmux, text string) error {
	if _, err := runProgram(ctx, text, tmux, "load-buffer", "-w", "-"); err != nil { // -w came with tmux 3.2
		return err
	}
	switch features, err := runProgram(ctx, "", tmux, "display-message", "-p", "#{client_termname} #{client_termfeatures}"); {
	case err != nil:
		return err
	case !strings.Contains(features, "clipboard"):
		name, _, _ := strings.Cut(features, " ")
		return fmt.Errorf("tmux has it, to be pasted with prefix ]; to send it to the terminal too it needs: set -as terminal-features ',%s:clipboard'", cmp.Or(name, "*"))
	}
	return nil
}

// runProgram runs a program with text as its input, and returns its output.
func runProgram(ctx context.Context, text, path string, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w %s", filepath.Base(path), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}
