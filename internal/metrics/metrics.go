// Package metrics tells Prometheus what monitor and guard know, and a supervisor
// of processes whether they live.
//
// The numbers are made when they are asked for, from the latest snapshot and the
// guard's status: nothing is sent to a node because of a scrape. What must be
// counted between two scrapes (incarnations of a server, the time that it was exposed) is
// looked at once a second while [Metrics.Serve] runs. Names and labels are listed
// in catalogue.go, and by deploy/prometheus.
package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v2"
	"golang.org/x/net/netutil"

	"redlockctl/internal/announce"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// Monitor is what is there; *observe.Monitor is one.
type Monitor interface {
	Snapshot() *monitor.Snapshot
}

// Guard is what must not happen; *restartguard.Guard is one.
type Guard interface {
	Status() []restartguard.NodeStatus
	Outlook() restartguard.Outlook
	Healthy() error
	Sees() error
	Met() bool
	// ID, Delay and Others are who it is, its own D, and who else announces itself.
	ID() string
	Delay() time.Duration
	Others() []announce.Guard
}

// Export is what sends events elsewhere; *otlp.Exporter is one.
type Export interface {
	// Counts are how many events were sent, how many were forgotten before they could
	// be, and how many were refused.
	Counts() (sent, missed, refused uint64)
}

// Cluster is what is told of.
type Cluster struct {
	Name    string
	Monitor Monitor // nil: the locks and the clocks are not looked at
	Guard   Guard   // nil: there is none in this process
	Export  Export  // nil: events are not exported
	Down    error   // why the guard that should run here does not
}

// Build is what the program was made of.
type Build struct{ Version, Go, Revision string }

// Metrics are the numbers of one process. It is safe for use by many goroutines.
type Metrics struct {
	registry *prometheus.Registry
	acquires *prometheus.HistogramVec

	mu    sync.Mutex
	shown []*shown // in the order in which they came
}

// shown is a cluster, and what was counted of it.
type shown struct {
	Cluster
	lives map[string]*incarnations // by the name of the node
}

// New makes metrics of nothing but the process itself, with a registry of its own.
func New(build Build) *Metrics {
	m := &Metrics{registry: prometheus.NewPedanticRegistry()}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: namespace + "build_info", Help: "What the program was built from; always 1.",
	}, []string{"version", "goversion", "revision"})
	info.WithLabelValues(build.Version, build.Go, build.Revision).Set(1)
	m.acquires = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: namespace + "acquire_duration_seconds",
		Help: "How long acquisitions took that were made by this process, waiting included, by outcome.",
		// From a round trip on loopback to the wait of a person.
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"cluster", "outcome"})
	m.registry.MustRegister(info, m.acquires, collector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Show tells of this cluster from now on, in place of what was told of one with its
// name; what was counted goes on.
func (m *Metrics) Show(c Cluster) {
	m.mu.Lock()
	if i := slices.IndexFunc(m.shown, func(s *shown) bool { return s.Name == c.Name }); i >= 0 {
		m.shown[i].Cluster = c
	} else {
		m.shown = append(m.shown, &shown{c, map[string]*incarnations{}})
	}
	m.mu.Unlock()
	m.look()
}

// Hide tells of the cluster with this name no longer.
func (m *Metrics) Hide(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = slices.DeleteFunc(m.shown, func(s *shown) bool { return s.Name == name })
}

// Acquired counts an acquisition that was made here.
func (m *Metrics) Acquired(cluster string, took time.Duration, err error) {
	outcome := "failed"
	switch {
	case err == nil:
		outcome = "acquired"
	case errors.Is(err, redlock.ErrContended):
		outcome = "contended"
	case errors.Is(err, redlock.ErrNoQuorum):
		outcome = "no_quorum"
	case errors.Is(err, redlock.ErrExpired):
		outcome = "expired"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "cancelled"
	}
	m.acquires.WithLabelValues(label(cluster), outcome).Observe(took.Seconds())
}

// label makes any text fit for a label: valid UTF-8 without what a terminal would
// obey.
func label(s string) string { return safetext.Escape(s) }

// incarnations are counted of a node, since they are gone when the next scrape comes.
type incarnations struct {
	runID    string
	exposed  time.Duration // of that incarnation
	restarts uint64
	total    time.Duration // exposed, of all incarnations
}

func (m *Metrics) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.shown {
		if c.Guard == nil {
			continue
		}
		for _, s := range c.Guard.Status() {
			l := c.lives[s.Node]
			if l == nil {
				l = &incarnations{}
				c.lives[s.Node] = l
			}
			l.saw(s.RunID, s.Exposed)
		}
	}
}

func (l *incarnations) saw(runID string, exposed time.Duration) {
	if runID != "" && runID != l.runID {
		if l.runID != "" {
			l.restarts++
		}
		l.runID, l.exposed = runID, 0
	}
	if exposed < l.exposed { // another loss of the same incarnation
		l.exposed = 0
	}
	l.total += exposed - l.exposed
	l.exposed = exposed
}

// healthy is why the process does not do its work; nil if it does. A guard that
// hangs should be started again; one that is blind needs its password or rights. Of
// several guards one that works is enough: to start the process again would stop it.
func (m *Metrics) healthy(cluster string) error {
	if sick, of := m.wrong(cluster, Cluster.healthy); len(sick) == of {
		return errors.Join(sick...)
	}
	return nil
}

