package run

import (
	"encoding/gob"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	if IsReaper(os.Args) {
		os.Exit(Reap(os.Args))
	}
	os.Exit(m.Run())
}

// TestReaperHearsTooLate: a reaper that reads its order after redlockctl has ended does not
// start the command.
func TestReaperHearsTooLate(t *testing.T) {
	touch, err := exec.LookPath("touch")
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	orders, control, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	events, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	if err := gob.NewEncoder(control).Encode(order{Path: touch, Argv: []string{"touch", ran}}); err != nil {
		t.Fatal(err)
	}
	_ = control.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reaper := exec.Command(exe)
	reaper.Args = []string{reaperName, "3", "4"}
	reaper.ExtraFiles = []*os.File{orders, told}
	if err := reaper.Start(); err != nil {
		t.Fatal(err)
	}
	_ = told.Close()
	var e event
	if err := gob.NewDecoder(events).Decode(&e); err == nil {
		t.Errorf("it told %+v", e)
	}
	_ = reaper.Wait()
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
}
