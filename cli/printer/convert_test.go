package printer

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
	"pgregory.net/rapid"

	"redlockctl/server/safetext"
)

// YAML says what JSON says, whatever the texts are, and no terminal takes a part of it for a
// command.
func TestYAML(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", " ", "no", "Yes", "null", "~", "1", "1e3", "0x1f", "1_000", "-", "- a", "a: b", "a:", "a #b", "#a", "[a]", "{a}", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "'a'", `"a"`, `a\b`,
		"12:30:45", "2026-11-26", "2026-11-26T10:00:00Z", ".5", "<<", "=", "?", "? a", "---", "...", "a\nb", "a\tb", "\x1b[31m", "\u202e", "\ufeff", "\u2028", "\u0085", "😀", "鎖", "job:1", "n1, n2", "it's", "/a b/c",
	}))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		of := []*rapid.Generator[any]{text.AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil)}
		if depth > 0 {
			of = append(of, rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) }), 0, 4).AsAny(),
				rapid.MapOfN(text, rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) }), 0, 4).AsAny())
		}
		return rapid.OneOf(of...)
	}
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{"body": value(3).Draw(t, "body")}
		line, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := YAML(&out, line); err != nil {
			t.Fatal(err)
		}
		for one := range strings.Lines(out.String()) {
			if one = strings.NewReplacer("\n", "", `\`, "").Replace(one); !safetext.New(one).Clean() {
				t.Fatalf("not safe to show: %q", one)
			}
		}
		var got any
		if err := yaml.Unmarshal([]byte(out.String()), &got); err != nil {
			t.Fatalf("%v:\n%s", err, out.String())
		}
		again, err := json.Marshal(jsonOf(got))
		if err != nil || string(again) != string(line) { // both with sorted keys
			t.Fatalf("%s %v, want %s:\n%s", again, err, line, out.String())
		}
	})
}

// jsonOf returns a value of YAML as one that JSON can write.
func jsonOf(v any) any {
	switch v := v.(type) {
	case map[any]any:
		m := map[string]any{}
		for key := range v {
			m[key.(string)] = jsonOf(v[key])
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = jsonOf(v[i])
		}
		return list
	}
	return v
}

func TestYAMLLooksAsPeopleWriteIt(t *testing.T) {
	var out strings.Builder
	doc := `{"schema":"redlockctl/v1","n":3,"nodes":[{"name":"n1","tags":[],"up":true},{"name":"no","on":["n1","n2"]}],"none":null,"text":"left to do: a; b"}`
	if err := YAML(&out, []byte(doc)); err != nil {
		t.Fatal(err)
	}
	want := `---
schema: redlockctl/v1
"n": 3
nodes:
  - name: n1
    tags: []
    up: true
  - name: "no"
    "on":
      - n1
      - n2
none: null
text: "left to do: a; b"
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

func TestTemplate(t *testing.T) {
	doc := `{"verdict":"safe","can_lose":2,"nodes":[{"name":"n1","rtt":1.5},{"name":"n\u001b[31m2"}]}`
	for text, want := range map[string]string{
		`{{.verdict}}`: "safe\n",
		`{{range .nodes}}{{.name}}{{"\n"}}{{end}}`:         "n1\nn\\x1b[31m2\n",
		`{{if gt .can_lose 1}}fine{{end}}`:                 "fine\n",
		`{{len .nodes}} {{upper .verdict}}`:                "2 SAFE\n",
		`{{json (index .nodes 0)}}`:                        `{"name":"n1","rtt":1.5}` + "\n",
		`{{if eq .verdict "danger"}}danger{{end}}`:         "",
		`{{range .nodes}}{{with .rtt}}{{.}}{{end}}{{end}}`: "1.5\n",
	} {
		f, err := Template(text)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		p := &Printer{Out: &out}
		p.Convert(f)
		for _, part := range []string{doc[:7], doc[7:30], doc[30:]} { // as it comes
			if _, err := p.Out.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != want {
			t.Errorf("%s: %q, want %q", text, out.String(), want)
		}
	}
	if _, err := Template("{{.verdict"); err == nil {
		t.Error("a template that is not closed")
	}
}
