package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// retryLoop is what one acquisition does between its attempts. The first attempt is
// made at once, unless other callers of this client already wait. Each pause ends with
// an attempt. Each wake-up within a pause leads to an attempt too, and does not end the
// pause.
type retryLoop struct {
	client   *Client
	resource string
	opt      Options
	attempts int // one more than there are pauses
	granted  bool
	err      error // why there is no next attempt, if there are attempts left

	due   int // attempts at the end of a pause so far, including the first
	place *waiter
	timer *time.Timer // of the pause
	ended bool        // the pause has ended
}

// next waits for the moment of the next attempt. last is the failure of the attempt
// before; nil: this is the first. It returns false if there is no next attempt.
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
		// A waiter that is not the first leaves attempts to the first, except the last
		// one.
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

// pause waits for the end of the pause, whatever the nodes say: failing nodes do not
// report when they recover.
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

// note is what the token of the next attempt says about the wait before it.
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