// ready is what is not known yet; nil: all that can be known is.
func (m *Metrics) ready(cluster string) error {
	missing, _ := m.wrong(cluster, Cluster.ready)
	return errors.Join(missing...)
}

// wrong is what is wrong with clusters, of so many: by their names where there are several.
func (m *Metrics) wrong(cluster string, with func(Cluster) error) (errs []error, of int) {
	clusters := m.clusters(cluster)
	for _, c := range clusters {
		err := with(c)
		if err != nil && len(clusters) > 1 {
			err = fmt.Errorf("%s: %w", c.Name, err)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs, len(clusters)
}

func (c Cluster) healthy() error {
	if c.Down != nil || c.Guard == nil {
		return c.Down
	}
	return cmp.Or(c.Guard.Healthy(), c.Guard.Sees())
}

func (c Cluster) ready() error {
	switch {
	case c.Down != nil:
		return c.Down
	case c.Guard != nil && !c.Guard.Met():
		return errors.New("the guard has not met all nodes yet")
	case c.Monitor == nil:
		return nil
	}
	s := c.Monitor.Snapshot()
	if s.Complete {
		return nil
	}
	why := make([]string, 0, len(s.Nodes))
	for _, n := range s.Unread() {
		why = append(why, n.Node+" "+n.Why)
	}
	return errors.New("not all keys have been read yet: " + strings.Join(why, ", "))
}

// clusters are those that are told of, or the one with a name; where there is one
// alone, it is meant by any name.
func (m *Metrics) clusters(name string) (all []Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shown {
		if name == "" || s.Name == name || len(m.shown) == 1 {
			all = append(all, s.Cluster)
		}
	}
	return all
}

// Bounds of the server: a scraper is quick, and whoever is not must not hold
// anything up.
const (
	headerTime  = 5 * time.Second
	requestTime = 10 * time.Second
	idleTime    = 30 * time.Second
	mostHeader  = 16 << 10
	mostAtOnce  = 4
	endTime     = 2 * time.Second
	// mostConns is how many connections are kept at a time; it is less where the
	// process may have few descriptors, of which the guard needs the others.
	mostConns = 64
)

// Exposed reports whether others than this host can reach an address of [Listen].
// Without a web configuration there is no password: whoever can reach it can read.
func Exposed(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// Handler answers /metrics, /healthz, /readyz and /status.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: mostAtOnce, Timeout: requestTime / 2,
	}))
	mux.HandleFunc("GET /healthz", m.answer(m.healthy))
	mux.HandleFunc("GET /readyz", m.answer(m.ready))
	mux.HandleFunc("GET /status", m.status)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "redlockctl\n/metrics\n/healthz\n/readyz\n/status")
	})
	return mux
}

// answer says if all is well with all clusters, or with that of ?cluster=NAME.
func (m *Metrics) answer(what func(cluster string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		name := r.URL.Query().Get("cluster")
		if name != "" && len(m.clusters(name)) == 0 {
			http.Error(w, errNoCluster.Error(), http.StatusNotFound)
			return
		}
		if err := what(name); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			for line := range strings.Lines(err.Error()) {
				fmt.Fprintln(w, safetext.Escape(strings.TrimSuffix(line, "\n")))
			}
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

var errNoCluster = errors.New("no such cluster is watched here")

// ErrAddress is returned for an address that says too little or too much.
var ErrAddress = errors.New("it is no address to listen on: write host:port, such as 127.0.0.1:9622")

// Listen listens at host:port. The host must be named: nothing listens to the
// whole world by leaving it out.
func Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("%q: %w", addr, ErrAddress)
	}
	return net.Listen("tcp", addr)
}

// ErrWebConfig is returned for a web configuration that cannot be used.
var ErrWebConfig = errors.New("it is no web configuration")

// CheckWebConfig says why a file cannot be the web configuration of [Metrics.Serve]: it
// is read, and so are the certificate and key that it names. protects reports whether it
// has TLS or a password.
func CheckWebConfig(file string) (protects bool, err error) {
	if err := web.Validate(file); err != nil {
		return false, fmt.Errorf("%q: %w: %w", file, ErrWebConfig, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	var has web.Config
	if err := yaml.Unmarshal(text, &has); err != nil {
		return false, fmt.Errorf("%q: %w: %w", file, ErrWebConfig, err)
	}
	return has.TLSConfig.IsEnabled() || len(has.Users) > 0, nil
}

// Serve answers on l until ctx ends. webConfig is a file of Prometheus' exporter
// toolkit that says which certificate and passwords are needed, read anew for each
// connection; empty: none are. What goes wrong with single connections is told to log.
// Connections beyond a bound wait until others end.
func (m *Metrics) Serve(ctx context.Context, l net.Listener, webConfig string, log *slog.Logger) error {
	l = netutil.LimitListener(l, connections())
	server := &http.Server{
		Handler: m.Handler(), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: requestTime,
		IdleTimeout: idleTime, MaxHeaderBytes: mostHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				end, stop := context.WithTimeout(context.WithoutCancel(ctx), endTime)
				defer stop()
				if server.Shutdown(end) != nil {
					_ = server.Close()
				}
				return
			case <-tick.C:
				m.look()
			}
		}
	})
	serve := server.Serve
	if webConfig != "" {
		serve = func(l net.Listener) error {
			return web.Serve(l, server, &web.FlagConfig{WebConfigFile: &webConfig}, log)
		}
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
