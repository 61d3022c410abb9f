package observe

import (
	"context"
	"time"

	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
)

// The view of a node that reports its changes is right only if it reports all of them. So
// some keys are read regularly and compared with the view: a few shown ones in turn, and
// a few on the node that are not shown.
const (
	compareEvery = time.Second
	compareKeys  = 16 // shown keys per comparison, and keys per step of the scan
	compareTries = 2  // how often a key must differ again, each time after all earlier changes were reported
)

// comparison is the state of the comparisons in one session with a node.
type comparison struct {
	next     time.Time
	shown    int      // place in the table from which the next keys are taken
	pattern  int      // index of the pattern that is scanned
	cursor   uint64   // of that scan
	found    []string // by its last step, not shown
	suspects map[string]suspect
}

// suspect is a key that differed from the view.
type suspect struct {
	at    time.Time // when it was read
	tries int       // how often it differed again
}

// explain drops suspects that the node has reported since: the report was only late.
func (a *comparison) explain(keys []string) {
	for _, key := range keys {
		if len(a.suspects) == 0 {
			return
		}
		delete(a.suspects, key)
	}
}

// compare reads some keys, in one round trip with the next step of a scan, and notes
// those that differ from the view.
func (l *follower) compare(ctx context.Context, now time.Time) error {
	a, patterns := &l.comparison, l.monitor.watchedKeys.patterns
	a.next = now.Add(compareEvery)
	if !l.reader.Fast() || len(a.suspects) > 0 {
		return l.reader.Ping(ctx) // a NAT may have dropped the connection
	}
	keys, next := l.monitor.sample(l.node, a.shown, compareKeys)
	a.shown = next
	var rows []table.Row
	var sent, received time.Time
	if keys = append(keys, a.found[:min(len(a.found), compareKeys)]...); len(patterns) > 0 {
		p, err := l.reader.Sweep(ctx, keys, a.cursor, string(patterns[a.pattern]), compareKeys)
		if err != nil || p.Refused != nil {
			return err
		}
		a.found = l.monitor.unseen(l.node, p.Keys)
		if a.cursor = p.Next; p.Next == 0 {
			a.pattern = (a.pattern + 1) % len(patterns)
		}
		rows, sent, received = p.Rows, p.Sent, p.Received
	} else if len(keys) > 0 {
		var err error
		if rows, sent, received, err = l.reader.Read(ctx, keys); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil // nothing was read, so there is no read time
	}
	for _, key := range l.monitor.differs(l.node, l.runID, sent, received, rows) {
		if a.suspects == nil {
			a.suspects = map[string]suspect{}
		}
		a.suspects[key] = suspect{at: received}
	}
	return nil
}

// confirm reads suspects again that the node should have reported by now: it has reported
// all changes before until. If they still differ, the node does not report all changes,
// and all of it is read again.
func (l *follower) confirm(ctx context.Context, until time.Time) error {
	var keys []string
	for key, s := range l.comparison.suspects {
		if until.Sub(s.at) >= compareEvery/2 && len(keys) < wire.BatchKeys {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, sent, received, err := l.reader.Read(ctx, keys)
	if err != nil {
		return err
	}
	tries := map[string]int{}
	for _, key := range keys {
		tries[key] = l.comparison.suspects[key].tries + 1
		delete(l.comparison.suspects, key)
	}
	var unreported []string
	for _, key := range l.monitor.differs(l.node, l.runID, sent, received, rows) {
		if tries[key] < compareTries {
			l.comparison.suspects[key] = suspect{received, tries[key]}
		} else {
			unreported = append(unreported, key)
		}
	}
	if len(unreported) > 0 {
		l.monitor.unreported(l.node, unreported)
		l.missing, l.full, l.comparison.suspects = true, nil, nil
	}
	return nil
}
