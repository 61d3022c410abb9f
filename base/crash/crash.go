// Package crash gives the terminal back before a panic ends the process. Go ends a process where any goroutine
// panics, without a word to the others: the terminal would stay raw, on its other screen, and the text of the
// panic would vanish with that. So every goroutine of this program is started here.
package crash

import (
	"sync/atomic"
	"time"
)

// before is what is done before the process ends: one process has one terminal. Nil: nothing.
var before atomic.Pointer[func()]

// patience is how long that may take. What panics may hold a lock that it needs.
const patience = time.Second

// Before sets what is done before a panic ends the process, until it is taken back.
func Before(f func()) (takeBack func()) {
	before.Store(&f)
	return func() { before.CompareAndSwap(&f, nil) }
}

// Go runs f in a goroutine of its own.
func Go(f func()) { go Safe(f)() }

// Safe is f for a goroutine: if it panics, what is to be done before is done, and the panic goes on.
func Safe(f func()) func() {
	return func() {
		returned := false
		defer func() {
			if !returned {
				prepare()
			}
		}()
		f()
		returned = true
	}
}

// prepare does what is to be done before the end, once.
func prepare() {
	f := before.Swap(nil)
	if f == nil {
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); (*f)() }()
	select {
	case <-done:
	case <-time.After(patience):
	}
}
