package printer

import (
	"strings"
	"testing"

	"redlockctl/internal/view"
)

func TestTable(t *testing.T) {
	tab := view.NewTable("NAME", "STATE", "LOCKS", "NOTE")
	tab.Right = []bool{false, false, true}
	tab.Add(view.Cell{Text: "鎖:1"}, view.Cell{Text: "held", Tone: view.Good}, view.Cell{Text: "12"}, view.Cell{})
	tab.Add(view.Cell{Text: "a"}, view.Cell{Text: "bare", Tone: view.Bad}, view.Cell{Text: "1"}, view.Cell{Text: "margin 0"})
	var w strings.Builder
	Table(&w, tab, false)
	if want := "NAME  STATE  LOCKS  NOTE\n鎖:1  held      12\na     bare       1  margin 0\n"; w.String() != want {
		t.Errorf("%q, want %q", w.String(), want)
	}
	w.Reset()
	Table(&w, tab, true)
	if !strings.Contains(w.String(), "\x1b[32mheld\x1b[m  ") {
		t.Errorf("no colour in %q", w.String())
	}
}

func TestColorNeedsATerminalThatWantsIt(t *testing.T) {
	env := map[string]string{}
	p := &Printer{OutTTY: true, Getenv: func(k string) string { return env[k] }}
	if !p.Color() {
		t.Error("no colour on a terminal")
	}
	env["NO_COLOR"] = "1"
	if p.Color() {
		t.Error("colour in spite of NO_COLOR")
	}
	delete(env, "NO_COLOR")
	p.NoColor = true
	if p.Color() {
		t.Error("colour in spite of --no-color")
	}
	p.NoColor, p.OutTTY = false, false
	if p.Color() {
		t.Error("colour into a pipe")
	}
	env["CLICOLOR_FORCE"], env["TERM"] = "1", "dumb"
	if !p.Color() {
		t.Error("no colour in spite of CLICOLOR_FORCE")
	}
	env["NO_COLOR"] = "1"
	if p.Color() {
		t.Error("CLICOLOR_FORCE goes before NO_COLOR")
	}
}
