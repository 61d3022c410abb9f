package watch

import (
	"fmt"
	"time"

	"redlockctl/base/boottime"
	"redlockctl/restartguard"
	"redlockctl/server/safetext"
)

// remember writes the state to the guard's memory if it has changed, if it is time, or always.
func (w *watcher) remember(always bool) {
	m := w.guard.cfg.Memory
	if m == nil || w.state.Basis.RunID == "" {
		return
	}
	// The boot clock is read last: a delay in between makes a deadline later, never earlier.
	now := time.Now()
	boot := boottime.Now()
	durable := w.state.Durable()
	if !always && durable == w.written && now.Sub(w.writtenAt) < restartguard.RecordEvery(w.guard.cfg.Delay) && !m.Removed() {
		return
	}
	remade, err := m.Put(w.remembered(), now, boot)
	if remade {
		w.emitMemory(now, safetext.Error(fmt.Errorf("the state directory %s was removed or replaced while the guard ran: it was made again, and the memory written again", m.Dir())))
	}
	w.written, w.writtenAt = durable, now
	if why := safetext.Error(err); why != w.writeErr {
		w.writeErr = why
		w.emitMemory(now, why)
	}
}

func (w *watcher) emitMemory(now time.Time, text string) {
	if text != "" {
		w.guard.emit(w.node.Name(), []restartguard.Event{{At: now, Kind: "memory", Text: text}})
	}
}
