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
func (s *retryLoop) next(ctx context.Context, last *Error) bool {
	if last == nil {
		s.due++
		if s.attempts == 1 {
			return true
		}
		var atOnce bool
		if s.place, atOnce = s.client.waits.place(s.resource); atOnce {
			return true
		}
	} else {
		contended := errors.Is(last.Kind, ErrContended)
		if s.place != nil && contended {
			s.place.failed()
		}
		switch {
		case s.due == s.attempts:
			return false
		case s.place == nil && contended:
			s.place = s.client.waits.wait(s.resource)
		}
		if !contended {
			return s.pause(ctx)
		}
	}
	for {
		s.start()
		woken, err := s.place.wait(ctx, s.timer.C, s.client.closing)
		switch {
		case err != nil:
			s.err = err
			return false
		case woken:
			return true
		}
		s.ended = true
		s.due++
		// Who is not the first in the queue leaves it to that one, up to the end.
		if s.place.first() || s.due == s.attempts {
			return true
		}
	}
}

// start begins a pause, unless one is under way.
func (s *retryLoop) start() {
	if s.timer != nil && !s.ended {
		return
	}
	d := s.opt.pause(s.due+1, rand.Float64())
	if s.timer == nil {
		s.timer = time.NewTimer(d)
	} else {
		s.timer.Reset(d)
	}
	s.ended = false
}

// pause waits for the end of the pause, whatever the nodes say: those that fail
// do not tell when they are well again.
func (s *retryLoop) pause(ctx context.Context) bool {
	s.start()
	select {
	case <-s.timer.C:
		s.ended = true
		s.due++
		return true
	case <-ctx.Done():
		s.err = ctx.Err()
	case <-s.client.closing:
		s.err = ErrClosed
	}
	return false
}

// note is what the token of the next attempt tells of the wait before it.
func (s *retryLoop) note() note {
	if s.place == nil {
		return note{waited: unwaited}
	}
	l := s.place.queue
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue[0] != s.place || !l.begun {
		return note{waited: unwaited}
	}
	return l.plan.note()
}

func (s *retryLoop) leave() {
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.place != nil {
		s.place.leave(s.granted)
	}
}
