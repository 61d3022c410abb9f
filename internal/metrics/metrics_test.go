package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// fakeGuard is a guard with preset answers.
type fakeGuard struct {
	status  []restartguard.NodeStatus
	outlook restartguard.Outlook
	sick    error
	blind   error
	met     bool
}

func (g *fakeGuard) Status() []restartguard.NodeStatus { return g.status }
func (g *fakeGuard) Outlook() restartguard.Outlook     { return g.outlook }
func (g *fakeGuard) Healthy() error                    { return g.sick }
func (g *fakeGuard) Sees() error                       { return g.blind }
func (g *fakeGuard) Met() bool                         { return g.met }
func (g *fakeGuard) ID() string                        { return "OWN" }
func (g *fakeGuard) Delay() time.Duration              { return 30 * time.Second }
func (g *fakeGuard) Others() []announce.Guard {
	return []announce.Guard{
		{ID: "OLD", Delay: 5 * time.Second, Host: safetext.New("laptop\x1b")}, {ID: "OWN", Delay: 30 * time.Second},
		{ID: "OLD", Delay: 6 * time.Second}, // its announcement from before its configuration was read again
	}
}

// What a guard cannot know because it is denied is missing, not 0, and /healthz says that
// it is blind.
func TestAGuardThatIsRefused(t *testing.T) {
	denied := restartguard.NodeStatus{Phase: restartguard.PhaseUnreachable, Denied: true}
	a, b, c := denied, denied, denied
	a.Node, b.Node, c.Node = "n1", "n2", "n3"
	status := []restartguard.NodeStatus{a, b, c}
	m := New(Build{})
	m.Show(Cluster{Name: "orders", Guard: &fakeGuard{
		status: status, outlook: restartguard.OutlookOf(status, 3, 2), met: true, blind: fmt.Errorf("%w: refused by n1", watch.ErrBlind),
	}})
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	code, text := get("/metrics")
	if code != 200 {
		t.Fatal(code, text)
	}
	for _, missing := range []string{"cluster_lockable", "cluster_spare_nodes", "cluster_quorum_return_seconds", "node_serving"} {
		if strings.Contains(text, "\nredlockctl_"+missing+"{") {
			t.Errorf("%s is told, though it is not known", missing)
		}
	}
	if !strings.Contains(text, `redlockctl_guard_node_denied{cluster="orders",node="n2"} 1`) || !strings.Contains(text, `redlockctl_node_up{cluster="orders",node="n2"} 1`) {
		t.Errorf("that it is denied is not told:\n%s", text)
	}
	if code, text := get("/healthz"); code != 503 || !strings.Contains(text, "blind") {
		t.Errorf("healthz: %d %s", code, text)
	}
}

type fakeMonitor struct{ s *monitor.Snapshot }

func (m fakeMonitor) Snapshot() *monitor.Snapshot { return m.s }

func picture() *monitor.Snapshot {
	s := &monitor.Snapshot{
		Complete: true,
		Cluster:  monitor.Cluster{Name: "shop", N: 3, Quorum: 2, Serving: 1, Verdict: monitor.VerdictUnavailable, CanLose: -1},
		Nodes: []monitor.Node{
			{Name: "n1", State: monitor.NodeServing, RTT: 250 * time.Microsecond, Locks: 7, Read: 1, Restarts: 2,
				Offset: monitor.Estimate{Valid: true, Offset: -4 * time.Millisecond, Bound: 100 * time.Microsecond},
				Drift:  monitor.Drift{Valid: true, PPM: 12.5, Bound: .5}},
			{Name: "n2", State: monitor.NodeFenced, Read: 1, RTT: time.Millisecond},
			{Name: "n3", State: monitor.NodeDown, RTT: time.Millisecond, Offset: monitor.Estimate{Valid: true}},
		},
		Findings: []monitor.Finding{
			{ID: "no-ttl-lock", Severity: monitor.SeverityDanger},
			{ID: "even-n", Severity: monitor.SeverityWarning}, {ID: "even-n", Severity: monitor.SeverityWarning, Node: "n2"},
		},
	}
	s.Counts[monitor.LockHeld], s.Counts[monitor.LockNotALock] = 6, 1
	return s
}

