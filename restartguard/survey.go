package restartguard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
)

// Endless reports whether the copy never expires.
func (c Copy) Endless() bool { return c.Left < 0 }

// Ends is when the copy expires, by a clock that runs as the node's.
func (c Copy) Ends() time.Time { return c.Got.Add(c.Left) }

const (
	// A holder whose clock is wrong by at most clockError, and whose drift allowance is at
	// least 1 % of the TTL, no longer relies on a copy after believed × its remaining time:
	// 0.99/0.996. The 2 ms that many clients subtract as well are ignored, because not all do.
	// A node whose clock is wrong by at most as much keeps a copy for at least lasting × its
	// remaining time: 1/1.004. The time between two moments by our clock may be longer by the
	// part farther: 1/0.996 − 1.
	clockError = 0.004
	believed   = 0.994
	lasting    = 0.996
	farther    = 0.00402

	// certain begins the text of a doubt that may last.
	certain = "waits D: "

	// tellable is how long copies must live to be covered in practice: lasting exceeds believed
	// by 0.2 % of that, minus 2 ms for the grain, a round trip, and the times at which the
	// nodes set them.
	tellable = 2 * time.Second

	// Sharp is the greatest error of a clock's reading with which a node's copies count as
	// evidence: a step that went unnoticed is not much larger.
	Sharp = 50 * time.Millisecond

	// forever is how long a copy without a TTL lives.
	forever = 100 * 365 * 24 * time.Hour

	// roundPause is the pause between two rounds of a survey.
	roundPause = 100 * time.Millisecond
	// mostDoubtful is how many keys are read again one by one; if there are more, all keys are
	// scanned again.
	mostDoubtful = 10_000
)

// Copy is a key under the lock patterns, as one node returned it.
type Copy struct {
	Key, Token string
	Sent, Got  time.Time     // before and after the reading, on our clock
	Left       time.Duration // until it expires, by the node's clock; negative: never
	// Odd is why it is not the copy of a lock: another type, or a value that no library uses
	// as a token. "": it is one.
	Odd string
}

func (c Copy) left() time.Duration {
	if c.Left < 0 {
		return forever
	}
	return c.Left
}

// believed returns until when a holder may rely on this copy, at the latest.
func (c Copy) believed() time.Time {
	return c.Got.Add(time.Duration(believed * float64(c.left()+grain)))
}

// lastsUntil returns until when the node keeps the copy, at least.
func (c Copy) lastsUntil() time.Time {
	return c.Sent.Add(time.Duration(lasting * float64(c.left()-grain)))
}

// covered reports whether a lock is safe without the node that lost its copy: a quorum of the other
// nodes keeps copies of one token for as long as anybody can rely on a grant that counted the lost
// vote. There is at most one copy from each node.
func covered(copies []Copy, quorum int) bool {
	if quorum < 2 || len(copies) < quorum {
		return false
	}
	first, last := copies[0].Sent, copies[0].Got
	ends := make([]time.Time, len(copies))
	for i, c := range copies {
		if c.Odd != "" {
			return false
		}
		ends[i] = c.believed()
		if c.Sent.Before(first) {
			first = c.Sent
		}
		if c.Got.After(last) {
			last = c.Got
		}
	}
	// Such a grant has a quorum less one of live copies here, so its belief ends no
	// later than the earliest of so many.
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	over := ends[quorum-2].Add(time.Duration(farther * float64(last.Sub(first))))
	for _, c := range copies {
		same := 0
		for _, d := range copies {
			if d.Token == c.Token && !d.lastsUntil().Before(over) {
				same++
			}
		}
		if same >= quorum {
			return true
		}
	}
	return false
}

// unsound is why the word of a node in this state does not count; "" if it does.
func (b Basis) unsound(now time.Time) string {
	switch {
	case b.Phase == PhaseUnknown:
		return "not seen yet"
	case b.Phase != PhaseServing:
		return b.Phase.String()
	case b.Owed() != minreplicas.FenceNone, b.Blind:
		return "its fence is not known"
	case b.Role != "master":
		return "not a master"
	case b.Trusted.IsZero() || now.Before(b.Trusted):
		return "may have lost votes itself, less than D ago"
	case b.Ahead > 0:
		return "its clock may have stepped"
	case b.Blur > Sharp:
		return "its clock cannot be read closely"
	}
	return ""
}

