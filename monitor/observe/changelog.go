package observe

// changeLog remembers, within a limit, which locks changed with which snapshot.
type changeLog struct {
	batches []batch // oldest first
	keys    int     // in all batches
	floor   uint64  // all changes of later snapshots are known
}

type batch struct {
	version uint64
	keys    []string
}

const (
	logKeys    = 1 << 16
	logBatches = 1 << 12
)

// add records the keys that changed with a snapshot, and takes ownership of the slice.
func (l *changeLog) add(version uint64, keys []string) {
	if len(keys) > logKeys {
		l.batches, l.keys, l.floor = nil, 0, version
		return
	}
	if len(keys) > 0 {
		l.batches = append(l.batches, batch{version, keys})
		l.keys += len(keys)
	}
	for len(l.batches) > 0 && (l.keys > logKeys || len(l.batches) > logBatches) {
		l.keys -= len(l.batches[0].keys)
		l.floor = l.batches[0].version
		l.batches[0] = batch{}
		l.batches = l.batches[1:]
	}
}

// since returns the keys that changed after a version, each once; false: the version is
// too old.
func (l *changeLog) since(version uint64) ([]string, bool) {
	if version < l.floor {
		return nil, false
	}
	first := len(l.batches)
	n := 0
	for first > 0 && l.batches[first-1].version > version {
		first--
		n += len(l.batches[first].keys)
	}
	if n == 0 {
		return nil, true
	}
	seen := make(map[string]struct{}, n)
	keys := make([]string, 0, n)
	for _, b := range l.batches[first:] {
		for _, key := range b.keys {
			if _, ok := seen[key]; !ok {
				seen[key] = struct{}{}
				keys = append(keys, key)
			}
		}
	}
	return keys, true
}
