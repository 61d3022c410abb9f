package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/redlock"
)

const (
	maxTTL = 6 * time.Second
	quorum = 3
)

// tape is every command on the servers about locks, as their MONITOR told.
type tape struct {
	mu     sync.Mutex
	tokens map[string]*token
	lines  int
}

// token is what happened to the copies of one token, node by node.
type token struct {
	key, sha string
	ends     [5][]end // of the copy: each SET and extension
	released [5]time.Time
}

// end is an expiry that a copy has from a time on.
type end struct{ at, until time.Time }

// grant is what the copies of a token meant.
type grant struct {
	key, sha string
	ends     []end // of the majority; each but the first by an extension
	released time.Time
}

func (g *grant) String() string {
	var b strings.Builder
	for _, e := range g.ends {
		fmt.Fprintf(&b, "%s until %s, ", stamp(e.at), stamp(e.until))
	}
	return b.String() + "released " + stamp(g.released)
}

// apart returns the ends as the record counts them: an extension that moves the end by
// less than 100 ms is one with the extension before. A client that repeats an extension
// because nodes answer late makes such ones.
func (g *grant) apart() (out []end) {
	for i, e := range g.ends {
		if i > 0 && e.until.Sub(g.ends[i-1].until) <= least {
			out[len(out)-1].until = e.until
			continue
		}
		out = append(out, e)
	}
	return out
}

// over is when it ended.
func (g *grant) over() time.Time {
	last := g.ends[len(g.ends)-1].until
	if !g.released.IsZero() && g.released.Before(last) {
		return g.released
	}
	return last
}

// at is the end that the copies had at a time; zero: it was not granted yet.
func (g *grant) at(t time.Time) (e end) {
	for _, one := range g.ends {
		if !one.at.After(t) {
			e = one
		}
	}
	return e
}

var quoted = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)

// follow reads the commands of a server. A line is `1700000000.123456 [0 127.0.0.1:5] "SET" "job:1" …`.
func (t *tape) follow(ctx context.Context, all *sync.WaitGroup, node int, addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(c, "MONITOR\r\n"); err != nil {
		return err
	}
	r := bufio.NewReaderSize(c, 1<<20)
	if line, err := r.ReadString('\n'); err != nil || line != "+OK\r\n" {
		return fmt.Errorf("MONITOR: %q, %v", line, err)
	}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	all.Go(func() {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			t.line(node, line)
		}
	})
	return nil
}

func (t *tape) line(node int, line string) {
	stamp, rest, _ := strings.Cut(strings.TrimPrefix(line, "+"), " ")
	seconds, micros, _ := strings.Cut(stamp, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if err != nil || err2 != nil || strings.Contains(rest[:min(30, len(rest))], " lua]") {
		return
	}
	at := time.Unix(s, us*1000)
	var args []string
	for _, m := range quoted.FindAllStringSubmatch(rest, -1) {
		args = append(args, m[1])
	}
	if len(args) < 4 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines++
	switch name := strings.ToUpper(args[0]); {
	case name == "SET" && len(args) == 6 && strings.HasPrefix(args[1], "job:"):
		ms, _ := strconv.ParseInt(args[5], 10, 64)
		if strings.EqualFold(args[3], "px") {
			ms, _ = strconv.ParseInt(args[4], 10, 64)
		}
		t.of(args[1], args[2]).set(node, at, ms)
	case (name == "EVALSHA" || name == "EVAL") && len(args) >= 5 && args[2] == "1" && strings.HasPrefix(args[3], "job:"):
		one := t.tokens[args[4]]
		switch {
		case one == nil:
		case len(args) == 5:
			if one.released[node].IsZero() {
				one.released[node] = at
			}
		default:
			ms, _ := strconv.ParseInt(args[5], 10, 64)
			one.set(node, at, ms)
		}
	}
}

func (t *tape) of(key, tok string) *token {
	if t.tokens == nil {
		t.tokens = map[string]*token{}
	}
	if t.tokens[tok] == nil {
		sum := sha256.Sum256([]byte(tok))
		t.tokens[tok] = &token{key: key, sha: hex.EncodeToString(sum[:8])}
	}
	return t.tokens[tok]
}

func (t *token) set(node int, at time.Time, ms int64) {
	t.ends[node] = append(t.ends[node], end{at, at.Add(time.Duration(ms) * time.Millisecond)})
}

// grants are those on the tape: the ends of a majority are the third latest of the copies, when
// the third copy had it.
func (t *tape) grants() (out []*grant) {
	for _, one := range t.tokens {
		g := &grant{key: one.key, sha: one.sha}
		for k := 0; ; k++ {
			var ats, validTo []time.Time
			for node := range one.ends {
				if k < len(one.ends[node]) {
					ats, validTo = append(ats, one.ends[node][k].at), append(validTo, one.ends[node][k].until)
				}
			}
			if len(ats) < quorum {
				break
			}
			slices.SortFunc(ats, time.Time.Compare)
			slices.SortFunc(validTo, time.Time.Compare)
			g.ends = append(g.ends, end{ats[quorum-1], validTo[len(validTo)-quorum]})
		}
		var released []time.Time
		for _, at := range one.released {
			if !at.IsZero() {
				released = append(released, at)
			}
		}
		if slices.SortFunc(released, time.Time.Compare); len(released) >= quorum {
			g.released = released[len(released)-1] // on all nodes
		}
		if len(g.ends) > 0 {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *grant) int { return a.ends[0].at.Compare(b.ends[0].at) })
	return out
}

// client takes one lock again and again. Some grants are extended, some are released, some run out.
func (j *judge) client(ctx context.Context, number int, dice *rand.Rand) {
	c, err := redlock.New(j.servers.Nodes(), redlock.Options{})
	if err != nil {
		panic(err) // the nodes are ours
	}
	defer c.Close()
	key := fmt.Sprintf("job:%d", number)
	for ctx.Err() == nil {
		ttl := time.Second + time.Duration(dice.IntN(3000))*time.Millisecond
		l, err := c.TryAcquire(ctx, key, ttl)
		if err != nil {
			_ = sleep.For(ctx, 100*time.Millisecond)
			continue
		}
		extensions := 0
		if dice.IntN(2) == 0 {
			extensions = 1 + dice.IntN(6)
		}
		for range extensions {
			_ = sleep.For(ctx, 300*time.Millisecond+time.Duration(dice.Int64N(int64(ttl)/2)))
			if l.Extend(context.WithoutCancel(ctx), ttl) != nil {
				break
			}
		}
		if dice.IntN(10) < 8 {
			_ = sleep.For(ctx, 250*time.Millisecond+time.Duration(dice.IntN(800))*time.Millisecond)
			_, _ = l.Release(context.WithoutCancel(ctx))
			_ = sleep.For(ctx, 100*time.Millisecond+time.Duration(dice.IntN(500))*time.Millisecond)
			continue
		}
		_ = sleep.For(ctx, ttl+500*time.Millisecond)
	}
}
