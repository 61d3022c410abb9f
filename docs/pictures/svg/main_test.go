package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	text := " \x1b[1mn1\x1b[0m  \x1b[32m● serving\x1b[39m <&>\n \x1b[7m▸ n2\x1b[27m \x1b[2m████░░\x1b[0m ▁▇\n \x1b[4mlined\x1b[0m\n\n"
	svg := drawn(t, text)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for what, want := range map[string]string{
		"a bold word":                  ` font-weight="700">n1</text>`,
		"a coloured sign":              ` fill="` + onDark.ansi[2] + `">●</text>`,
		"escaped text":                 `>&lt;&amp;&gt;</text>`,
		"an escaped title":             `<title>a &lt;title&gt;</title>`,
		"a bar as one shape":           ` width="33.72" fill="` + onDark.ink + `" opacity="0.6"/>`,
		"reversed text":                ` fill="` + onDark.paper + `"> n2</text>`,
		"a line under text":            `width="42.15" height="1" fill="` + onDark.ink + `"/>`,
		"the background of a reversed": `width="33.72" height="18.0" fill="#a9b8c8"/>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s: no %s in\n%s", what, want, svg)
		}
	}
	if strings.Contains(svg, "\x1b") || strings.Contains(svg, "%!") {
		t.Errorf("codes or formats are left in\n%s", svg)
	}
}

func drawn(t *testing.T, texts ...string) string {
	t.Helper()
	var film []screen
	for _, text := range texts {
		s, err := read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		film = append(film, s)
	}
	var out strings.Builder
	if err := draw(&out, "a <title>", 0.5, film...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Colours of 256, and of all.
func TestColours(t *testing.T) {
	svg := drawn(t, "\x1b[1;38;5;208mx\x1b[0m \x1b[38;5;9my\x1b[0m \x1b[48;5;236mz\x1b[0m \x1b[38;2;1;2;255mw\x1b[0m")
	for _, want := range []string{` fill="#ff8700" font-weight="700">x<`, ` fill="` + onDark.ansi[9] + `">y<`, ` fill="#303030"/>`, ` fill="#0102ff">w<`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}

// A film has each version of a line once, with the times at which it is visible.
func TestFilm(t *testing.T) {
	svg := drawn(t, "same\none", "same\ntwo", "same\none", "same")
	for want, times := range map[string]int{
		">same<": 1, ">one<": 1, ">two<": 1,
		`dur="2.0s" repeatCount="indefinite" values="visible;hidden;visible;hidden" keyTimes="0.0000;0.2500;0.5000;0.7500"`: 1,
		`<g visibility="hidden">`: 1, `<g visibility="visible">`: 1,
	} {
		if got := strings.Count(svg, want); got != times {
			t.Errorf("%d times %s in\n%s", got, want, svg)
		}
	}
}
