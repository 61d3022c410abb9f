package cli

import (
	"bytes"
	"encoding/json"
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
	"redlockctl/internal/view"
)

const jsonPage = "../docs/json.md"

// documents are one of each kind of document that this package prints. Those of
// the simulator are described elsewhere.
var documents = []struct {
	kind string
	body any
}{
	{"status", statusJSON{}}, {"clusters", clustersJSON{}}, {"nodes", nodesJSON{}}, {"node", nodePageJSON{}}, {"locks", locksJSON{}}, {"lock line", lockLineJSON{}},
	{"locks end", locksEndJSON{}}, {"lock", lockPageJSON{}}, {"who", whoJSON{}}, {"guard", guardPageJSON{}}, {"guard forget", guardForgetJSON{}}, {"doctor", doctorJSON{}},
	{"audit", auditJSON{}}, {"audit line", view.AuditDoc{}}, {"audit verify", verifyJSON{}}, {"grant", grantJSON{}}, {"kept", keptJSON{}}, {"release", releaseJSON{}},
	{"acts", actsJSON{}}, {"failure", failureJSON{}}, {"node act", nodeActJSON{}}, {"new cluster", newClusterJSON{}}, {"boot fence", bootFenceJSON{}}, {"boot fences", bootFencesJSON{}},
	{"config", configJSON{}}, {"config", badConfigJSON{}}, {"acl", aclJSON{}}, {"info", infoJSON{}}, {"version", versionJSON{}}, {"lab", labJSON{}},
	{"init", initJSON{}}, {"init check", initCheckJSON{}}, {"history", historyJSON{}}, {"recorded grant", view.GrantDoc{}}, {"recorded event", view.PastEventDoc{}}, {"replay", replayJSON{}},
}

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
	described := []string{"simulation", "mutants", "exploration"}
	for _, doc := range documents {
		if !slices.Contains(titles, doc.kind) {
			t.Errorf("docs/json.md has no part about %q", doc.kind)
		}
		if slices.Contains(described, doc.kind) {
			continue
		}
		for _, name := range fieldsOf(reflect.TypeOf(doc.body)) {
			if !quoted[name] && !strings.HasSuffix(name, "_base64") {
				t.Errorf("docs/json.md does not name %q of %q", name, doc.kind)
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	printed, seen := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:\.(?:JSON|Line|Document|Encoded)\((?:w, |&head, )?|return )"([a-z ]+)", `).FindAllSubmatch(source, -1) {
			printed[string(m[1])] = true
		}
	}
	for _, doc := range documents {
		seen[doc.kind] = true
	}
	if !maps.Equal(printed, seen) {
		t.Errorf("these kinds are printed: %v\nand these are looked at here: %v", printed, seen)
	}
}

// fieldsOf are the names of the fields of a document and of what is in it.
func fieldsOf(typ reflect.Type) (names []string) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		return fieldsOf(typ.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	if typ.Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name != "" {
			names = append(names, name)
		}
		if (name != "" || f.Anonymous) && f.Type != typ && f.Type != reflect.SliceOf(typ) {
			names = append(names, fieldsOf(f.Type)...)
		}
	}
	return names
}

// Every document begins with schema and kind, each of them once, also where a
// document says its schema itself.
func TestEnvelope(t *testing.T) {
	for _, doc := range documents {
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
