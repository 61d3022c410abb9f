package redlock

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"redlockctl/redlock/attempt"
	"redlockctl/server/safetext"
)

// Errors that say how an operation ended. All are wrapped: test with errors.Is. The
// wrapping error is an [*Error] with the result of each node.
var (
	// ErrContended is returned when another token holds enough copies.
	ErrContended = errors.New("held by another")
	// ErrNoQuorum is returned when too few nodes answered to reach a quorum: they are
	// down, fenced, slow or skipped, or the user lacks a right there.
	ErrNoQuorum = errors.New("no quorum")
	// ErrExpired is returned when the answers of a quorum came too late for any
	// validity to be left.
	ErrExpired = errors.New("validity used up")
	// ErrNotHeld is returned when a token has no quorum: it has expired, was released
	// or revoked, or never had one.
	ErrNotHeld = errors.New("no majority has this token")
	// ErrInvalid is returned for arguments that can never work: an empty name, a
	// TTL that the drift allowance uses up.
	ErrInvalid = errors.New("invalid argument")
	// ErrClosed is returned after [Client.Close].
	ErrClosed = errors.New("client is closed")
)

// Quorum is ⌊n/2⌋ + 1 of the configured n, whatever is up.
func Quorum(n int) int { return attempt.Quorum(n) }

// Blocking is the number of copies of one token, on n nodes, that keeps every other
// client from a quorum.
func Blocking(n int) int { return n - Quorum(n) + 1 }

// Status is what one node said or did in one operation. String is the status in one
// lower-case word, stable for machines to read.
type Status = attempt.Status

const (
	StatusUnanswered Status = attempt.StatusUnanswered // sent, no answer by the time the operation was decided
	StatusOK         Status = attempt.StatusOK         // done as asked
	StatusHeld       Status = attempt.StatusHeld       // refused: another value is there
	StatusAbsent     Status = attempt.StatusAbsent     // the copy is not there (release, extend, inspect)
	StatusDown       Status = attempt.StatusDown       // no connection
	StatusSlow       Status = attempt.StatusSlow       // no answer within the node timeout
	StatusFenced     Status = attempt.StatusFenced     // refused: NOREPLICAS
	StatusSkipped    Status = attempt.StatusSkipped    // not asked: it failed repeatedly, or its queue is full
	StatusProtocol   Status = attempt.StatusProtocol   // an answer that means none of these (wrong type, READONLY, LOADING)
	// StatusDenied is a node that refused because the user lacks a right: to run the
	// command or to use the key (NOPERM), or to log in. Err says which right. A node
	// whose guard has removed the user's right to write looks the same.
	StatusDenied Status = attempt.StatusDenied
)

// NodeResult is one node's part in an operation.
type NodeResult struct {
	Node   string // its name
	Status Status // what it did, or why it did nothing
	// Token is the value on the node, if the operation read it.
	Token string
	// Type is the Redis type of the key, if the operation read it ("string", "hash",
	// …); otherwise empty.
	Type string
	// Len is the length of the value in bytes if Token is only its beginning (see
	// [Client.Inspect]).
	Len int64
	// TTL is the remaining TTL of the copy when the answer came, at most 292 years;
	// negative: none.
	TTL time.Duration
	// MayLiveUntil, after a release or a failed attempt, is the latest time until which
	// a copy may be left on this node. Zero: it has certainly disappeared, or has no
	// known end (see Status).
	MayLiveUntil time.Time
	// Err is the cause of the statuses down, slow, fenced, skipped, error and denied.
	// It may contain text of the server: untrusted.
	Err error
}

// Error says how an operation on a quorum failed.
type Error struct {
	Op       string // "acquire", "extend", "release", …
	Resource string // what was to be locked, as the caller named it: untrusted
	Kind     error  // one of the sentinels, or the cause of the context's end
	Attempts int    // attempts made, of an acquire
	// Nodes has the result of each node in the last attempt, in the configured order;
	// nil if no node was asked.
	Nodes []NodeResult

	detail string // of Kind, where it is ErrInvalid
	hint   string // what to change
	ended  error  // ctx.Err(), where Kind is the context's cause
	why    error  // further to Kind
	also   error  // what it is besides Kind
}

// Unwrap returns the kind of failure for errors.Is. If the context ended, it returns
// its cause and also context.Canceled or context.DeadlineExceeded; after a deadline
// also [ErrContended] or [ErrNoQuorum], whichever prevented the acquisition. The errors
// of single nodes are not included: the timeout of one node must not look like the end
// of the caller's context. See Nodes.
func (e *Error) Unwrap() []error {
	errs := []error{e.Kind}
	if e.ended != nil && !errors.Is(e.Kind, e.ended) {
		errs = append(errs, e.ended)
	}
	if e.also != nil {
		errs = append(errs, e.also)
	}
	return errs
}

