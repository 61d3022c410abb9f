package app

import (
	"bytes"
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
	"strings"

	"github.com/charmbracelet/colorprofile"

	"redlockctl/internal/config"
	"redlockctl/internal/private"
	"redlockctl/tui"
)

// OnMachine adds to the options of the screen what a machine gives it: where it
// keeps what was chosen, and a clipboard.
func OnMachine(opt tui.Options, getenv func(string) string) tui.Options {
	if path := config.StateDir(getenv, "ui.json"); path != "" {
		opt.Store = uiStore{path}
	}
	opt.Clipboard = clipboard(getenv)
	opt.Profile = colorprofile.Env([]string{"TERM=" + getenv("TERM"), "COLORTERM=" + getenv("COLORTERM"), "WT_SESSION=" + getenv("WT_SESSION")})
	return opt
}

// uiStore keeps the screen's preferences in a file. It is nobody else's: a
// filter in the history may name holders.
type uiStore struct{ path string }

// mostUI bounds what is read.
const mostUI = 1 << 20

// Load reads the file; one that is not there holds the defaults.
func (s uiStore) Load() (p tui.Preferences, err error) {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, mostUI))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(doc, &p); err != nil {
		return tui.Preferences{}, fmt.Errorf("%s: %w", s.path, err)
	}
	return p, nil
}

// Save replaces the file as a whole: who reads it never sees a half.
func (s uiStore) Save(p tui.Preferences) error {
	doc, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return private.Replace(s.path, append(doc, '\n'))
}

// clipboard is how text is put into the clipboard of this machine, beside what
// the terminal is asked to; nil: there is no way.
func clipboard(getenv func(string) string) func(context.Context, string) error {
	var tries [][]string
	switch {
	case getenv("SSH_CONNECTION") != "": // the person sits at another machine
	case runtime.GOOS == "darwin":
		tries = [][]string{{"pbcopy"}}
	default:
		if getenv("WAYLAND_DISPLAY") != "" {
			tries = append(tries, []string{"wl-copy"})
		}
		if getenv("DISPLAY") != "" {
			tries = append(tries, []string{"xclip", "-selection", "clipboard"}, []string{"xsel", "--clipboard", "--input"})
		}
	}
	for _, t := range tries {
		path, err := exec.LookPath(t[0])
		if err != nil {
			continue
		}
		return func(ctx context.Context, text string) error {
			var said bytes.Buffer
			cmd := exec.CommandContext(ctx, path, t[1:]...)
			cmd.Stdin, cmd.Stderr = strings.NewReader(text), &said
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s: %w %s", t[0], err, strings.TrimSpace(said.String()))
			}
			return nil
		}
	}
	return nil
}
