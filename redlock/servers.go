package redlock

import (
	"sync"
)

// servers records which process each node was last seen to be, by its run_id. A server
// that is reached by two addresses would have two votes with one copy: an extension
// would count it twice. So the second address is refused.
type servers struct {
	names []string

	mu  sync.Mutex
	ids []string
}

func newServers(names []string) *servers {
	return &servers{names: names, ids: make([]string, len(names))}
}

// claim records that a node is this process, unless another node is. id is empty for a
// node that is about to reconnect, or that does not report its run_id.
func (s *servers) claim(node int, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[node] = ""
	if id == "" {
		return nil
	}
	for i, other := range s.ids {
		if other == id {
			return sameServerError{s.names[i]}
		}
	}
	s.ids[node] = id
	return nil
}
