package finding

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is generated anew")

// docs/findings.md has the findings as they are declared.
func TestDocsHaveTheFindings(t *testing.T) {
	const path = "../../docs/findings.md"
	const begin, end = "<!-- findings, made by go test ./monitor/finding -run Docs -update -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the findings", path)
	}
	want := head + begin + findingDocs(t) + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("%s is not as the findings are declared: go test ./monitor/finding -run Docs -update", path)
	}
}

func findingDocs(t *testing.T) string {
	var b strings.Builder
	told := 0
	for _, about := range []part{aboutQuorum, aboutMemory, aboutLocks, aboutTime, aboutSight} {
		fmt.Fprintf(&b, "\n## %s\n", about)
		for _, c := range allChecks() {
			if c.part != about {
				continue
			}
			told++
			fmt.Fprintf(&b, "\n### %s\n\n**%s**: %s. %s\n\n*What to do:* %s\n", c.id, c.severity, c.title, strings.TrimSpace(c.why+" "+c.more), c.do)
			for what, text := range map[string]string{"title": c.title, "why": c.why, "what to do": c.do} {
				if text == "" || what != "title" && !strings.HasSuffix(text, ".") {
					t.Errorf("%s: %s %q", c.id, what, text)
				}
			}
		}
	}
	if told != len(allChecks()) {
		t.Errorf("%d of %d findings are told: one is of no part", told, len(allChecks()))
	}
	return b.String()
}
