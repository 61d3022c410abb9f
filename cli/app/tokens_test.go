package app

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/otlp"
	"redlockctl/internal/record"
	"redlockctl/internal/report"
	"redlockctl/monitor/observe"
)

// A whole token releases a lock, so it leaves by no event, no export, no record and no report.
func TestNoTokenLeavesWhole(t *testing.T) {
	tokens := []string{
		"HYKwlGm3x1nD7cZq0aPbEoRsTuV", "HYKwlGm3x1nD7cZq0aPbEoRsTuV:web-7", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "1700000000123",
		"worker-9:4711:12", "fe01ce2a7fbac8fafaed7c982a04e229", "\xff\xfe\x00 odd \x1b[31m", "ключ-замка-42",
	}
	var mu sync.Mutex
	var exported bytes.Buffer
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			in, _ = gzip.NewReader(r.Body)
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&exported, in)
	}))
	defer receiver.Close()
	t.Setenv("OTEL_LOGS_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	servers := labtest.Servers(t, 3)
	m, err := observe.New(servers.Nodes(), observe.Options{MaxTTL: 10 * time.Second, ClusterName: "c"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := otlp.New("c", "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	path := filepath.Join(t.TempDir(), "record.db")
	all.Go(func() { m.Run(ctx) })
	all.Go(func() { e.Run(ctx, m) })
	all.Go(func() { record.New(record.Options{Path: path, By: "test"}).Run(ctx, m) })
	if err := m.Settled(ctx); err != nil {
		t.Fatal(err)
	}
	key := func(i int) string { return fmt.Sprintf("job:%d", i) }
	do := func(node int, args ...any) {
		t.Helper()
		if _, err := servers[node].Do(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	saw := func(kind string, n int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			seen := 0
			events, _ := m.EventsSince(0)
			for _, e := range events {
				if e.Kind == kind {
					seen++
				}
			}
			if seen >= n {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d of %d %s", seen, n, kind)
			}
		}
	}
	for i, token := range tokens {
		for node := range servers {
			do(node, "SET", key(i), token, "PX", 20_000)
		}
	}
	saw("acquired", len(tokens))
	for i := range tokens {
		for node := range servers {
			do(node, "PEXPIRE", key(i), 25_000)
		}
	}
	saw("extended", len(tokens))
	for node := range servers[:2] { // half of them lose their majority, the others are released
		for i := range len(tokens) / 2 {
			do(node, "SET", key(i), "another token of "+key(i), "PX", 20_000)
		}
	}
	for node := range servers {
		for i := len(tokens) / 2; i < len(tokens); i++ {
			do(node, "DEL", key(i))
		}
	}
	saw("released", len(tokens)-len(tokens)/2)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // until it is exported and recorded
		events, _ := m.EventsSince(0)
		sent, _, _ := e.Counts()
		if sent >= events[len(events)-1].Seq && ended(path, key(len(tokens)-1)) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d events are exported, or the last release is not recorded", sent, len(events))
		}
	}
	stop()
	all.Wait()
	var sinks bytes.Buffer
	events, _ := m.EventsSince(0)
	for _, e := range events {
		fmt.Fprintln(&sinks, e.Text.Raw())
	}
	r, err := record.OpenReader(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rep, err := report.Make(r, record.Span{Since: time.Now().Add(-time.Hour), Until: time.Now()}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := rep.Text(&sinks); err != nil {
		t.Fatal(err)
	}
	if err := rep.HTML(&sinks); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(path + "*")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sinks.Write(b)
	}
	mu.Lock()
	defer mu.Unlock()
	if exported.Len() == 0 {
		t.Error("nothing was exported")
	}
	sinks.Write(exported.Bytes())
	for _, token := range tokens {
		bare, _, _ := strings.Cut(token, ":web-7")
		if i := strings.Index(sinks.String(), bare); i >= 0 {
			t.Errorf("%q: …%q", token, sinks.String()[max(0, i-80):i+40])
		}
	}
}

// ended reports whether a grant of a lock has ended by a record.
func ended(path, lock string) bool {
	r, err := record.OpenReader(path, "")
	if err != nil {
		return false
	}
	defer r.Close()
	grants, err := r.GrantsOf(lock, record.Span{Until: time.Now().Add(time.Hour)}, 10)
	return err == nil && len(grants) > 0 && !grants[0].Ended.IsZero()
}
