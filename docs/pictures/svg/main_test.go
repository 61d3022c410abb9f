package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	var out strings.Builder
	screen := " \x1b[1mn1\x1b[0m  \x1b[32m● serving\x1b[39m <&>\n \x1b[7m▸ n2\x1b[27m \x1b[2m████░░\x1b[0m ▁▇\n\n"
	if err := draw(&out, strings.NewReader(screen), "a <title>"); err != nil {
		t.Fatal(err)
	}
	svg := out.String()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for what, want := range map[string]string{
		"a bold word":                  ` font-weight="700">n1</text>`,
		"a coloured sign":              ` fill="` + ansiColors[2] + `">●</text>`,
		"escaped text":                 `>&lt;&amp;&gt;</text>`,
		"an escaped title":             `<title>a &lt;title&gt;</title>`,
		"a bar as one shape":           ` width="33.72" fill="` + ink + `" opacity="0.6"/>`,
		"reversed text":                ` fill="` + paper + `"> n2</text>`,
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
