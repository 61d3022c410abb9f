package app

import (
	"context"
	"log/slog"
	"net"

	"redlockctl/internal/metrics"
	"redlockctl/internal/safetext"
)

// Metrics are those of this process and where they are told; nil where nobody asked
// for them: then each method does nothing.
type Metrics struct {
	*metrics.Metrics
	l         net.Listener
	webConfig string
	protected bool // by TLS or a password
}

// Listen begins to listen; nothing is answered before [Metrics.Serve]. An empty
// address is none. It fails with [metrics.ErrAddress] for one that cannot be meant, and
// with [metrics.ErrWebConfig] for a web configuration that cannot be used; an empty one
// is none.
func Listen(addr, webConfig string, build metrics.Build) (*Metrics, error) {
	if addr == "" {
		return nil, nil
	}
	protected := false
	if webConfig != "" {
		var err error
		if protected, err = metrics.CheckWebConfig(webConfig); err != nil {
			return nil, err
		}
	}
	l, err := metrics.Listen(addr)
	if err != nil {
		return nil, err
	}
	return &Metrics{metrics.New(build), l, webConfig, protected}, nil
}

// Serve answers until ctx ends, in the background, and tells log what goes wrong.
// wait returns when all is over.
func (m *Metrics) Serve(ctx context.Context, log *slog.Logger) (wait func()) {
	if m == nil {
		return func() {}
	}
	if !m.protected && metrics.Exposed(m.l.Addr()) {
		log.Warn("everybody who can reach this address can read the metrics: there is no TLS and no password; a file given by --web-config sets them", "addr", m.l.Addr().String())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Metrics.Serve(ctx, m.l, m.webConfig, log); err != nil && ctx.Err() == nil {
			log.Error("the metrics are no longer served", "error", safetext.Printable(err.Error()))
		}
	}()
	return func() { <-done }
}

// Show tells of a cluster from now on.
func (m *Metrics) Show(c metrics.Cluster) {
	if m != nil {
		m.Metrics.Show(c)
	}
}

// Hide tells of a cluster no longer.
func (m *Metrics) Hide(name string) {
	if m != nil {
		m.Metrics.Hide(name)
	}
}
