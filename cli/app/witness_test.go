package app

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/config"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/metrics"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
)

// While no node is heard from here, the verdict says what a guard elsewhere sees, and when.
func TestAGuardElsewhereIsASecondWitness(t *testing.T) {
	servers := labtest.Servers(t, 3)
	g, err := watch.New(servers.Nodes(), watch.Config{Delay: time.Minute, Cluster: "test", N: 3, Poll: 50 * time.Millisecond, FirstContact: restartguard.AdoptYoung})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = g.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	m := metrics.New(metrics.Build{})
	m.Show(metrics.Cluster{Name: "test", Guard: g})
	page := httptest.NewServer(m.Handler())
	t.Cleanup(page.Close)

	// The nodes as they are seen from here: whoever connects hears nothing.
	path := filepath.Join(t.TempDir(), "config.toml")
	text := "[cluster]\nname = \"test\"\nmax_ttl = \"30s\"\n"
	for _, name := range []string{"n1", "n2", "n3"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		text += "[[nodes]]\nname = \"" + name + "\"\naddr = \"" + l.Addr().String() + "\"\n"
	}
	text += "[audit]\npath = \"audit.jsonl\"\n[guard]\nwitnesses = [\"" + page.URL + "\"]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	said := func(what string) *monitor.Snapshot {
		for deadline := time.Now().Add(30 * time.Second); ; {
			s, err := Look(t.Context(), cfg, Aim{Nodes: true})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(s.Cluster.Reason, what) {
				return s
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s", s.Cluster.Verdict, s.Cluster.Reason)
			}
		}
	}
	if s := said("saw 3 of 3 serve at "); s.Cluster.Verdict != monitor.VerdictUnknown || !strings.Contains(s.Cluster.Reason, "this console sees 0 of 3 nodes") || !strings.Contains(s.Cluster.Reason, "the guard at 127.0.0.1:") {
		t.Error(s.Cluster.Reason)
	}
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	said("saw 2 of 3 serve at ")
	page.Close()
	said("cannot be asked: ")
}
