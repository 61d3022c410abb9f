package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"redlockctl/internal/metrics"
)

// listening is the metrics of this process and where they are told; nil where
// nobody asked for them.
type listening struct {
	*metrics.Metrics
	l net.Listener
}

const listenUsage = "tell Prometheus and health checks at this address, such as 127.0.0.1:9622"

// listen begins to listen; nothing is answered before serve. An empty address is
// none.
func listen(addr string) (*listening, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := metrics.Listen(addr)
	if errors.Is(err, metrics.ErrAddress) {
		return nil, usageError{fmt.Errorf("--listen %w", err)}
	} else if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	v := build()
	return &listening{metrics.New(metrics.Build{Version: v.Version, Go: v.Go, Revision: v.Revision}), l}, nil
}

// serve answers until ctx ends, in the background, and tells log what goes wrong.
// wait returns when all is over.
func (s *listening) serve(ctx context.Context, log *slog.Logger) (wait func()) {
	if s == nil {
		return func() {}
	}
	if metrics.Exposed(s.l.Addr()) {
		log.Warn("the metrics are for everybody who can reach this address: there is no TLS and no password", "addr", s.l.Addr().String())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(ctx, s.l, slog.NewLogLogger(log.Handler(), slog.LevelWarn)); err != nil && ctx.Err() == nil {
			log.Error("the metrics are not told any more", "error", printable(err.Error()))
		}
	}()
	return func() { <-done }
}

// show tells of a cluster from now on.
func (s *listening) show(c metrics.Cluster) {
	if s != nil {
		s.Show(c)
	}
}
