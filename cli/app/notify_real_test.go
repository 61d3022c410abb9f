package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/notify"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// The receiver is notified when a master is killed, and when it returns.
func TestNotifiedOfAKilledMaster(t *testing.T) {
	var mu sync.Mutex
	var got strings.Builder
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&got, r.Body)
	}))
	defer receiver.Close()
	servers := labtest.Servers(t, 3)
	mon, err := newMonitor(servers.Nodes(), observe.Options{MaxTTL: 10 * time.Second, ClusterName: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { mon.Run(ctx) })
	notified(ctx, &all, notify.Options{URL: func() string { return receiver.URL }, Least: monitor.SeverityDanger}, mon)
	await := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			mu.Lock()
			text := got.String()
			mu.Unlock()
			if strings.Contains(text, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %s in:\n%s", want, text)
			}
		}
	}
	await(`"verdict":"unprotected","verdict_before":"unknown"`)
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	await(`"cluster":"orders","verdict":"degraded","verdict_before":"unprotected"`)
	if err := servers[1].Start(); err != nil {
		t.Fatal(err)
	}
	await(`"verdict_before":"degraded"`)
}
