package redlock

import (
	"sync"
)

// servers knows which process each node was last seen to be, by its run_id. One
// that is reached by two addresses would have two voices where its copy of a lock
// is one: an extension would count it twice. So it is refused by the second.
type servers struct {
	names []string

	mu  sync.Mutex
	ids []string
}

func newServers(names []string) *servers {
	return &servers{names: names, ids: make([]string, len(names))}
}

// claim takes note that a node is this process, unless another node is. A node
// that is about to be connected anew is none: id is empty. So is one that does not
// tell.
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
