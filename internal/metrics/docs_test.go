package metrics

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each metric stands on the page about them, with its labels, and no other does.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // name → labels
	for _, m := range regexp.MustCompile("(?m)^\\| `(redlockctl_[a-z_]+)` \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = m[2]
	}
	desc := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	want := map[string]string{
		namespace + "build_info":               "version,goversion,revision",
		namespace + "acquire_duration_seconds": "cluster,outcome",
	}
	for _, s := range newCatalogue().all() {
		m := desc.FindStringSubmatch(s.desc.String())
		if m == nil {
			t.Fatalf("%s is not as it was", s.desc)
		}
		want[m[1]] = m[2]
	}
	for name, labels := range want {
		row, ok := rows[name]
		if !ok {
			t.Errorf("docs/metrics.md has no row of %s", name)
		}
		for label := range strings.SplitSeq(labels, ",") {
			if label != "cluster" && !strings.Contains(row, label) {
				t.Errorf("docs/metrics.md: %s has a label %s", name, label)
			}
		}
	}
	for name := range rows {
		if _, ok := want[name]; !ok {
			t.Errorf("docs/metrics.md: there is no %s", name)
		}
	}
}
