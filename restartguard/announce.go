package restartguard

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/sleep"
	"redlockctl/redlock"
)

const (
	announcePing  = 2 * time.Second        // between two signs of life on the connection
	announceAgain = 100 * time.Millisecond // before the next connection is tried
	announceLater = 2 * time.Second        // where the node does not let us
)

// announcer keeps a guard seen on one node.
type announcer struct {
	node    *redlock.Node
	timeout time.Duration
	text    func() string   // what it says of itself
	changed <-chan struct{} // that may be another by now
}

// run goes from one connection to the next until ctx ends; the node may refuse the command.
func (a announcer) run(ctx context.Context, refused func(error)) {
	for ctx.Err() == nil {
		err := a.announced(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := announceAgain
		if denied := answered(err) && !isSetup(err); denied {
			refused(err)
			pause = announceLater
		} else if answered(err) || errors.Is(err, redlock.ErrFull) {
			pause = announceLater // the watch itself has told it
		}
		_ = sleep.For(ctx, pause)
	}
}

// isSetup reports whether the server refused the connection, and not the command.
func isSetup(err error) bool {
	return redis.IsAuthError(err) || redis.HasErrorPrefix(err, "LOADING")
}

// announced is one connection: subscribed until it breaks.
func (a announcer) announced(ctx context.Context) error {
	client := a.node.Within(redlock.NewBudget(guardReply, 0)).OneConnection(a.timeout, func(opt *redis.Options) { opt.PoolSize = 2 }, abrupt)
	defer client.Close()
	sub := client.Subscribe(ctx)
	// What it says may be of an earlier incarnation of the node for a moment, until
	// the watch has met this one.
	said := a.text()
	if err := sub.Subscribe(ctx, said); err != nil {
		_ = sub.Close()
		return err
	}
	ended := make(chan error, 1)
	go func() {
		for {
			// Messages, which anybody may send there, say nothing.
			if _, err := sub.ReceiveTimeout(ctx, announcePing+a.timeout); err != nil {
				ended <- err
				return
			}
		}
	}()
	ping := time.NewTicker(announcePing)
	defer ping.Stop()
	err := func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case err := <-ended:
				ended <- err
				return err
			case <-ping.C:
				if err := sub.Ping(ctx); err != nil {
					return err
				}
			case <-a.changed:
				next := a.text()
				if next == said {
					continue
				}
				// The one before the other: at no moment is there none.
				if err := errors.Join(sub.Subscribe(ctx, next), sub.Unsubscribe(ctx, said)); err != nil {
					return err
				}
				said = next
			}
		}
	}()
	_ = sub.Close()
	<-ended
	return err
}
