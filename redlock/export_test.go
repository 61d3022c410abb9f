package redlock

// Listened is how many copies of a kept lock were seen, of which the loss is told.
func Listened(k *Keeper) (n int) {
	for _, e := range k.lock.client.waits.trackers {
		e.mu.Lock()
		of := e.listeners[k.lock.resource]
		e.mu.Unlock()
		for _, l := range of {
			if s, ok := l.(*copyWatch); ok && s.resource == k.lock.resource && s.token == k.lock.token {
				s.mu.Lock()
				if s.seen[e.node] {
					n++
				}
				s.mu.Unlock()
			}
		}
	}
	return n
}
