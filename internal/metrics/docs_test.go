package metrics

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page about metrics lists each metric with its labels, and no other.
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
	for _, s := range newCatalogue() {
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

// tool returns the path of a program of Debian's package prometheus.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "":
		t.Fatalf("no %s: apt-get install prometheus", name)
	}
	t.Skipf("no %s: apt-get install prometheus", name)
	return ""
}

// Each alert is tried: it fires at least once.
func TestAlertsAreTried(t *testing.T) {
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../../deploy/prometheus/redlockctl.rules.test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		fires := regexp.MustCompile(`alertname="` + m[1] + `"[^\n]*\n\s+eval_time: \w+\n\s+exp_samples:\n|alertname: ` + m[1] + `\n\s+exp_alerts:\n`)
		if !fires.Match(tests) {
			t.Errorf("no test lets %s fire", m[1])
		}
	}
}

// The alerts fire when they should, and not when they should not.
func TestAlertsFire(t *testing.T) {
	promtool := tool(t, "promtool")
	if out, err := exec.Command(promtool, "test", "rules", "../../deploy/prometheus/redlockctl.rules.test.yml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The page lists each alert, and no other.
func TestAlertsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	alerts := map[string]bool{}
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		alerts[m[1]] = true
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bRedlock[A-Z]\w+`).FindAllString(string(page), -1) {
		named[name] = true
	}
	if len(alerts) == 0 || !maps.Equal(alerts, named) {
		t.Errorf("there are the alerts %v; docs/metrics.md has %v", slices.Sorted(maps.Keys(alerts)), slices.Sorted(maps.Keys(named)))
	}
}

// Each alert has a severity, and a runbook_url that is the link in its row of the page.
// Another test checks that the link leads to a heading.
func TestAlertsLeadToTheRunBook(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][2]string{} // alert → severity, link
	for _, m := range regexp.MustCompile(`(?m)^\| (Redlock[^|]+) \| (\w+) \|.*\]\(([^)]+#[^)]+)\)`).FindAllStringSubmatch(string(page), -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			rows[name] = [2]string{m[2], m[3]}
		}
	}
	alerts := strings.Split(string(text), "- alert: ")[1:]
	severity, link := regexp.MustCompile(`severity: (\w+)`), regexp.MustCompile(`runbook_url: https://\S+/docs/(\S+)`)
	for _, alert := range alerts {
		name, rest, _ := strings.Cut(alert, "\n")
		s, l := severity.FindStringSubmatch(rest), link.FindStringSubmatch(rest)
		if s == nil || l == nil {
			t.Errorf("%s has no severity or no runbook_url", name)
		} else if got := [2]string{s[1], l[1]}; got != rows[name] {
			t.Errorf("%s: the rule has %v, docs/metrics.md %v", name, got, rows[name])
		}
	}
}
