package monitor

// Reading is how far nodes have been read that came in sight: until all is read, locks
// and copies may be missing.
type Reading struct {
	// Nodes are those that are being read; until the first view is complete, those that
	// have been read too.
	Nodes []string
	// Read and Of are keys of these nodes. Of is about: what the servers say of their
	// databases, and keys come and go meanwhile. Both are zero where they do not say.
	Read, Of int64
}

// Part is how much has been read, from 0 to 1.
func (r Reading) Part() float64 {
	if r.Of == 0 {
		return 0
	}
	return float64(r.Read) / float64(r.Of)
}

// Reading is how far reading is; false: nothing is being read that was not read before.
// What cannot be read at all is none of it, see [Snapshot.Unread].
func (s *Snapshot) Reading() (r Reading, ok bool) {
	known := true
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.State.Readable() || n.WhyUnread != "" || n.Read >= 1 && !s.Settled.IsZero() {
			continue
		}
		ok = ok || n.Read < 1
		known = known && n.Keys >= 0
		r.Nodes = append(r.Nodes, n.Name)
		r.Read, r.Of = r.Read+int64(n.Read*float64(n.Keys)), r.Of+n.Keys
	}
	switch {
	case !ok:
		return Reading{}, false
	case !known:
		r.Read, r.Of = 0, 0
	}
	return r, true
}
