package otlp

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collog "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// receiver is an OTLP receiver over HTTP, as specified.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	records []*logs.LogRecord
	about   map[string]string // resource attributes
	headers http.Header
	answer  func(w http.ResponseWriter) bool // nil: accept all; true: it has answered
	tries   int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{about: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var in io.Reader = req.Body
		if req.Header.Get("Content-Encoding") == "gzip" {
			in, _ = gzip.NewReader(req.Body)
		}
		body, err := io.ReadAll(in)
		var got collog.ExportLogsServiceRequest
		if err != nil || req.URL.Path != "/v1/logs" || proto.Unmarshal(body, &got) != nil {
			t.Errorf("%s: no OTLP request: %v", req.URL.Path, err)
		}
		r.mu.Lock()
		answer := r.answer
		r.tries++
		r.mu.Unlock()
		if answer != nil && answer(w) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.headers = req.Header
		for _, rl := range got.ResourceLogs {
			for _, a := range rl.Resource.Attributes {
				r.about[a.Key] = a.Value.GetStringValue()
			}
			for _, sl := range rl.ScopeLogs {
				r.records = append(r.records, sl.LogRecords...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	t.Setenv("OTEL_LOGS_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	return r
}

func (r *receiver) set(answer func(http.ResponseWriter) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) texts() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.records {
		all = append(all, one.Body.GetStringValue())
	}
	return all
}

// source keeps a limited number of events.
type source struct {
	mu     sync.Mutex
	keep   int
	seq    uint64
	events []monitor.Event
	said   []string
}

func (s *source) add(events ...monitor.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.seq++
		e.Seq = s.seq
		s.events = append(s.events, e)
	}
	s.events = s.events[max(0, len(s.events)-s.keep):]
}

func (s *source) Note(e monitor.Event) {
	s.add(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, e.Text.Raw())
}

func (s *source) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

func (s *source) EventsSince(seq uint64) ([]monitor.Event, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.seq-seq, uint64(len(s.events)))
	return slices.Clone(s.events[len(s.events)-int(n):]), s.seq - seq - n
}

func numbered(i int) monitor.Event {
	return monitor.Event{At: time.Now(), Kind: "up", Text: safetext.New(fmt.Sprint("event ", i))}
}

// start runs an exporter until the returned function is called, or the test ends.
func start(t *testing.T, from *source) (*Exporter, func()) {
	t.Helper()
	e, err := New("orders", "v1.2.3")
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	e.retry = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { e.Run(ctx, from) })
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return e, stop
}

func wait(t *testing.T, what string, until func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !until(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain: ", what)
		}
	}
}

func TestOffByDefault(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_LOGS_EXPORTER", "")
	if e, err := New("orders", "v1.2.3"); e != nil || err != nil {
		t.Error(e, err)
	}
	t.Setenv("OTEL_LOGS_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if e, err := New("orders", "v1.2.3"); e != nil || err == nil {
		t.Error("grpc:", e, err)
	}
}

// TestRecord: what a receiver gets of an event, and from which source.
func TestRecord(t *testing.T) {
	r := newReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope-orgid=shop")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod")
	at := time.UnixMilli(1_700_000_000_123)
	from := &source{keep: 10}
	from.add(monitor.Event{
		At: at, Level: monitor.LevelAlarm, Kind: "lost majority", Node: "n1", Key: safetext.New("job\x1b1"), Text: safetext.New("gone"),
		Token: safetext.New("secret token"), Until: at.Add(time.Second), Times: 3,
	})
	e, _ := start(t, from)
	wait(t, "the record", func() bool { return len(r.texts()) == 1 })
	got := r.records[0]
	have := map[string]string{}
	for _, a := range got.Attributes {
		have[a.Key] = a.Value.GetStringValue()
		if _, number := a.Value.Value.(interface{ GetIntValue() int64 }); number || a.Value.GetIntValue() != 0 {
			have[a.Key] = fmt.Sprint(a.Value.GetIntValue())
		}
	}
	want := map[string]string{
		attrCluster: "orders", attrKind: "lost majority", attrLevel: "alarm", attrNode: "n1", attrLock: `job\x1b1`,
		attrToken: audit.TokenSHA("secret token"), attrUntil: "1700000001123", attrTimes: "3",
	}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("attributes\n%v, want\n%v", have, want)
	}
	if got.EventName != "redlockctl.lost_majority" || got.SeverityText != "alarm" || got.SeverityNumber != logs.SeverityNumber_SEVERITY_NUMBER_ERROR || got.TimeUnixNano != uint64(at.UnixNano()) {
		t.Errorf("%v", got)
	}
	if r.about["service.version"] != "v1.2.3" || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(r.about["service.instance.id"]) {
		t.Errorf("the sender is %v", r.about)
	}
	if r.about["service.name"] != "redlockctl" || r.about["deployment.environment.name"] != "prod" || r.headers.Get("X-Scope-Orgid") != "shop" {
		t.Errorf("%v %v", r.about, r.headers)
	}
	wait(t, "the count", func() bool { sent, _, _ := e.Counts(); return sent == 1 })
}

