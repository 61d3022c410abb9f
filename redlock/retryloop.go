package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// retryLoop is what one acquisition does between its attempts. The first attempt is
// made at once, unless others of the same client wait already. Each pause
// between attempts ends with an attempt, and so does each wake-up within it,
// which does not end the pause.
type retryLoop struct {
	client   *Client
	resource string
	opt      Options
	attempts int // as many as there are pauses, and one more
	granted  bool
	err      error // why there is no next attempt, if not for their number

	due   int // attempts at the end of a pause so far, and the first
	place *waiter
	timer *time.Timer // of the pause
	ended bool        // the pause is over
}

// next waits for the moment of the next attempt. last is the failure of the one
// before; nil: there was none. It is false when there shall be none.
func (r *retryLoop) next(ctx context.Context, last *Error) bool {
	if last == nil {
		r.due++
		if r.attempts == 1 {
			return true
		}
		var atOnce bool
		if r.place, atOnce = r.client.waits.place(r.resource); atOnce {
			return true
		}
	} else {
		contended := errors.Is(last.Kind, ErrContended)
		if r.place != nil && contended {
			r.place.failed()
		}
		switch {
		case r.due == r.attempts:
			return false
		case r.place == nil && contended:
			r.place = r.client.waits.wait(r.resource)
		}
		if !contended {
			return r.pause(ctx)
		}
	}
	for {
		r.start()
		woken, err := r.place.wait(ctx, r.timer.C, r.client.closing)
		switch {
		case err != nil:
			r.err = err
			return false
		case woken:
			return true
		}
		r.ended = true
		r.due++
		// Who is not the first in the queue leaves it to that one, up to the end.
		if r.place.first() || r.due == r.attempts {
			return true
		}
	}
}

// start begins a pause, unless one is under way.
func (r *retryLoop) start() {
	if r.timer != nil && !r.ended {
		return
	}
	d := r.opt.pause(r.due+1, rand.Float64())
	if r.timer == nil {
		r.timer = time.NewTimer(d)
	} else {
		r.timer.Reset(d)
	}
	r.ended = false
}

// pause waits for the end of the pause, whatever the nodes say: those that fail
// do not tell when they are well again.
func (r *retryLoop) pause(ctx context.Context) bool {
	r.start()
	select {
	case <-r.timer.C:
		r.ended = true
		r.due++
		return true
	case <-ctx.Done():
		r.err = ctx.Err()
	case <-r.client.closing:
		r.err = ErrClosed
	}
	return false
}

// note is what the token of the next attempt tells of the wait before it.
func (r *retryLoop) note() note {
	if r.place == nil {
		return note{waited: unwaited}
	}
	l := r.place.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue[0] != r.place || !l.begun {
		return note{waited: unwaited}
	}
	return l.plan.note()
}

func (r *retryLoop) leave() {
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.place != nil {
		r.place.leave(r.granted)
	}
}
