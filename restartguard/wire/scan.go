package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
	"redlockctl/server/lockform"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
)

const (
	// fencingPrefix begins the counters of package redlock.
	fencingPrefix = "redlockctl:fencing:"

	scanCount  = 250      // keys in one step of a scan
	scanBatch  = 64       // keys that are read in one transaction
	scanMost   = 1 << 20  // keys of one node
	scanBytes  = 64 << 20 // of the names of keys
	tokenMost  = 256      // bytes; a longer value is not a token
	ScanShares = 4        // a scan takes 1/ScanShares of a node's time
)

// Scan reads the copies of one incarnation of a node, step by step.
type Scan struct {
	restartguard.Answer
	question restartguard.Question
	Begun    bool
	Done     bool
	pattern  int // index of the one that is scanned
	cursor   uint64
	read     int // of the question's keys
	bytes    int // of the names that were seen
	seen     map[string]struct{}
}

func (s *Scan) Begin(q restartguard.Question, runID string) {
	*s = Scan{question: q, Begun: true, seen: map[string]struct{}{}}
	s.Answer = restartguard.Answer{Round: q.Round, RunID: runID, Began: time.Now()}
}

// Step reads a few keys. It fails with ErrBroken.
func (s *Scan) Step(ctx context.Context, l *Conn, patterns []string) error {
	keys, err := s.some(ctx, l, patterns)
	for len(keys) > 0 && err == nil {
		n := min(len(keys), scanBatch)
		err = s.take(ctx, l, keys[:n])
		keys = keys[n:]
	}
	switch {
	case errors.Is(err, ErrBroken):
		return err
	case err != nil:
		s.Doubt, s.Done = "cannot be read: "+safetext.Error(err), true
	case s.bytes > scanBytes:
		s.Doubt, s.Done = fmt.Sprintf("has more than %d MiB of names under the lock patterns", scanBytes>>20), true
	case len(s.Copies) > scanMost:
		s.Doubt, s.Done = fmt.Sprintf("has more than %d keys under the lock patterns", scanMost), true
	}
	s.Ended = time.Now()
	return nil
}

// some returns the next keys.
func (s *Scan) some(ctx context.Context, l *Conn, patterns []string) (_ []string, err error) {
	defer resp.Contain(&err, "SCAN")
	if q := s.question.Keys; q != nil {
		from := s.read
		s.read = min(len(q), from+scanBatch)
		s.Done = s.read == len(q)
		return q[from:s.read], nil
	}
	var page *redis.ScanCmd
	putBack := l.roomFor(scanReply)
	err = l.Send(ctx, func(p redis.Pipeliner) { page = p.Scan(ctx, s.cursor, patterns[s.pattern], scanCount) })
	putBack()
	if err == nil {
		err = page.Err()
	}
	if err != nil {
		return nil, err
	}
	keys, cursor := page.Val()
	if s.cursor = cursor; cursor == 0 {
		s.pattern++
		s.Done = s.pattern == len(patterns)
	}
	fresh := keys[:0]
	for _, k := range keys {
		if _, ok := s.seen[k]; ok || isOurKey(k) {
			continue
		}
		s.seen[k] = struct{}{}
		s.bytes += len(k)
		fresh = append(fresh, k)
	}
	return fresh, nil
}

// isOurKey reports whether this program keeps a key beside the locks. Any other key is a lock, also
// one with the program's name.
func isOurKey(key string) bool {
	return key == restartguard.CounterKey || strings.HasPrefix(key, canaryPrefix) || strings.HasPrefix(key, fencingPrefix)
}

// take reads keys in one transaction, so that token and TTL belong together. It never reads whole
// values.
func (s *Scan) take(ctx context.Context, l *Conn, keys []string) (err error) {
	defer resp.Contain(&err, "a read of keys")
	kinds := make([]*redis.StatusCmd, len(keys))
	values := make([]*redis.StringCmd, len(keys))
	lefts := make([]*redis.DurationCmd, len(keys))
	sent := time.Now()
	pipe := l.Client.TxPipeline()
	for i, k := range keys {
		kinds[i], values[i], lefts[i] = pipe.Type(ctx, k), pipe.GetRange(ctx, k, 0, tokenMost), pipe.PTTL(ctx, k)
	}
	if _, err := pipe.Exec(ctx); !Answered(err) {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	got := time.Now()
	for i, k := range keys {
		kind, err := kinds[i].Result()
		if err != nil {
			return err
		}
		c := restartguard.Copy{Key: k, Sent: sent, Got: got}
		switch kind {
		case "none":
			continue
		case "string":
			if c.Token, err = values[i].Result(); err != nil {
				return err
			}
			c.Odd = noToken(k, c.Token)
		default:
			c.Odd = "a " + safetext.Error(errors.New(kind)) + " and not a string"
		}
		if c.Left, err = lefts[i].Result(); err != nil {
			return err
		}
		if c.Left == ttlGone {
			continue // it expired between the two
		}
		s.Copies = append(s.Copies, c)
	}
	return nil
}

// ttlGone is the reply of PTTL for a missing key, which the client library does not convert to
// milliseconds.
const ttlGone = time.Duration(-2)

// noToken returns why a value may not be the token of one attempt, so that two copies with it may
// belong to two clients; "": it is a token.
func noToken(key, value string) string {
	if len(value) > tokenMost {
		return "too long for a token"
	}
	switch form := lockform.Recognize(key, "string", value, int64(len(value)), time.Now()); {
	case form == nil:
		return "not made by any library that is known"
	case form.Companion:
		return "kept beside locks by " + form.Library
	case !form.Deadline.IsZero():
		return "a time, which two clients may have written"
	}
	return ""
}
