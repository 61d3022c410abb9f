// Package crash restores the terminal before a panic ends the process. Go ends the process
// as soon as one goroutine panics. The terminal would stay in raw mode on its alternate
// screen, and the text of the panic would vanish with that screen. So every goroutine of
// this program is started here.
package crash

import (
	"sync/atomic"
	"time"
)

// before runs before the process ends; nil: nothing to do. There is one, because a process
// has one terminal.
var before atomic.Pointer[func()]

// patience limits how long before may take: the goroutine that panicked may hold a lock
// that it needs.
const patience = time.Second

// Before sets the function to run before a panic ends the process. takeBack removes it.
func Before(f func()) (takeBack func()) {
	before.Store(&f)
	return func() { before.CompareAndSwap(&f, nil) }
}

// Go runs f in a goroutine of its own.
func Go(f func()) { go Safe(f)() }

// Safe wraps f for a goroutine: if f panics, the function set by [Before] runs first, and
// the panic continues.
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

// prepare runs the function set by [Before], once.
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
