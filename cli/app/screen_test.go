package app

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"redlockctl/internal/config"
	"redlockctl/tui/prefs"
	"redlockctl/tui/styles"
)

func TestUIStore(t *testing.T) {
	env := map[string]string{"XDG_STATE_HOME": t.TempDir(), "HOME": "/home/x"}
	path := config.StateDir(func(k string) string { return env[k] }, "ui.json")
	if path != filepath.Join(env["XDG_STATE_HOME"], "redlockctl", "ui.json") {
		t.Fatal(path)
	}
	delete(env, "XDG_STATE_HOME")
	if p := config.StateDir(func(k string) string { return env[k] }, "ui.json"); p != "/home/x/.local/state/redlockctl/ui.json" {
		t.Error(p)
	}
	env["HOME"] = "not absolute"
	if p := config.StateDir(func(k string) string { return env[k] }, "ui.json"); p != "" {
		t.Error(p)
	}

	s := uiStore{path}
	if p, err := s.Load(); err != nil || !reflect.DeepEqual(p, prefs.Preferences{}) {
		t.Errorf("a file that is not there: %+v, %v", p, err)
	}
	want := prefs.Preferences{Clusters: map[string]prefs.Tables{"orders": {Table: prefs.Table{Columns: []string{"state", "ends"}, Sort: "name"}, Others: map[string]prefs.Table{"nodes": {Sort: "rtt:desc"}}}}, Theme: styles.ThemeLight, History: []string{"filter state:bare", "q"}}
	for range 2 {
		if err := s.Change(func(p *prefs.Preferences) { *p = want }); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Load(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 2 || left[1].Name() != "ui.json.lock" {
		t.Errorf("%v is left", left)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Load(); err == nil || !reflect.DeepEqual(p, prefs.Preferences{}) {
		t.Errorf("a damaged file: %+v, %v", p, err)
	} else if !strings.HasPrefix(err.Error(), "ui.json is damaged ("+path+": ") {
		t.Errorf("a narrow screen cuts what is wrong: %v", err)
	}
	taken := uiStore{filepath.Join(path, "ui.json")} // below a file
	if err := taken.Change(func(*prefs.Preferences) {}); err == nil || !strings.HasPrefix(err.Error(), "ui.json cannot be written: not a directory (") {
		t.Errorf("a narrow screen cuts why: %v", err)
	}
	if _, err := taken.Load(); err == nil || !strings.HasPrefix(err.Error(), "ui.json cannot be read: not a directory (") {
		t.Errorf("a narrow screen cuts why: %v", err)
	}
	if err := s.Change(func(p *prefs.Preferences) { p.Mouse = true }); err != nil {
		t.Error(err)
	}
	if p, err := s.Load(); err != nil || !p.Mouse {
		t.Errorf("made anew: %+v, %v", p, err)
	}
	if err := os.Chmod(path, 0); err == nil && os.Geteuid() != 0 {
		if err := s.Change(func(*prefs.Preferences) {}); err == nil {
			t.Error("what cannot be read was replaced")
		}
	}
}

// Consoles that keep something at the same moment do not take back what another one kept.
func TestConsolesKeepTheirOwnChoices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ui.json")
	const consoles, choices = 4, 10
	var all sync.WaitGroup
	for i := range consoles {
		all.Go(func() {
			s := uiStore{path}
			for range choices {
				err := s.Change(func(p *prefs.Preferences) {
					if p.Clusters == nil {
						p.Clusters = map[string]prefs.Tables{}
					}
					name := fmt.Sprint("cluster", i)
					p.Clusters[name] = prefs.Tables{Table: prefs.Table{Columns: append(p.Clusters[name].Columns, "state")}}
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	p, err := uiStore{path}.Load()
	if err != nil || len(p.Clusters) != consoles {
		t.Fatalf("%v, %v", p.Clusters, err)
	}
	for name, table := range p.Clusters {
		if len(table.Columns) != choices {
			t.Errorf("%s kept %d of %d choices", name, len(table.Columns), choices)
		}
	}
}

func TestClipboardIsNotTheFarMachines(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"wl-copy", "xclip"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ncat >'"+dir+"/got'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	env := map[string]string{"WAYLAND_DISPLAY": "wayland-0", "SSH_CONNECTION": "a b"}
	get := func(k string) string { return env[k] }
	if clipboard(get) != nil {
		t.Error("over SSH the clipboard of the far machine is used")
	}
	delete(env, "SSH_CONNECTION")
	put := clipboard(get)
	if put == nil {
		t.Skip("this system has another clipboard")
	}
	if err := put(t.Context(), "orders:42"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "got")); err != nil || string(got) != "orders:42" {
		t.Errorf("%q, %v", got, err)
	}
	if clipboard(func(string) string { return "" }) != nil {
		t.Error("a clipboard without a display")
	}
}

// In tmux a copied name reaches the terminal around it, with tmux's own defaults, which drop
// the sequence of a program inside. Without that, the message names the reason.
func TestClipboardInTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			t.Fatal("no tmux: apt-get install tmux")
		}
		t.Skip("no tmux: apt-get install tmux")
	}
	socket := filepath.Join(t.TempDir(), "tmux")
	t.Setenv("TMUX", "")
	if out, err := exec.Command(tmux, "-S", socket, "-f", "/dev/null", "new-session", "-d").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command(tmux, "-S", socket, "kill-server").Run() })
	env := map[string]string{"TMUX": socket + ",1,0", "SSH_CONNECTION": "a b"}
	put := clipboard(func(k string) string { return env[k] })
	copied := func() error {
		t.Setenv("TMUX", env["TMUX"])
		defer t.Setenv("TMUX", "")
		return put(t.Context(), "orders:42")
	}
	if err := copied(); err == nil || !strings.Contains(err.Error(), "tmux has it") {
		t.Errorf("nothing shows this tmux: %v", err)
	}
	if out, err := exec.Command(tmux, "-S", socket, "show-buffer").Output(); err != nil || string(out) != "orders:42" {
		t.Errorf("tmux has %q, %v", out, err)
	}
	attach := exec.Command(tmux, "-S", socket, "attach")
	attach.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=")
	terminal, err := pty.Start(attach)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	shown := make(chan bool, 1)
	go func() {
		var all []byte
		for part := make([]byte, 4096); ; {
			n, err := terminal.Read(part)
			if all = append(all, part[:n]...); bytes.Contains(all, []byte("\x1b]52;c;b3JkZXJzOjQy\a")) || bytes.Contains(all, []byte("\x1b]52;;b3JkZXJzOjQy\a")) {
				shown <- true
				return
			}
			if err != nil {
				shown <- false
				return
			}
		}
	}()
	for attached := false; !attached; { // until the terminal is attached, and has it
		if err := copied(); err != nil && !strings.Contains(err.Error(), "tmux has it") {
			t.Fatal(err)
		}
		select {
		case ok := <-shown:
			if attached = true; !ok {
				t.Error("the terminal was not given the text")
			}
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := copied(); err != nil {
		t.Errorf("the terminal takes it: %v", err)
	}
	if put := clipboard(func(k string) string { return map[string]string{"STY": "1.pts"}[k] }); put == nil || put(t.Context(), "x") == nil {
		t.Error("it is not said that screen passes nothing on")
	}
}