// Other is a node other than the one that a survey is about.
type Other struct {
	Name  string
	Basis Basis
}

// Question asks a node for its copies under the lock patterns.
type Question struct {
	Round int
	// Keys are those to read; nil: all that are found by a full scan.
	Keys []string
}

// Answer is a node's answer to a [Question].
type Answer struct {
	Round        int
	RunID        string    // of the incarnation that was asked
	Began, Ended time.Time // around all of it
	Copies       []Copy    // one for each key at most
	Doubt        string    // why it is not complete; "" if it is
}

// Survey gathers the evidence from the other nodes that lets a fenced node rejoin early. It is
// pure: no clock, no I/O, one goroutine at a time. It can help one node at a time, because it needs
// the copies of all others.
//
// For each node, [Survey.Question] returns what to ask it now; [Survey.Answer] takes the answer;
// and [Survey.Confirm] accepts it after a later observation has shown that the node had lost
// nothing.
type Survey struct {
	N, Quorum int
	// After is how long after its loss the node can be helped, see [EarlyAfter].
	After time.Duration
	// Apart is the greatest difference that the clocks of two nodes may have. It is less than
	// After, or fencing tokens could go back on a node that has lost its counter.
	Apart time.Duration

	node, runID string // the node that it is about; "": none
	lost        time.Time
	others      []string

	round  int
	from   time.Time // the earliest start of the round
	keys   []string
	given  map[string]Answer // not confirmed yet
	heard  map[string]Answer
	began  time.Time
	locks  int
	doubt  string
	proven bool
}

// EvidenceFor returns what was found so far for a fenced node; others are all other nodes that are
// watched.
func (q *Survey) EvidenceFor(node string, b Basis, others []Other, now time.Time) *Evidence {
	e := &Evidence{RunID: b.RunID}
	lost := b.lastLoss().Seen
	if e.Doubt = q.doubtful(b, others, now); e.Doubt != "" {
		e.Doubt = certain + e.Doubt
		q.Drop(node)
		return e
	}
	if q.node != node || q.runID != b.RunID || !q.lost.Equal(lost) {
		q.node, q.runID, q.lost = node, b.RunID, lost
		q.others = q.others[:0]
		for _, o := range others {
			q.others = append(q.others, o.Name)
		}
		q.restart(lost.Add(q.After))
	}
	switch {
	case q.proven:
		e.Began, e.Locks = q.began, q.locks
	case now.Before(q.lost.Add(q.After)):
		e.Doubt = "may rejoin early when no attempt from before its loss is under way any more"
	case q.doubt != "":
		e.Doubt = certain + q.doubt
	default:
		e.Doubt = "may rejoin early: asking the others for their locks"
	}
	return e
}

// Drop ends the survey for a node, if there is one.
func (q *Survey) Drop(node string) {
	if q.node == node {
		*q = Survey{N: q.N, Quorum: q.Quorum, After: q.After, Apart: q.Apart, round: q.round + 1}
	}
}

// doubtful returns why nothing can be found out for a node now.
func (q *Survey) doubtful(b Basis, others []Other, now time.Time) string {
	switch {
	case q.N < 2:
		return "there is no other node"
	case len(others) != q.N-1:
		return fmt.Sprintf("this guard watches only %d of the %d other nodes", len(others), q.N-1)
	case b.Blur > Sharp:
		return "its own clock cannot be read closely"
	}
	lives := map[string]bool{b.RunID: true}
	var bad []string
	behind, ahead := b.Offset, b.Offset
	for _, o := range others {
		behind, ahead = min(behind, o.Basis.Offset), max(ahead, o.Basis.Offset)
		if why := o.Basis.unsound(now); why != "" {
			bad = append(bad, fmt.Sprintf("%s %s", o.Name, why))
		} else if lives[o.Basis.RunID] {
			bad = append(bad, o.Name+" is the same server as another")
		}
		lives[o.Basis.RunID] = true
	}
	if apart := ahead - behind; len(bad) == 0 && apart > q.Apart {
		return fmt.Sprintf("the clocks of the nodes differ by %s", Round(apart))
	}
	return strings.Join(bad, ", ")
}