// TestReceiverIsDown: all events that the source keeps arrive, in order and once; those
// that it drops are counted.
func TestReceiverIsDown(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter) bool{
		"cuts the connection": func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
		"is overloaded": func(w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
		"does not answer in time": func(http.ResponseWriter) bool { time.Sleep(time.Second); return true },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t)
			if name == "does not answer in time" {
				t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500")
			}
			r.set(answer)
			from := &source{keep: 605} // the last 600, and what the exporter notes meanwhile
			from.add(numbered(0))
			e, _ := start(t, from)
			wait(t, "a try", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.tries > 0 })
			if name != "does not answer in time" { // that case is retried for retryFor without a report
				wait(t, "the alarm", func() bool { return len(from.heard()) > 0 })
			}
			var events []monitor.Event // in one batch: an export meanwhile misses none
			for i := range 700 {
				events = append(events, numbered(i+1))
			}
			from.add(events...)
			r.set(nil)
			wait(t, "the events", func() bool { s := r.texts(); return len(s) > 0 && slices.Contains(s, "event 700") })
			wait(t, "the counts", func() bool { sent, missed, _ := e.Counts(); return sent+missed >= 701 })
			_, missed, refused := e.Counts()
			all := slices.DeleteFunc(r.texts(), func(s string) bool { return !strings.HasPrefix(s, "event ") })
			if refused != 0 || missed < 90 {
				t.Errorf("missed %d, refused %d", missed, refused)
			}
			if all = all[len(all)-600:]; all[0] != "event 101" {
				t.Errorf("from %s on", all[0])
			}
		})
	}
}

// TestReceiverRefuses: events refused for good are counted and not sent again; later ones
// are sent.
func TestReceiverRefuses(t *testing.T) {
	r := newReceiver(t)
	r.set(func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusBadRequest); return true })
	from := &source{keep: 10}
	from.add(numbered(1))
	e, _ := start(t, from)
	wait(t, "the alarm refused too", func() bool { _, _, refused := e.Counts(); return refused == 2 })
	r.set(nil)
	from.add(numbered(2))
	wait(t, "the second", func() bool { return slices.Contains(r.texts(), "event 2") })
	wait(t, "the end of the alarm", func() bool { return len(from.heard()) == 2 })
	if slices.Contains(r.texts(), "event 1") || strings.Contains(from.heard()[0], "http") && !strings.Contains(from.heard()[0], "400") {
		t.Errorf("%q; said %q", r.texts(), from.heard())
	}
}

// TestNobodyListens: the exit does not wait for a receiver that does not exist, and no
// password is shown.
func TestNobodyListens(t *testing.T) {
	r := newReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.Replace(r.URL, "//", "//ann:secret@", 1))
	r.Close()
	from := &source{keep: 10}
	from.add(numbered(1))
	_, stop := start(t, from)
	wait(t, "the alarm", func() bool { return len(from.heard()) > 0 })
	begun := time.Now()
	if stop(); time.Since(begun) > 10*time.Second {
		t.Error("the end took", time.Since(begun))
	}
	if said := from.heard()[0]; strings.Contains(said, "secret") {
		t.Error(said)
	}
}

// TestLastEventsAreSent: events just before the exit are sent too.
func TestLastEventsAreSent(t *testing.T) {
	r := newReceiver(t)
	from := &source{keep: 10}
	from.add(numbered(1))
	_, stop := start(t, from)
	wait(t, "the first", func() bool { return len(r.texts()) == 1 })
	from.add(numbered(2))
	stop()
	// One whose answer came late is sent again.
	if got := slices.Compact(r.texts()); !slices.Equal(got, []string{"event 1", "event 2"}) {
		t.Errorf("%q", got)
	}
}

