package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"redlockctl/base/private"
	"redlockctl/base/sleep"
	"redlockctl/internal/config"
)

// OnlyRestart waits until no other command that restarts a node of this cluster runs on this machine, and keeps
// others waiting until done is called. That of a restart whose session has ended goes on, and would end a server
// that serves again by then. waits is called if there is one. Without an audit log, whose directory has the lock,
// nobody waits.
func OnlyRestart(ctx context.Context, cfg *config.Config, waits func()) (done func(), err error) {
	if cfg.Audit.Path == "" {
		return func() {}, nil
	}
	name := "restart-" + url.PathEscape(cfg.Cluster.Name) + ".lock"
	lock, err := private.Open(filepath.Join(filepath.Dir(cfg.Audit.Path), name), os.O_RDONLY|os.O_CREATE, 0o640, private.Group)
	if err != nil {
		return nil, fmt.Errorf("the lock of restarts: %w", err)
	}
	for told := false; ; told = true {
		switch err := private.TryLock(lock, false); {
		case err == nil:
			return func() { _ = lock.Close() }, nil
		case !errors.Is(err, private.ErrLocked):
			_ = lock.Close()
			return nil, fmt.Errorf("%s: %w", lock.Name(), err)
		}
		if !told {
			waits()
		}
		if err := sleep.For(ctx, 200*time.Millisecond); err != nil {
			_ = lock.Close()
			return nil, err
		}
	}
}
