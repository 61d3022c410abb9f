package monitor

// Reading is the progress of reading nodes that became reachable: until all is read,
// locks and copies may be missing.
type Reading struct {
	// Nodes are those being read; until the first view is complete, also those already
	// read: what was read of them is still being counted.
	Nodes []string
	// Read and Of count keys of these nodes. Of is an estimate: it is what the servers
	// report for their databases, and keys come and go meanwhile. Both are zero if the
	// servers do not report it.
	Read, Of int64
}

// Part returns the progress, from 0 to 1.
func (r Reading) Part() float64 {
	if r.Of == 0 {
		return 0
	}
	return float64(r.Read) / float64(r.Of)
}

// Reading returns the progress; false: the first view is complete, and no node is being read again. Nodes
// that cannot be read at all are not included, see [Snapshot.Unread].
func (s *Snapshot) Reading() (r Reading, ok bool) {
	known := true
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.State.Readable() || n.WhyUnread != "" || n.Read >= 1 && !s.Settled.IsZero() {
			continue
		}
		known = known && n.Keys >= 0
		r.Nodes = append(r.Nodes, n.Name)
		r.Read, r.Of = r.Read+int64(n.Read*float64(n.Keys)), r.Of+n.Keys
	}
	if !known {
		r.Read, r.Of = 0, 0
	}
	return r, len(r.Nodes) > 0
}
