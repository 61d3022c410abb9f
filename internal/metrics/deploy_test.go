package metrics

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	rules     = "../../deploy/prometheus/redlockctl.rules.yml"
	dashboard = "../../deploy/grafana/redlockctl.json"
)

// told returns the names of all metrics.
func told() map[string]bool {
	names := map[string]bool{namespace + "build_info": true}
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		names[namespace+"acquire_duration_seconds"+suffix] = true
	}
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for _, s := range newCatalogue() {
		names[name.FindStringSubmatch(s.desc.String())[1]] = true
	}
	return names
}

// Alerts and dashboard name only existing metrics, and the dashboard names all.
func TestDeployedNamesExist(t *testing.T) {
	known := told()
	if len(known) < 28 {
		t.Fatalf("only %d names", len(known))
	}
	metric := regexp.MustCompile(`redlockctl_[a-z_]+`)
	shown := map[string]bool{}
	for _, file := range []string{rules, dashboard} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := metric.FindAllString(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d metrics only", file, len(found))
		}
		for _, name := range found {
			if !known[name] {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
			shown[strings.TrimSuffix(name, "_bucket")] = true
		}
	}
	for name := range known {
		if base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count"); !shown[base] {
			t.Errorf("neither alerts nor dashboard show %s", name)
		}
	}
}

// The phases, states and severities that alerts select exist too.
func TestDeployedLabelsExist(t *testing.T) {
	m := full()
	out := scrape(t, m)
	for _, state := range []string{"split", "no_ttl", "over_max_ttl", "orphaned"} {
		if !strings.Contains(out, `redlockctl_locks{cluster="shop",state="`+state+`"}`) {
			t.Errorf("there is no state %s", state)
		}
	}
	if !strings.Contains(out, `severity="danger"`) || !strings.Contains(out, `phase="serving"`) {
		t.Error("severity danger or phase serving is missing")
	}
}

func TestDashboardIsOne(t *testing.T) {
	for file, least := range map[string]int{dashboard: 15, "../../deploy/grafana/redlockctl-events.json": 10} {
		t.Run(filepath.Base(file), func(t *testing.T) { checkDashboard(t, file, least) })
	}
}

func checkDashboard(t *testing.T, file string, least int) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Title  string `json:"title"`
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range doc.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: its id twice, no title, nothing shown, or too wide", p.ID, p.Title)
		}
		ids[p.ID] = true
	}
	if doc.Title == "" || len(doc.Panels) < least {
		t.Errorf("%q has %d panels", doc.Title, len(doc.Panels))
	}
}

// promtool, if installed, accepts the rules.
func TestRulesArePromtools(t *testing.T) {
	promtool := tool(t, "promtool")
	if out, err := exec.Command(promtool, "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Names, types and help texts follow Prometheus' conventions.
func TestMetricsArePromtools(t *testing.T) {
	promtool := tool(t, "promtool")
	m := full()
	m.Acquired("shop", time.Millisecond, nil)
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(scrape(t, m))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