func guard() *fakeGuard {
	return &fakeGuard{
		status: []restartguard.NodeStatus{
			{Node: "n1", Phase: restartguard.PhaseServing, RunID: "a"},
			{Node: "n2", Phase: restartguard.PhaseCordoned, RunID: "b", Known: true, Verified: true, Proven: true},
			{Node: "n3", Phase: restartguard.PhaseUnreachable, RunID: "c", Known: true, Exposed: 1500 * time.Millisecond},
		},
		outlook: restartguard.Outlook{N: 3, Quorum: 2, Voting: 1},
		met:     true,
	}
}

// own returns the names of our metrics, without those of the runtime.
func own(t *testing.T, m *Metrics) []string {
	t.Helper()
	var names []string
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), namespace) {
			names = append(names, f.GetName())
		}
	}
	return names
}

func full() *Metrics {
	m := New(Build{"v1.2.3", "go1.26", "abc"})
	m.Show(Cluster{Name: "shop", Monitor: fakeMonitor{picture()}, Guard: guard(), Export: exports{}, Record: recorder{lag: time.Second, wrote: true}})
	m.Acquired("shop", 3*time.Millisecond, nil)
	m.Acquired("shop", 700*time.Millisecond, &redlock.Error{Kind: redlock.ErrContended})
	return m
}

type recorder struct {
	err   error
	lag   time.Duration
	wrote bool
}

func (r recorder) Err() error                 { return r.err }
func (r recorder) Problem() error             { return r.err }
func (r recorder) Lag() (time.Duration, bool) { return r.lag, r.wrote }

