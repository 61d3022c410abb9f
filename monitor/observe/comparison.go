package observe

import (
	"context"
	"time"

	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
)

// Where a node tells of its changes, what is shown of it rests on that it tells of all. So some
// keys are read now and then and compared with what is shown: a few of those that are shown, in
// turn, and of a few that are there those that are not shown.
const (
	compareEvery = time.Second
	compareKeys  = 16 // that are shown, and that a step of the scan brings
	compareTries = 2  // so often a key must differ again, each time when all changes before were told
)

// comparison is the state of that for one session with a node.
type comparison struct {
	next     time.Time
	shown    int      // place in the table from which the next keys are taken
	pattern  int      // that is scanned for
	cursor   uint64   // of that scan
	found    []string // by its last step, and not shown
	suspects map[string]suspect
}

// suspect is a key that differed from what is shown.
type suspect struct {
	at    time.Time // when it was read
	tries int       // how often it differed again
}

// explain takes in keys that the node told of: that they differed was only a matter of time.
func (a *comparison) explain(keys []string) {
	for _, key := range keys {
		if len(a.suspects) == 0 {
			return
		}
		delete(a.suspects, key)
	}
}

// compare reads some keys, in one round trip with the next step of a scan, and notes which differ
// from what is shown.
func (l *follower) compare(ctx context.Context, now time.Time) error {
	a, patterns := &l.comparison, l.monitor.sought.patterns
	a.next = now.Add(compareEvery)
	if !l.reader.Fast() || len(a.suspects) > 0 {
		return nil
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
		return nil // nothing was read, at no time
	}
	for _, key := range l.monitor.differs(l.node, l.runID, sent, received, rows) {
		if a.suspects == nil {
			a.suspects = map[string]suspect{}
		}
		a.suspects[key] = suspect{at: received}
	}
	return nil
}

// confirm reads those suspects again of which the node has had to tell by now, as it has told of all
// changes before until, and has not. Those that go on to differ show that it does not tell of all:
// then all of it is read again.
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
	var untold []string
	for _, key := range l.monitor.differs(l.node, l.runID, sent, received, rows) {
		if tries[key] < compareTries {
			l.comparison.suspects[key] = suspect{received, tries[key]}
		} else {
			untold = append(untold, key)
		}
	}
	if len(untold) > 0 {
		l.monitor.untold(l.node, untold)
		l.missing, l.full, l.comparison.suspects = true, nil, nil
	}
	return nil
}
