package notify

import (
	"context"
	"encoding/json"
	"errors"
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

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// fakeSource shows the snapshots that a test sets.
type fakeSource struct {
	mu      sync.Mutex
	now     *monitor.Snapshot
	changed chan struct{}
	notes   []string
}

func newSource() *fakeSource {
	return &fakeSource{now: &monitor.Snapshot{}, changed: make(chan struct{})}
}

func (f *fakeSource) show(v monitor.Verdict, findings ...monitor.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = &monitor.Snapshot{Version: f.now.Version + 1, At: time.Now(), Cluster: monitor.Cluster{Name: "orders", Verdict: v, Reason: "because"}, Findings: findings}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeSource) Snapshot() *monitor.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeSource) Changed(version uint64) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.Version > version {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return f.changed
}

func (f *fakeSource) Note(e monitor.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, e.Text.String())
}

func (f *fakeSource) noted() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.notes, "\n")
}

// received is a notice as a receiver reads it.
type received struct {
	Schema, Kind, What, Verdict, Cluster string
	Before                               string `json:"verdict_before"`
	Findings                             []struct{ ID, Severity string }
	Dropped                              int
}

// receiver is what people point a webhook at.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	answer int // 0: 200
	got    []received
	header http.Header
	tries  int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var doc received
		if err := json.Unmarshal(body, &doc); err != nil || doc.Schema != view.Schema || doc.Kind != "notice" {
			t.Errorf("%s: %v", body, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tries++
		r.header = req.Header
		if r.answer != 0 {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(r.answer)
			return
		}
		r.got = append(r.got, doc)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) set(answer int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// lines are the notices that arrived, each in a line.
func (r *receiver) lines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, d := range r.got {
		line := d.What + " " + d.Verdict
		if d.Before != "" {
			line += " was " + d.Before
		}
		for _, f := range d.Findings {
			line += " " + f.ID
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (r *receiver) tried() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// run runs a notifier; the function that it returns ends it and waits.
func run(t *testing.T, opt Options, from Source) (end func()) {
	n := New(opt)
	n.retry = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx, from) }()
	return func() { cancel(); <-done }
}

var (
	restart = monitor.Finding{ID: "started-unfenced", Severity: monitor.SeverityDanger, Node: "n2", Title: "n2 started unfenced"}
	even    = monitor.Finding{ID: "even", Severity: monitor.SeverityInfo}
)

func TestNotices(t *testing.T) {
	r, from := newReceiver(t), newSource()
	defer run(t, Options{
		URL: func() string { return r.URL + "/hook/secret" }, Header: func() (string, string) { return "Authorization", "Bearer secret" },
		Least: monitor.SeverityWarning, By: "guard@g1", Version: "1.2.3",
	}, from)()
	want := ""
	expect := func(more string) {
		t.Helper()
		want = strings.TrimPrefix(want+"\n"+more, "\n")
		eventually(t, "not: "+want, func() bool { return r.lines() == want })
	}
	from.show(monitor.VerdictUnknown)
	from.show(monitor.VerdictDegraded, restart, even)
	expect("verdict degraded was unknown started-unfenced")
	from.show(monitor.VerdictSafe)
	expect("verdict safe was degraded\nfinding closed safe started-unfenced")
	from.show(monitor.VerdictSafe, even) // below the least severity
	from.show(monitor.VerdictDanger, restart)
	expect("verdict danger was safe started-unfenced\nfinding opened danger started-unfenced")

	// A receiver that is down gets it later, in order; an event reports the failure, without the URL.
	r.set(http.StatusServiceUnavailable)
	from.show(monitor.VerdictSafe, restart)
	eventually(t, "no event", func() bool { return strings.Contains(from.noted(), "a notice is not sent: ") })
	r.set(0)
	expect("verdict safe was danger started-unfenced")
	eventually(t, "no event of the end", func() bool { return strings.HasSuffix(from.noted(), "notices are sent again") })
	if strings.Contains(from.noted(), "secret") {
		t.Error(from.noted())
	}
	if got := r.header.Get("Authorization"); got != "Bearer secret" {
		t.Error(got)
	}

	// What is refused is not sent again, and a redirect is not followed.
	for _, code := range []int{http.StatusBadRequest, http.StatusTemporaryRedirect} {
		r.set(code)
		before := r.tried()
		from.show(monitor.VerdictDanger, restart)
		eventually(t, "not tried", func() bool { return r.tried() > before })
		r.set(0)
		from.show(monitor.VerdictSafe, restart)
		expect("verdict safe was danger started-unfenced")
		if n := r.tried() - before; n != 2 {
			t.Errorf("%d: %d requests, want 2", code, n)
		}
	}
}

// At the start a cluster that is safe is nothing to tell.
func TestFirstSnapshot(t *testing.T) {
	n := New(Options{})
	for _, v := range []monitor.Verdict{monitor.VerdictUnknown, monitor.VerdictSafe} {
		if docs := n.changes(&monitor.Snapshot{Cluster: monitor.Cluster{Verdict: v}}); docs != nil {
			t.Errorf("%s: %v", v, docs)
		}
	}
	if docs := n.changes(&monitor.Snapshot{Cluster: monitor.Cluster{Verdict: monitor.VerdictUnknown}}); len(docs) != 1 {
		t.Errorf("that nothing is known any more: %v", docs)
	}
}

// A receiver that hangs holds up nobody, and the queue is bounded: the oldest are dropped, and
// that is told.
func TestHangingReceiver(t *testing.T) {
	hold, arrived := make(chan struct{}), make(chan received, 2*mostWaiting)
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var doc received
		_ = json.NewDecoder(req.Body).Decode(&doc)
		<-hold
		arrived <- doc
	}))
	defer r.Close()
	n := New(Options{URL: func() string { return r.URL }})
	waiting := make(chan notice, mostWaiting)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); n.deliver(ctx, waiting, func(monitor.Event) {}) }()
	const more = 50
	for i := range mostWaiting + more {
		n.queue(waiting, view.NoticeDoc{At: time.Now(), Reason: safetext.New(fmt.Sprint(i))})
	}
	close(hold)
	n.queue(waiting, view.NoticeDoc{At: time.Now(), What: "last"})
	close(waiting)
	<-done
	close(arrived)
	dropped, last := 0, ""
	count := 0
	for doc := range arrived {
		count++
		dropped += doc.Dropped
		last = doc.What
	}
	if last != "last" || count+dropped != mostWaiting+more+1 || dropped == 0 {
		t.Errorf("%d arrived, %d dropped, the last %q", count, dropped, last)
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	from := newSource()
	end := run(t, Options{Command: []string{"sh", "-c", `cat >>"$0"; echo "$SECRET" >>"$0"`, out}, Env: []string{"PATH=" + os.Getenv("PATH")}}, from)
	from.show(monitor.VerdictDanger)
	eventually(t, "the command was not run", func() bool {
		text, _ := os.ReadFile(out)
		return strings.Contains(string(text), `"verdict":"danger"`)
	})
	end()

	n := New(Options{Command: []string{"sh", "-c", "echo no such number >&2; exit 3"}})
	if err := n.send(t.Context(), nil, time.Minute); err == nil || !strings.Contains(err.Error(), "exit status 3: no such number") {
		t.Error(err)
	}
	// One that hangs is ended, with what it started.
	n = New(Options{Command: []string{"sh", "-c", "sleep 1000 & wait"}})
	if err := n.send(t.Context(), nil, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	n = New(Options{Command: []string{filepath.Join(dir, "missing")}})
	if err := n.send(t.Context(), nil, time.Minute); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
