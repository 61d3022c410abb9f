package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"redlockctl/cli/printer"
)

const jsonPage = "../docs/json.md"

// Each kind of document has its part of docs/json.md, which names its fields; so
// has each field that is found in it.
func TestDocumentsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(jsonPage)
	if err != nil {
		t.Fatal(err)
	}
	quoted := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(string(text), -1) {
		quoted[m[1]] = true
	}
	var titles []string
	for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(string(text), -1) {
		titles = append(titles, strings.Split(m[1], ", ")...)
	}
	for _, doc := range documents() {
		if !slices.Contains(titles, doc.kind) {
			t.Errorf("docs/json.md has no part about %q", doc.kind)
		}
		for _, name := range namesOf(formOf(reflect.TypeOf(doc.body)).fields) {
			if !quoted[name] {
				t.Errorf("docs/json.md does not name %q of %q", name, doc.kind)
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../internal/notify/notify.go")
	printed, seen := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:\.(?:JSON|Line|Document|Encoded|Envelope)\((?:w, |&head, )?|return )"([a-z ]+)", `).FindAllSubmatch(source, -1) {
			printed[string(m[1])] = true
		}
	}
	for _, doc := range documents() {
		seen[doc.kind] = true
	}
	if !maps.Equal(printed, seen) {
		t.Errorf("these kinds are printed: %v\nand these are looked at here: %v", printed, seen)
	}
}

// namesOf returns the names of fields and of what is in them.
func namesOf(fields []field) (names []string) {
	for _, f := range fields {
		in := f.form
		for in.items != nil {
			in = *in.items
		}
		names = append(append(names, f.name), namesOf(in.fields)...)
	}
	return names
}

var update = flag.Bool("update", false, "write testdata/schema.txt anew")

// The form of every document is in a file: a change of it is seen.
func TestSchema(t *testing.T) {
	var out bytes.Buffer
	a := newCommandLine(&printer.Printer{Out: &out, Err: &out, Output: "table", Getenv: func(string) string { return "" }})
	cmd := a.schemaCommand()
	cmd.SetArgs([]string{})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/schema.txt"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("documents have other fields than %s: read the change, then go test ./cli -run TestSchema -update", file)
	}
}

// Every document begins with schema and kind, each of them once, also where a
// document says its schema itself.
func TestEnvelope(t *testing.T) {
	for _, doc := range documents() {
		var line, page bytes.Buffer
		if err := printer.Line(&line, doc.kind, doc.body); err != nil {
			t.Fatal(err)
		}
		if err := printer.JSON(&page, doc.kind, doc.body); err != nil {
			t.Fatal(err)
		}
		want := `{"schema":"redlockctl/v1","kind":"` + doc.kind + `"`
		if !strings.HasPrefix(line.String(), want) || strings.Count(line.String(), "\n") != 1 {
			t.Errorf("%T: %s", doc.body, line.String())
		}
		if strings.Count(line.String(), `"kind":`) != 1 || strings.Count(line.String(), `"schema":`) != 1 || !json.Valid(line.Bytes()) || !json.Valid(page.Bytes()) {
			t.Errorf("%T is no document: %s", doc.body, line.String())
		}
	}
}

// cmdExamples runs the examples of docs/json.md, as a shell does; each says
// something, and none fails. What is no command of this program and of jq is
// prose.
func cmdExamples(ts *testscript.TestScript, neg bool, args []string) {
	if _, err := exec.LookPath("jq"); err != nil {
		const what = "no jq: apt-get install jq"
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			ts.Fatalf(what)
		}
		bedOf(ts).t.Skip(what)
	}
	page, err := os.ReadFile(args[0])
	ts.Check(err)
	n := 0
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$|^    (redlockctl [^\n]*)$").FindAllStringSubmatch(string(page), -1) {
		n++
		script := block[1] + block[2]
		ts.Check(ts.Exec("sh", "-c", "set -e\n"+script))
		if out := strings.TrimSpace(ts.ReadFile("stdout")); out == "" || out == "null" || strings.Contains(out, "\nnull") {
			ts.Fatalf("%s\nsays %q", script, out)
		}
	}
	if n < 15 {
		ts.Fatalf("only %d examples were found", n)
	}
}
