package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A real Prometheus that scrapes a real endpoint answers each query of the dashboard.
func TestDashboardIsAnswered(t *testing.T) {
	prometheus := tool(t, "prometheus")
	endpoint := httptest.NewServer(full().Handler())
	defer endpoint.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("scrape_configs:\n  - job_name: redlockctl\n    scrape_interval: 200ms\n    static_configs:\n      - targets: [%q]\n", strings.TrimPrefix(endpoint.URL, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()

	board, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(board, &doc); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$cluster", "shop", "$__rate_interval", "1m")
	for _, p := range doc.Panels {
		for _, target := range p.Targets {
			expr := variables.Replace(target.Expr)
			// Counters need two scrapes.
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
				n, err := samples(at, expr)
				if n > 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Errorf("%s: nothing is shown by %s: %v", p.Title, expr, err)
					break
				}
			}
		}
	}
}

// samples is the number of series that Prometheus answers to a query.
func samples(at, expr string) (int, error) {
	answer, err := http.Get("http://" + at + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var doc struct {
		Error string `json:"error"`
		Data  struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&doc); err != nil {
		return 0, err
	}
	if doc.Error != "" {
		return 0, fmt.Errorf("%s", doc.Error)
	}
	return len(doc.Data.Result), nil
}
