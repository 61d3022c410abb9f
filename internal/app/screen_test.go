package app

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"redlockctl/internal/config"
	"redlockctl/tui"
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
	if p, err := s.Load(); err != nil || !reflect.DeepEqual(p, tui.Preferences{}) {
		t.Errorf("a file that is not there: %+v, %v", p, err)
	}
	want := tui.Preferences{Clusters: map[string]tui.Table{"orders": {Columns: []string{"state", "ends"}, Sort: "name"}}, Theme: styles.ThemeLight, History: []string{"filter state:bare", "q"}}
	for range 2 {
		if err := s.Save(want); err != nil {
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
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Load(); err == nil || !reflect.DeepEqual(p, tui.Preferences{}) {
		t.Errorf("a damaged file: %+v, %v", p, err)
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