// TestDeployedAttributesExist: the manual lists all attributes, and the dashboard uses no
// others.
func TestDeployedAttributesExist(t *testing.T) {
	all := []string{attrCluster, attrKind, attrLevel, attrNode, attrLock, attrToken, attrUntil, attrTimes}
	page, err := os.ReadFile("../../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(redlockctl[.a-z_0-9]+)`").FindAllStringSubmatch(string(page), -1) {
		named = append(named, m[1])
	}
	if !slices.Equal(named, all) {
		t.Errorf("docs/export.md has %q; there are %q", named, all)
	}
	board, err := os.ReadFile("../../deploy/grafana/redlockctl-events.json")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`redlockctl_[a-z_]+`).FindAllString(string(board), -1)
	for _, name := range found {
		if !slices.ContainsFunc(all, func(a string) bool { return strings.ReplaceAll(a, ".", "_") == name }) {
			t.Errorf("the dashboard names %s", name)
		}
	}
	if len(found) < 10 {
		t.Error("the dashboard names hardly anything")
	}
}

// A burst of events about locks is one record with their number; the grants and what is
// about nodes keep records of their own.
func TestABurstIsOneRecord(t *testing.T) {
	var events []monitor.Event
	for i := range 100 {
		key := fmt.Sprintf("job:%d", i)
		events = append(events, monitor.LockEvent(time.Now(), monitor.LevelAlarm, "over max TTL", key, "its TTL is above the maximum"))
		if i < 9 {
			events = append(events, monitor.LockEvent(time.Now(), monitor.LevelAlarm, "no TTL", key, "it has no TTL"))
		}
		if i < 20 {
			events = append(events, monitor.LockEvent(time.Now(), monitor.LevelInfo, "released", key, "released"))
		}
	}
	events = append(events, monitor.NodeEvent(time.Now(), monitor.LevelAlarm, "restart", "n1", "n1 restarted"))
	got := fold(events)
	if want := "100 events of locks, the first is job:0: its TTL is above the maximum"; len(got) != 31 || got[0].Text.Raw() != want {
		t.Errorf("%d records, the first says %q", len(got), got[0].Text.Raw())
	}
}

// The audit log leaves the machine too: all lines, once, also after a receiver that was down.
func TestAuditLog(t *testing.T) {
	r := newReceiver(t)
	e, err := New("orders", "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	e.retry = 10 * time.Millisecond
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func(phase string) {
		t.Helper()
		if err := log.Write(audit.Record{Time: time.Now(), ID: "A1", Phase: phase, Actor: "ann@h1", Cluster: "orders", Act: "revoke", Target: "job:\x1b1", Reason: "slow", TokenSHA: audit.TokenSHA("t")}); err != nil {
			t.Fatal(err)
		}
	}
	write("before") // it was there before
	follow := audit.FollowAll(path)
	defer follow.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); e.RunAudit(ctx, follow.Lines) }()
	r.set(func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusServiceUnavailable); return true })
	write(audit.Intent)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r.mu.Lock()
		tried := r.tries > 0
		r.mu.Unlock()
		if tried {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is sent")
		}
	}
	r.set(nil)
	write(audit.Done)
	want := []string{`ann@h1: revoke job:\x1b1: intent`, `ann@h1: revoke job:\x1b1: done`}
	for deadline := time.Now().Add(60 * time.Second); len(r.texts()) < len(want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q, want %q", r.texts(), want)
		}
	}
	stop()
	<-done
	// The end may cut off the answer to the last line, which is then sent again.
	if got := r.texts(); !slices.Equal(slices.Compact(got), want) {
		t.Errorf("%q, want %q", got, want)
	}
	attributes := map[string]string{}
	for _, a := range r.records[1].Attributes {
		attributes[a.Key] = a.Value.GetStringValue()
	}
	for key, value := range map[string]string{"redlockctl.audit.phase": "done", "redlockctl.audit.reason": "slow", "redlockctl.audit.id": "A1", "redlockctl.lock.token_sha256": audit.TokenSHA("t"), "redlockctl.cluster.name": "orders"} {
		if attributes[key] != value {
			t.Errorf("%s is %q, want %q", key, attributes[key], value)
		}
	}
}
