package cli

import (
	"context"
	"errors"
	"fmt"
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

// serve answers until ctx ends, in the background; ended is called with what went
// wrong, if anything did. wait returns when all is over.
func (s *listening) serve(ctx context.Context, ended func(error)) (wait func()) {
	if s == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(ctx, s.l); err != nil && ctx.Err() == nil {
			ended(err)
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