// Error returns one sentence that is safe to show: names and texts of servers are
// escaped.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", e.Op, quote(e.Resource))
	switch {
	case e.detail != "":
		b.WriteString(e.detail)
		return b.String()
	case e.ended != nil:
		fmt.Fprintf(&b, "given up: %s", clip(safetext.Escape(e.Kind.Error())))
	default:
		b.WriteString(e.sentence(e.Kind))
	}
	if e.also != nil {
		b.WriteString(", " + e.sentence(e.also))
	}
	if e.why != nil {
		b.WriteString(": " + e.why.Error())
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts)", e.Attempts)
	}
	if obeyed := e.obeyed(); obeyed != "" {
		b.WriteString("; done in part: " + obeyed + " obeyed")
	}
	if troubles := e.troubles(); troubles != "" {
		b.WriteString("; " + troubles)
	}
	if e.hint != "" {
		b.WriteString("; " + e.hint)
	}
	return b.String()
}

// sentence adds what the nodes say about a kind of failure.
func (e *Error) sentence(kind error) string {
	switch {
	case errors.Is(kind, ErrContended):
		if holders := e.holders(); holders != "" {
			return "held by " + holders
		}
	case errors.Is(kind, ErrNoQuorum):
		return fmt.Sprintf("no quorum of %d in %d nodes", Quorum(len(e.Nodes)), len(e.Nodes))
	}
	return kind.Error()
}

// obeyed returns the nodes that removed their copies. A removal without a quorum is not
// undone; an attempt to acquire is.
func (e *Error) obeyed() string {
	switch e.Op {
	case "release", "force-release", "revoke":
	default:
		return ""
	}
	var nodes []string
	for _, r := range e.Nodes {
		if r.Status == StatusOK && errors.Is(e, ErrNoQuorum) {
			nodes = append(nodes, safetext.Escape(r.Node))
		}
	}
	return strings.Join(nodes, ", ")
}

// holders says who holds the copies instead: "abc" on n1, n2 for another 12.3s.
func (e *Error) holders() string {
	type holding struct {
		nodes   []string
		longest time.Duration
		endless bool
	}
	var order []string
	by := make(map[string]*holding)
	for _, r := range e.Nodes {
		if r.Type == "" {
			continue
		}
		who := "a " + safetext.Escape(r.Type)
		if r.Type == "string" {
			who = quote(r.Token)
		}
		h := by[who]
		if h == nil {
			h = new(holding)
			by[who], order = h, append(order, who)
		}
		h.nodes = append(h.nodes, safetext.Escape(r.Node))
		h.longest = max(h.longest, r.TTL)
		h.endless = h.endless || r.TTL < 0
	}
	parts := make([]string, len(order))
	for i, who := range order {
		h := by[who]
		until := "for another " + h.longest.Round(100*time.Millisecond).String()
		if h.longest < time.Second {
			until = "for another " + h.longest.String()
		}
		if h.endless {
			until = "without end"
		}
		parts[i] = fmt.Sprintf("%s on %s %s", who, strings.Join(h.nodes, ", "), until)
	}
	return strings.Join(parts, " and ")
}

// troubles says which nodes failed, and why. It leaves out nodes that had not answered
// when the attempt was decided: nobody waited for them.
func (e *Error) troubles() string {
	var parts []string
	for _, r := range e.Nodes {
		switch r.Status {
		case StatusDown, StatusSlow, StatusFenced, StatusSkipped, StatusProtocol, StatusDenied:
		default:
			continue
		}
		part := safetext.Escape(r.Node) + " " + r.Status.String()
		if r.Err != nil && r.Status != StatusFenced {
			part += " (" + reason(r.Err) + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// reason is the shortest true text of a node's error.
func reason(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	return clip(safetext.Escape(err.Error()))
}

// quote escapes untrusted text and puts it in quotation marks.
func quote(s string) string { return `"` + clip(safetext.Escape(s)) + `"` }

// clip shortens a long name in a sentence.
func clip(s string) string {
	const most = 120
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most]) + "…"
}

// ErrLost is the cause of the end of [Keeper.Context] when the lock was lost
// while it was kept. The error that wraps it is an [*Error], and also
// [ErrNotHeld] when the nodes said that the token holds no quorum any more, or
// [ErrExpired] when the validity ended before an extension was confirmed.
var ErrLost = errors.New("lost")

// lostError is ErrLost with its kind.
type lostError struct {
	kind  error
	after int // the number of extensions after which the limit was reached; 0: no limit
}

func (e lostError) Unwrap() []error { return []error{ErrLost, e.kind} }

func (e lostError) Error() string {
	if e.after > 0 {
		return fmt.Sprintf("%s: %s after %d extensions, the limit", ErrLost, e.kind, e.after)
	}
	return fmt.Sprintf("%s: %s", ErrLost, e.kind)
}
