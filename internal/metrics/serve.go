package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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

	"redlockctl/base/crash"
	"redlockctl/server/safetext"
)

// Limits of the server: a slow client must not block anything.
const (
	headerTime  = 5 * time.Second
	requestTime = 10 * time.Second
	idleTime    = 30 * time.Second
	mostHeader  = 16 << 10
	mostAtOnce  = 4
	endTime     = 2 * time.Second
)

// New returns metrics of the process itself, with a registry of its own.
func New(build Build) *Metrics {
	m := &Metrics{registry: prometheus.NewPedanticRegistry()}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: namespace + "build_info", Help: "Version of the program; always 1.",
	}, []string{"version", "goversion", "revision"})
	info.WithLabelValues(build.Version, build.Go, build.Revision).Set(1)
	m.acquires = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: namespace + "acquire_duration_seconds",
		Help: "Duration of acquisitions by this process, waiting included, by outcome.",
		// From a round trip on loopback to a person's patience.
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"cluster", "outcome"})
	m.registry.MustRegister(info, m.acquires, collector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// reachable reports whether other hosts can reach an address of [Listen]. Without a web
// configuration there is no password: whoever can reach it can read.
func reachable(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// Handler answers /metrics, /healthz, /readyz and /status.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: mostAtOnce, Timeout: requestTime / 2,
	}))
	mux.HandleFunc("GET /healthz", m.answer(m.healthy, m.remarks))
	mux.HandleFunc("GET /readyz", m.answer(m.ready, nil))
	mux.HandleFunc("GET /status", m.status)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "redlockctl\n/metrics\n/healthz\n/readyz\n/status")
	})
	return mux
}

// answer serves whether all clusters are well, or the one of ?cluster=NAME.
// What more returns is only printed.
func (m *Metrics) answer(what, more func(cluster string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		name := r.URL.Query().Get("cluster")
		if name != "" && len(m.clusters(name)) == 0 {
			m.noCluster(w, name)
			return
		}
		if err := what(name); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			printLines(w, err)
			return
		}
		fmt.Fprintln(w, "ok")
		if more != nil {
			printLines(w, more(name))
		}
	}
}

// printLines prints an error, which may be nil.
func printLines(w io.Writer, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(w, safetext.Escape(strings.TrimSuffix(line, "\n")))
	}
}

// noCluster answers a request for a cluster that is not watched here.
func (m *Metrics) noCluster(w http.ResponseWriter, name string) {
	have := []string{}
	for _, c := range m.clusters("") {
		have = append(have, safetext.Escape(c.Name))
	}
	http.Error(w, fmt.Sprintf("no cluster \"%s\" (have: %s)", safetext.Escape(name), strings.Join(have, ", ")), http.StatusNotFound)
}

// forOwnHosts refuses requests for another host, as a web page sends them after its name
// was bound to our address (DNS rebinding). With TLS or a password no page can do that.
// Prometheus and probes may know a guard that other hosts can reach by any name, so there
// only /status is refused; on a loopback address all is.
func (m *Metrics) forOwnHosts(h http.Handler, loopback bool) http.Handler {
	if m.protected {
		return h
	}
	name, _ := os.Hostname()
	own := []string{"localhost", m.host, name}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (loopback || r.URL.Path == "/status") && !isOwnHost(r.Host, own) {
			http.Error(w, fmt.Sprintf("not answered for the host %s: ask by IP address, localhost, or the host of --listen, or protect this address by --web-config",
				safetext.New(r.Host).Word()), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// isOwnHost reports whether a Host header has one of these names, or an IP address, which
// nobody can bind to another address.
func isOwnHost(header string, names []string) bool {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	if _, err := netip.ParseAddr(host); err == nil || header == "" {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && strings.EqualFold(n, host) })
}

// ErrAddress is returned by [Listen] for an address without host or port.
var ErrAddress = errors.New("not an address to listen on: write host:port, such as 127.0.0.1:9622")

// Listen listens at host:port. The host is required, so that nothing listens on all
// interfaces by accident.
func Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("%q: %w", addr, ErrAddress)
	}
	return net.Listen("tcp", addr)
}

// ErrWebConfig is returned for a web configuration that cannot be used.
var ErrWebConfig = errors.New("not a web configuration")

// CheckWebConfig reads a web configuration for [Metrics.Serve], its certificate and its key, and
// returns why it cannot be used. protects reports whether it has TLS or a password.
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

// Serve answers on l until ctx ends. webConfig is a file of Prometheus' exporter toolkit with
// certificate and passwords, read again for each connection; empty: neither TLS nor password.
// Errors of single connections go to log. Connections above a limit wait until others end.
func (m *Metrics) Serve(ctx context.Context, l net.Listener, webConfig string, log *slog.Logger) error {
	l = netutil.LimitListener(l, connections())
	server := &http.Server{
		Handler: m.forOwnHosts(m.Handler(), !reachable(l.Addr())), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: requestTime,
		IdleTimeout: idleTime, MaxHeaderBytes: mostHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(crash.Safe(func() {
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
	}))
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

// Open makes metrics and starts to listen; nothing is answered before [Metrics.Start]. An
// empty address returns nil. It fails with [ErrAddress] for an invalid address, and with
// [ErrWebConfig] for a web configuration that cannot be used; an empty one means none.
func Open(addr, webConfig string, build Build) (m *Metrics, err error) {
	if addr == "" {
		return nil, nil
	}
	m = New(build)
	if m.webConfig = webConfig; webConfig != "" {
		if m.protected, err = CheckWebConfig(webConfig); err != nil {
			return nil, err
		}
	}
	if m.at, err = Listen(addr); err != nil {
		return nil, err
	}
	m.host, _, _ = net.SplitHostPort(addr)
	return m, nil
}

// Start answers until ctx ends, in the background, and logs errors. wait returns when all
// has ended.
func (m *Metrics) Start(ctx context.Context, log *slog.Logger) (wait func()) {
	if m == nil {
		return func() {}
	}
	if !m.protected && reachable(m.at.Addr()) {
		log.Warn("everybody who can reach this address can read the metrics: there is no TLS and no password; a file given by --web-config sets them", "addr", m.at.Addr().String())
	}
	var serving sync.WaitGroup
	serving.Go(crash.Safe(func() {
		if err := m.Serve(ctx, m.at, m.webConfig, log); err != nil && ctx.Err() == nil {
			log.Error("the metrics are no longer served", "error", safetext.Printable(err.Error()))
		}
	}))
	return serving.Wait
}
