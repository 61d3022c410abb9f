package views

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// class is what a view says about a lock, reduced to what matters to a client that
// wants it.
type class string

const (
	nobody   class = "nobody"        // no copy, or only copies on which nobody relies
	underWay class = "under way"     // an attempt, a release or a read
	held     class = "held"          // a majority
	lost     class = "lost majority" // held until the end, without a majority
	perhaps  class = "may be held"
	unknown  class = "unknown" // too few nodes answer
)

func (c class) relied() bool { return c == held || c == lost || c == perhaps }

// belief is what a view says about a lock at a moment. until is zero if the view does not say it.
type belief struct {
	class  class
	token  string // of whom relies on it: whole, its beginning, or the beginning of its SHA-256
	until  time.Time
	access string // when another client can get in; "": not said
	state  string // as the view words it
}

func (b belief) String() string {
	text := string(b.class)
	if b.state != "" && b.state != text {
		text += " (" + b.state + ")"
	}
	if b.class.relied() {
		text += fmt.Sprintf(" by %.12s until %s", b.token, b.until.Format("15:04:05.000"))
		if b.access != "" {
			text += ", can get in " + b.access
		}
	}
	return text
}

// tolerance is how far moments of which the views speak may differ, and for how long beliefs may.
const tolerance = 300 * time.Millisecond

// tokens are those that the clients drew, by all names that views have for them.
type tokens struct {
	mu    sync.Mutex
	whole []string
	named map[string]string
}

func (t *tokens) drew(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.named[token] != "" {
		return
	}
	t.whole = append(t.whole, token)
	sum := sha256.Sum256([]byte(token))
	t.named[token], t.named[hex.EncodeToString(sum[:8])] = token, token
}

// wholeToken is how long a token is at least that is not the beginning of one.
const wholeToken = 20

// seen learns the token of an attempt that failed, which its client does not tell.
func (t *tokens) seen(token string) {
	if len(token) >= wholeToken && !strings.HasPrefix(token, "sha256:") {
		t.drew(token)
	}
}

// of is the whole token that a view means.
func (t *tokens) of(said string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	said = strings.TrimSuffix(strings.TrimPrefix(said, "sha256:"), monitor.TokenCut)
	if whole, ok := t.named[said]; ok {
		return whole
	}
	for _, w := range t.whole {
		if said != "" && strings.HasPrefix(w, said) {
			t.named[said] = w
			return w
		}
	}
	return said
}

// ofLock is the belief that the document of a lock states; no lock: the view has none of that name.
func ofLock(l *monitor.Lock, s *monitor.Snapshot) belief {
	if l == nil {
		if answering(s) < s.Cluster.Quorum || !s.Complete {
			return belief{class: unknown}
		}
		return belief{class: nobody}
	}
	doc := view.DocOfLock(l, s)
	b := belief{state: doc.State, class: nobody, token: l.Holder.Raw()}
	switch {
	case l.State == monitor.LockPartial:
		b.class = underWay
	case l.State == monitor.LockLostMajority:
		b.class = lost
	case l.State == monitor.LockMayBeHeld:
		b.class = perhaps
	case l.ReliedOn() && l.State == monitor.LockSplit && l.Held >= 0 && l.Held < s.Cluster.Quorum:
		b.class, b.token = perhaps, "" // by one of several
	case l.ReliedOn(), l.State == monitor.LockHeld, l.State == monitor.LockExpiring, l.State == monitor.LockBareMajority:
		b.class = held
	}
	if b.class.relied() {
		if doc.HeldUntil != nil {
			b.until = *doc.HeldUntil
		}
		if doc.Access != nil {
			b.access = doc.Access.When
		}
	}
	return b
}

func answering(s *monitor.Snapshot) (n int) {
	for i := range s.Nodes {
		if s.Nodes[i].State.Readable() {
			n++
		}
	}
	return n
}

// sight is what the operator sees of the masters.
type sight uint8

const (
	whole sight = iota
	moved       // it was cut off from some, or sees them again, a moment ago: not every view can have noticed
	less        // it is cut off from some
)

// agree reports whether an operator's belief names the same holder as another view's, in the same
// class; or says less, where it sees less.
func (t *tokens) agree(operators, other belief, sees sight) bool {
	switch {
	case sees != whole && (operators.class == unknown || operators.class == underWay):
		return true
	case operators.class == underWay && other.class == nobody, operators.class == nobody && other.class == underWay:
		return true // nobody relies on what is only tried
	case sees != whole && operators.class == perhaps && other.class != unknown:
		return true
	case operators.class != other.class:
		return false
	}
	return !other.class.relied() || operators.token == "" || other.token == "" || t.of(operators.token) == t.of(other.token)
}

// endAgrees reports whether two beliefs say the same of the end, as far as both say it. An extension
// that the operator does not see, it cannot know.
func endAgrees(a, b belief, sees sight) bool {
	return sees != whole || !a.class.relied() || !b.class.relied() || a.until.IsZero() || b.until.IsZero() || a.until.Sub(b.until).Abs() <= tolerance
}

// stamped is a belief from a moment on, or at it.
type stamped struct {
	at     time.Time
	belief belief
}

// timeline is what a view that is followed all the time says, lock by lock.
type timeline struct {
	mu   sync.Mutex
	name string
	of   map[string][]stamped
	end  time.Time
}

func newTimeline(name string) *timeline { return &timeline{name: name, of: map[string][]stamped{}} }

func (t *timeline) add(key string, at time.Time, b belief) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = at
	line := t.of[key]
	if n := len(line); n > 0 {
		was := line[n-1].belief
		if was.class == b.class && was.token == b.token && was.access == b.access && was.until.Sub(b.until).Abs() < 20*time.Millisecond {
			return
		}
	}
	t.of[key] = append(line, stamped{at, b})
}

// lag is how far from a moment the view said what ok accepts; the belief is the one at the moment.
func (t *timeline) lag(key string, at time.Time, ok func(belief) bool) (lag time.Duration, then belief) {
	line := t.of[key]
	i := sort.Search(len(line), func(i int) bool { return line[i].at.After(at) }) - 1
	if i < 0 {
		return 0, then // it was not followed yet
	}
	if then = line[i].belief; ok(then) {
		return 0, then
	}
	lag = time.Hour
	for k := i - 1; k >= 0; k-- { // it ended with the next one
		if d := at.Sub(line[k+1].at); d >= lag {
			break
		} else if ok(line[k].belief) {
			lag = d
			break
		}
	}
	for k := i + 1; k < len(line); k++ {
		if d := line[k].at.Sub(at); d >= lag {
			break
		} else if ok(line[k].belief) {
			lag = d
			break
		}
	}
	return lag, then
}

// asked are the answers that the view would have given, had it been asked.
func (t *timeline) asked() *answers {
	a := &answers{name: t.name}
	for key, line := range t.of {
		for i, b := range line {
			end := t.end
			if i+1 < len(line) {
				end = line[i+1].at
			}
			for at := b.at; key != counts && at.Before(end); at = at.Add(askEvery) {
				a.all = append(a.all, answer{key: key, stamped: stamped{at, b.belief}, lasted: end.Sub(b.at)})
			}
		}
	}
	return a
}
