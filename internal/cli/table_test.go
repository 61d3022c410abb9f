package cli

import (
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	tab := &table{head: []string{"NAME", "STATE", "NOTE"}}
	tab.add(cell{text: "鎖:1"}, cell{text: "held", tone: toneGood}, cell{})
	tab.add(cell{text: "a"}, cell{text: "bare", tone: toneBad}, cell{text: "margin 0"})
	var w strings.Builder
	tab.write(&w, false)
	if want := "NAME  STATE  NOTE\n鎖:1  held\na     bare   margin 0\n"; w.String() != want {
		t.Errorf("%q, want %q", w.String(), want)
	}
	w.Reset()
	tab.write(&w, true)
	if !strings.Contains(w.String(), "\x1b[32mheld\x1b[m  ") && !strings.Contains(w.String(), "\x1b[32mheld\x1b[m\n") {
		t.Errorf("no colour in %q", w.String())
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                    "0ms",
		120 * time.Microsecond:               "0.12ms",
		-1500 * time.Microsecond:             "-1.5ms",
		44:                                   "0ms", // and not 4.4e-05ms
		-44:                                  "0ms",
		-600:                                 "-0.001ms",
		20 * time.Microsecond:                "0.02ms",
		44_100:                               "0.044ms",
		999_900:                              "1ms",
		42 * time.Second:                     "42.0s",
		64 * time.Second:                     "1m04s",
		2*time.Hour + 3*time.Minute:          "2h03m",
		75 * time.Hour:                       "3d03h",
		-(24*time.Hour + 90*time.Minute):     "-1d01h",
		59*time.Second + 60*time.Millisecond: "59.1s",
	} {
		if got := span(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestColorNeedsATerminalThatWantsIt(t *testing.T) {
	env := map[string]string{}
	a := &commandLine{outTTY: true, getenv: func(k string) string { return env[k] }}
	if !a.color() {
		t.Error("no colour on a terminal")
	}
	env["NO_COLOR"] = "1"
	if a.color() {
		t.Error("colour in spite of NO_COLOR")
	}
	delete(env, "NO_COLOR")
	a.noColor = true
	if a.color() {
		t.Error("colour in spite of --no-color")
	}
	a.noColor, a.outTTY = false, false
	if a.color() {
		t.Error("colour into a pipe")
	}
}