// restart begins again with a full scan of all nodes.
func (q *Survey) restart(from time.Time) {
	q.next(from, nil)
	q.began, q.locks, q.proven = time.Time{}, 0, false
}

func (q *Survey) next(from time.Time, keys []string) {
	q.round++
	q.from, q.keys = from, keys
	q.given, q.heard = map[string]Answer{}, map[string]Answer{}
}

// Question returns what to ask a node now, if anything.
func (q *Survey) Question(node string, now time.Time) (Question, bool) {
	if q.node == "" || q.proven || now.Before(q.from) || !slices.Contains(q.others, node) {
		return Question{}, false
	}
	if _, ok := q.heard[node]; ok {
		return Question{}, false
	}
	return Question{Round: q.round, Keys: q.keys}, true
}

// Answer takes a node's answer. It ignores answers to earlier questions.
func (q *Survey) Answer(node string, t Answer) {
	if q.node != "" && t.Round == q.round && slices.Contains(q.others, node) {
		q.given[node] = t
	}
}

// Confirm accepts or rejects a node's answer by what an observation, asked for at that time, has
// shown.
func (q *Survey) Confirm(node string, b Basis, asked, now time.Time) {
	t, ok := q.given[node]
	if !ok || q.node == "" {
		return
	}
	delete(q.given, node)
	switch {
	case t.RunID != b.RunID, asked.Before(t.Ended), t.Began.Before(q.from), t.Began.Before(b.Trusted):
	case b.unsound(now) != "":
		q.restart(now.Add(roundPause))
	case t.Doubt != "":
		q.doubt = node + " " + t.Doubt
		q.restart(now.Add(10 * roundPause))
	default:
		q.heard[node] = t
		if len(q.heard) == len(q.others) {
			q.assess(now)
		}
	}
}

// assess compares the answers of all nodes to one question.
func (q *Survey) assess(now time.Time) {
	found := map[string][]Copy{}
	for _, name := range q.others {
		t := q.heard[name]
		if q.keys == nil && (q.began.IsZero() || t.Began.Before(q.began)) {
			q.began = t.Began
		}
		for _, c := range t.Copies {
			found[c.Key] = append(found[c.Key], c)
		}
	}
	var doubtful []string
	for key, copies := range found {
		if covered(copies, q.Quorum) {
			q.locks++
		} else {
			doubtful = append(doubtful, key)
		}
	}
	if len(doubtful) == 0 {
		q.proven, q.doubt = true, ""
		return
	}
	slices.Sort(doubtful)
	q.doubt = "lock " + describe(doubtful[0], found[doubtful[0]], q.Quorum)
	switch more := len(doubtful) - 1; {
	case more == 1:
		q.doubt += "; 1 more is in doubt"
	case more > 1:
		q.doubt += fmt.Sprintf("; %d more are in doubt", more)
	}
	if len(doubtful) > mostDoubtful {
		q.restart(now.Add(10 * roundPause))
		return
	}
	q.next(now.Add(roundPause), doubtful)
}

// describe returns why a lock is in doubt.
func describe(key string, copies []Copy, quorum int) string {
	if len(key) > 60 {
		key = key[:60] + "…"
	}
	name := safetext.Escape(key)
	most, longest := 0, time.Duration(0)
	for _, c := range copies {
		longest = max(longest, c.left())
		if c.Odd != "" {
			return fmt.Sprintf("%s is %s", name, c.Odd)
		}
		same := 0
		for _, d := range copies {
			if d.Token == c.Token {
				same++
			}
		}
		most = max(most, same)
	}
	if most < quorum {
		return fmt.Sprintf("%s has %d of %d copies elsewhere", name, most, quorum)
	}
	if longest < tellable {
		return fmt.Sprintf("%s has copies elsewhere that live for less than %s, too short to tell which ends last", name, tellable)
	}
	return fmt.Sprintf("%s has copies elsewhere that end at different times", name)
}