// A record that fails is a metric, and a line of /healthz, which stays 200: the guard works.
func TestARecordThatFails(t *testing.T) {
	m := New(Build{})
	m.Show(Cluster{Name: "shop", Guard: guard(), Record: recorder{errors.New("database or disk is full"), time.Minute, true}})
	out := scrape(t, m)
	for _, want := range []string{`redlockctl_record_up{cluster="shop"} 0`, `redlockctl_record_lag_seconds{cluster="shop"} 60`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
	if w.Code != 200 || w.Body.String() != "ok\nnothing is recorded: database or disk is full\n" {
		t.Error(w.Code, w.Body.String())
	}
}

// The exposition as Prometheus reads it.
func TestExposition(t *testing.T) {
	m := full()
	const golden = "testdata/exposition.golden"
	got, err := testutil.GatherAndFormat(m.registry, expfmt.TypeTextPlain, own(t, m)...)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

func TestNamesAreByConvention(t *testing.T) {
	problems, err := testutil.GatherAndLint(full().registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// A guard without a monitor reports the nodes too, by what it sees itself.
func TestAGuardAlone(t *testing.T) {
	m := New(Build{})
	g := guard()
	g.status[1] = restartguard.NodeStatus{Node: "n2", Phase: restartguard.PhaseFenced, RunID: "b", Until: time.Now().Add(time.Hour)}
	g.outlook.Until = time.Now().Add(time.Hour)
	m.Show(Cluster{Name: "shop", Guard: g})
	out := scrape(t, m)
	for _, want := range []string{
		`redlockctl_node_up{cluster="shop",node="n1"} 1`,
		`redlockctl_node_up{cluster="shop",node="n3"} 0`,
		`redlockctl_node_fenced{cluster="shop",node="n2"} 1`,
		`redlockctl_cluster_lockable{cluster="shop"} 0`,
		`redlockctl_cluster_spare_nodes{cluster="shop"} -1`,
		`redlockctl_guard_node_phase{cluster="shop",node="n2",phase="fenced"} 1`,
		`redlockctl_node_rejoin_seconds{cluster="shop",node="n2"} 35`,
		`redlockctl_cluster_quorum_return_seconds{cluster="shop"} 35`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if strings.Contains(out, "redlockctl_locks{") {
		t.Error("locks are told of, and nobody looks at them")
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	out, err := testutil.GatherAndFormat(m.registry, expfmt.TypeTextPlain, own(t, m)...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Incarnations of a server that start and end between two scrapes are counted.
func TestLivesAreCounted(t *testing.T) {
	var l incarnations
	for _, s := range []struct {
		runID   string
		exposed time.Duration
	}{
		{"", 0}, {"a", 0}, {"a", 0}, {"b", 2 * time.Second}, {"b", 3 * time.Second}, {"", 3 * time.Second}, {"b", 3 * time.Second},
		{"c", time.Second}, {"c", 0}, {"c", 500 * time.Millisecond},
	} {
		l.saw(s.runID, s.exposed)
	}
	if l.restarts != 2 || l.total != 4500*time.Millisecond {
		t.Errorf("%d restarts, %s exposed; want 2 and 4.5s", l.restarts, l.total)
	}
}

// Several clusters are exported side by side, until one is hidden. A cluster whose guard
// does not run is reported.
func TestSeveralClustersAreShown(t *testing.T) {
	m := full()
	m.Show(Cluster{Name: "bank\x1b", Monitor: fakeMonitor{picture()}})
	m.Show(Cluster{Name: "new", Down: errors.New("no state directory")})
	out := scrape(t, m)
	for _, want := range []string{`redlockctl_node_up{cluster="shop"`, `redlockctl_guard_healthy{cluster="shop"} 1`, `redlockctl_node_up{cluster="bank\\x1b"`, `redlockctl_guard_healthy{cluster="new"} 0`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	for path, want := range map[string]int{
		"/healthz": 200, "/healthz?cluster=new": 503, "/healthz?cluster=none": 404, "/readyz": 503, "/readyz?cluster=shop": 200,
		"/status": 200, "/status?cluster=shop": 200, "/status?cluster=none": 404,
	} {
		if code, body := get(path); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if _, body := get("/status"); strings.Count(body, `"nodes"`) != 3 {
		t.Errorf("/status: %s", body)
	}
	m.Hide("shop")
	out = scrape(t, m)
	if strings.Contains(out, `cluster="shop",node`) || strings.Contains(out, `redlockctl_guard_healthy{cluster="shop"}`) || strings.Contains(out, "\x1b") {
		t.Errorf("shop is hidden, and told of:\n%s", out)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	g := guard()
	m := New(Build{})
	m.Show(Cluster{Name: "shop", Guard: g, Monitor: fakeMonitor{picture()}})
	h := m.Handler()
	get := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
		if code, body := get("GET", path); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"/healthz?cluster=WRONG", "/readyz?cluster=WRONG", "/status?cluster=WRONG%1b"} {
		if code, body := get("GET", path); code != 404 || !strings.Contains(body, "have: shop") || strings.Contains(body, "\x1b") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := get("POST", "/metrics"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
	if code, _ := get("GET", "/nothing"); code != http.StatusNotFound {
		t.Errorf("/nothing: %d", code)
	}
	g.met = false
	if code, body := get("GET", "/readyz"); code != 503 || !strings.Contains(body, "not met") {
		t.Errorf("not met: %d %s", code, body)
	}
	if code, _ := get("GET", "/healthz"); code != 200 {
		t.Errorf("not met, and so not healthy: %d", code)
	}
	g.sick = errors.New("n1 hangs\x1b[2J")
	if code, body := get("GET", "/healthz"); code != 503 || !strings.Contains(body, "n1 hangs") || strings.Contains(body, "\x1b") {
		t.Errorf("sick: %d %q", code, body)
	}
	s := picture()
	s.Complete, s.Nodes[0].Read = false, .4
	m.Show(Cluster{Name: "shop", Monitor: fakeMonitor{s}})
	if code, body := get("GET", "/readyz"); code != 503 || !strings.Contains(body, "n1 read to 40 %") {
		t.Errorf("not all read yet: %d %s", code, body)
	}
	// Locks that are not fully read would have other states: none is exported.
	if _, body := get("GET", "/metrics"); strings.Contains(body, "redlockctl_locks{") || strings.Contains(body, `redlockctl_node_locks{cluster="shop",node="n1"`) {
		t.Error(body)
	}
}

func TestListenWantsAHost(t *testing.T) {
	for _, addr := range []string{"", ":9622", "9622", "localhost", "127.0.0.1:", "http://127.0.0.1:9622"} {
		if l, err := Listen(addr); !errors.Is(err, ErrAddress) {
			t.Errorf("Listen(%q) = %v, %v; want ErrAddress", addr, l, err)
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- full().Serve(ctx, l, "", slog.New(slog.DiscardHandler)) }()
	answer, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if !strings.Contains(string(body), "redlockctl_build_info") || !strings.Contains(string(body), "go_goroutines") {
		t.Errorf("got %s", body)
	}
	// A silent client delays nobody.
	idle, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// A client that opens connections and sends nothing cannot use up the file descriptors
// that the guard needs. Others are answered once those connections are closed.
func TestIdleConnectionsAreBounded(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingListener{Listener: l}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- full().Serve(ctx, counted, "", slog.New(slog.DiscardHandler)) }()
	for range mostConns + 8 {
		idle, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
	}
	answer, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if n := counted.most.Load(); n > mostConns {
		t.Errorf("%d connections were open at a time", n)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// countingListener counts the connections that are open at the same time.
type countingListener struct {
	net.Listener
	open, most atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := l.open.Add(1)
	for m := l.most.Load(); n > m && !l.most.CompareAndSwap(m, n); m = l.most.Load() {
	}
	return &countedConn{Conn: c, ended: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type countedConn struct {
	net.Conn
	ended func()
}

func (c *countedConn) Close() error {
	c.ended()
	return c.Conn.Close()
}

func TestExposed(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:1": false, "[::1]:1": false, "0.0.0.0:1": true, "[::]:1": true, "10.0.0.1:1": true} {
		at, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(at); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestOutcomesOfAnAcquisition(t *testing.T) {
	m := New(Build{})
	for _, err := range []error{
		nil, redlock.ErrContended, redlock.ErrNoQuorum, redlock.ErrExpired, context.Canceled, context.DeadlineExceeded, errors.New("else"),
	} {
		m.Acquired("shop", time.Millisecond, err)
	}
	out := scrape(t, m)
	for outcome, n := range map[string]int{"acquired": 1, "contended": 1, "no_quorum": 1, "expired": 1, "cancelled": 2, "failed": 1} {
		if want := fmt.Sprintf(`redlockctl_acquire_duration_seconds_count{cluster="shop",outcome=%q} %d`, outcome, n); !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// A program can read what the guard knows, from another host too.
func TestStatusDocument(t *testing.T) {
	h := full().Handler()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/status", nil))
	var doc struct {
		Guard  *guardJSON
		Others []struct {
			ID      string
			DelayMs int64 `json:"delay_ms"`
		}
		Nodes []struct {
			BootFence string `json:"boot_fence"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != 200 {
		t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	if doc.Guard == nil || doc.Guard.ID != "OWN" || doc.Guard.DelayMs != 30000 || len(doc.Nodes) != 3 {
		t.Errorf("%s", w.Body)
	}
	if len(doc.Others) != 1 || doc.Others[0].ID != "OLD" || doc.Others[0].DelayMs != 6000 || strings.Contains(w.Body.String(), "\x1b") {
		t.Errorf("others: %s", w.Body)
	}
	if doc.Nodes[1].BootFence != "fenced" || doc.Nodes[0].BootFence != "unknown" || doc.Nodes[2].BootFence != "unfenced" {
		t.Errorf("boot fences: %+v", doc.Nodes)
	}
	m := New(Build{})
	m.Show(Cluster{Name: "shop", Monitor: fakeMonitor{picture()}})
	w = httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/status", nil))
	if !strings.Contains(w.Body.String(), `"guard": null`) {
		t.Errorf("without a guard: %s", w.Body)
	}
}

type exports struct{}

func (exports) Counts() (sent, missed, refused uint64) { return 7, 2, 1 }
