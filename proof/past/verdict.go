package main

import (
	"encoding/json"
	"fmt"
	"time"

	"redlockctl/cli/app"
	"redlockctl/internal/record"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// tolerance is how far a time may be off: the monitor reads a key after it has changed, and a
// server's MONITOR tells what it executes.
const tolerance = 200 * time.Millisecond

// question is one about a time that was over, and its answer.
type question struct {
	key      string // "": what was known at until
	in       record.Span
	answered string
}

// answer asks history or replay.
func (q *question) answer(r *record.Reader) (string, error) {
	var docs any
	if q.key != "" {
		grants, err := app.HoldersOf(r, q.key, q.in.Since, q.in.Until)
		if err != nil {
			return "", err
		}
		docs = grants
	} else {
		m, err := r.At(q.in.Until)
		if err != nil {
			return "", err
		}
		var locks []view.LockDoc
		for l := range m.Snapshot.Locks.All() {
			locks = append(locks, view.DocOfLock(l, m.Snapshot))
		}
		docs = []any{locks, m.By, m.Snapshot.Cluster.Verdict.String()}
	}
	b, err := json.Marshal(docs)
	return string(b), err
}

// ask asks questions about times that are over.
func (j *judge) ask(n int) error {
	r, err := record.OpenReader(j.path(), "judged")
	if err != nil {
		return err
	}
	defer r.Close()
	length := r.Cluster.Last.Sub(r.Cluster.First)
	for i := range n {
		until := r.Cluster.Last.Add(-time.Duration(j.dice.Int64N(int64(length))))
		if i%3 == 0 {
			until = r.Cluster.Last.Add(-time.Duration(j.dice.IntN(3000)) * time.Millisecond)
		}
		q := question{in: record.Span{Since: until.Add(-time.Duration(j.dice.IntN(30_000)) * time.Millisecond), Until: until}}
		if i%2 == 0 {
			q.key = fmt.Sprintf("job:%d", j.dice.IntN(j.clients))
		}
		if q.answered, err = q.answer(r); err != nil {
			return err
		}
		j.asked = append(j.asked, q)
	}
	return nil
}

// tally counts claims, and keeps examples of wrong ones.
type tally struct {
	name                  string
	claims, wrong, silent int // silent: not known, and said so; of history, extensions too close to tell apart
	examples              []string
}

func (t *tally) wrongly(format string, args ...any) {
	if t.wrong++; len(t.examples) < 8 {
		t.examples = append(t.examples, fmt.Sprintf(format, args...))
	}
}

// verdict compares the record with the tape.
func (j *judge) verdict(began time.Time) (int, error) {
	r, err := record.OpenReader(j.path(), "judged")
	if err != nil {
		return 2, err
	}
	defer r.Close()
	all := j.tape.grants()
	ended := r.Cluster.Last
	changes := 0
	for _, g := range all {
		changes += 1 + len(g.ends)
	}
	fmt.Printf("%d grants, %d commands about locks, %.0f changes/s, %d kills of the recorder\n", len(all), j.tape.lines, float64(changes)/ended.Sub(began).Seconds(), j.kills)
	tallies := []*tally{j.history(r, all, began, ended), j.replay(r, all, began, ended), j.gaps(r), j.again(r)}
	code := 0
	fmt.Printf("%-34s %8s %8s %10s\n", "", "CLAIMS", "WRONG", "NOT SEEN")
	for _, t := range tallies {
		fmt.Printf("%-34s %8d %8d %10d\n", t.name, t.claims, t.wrong, t.silent)
		if t.wrong > 0 || t.claims == 0 {
			code = 1
		}
	}
	for _, t := range tallies {
		for _, e := range t.examples {
			fmt.Printf("%s: %s\n", t.name, e)
		}
	}
	return code, nil
}

// watched reports whether a recorder ran all the time.
func (j *judge) watched(from, to time.Time) bool {
	for _, a := range j.away {
		if from.Before(a.to.Add(time.Second)) && a.from.Add(-2*time.Second).Before(to) {
			return false
		}
	}
	return true
}

// least is how long a grant, and each end of it, must last to be seen: what is shorter may
// fall between two reads, and the documentation says so.
const least = 100 * time.Millisecond

func stamp(t time.Time) string { return t.Local().Format("05.000") }

// history compares the grants: extensions, the last end, how and when each ended.
func (j *judge) history(r *record.Reader, all []*grant, began, ended time.Time) *tally {
	t := &tally{name: "history: extensions, end, how"}
	of := map[string]record.Grant{}
	for i := range j.clients {
		grants, err := r.GrantsOf(fmt.Sprintf("job:%d", i), record.Span{Until: ended.Add(time.Second)}, 1<<20)
		if err != nil {
			t.wrongly("%v", err)
		}
		for _, g := range grants {
			of[g.Token] = g
		}
	}
	for _, g := range all {
		from, over := g.ends[0].at, g.over()
		if over.Sub(from) < least || from.Before(began) || over.After(ended.Add(-time.Second)) || !j.watched(from, over) {
			continue
		}
		t.claims++
		said, ok := of[g.sha]
		ends := g.apart()
		if n := len(ends); n > 1 && over.Sub(ends[n-1].at) < least && ok && said.Extensions == n-2 {
			ends = ends[:n-1] // extended just before it ended
		}
		if ok && said.Extensions != len(g.ends)-1 {
			t.silent++
		}
		last := ends[len(ends)-1].until
		how := "released"
		if g.released.IsZero() || g.released.After(last) {
			how = "expired"
		}
		switch {
		case !ok:
			t.wrongly("%s from %s to %s is missing", g.key, stamp(from), stamp(over))
		case said.Extensions != len(ends)-1:
			t.wrongly("%s from %s to %s: %d extensions, not %d: %s", g.key, stamp(from), stamp(over), said.Extensions, len(ends)-1, g)
		case said.Until.Sub(last).Abs() > tolerance:
			t.wrongly("%s from %s: until %s, not %s", g.key, stamp(from), stamp(said.Until), stamp(last))
		case said.How != how && g.released.Sub(last).Abs() > tolerance:
			t.wrongly("%s from %s: %q at %s, not %s at %s", g.key, stamp(from), said.How, stamp(said.Ended), how, stamp(over))
		case said.Ended.Sub(over).Abs() > tolerance:
			t.wrongly("%s from %s: ended %s, not %s", g.key, stamp(from), stamp(said.Ended), stamp(over))
		}
	}
	return t
}

// replay compares moments: who held each lock, in which state, until when.
func (j *judge) replay(r *record.Reader, all []*grant, began, ended time.Time) *tally {
	t := &tally{name: "replay: state, holder, end"}
	of := map[string][]*grant{}
	for _, g := range all {
		of[g.key] = append(of[g.key], g)
	}
	for range 10_000/j.clients + 1 {
		at := began.Add(time.Duration(j.dice.Int64N(int64(ended.Sub(began)))))
		if !j.watched(at, at) {
			continue
		}
		m, err := r.At(at)
		if err != nil {
			t.wrongly("%v", err)
			continue
		}
		for i := range j.clients {
			key := fmt.Sprintf("job:%d", i)
			j.moment(t, m.Snapshot, key, at, of[key])
		}
	}
	return t
}

// moment judges what is said of a lock at a moment.
func (j *judge) moment(t *tally, s *monitor.Snapshot, key string, at time.Time, grants []*grant) {
	var holder *grant
	for _, g := range grants {
		if g.ends[0].at.Add(tolerance).After(at) && g.ends[0].at.Add(-tolerance).Before(at) || g.over().Sub(at).Abs() < tolerance {
			return // it changes now
		}
		if g.ends[0].at.Before(at) && g.over().After(at) {
			holder = g
		}
	}
	t.claims++
	l := s.Locks.Get(key)
	granted := l != nil && l.State != monitor.LockPartial && l.State != monitor.LockOrphaned
	switch {
	case holder == nil && granted:
		t.wrongly("%s at %s: %s by %s, and nobody held it", key, stamp(at), l.State, l.Holder.Raw())
		return
	case holder == nil:
		return
	case !granted:
		t.wrongly("%s at %s: nobody, and %s held it from %s to %s", key, stamp(at), holder.sha, stamp(holder.ends[0].at), stamp(holder.over()))
		return
	case l.Holder.Raw() != record.TokenName(holder.sha):
		t.wrongly("%s at %s: held by %s, not %s", key, stamp(at), l.Holder.Raw(), holder.sha)
		return
	case l.HeldUntil().IsZero():
		t.silent++
		return
	}
	near := func(e end) bool { return l.HeldUntil().Sub(e.until).Abs() <= tolerance }
	now, before := holder.at(at), holder.at(at.Add(-tolerance))
	if !near(now) && !near(before) {
		t.wrongly("%s at %s: until %s, not %s", key, stamp(at), stamp(l.HeldUntil()), stamp(now.until))
		return
	}
	soon := now.until.Sub(at)
	if l.State != monitor.LockBareMajority && (l.State == monitor.LockExpiring) != (soon <= time.Second) && (soon-time.Second).Abs() > tolerance && now == before {
		t.wrongly("%s at %s: %s, and it ends %s", key, stamp(at), l.State, stamp(now.until))
	}
}

// gaps asks of the times when no recorder ran: that must be said.
func (j *judge) gaps(r *record.Reader) *tally {
	t := &tally{name: "gaps are named"}
	for _, a := range j.away {
		c, err := r.Coverage(record.Span{Since: a.from, Until: a.to})
		if t.claims++; err != nil || len(c.Gaps) == 0 || len(c.LockGaps) == 0 {
			t.wrongly("from %s to %s: %+v, %v", stamp(a.from), stamp(a.to), c, err)
			continue
		}
		for _, gap := range c.Gaps {
			for range 25 {
				at := gap.Since.Add(time.Millisecond + time.Duration(j.dice.Int64N(int64(gap.Until.Sub(gap.Since)))))
				if !at.Before(gap.Until) {
					continue
				}
				m, err := r.At(at)
				if t.claims++; err != nil || m.By != "" || m.Snapshot.Locks.Len() > 0 || m.Snapshot.Cluster.Verdict != monitor.VerdictUnknown {
					t.wrongly("at %s: %q, %d locks, %v", stamp(at), m.By, m.Snapshot.Locks.Len(), err)
				}
			}
		}
	}
	return t
}

// again asks the questions again that were asked before each kill.
func (j *judge) again(r *record.Reader) *tally {
	t := &tally{name: "answers before and after kills"}
	for _, q := range j.asked {
		got, err := q.answer(r)
		if t.claims++; err != nil || got != q.answered {
			t.wrongly("%s to %s, %q: %s, before: %s (%v)", stamp(q.in.Since), stamp(q.in.Until), q.key, got, q.answered, err)
		}
	}
	return t
}
