package record_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockctl/base/race"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/record"
	"redlockctl/internal/report"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// scene has five servers, a monitor and a recorder, like a process with both.
type scene struct {
	*testing.T
	servers lab.Servers
	path    string
	maxTTL  time.Duration        // zero: 20 s
	began   map[string]time.Time // by token: when it was first set
	m       *observe.Monitor
	end     func() // ends the process
}

func newScene(t *testing.T, servers lab.Servers) *scene {
	s := &scene{T: t, servers: servers, began: map[string]time.Time{}, path: filepath.Join(t.TempDir(), "record.db")}
	s.begin(s.servers.Nodes())
	return s
}

// begin starts the process, and waits until it has read all locks.
func (s *scene) begin(nodes []*redlock.Node) {
	s.Helper()
	m, err := observe.New(nodes, observe.Options{MaxTTL: cmp.Or(s.maxTTL, 20*time.Second), ClusterName: "orders"})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { m.Run(ctx); done <- struct{}{} }()
	go func() { record.New(record.Options{Path: s.path, By: "test"}).Run(ctx, m); done <- struct{}{} }()
	s.m, s.end = m, func() { cancel(); <-done; <-done; s.end = func() {} }
	s.Cleanup(func() { s.end() })
	if err := m.Settled(ctx); err != nil {
		s.Fatal(err)
	}
	began := time.Now()
	s.until("taken in", func() bool {
		r, err := record.OpenReader(s.path, "")
		if err != nil {
			return false // it is being made
		}
		defer r.Close()
		c, err := r.Coverage(record.Span{Since: began, Until: time.Now().Add(time.Hour)})
		saw := len(c.Locks) > 0
		return saw && err == nil
	})
}

// again replaces the process by another one.
func (s *scene) again() {
	s.Helper()
	s.end()
	s.begin(s.servers.Nodes())
}

func (s *scene) until(what string, ok func() bool) {
	s.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("not %s:\n%s", what, s.said())
		}
	}
}

func (s *scene) read() *record.Reader {
	s.Helper()
	r, err := record.OpenReader(s.path, "")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = r.Close() })
	return r
}

func (s *scene) do(node int, args ...any) {
	s.Helper()
	if _, err := s.servers[node].Do(s.Context(), args...); err != nil {
		s.Fatal(err)
	}
}

// set puts copies of the lock "job" on nodes; all expire at the same time, however long
// that takes.
func (s *scene) set(token string, ttl time.Duration, nodes ...int) {
	s.Helper()
	now := time.Now()
	if s.began[token].IsZero() {
		s.began[token] = now
	}
	end := now.Add(ttl).UnixMilli()
	for _, i := range nodes {
		s.do(i, "SET", "job", token, "NX", "PXAT", end)
	}
}

func (s *scene) extend(ttl time.Duration, nodes ...int) {
	s.Helper()
	end := time.Now().Add(ttl).UnixMilli()
	for _, i := range nodes {
		s.do(i, "PEXPIREAT", "job", end)
	}
}

// event waits for an event of a kind.
func (s *scene) event(kind string) (found monitor.Event) {
	s.Helper()
	s.until(kind, func() bool {
		all, _ := s.m.EventsSince(0)
		for _, e := range all {
			if e.Kind == kind {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// grants returns the grants of "job", once the recorder has written them.
func (s *scene) grants() []record.Grant {
	s.Helper()
	time.Sleep(1500 * time.Millisecond)
	all, err := s.read().GrantsOf("job", record.Span{Until: time.Now().Add(time.Hour)}, 10)
	if err != nil {
		s.Fatal(err)
	}
	return all
}

// story describes the grants: token, how they ended and after how many seconds, and their
// notes. A token's first grant counts from when it was set: a busy machine sees it later.
func (s *scene) story(grants []record.Grant) string {
	names := map[string]string{}
	var all []string
	for _, g := range grants {
		if names[g.Token] == "" {
			names[g.Token] = string(rune('a' + len(names)))
			if set := s.began[names[g.Token]]; !set.IsZero() && set.Before(g.Began) {
				g.Began = set
			}
		}
		one := names[g.Token] + " " + g.How
		if g.Ended.IsZero() {
			one = strings.TrimSpace(one) + " goes on"
		} else {
			one += fmt.Sprintf(" %d", int(g.Ended.Sub(g.Began).Round(time.Second)/time.Second))
		}
		if g.Extensions > 0 {
			one += " extended"
		}
		if g.Overlaps {
			one += " OVERLAP"
		}
		all = append(all, one)
	}
	return strings.Join(all, ", ")
}

// said returns all text of the record.
func (s *scene) said() string {
	var b strings.Builder
	r := s.read()
	rep, err := report.Make(r, record.Span{Since: time.Now().Add(-time.Minute), Until: time.Now().Add(time.Minute)}, true)
	if err != nil {
		return err.Error()
	}
	_ = rep.Text(&b)
	grants, _ := r.GrantsOf("job", record.Span{Until: time.Now().Add(time.Hour)}, 10)
	events, _ := s.m.EventsSince(0)
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s %s %s %s: %s\n", e.Seq, e.Level, e.Kind, e.Node, e.Key, e.Text)
	}
	fmt.Fprintln(&b, s.story(grants))
	if m, err := r.At(time.Now()); err == nil {
		for l := range m.Snapshot.Locks.All() {
			fmt.Fprintf(&b, "replay: %s %s held=%d lost=%d until %s %v\n", l.Key, l.State, l.Held, l.Lost, l.HeldUntil(), l.Earlier)
		}
	}
	return b.String()
}

// wipe empties the first n nodes and waits until the monitor has seen that.
func (s *scene) wipe(n int) {
	s.Helper()
	s.event("acquired")
	for i := range n {
		s.do(i, "FLUSHALL")
	}
	s.until("wiped", func() bool { l := s.m.Snapshot().Locks.Get("job"); return l != nil && l.Lost == n })
}

// tells waits until the lock's grants in the record are as wanted, to a second.
func (s *scene) tells(want string) {
	s.Helper()
	words, numbers := regexp.MustCompile(`[^0-9]+`), regexp.MustCompile(`[0-9]+`)
	for begun := time.Now(); ; {
		got := s.story(s.grants())
		alike := slices.Equal(words.FindAllString(got, -1), words.FindAllString(want, -1)) &&
			slices.EqualFunc(numbers.FindAllString(got, -1), numbers.FindAllString(want, -1), func(a, b string) bool {
				x, _ := strconv.Atoi(a)
				y, _ := strconv.Atoi(b)
				return x >= y-1 && x <= y+1
			})
		if alike {
			return
		}
		if time.Since(begun) > 10*time.Second {
			s.Errorf("%s, and not %s:\n%s", got, want, s.said())
			return
		}
	}
}

// is checks the lock's present state in the record, and until when it is held.
func (s *scene) is(state monitor.LockState, until time.Time) {
	s.Helper()
	r := s.read()
	m, err := r.At(r.Cluster.Last)
	if err != nil {
		s.Fatal(err)
	}
	if l := m.Snapshot.Locks.Get("job"); l == nil || l.State != state || !l.HeldUntil().Equal(until) {
		s.Errorf("it is %+v, not %s:\n%s", l, state, s.said())
	}
}

// A holder relies on its lock when data is wiped or nodes restart, whoever else gets the
// lock and whether or not somebody records.
func TestWhatAHolderReliedOn(t *testing.T) {
	t.Parallel()
	all := []int{0, 1, 2, 3, 4}
	for name, play := range map[string]func(s *scene){
		"all are wiped": func(s *scene) {
			s.set("a", 15*time.Second, all...)
			s.wipe(5)
			s.tells("a goes on")
			s.event("data wiped")
			if !strings.Contains(s.said(), "data wiped (FLUSHALL, FLUSHDB, SWAPDB or a change of role): 1 lock lost a copy, 1 lost its majority: held to") {
				s.Error(s.said())
			}
			s.event("expired")
			s.tells("a lost majority 15")
		},
		"three are wiped, another client gets in": func(s *scene) {
			s.set("a", 16*time.Second, 0, 1, 2)
			s.wipe(3)
			s.set("b", 18*time.Second, all...)
			s.tells("a lost majority goes on, b goes on OVERLAP")
			s.until("the record has all copies of b, and until when a relies on the lock", func() bool {
				r := s.read()
				m, err := r.At(r.Cluster.Last)
				if err != nil {
					s.Fatal(err)
				}
				l := m.Snapshot.Locks.Get("job")
				return l != nil && l.State == monitor.LockSplit && l.Held == 5 && l.Earlier != nil && l.Earlier.Until.Equal(s.grants()[0].Until)
			})
		},
		"it is revoked on too few nodes": func(s *scene) {
			s.set("a", 15*time.Second, 0, 1, 2)
			s.event("acquired")
			for i := range 2 {
				s.do(i, "SET", "job", "redlockctl:revoked:x", "PX", 15000)
			}
			s.event("lost majority")
			s.tells("a goes on")
			s.event("expired")
			s.tells("a lost majority 15")
		},
		"its keeper puts the copies back": func(s *scene) {
			s.set("a", 15*time.Second, all...)
			s.wipe(3)
			s.extend(18*time.Second, 3, 4)
			s.set("a", 18*time.Second, 0, 1, 2)
			s.event("extended")
			s.tells("a goes on extended")
			for _, i := range all {
				s.do(i, "DEL", "job")
			}
			if got := s.grants(); len(got) != 1 || got[0].How != "released" {
				s.Error(s.story(got))
			}
		},
		"the recorder restarts": func(s *scene) {
			s.set("a", 18*time.Second, all...)
			s.wipe(5)
			time.Sleep(1500 * time.Millisecond)
			s.again()
			s.tells("a goes on")
			s.is(monitor.LockLostMajority, s.grants()[0].Until)
			s.until("its end", func() bool { return !s.grants()[0].Ended.IsZero() })
			s.tells("a lost majority 18")
			if m, err := s.read().At(time.Now()); err != nil || m.Snapshot.Locks.Len() != 0 {
				s.Error(s.said())
			}
		},
		"the recorder restarts, another client gets in": func(s *scene) {
			s.set("a", 10*time.Second, 0, 1, 2)
			s.wipe(2)
			time.Sleep(1500 * time.Millisecond)
			s.again()
			s.set("b", 10*time.Second, 0, 1, 3, 4)
			s.event("acquired")
			s.tells("a lost majority 10, b goes on OVERLAP")
		},
		"the recorder is away when it ends": func(s *scene) {
			s.set("a", 10*time.Second, 0, 1, 2)
			s.wipe(1)
			time.Sleep(1500 * time.Millisecond)
			s.end()
			time.Sleep(10 * time.Second)
			s.begin(s.servers.Nodes())
			s.tells("a lost majority 10")
		},
		"the majority is lost while the recorder is away": func(s *scene) {
			s.set("a", 10*time.Second, 0, 1, 2)
			s.event("acquired")
			time.Sleep(1500 * time.Millisecond)
			s.end()
			s.do(0, "FLUSHALL")
			s.begin(s.servers.Nodes())
			s.tells("a goes on")
			s.until("its end", func() bool { return !s.grants()[0].Ended.IsZero() })
			s.tells("a lost majority 10")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			race.Only(t, name, "the recorder restarts")
			play(newScene(t, labtest.Servers(t, 5)))
		})
	}
}

// A copy that a node loads from disk is no second grant for any reader, and does not make
// a removed lock held.
func TestWhatComesBackFromDisk(t *testing.T) {
	t.Parallel()
	for name, ttl := range map[string]time.Duration{"with a TTL": 9 * time.Second, "without a TTL": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			race.Only(t, name, "with a TTL")
			s := newScene(t, labtest.Servers(t, 5, "--save", "3600 1"))
			set := []any{"SET", "job", "a"}
			if ttl > 0 {
				set = append(set, "PX", ttl.Milliseconds())
			}
			for i := range 3 {
				s.do(i, set...)
			}
			s.event("acquired")
			for i := range 3 {
				s.do(i, "SAVE")
				s.do(i, "DEL", "job")
			}
			s.event("released")
			for i := range 3 {
				if err := cmp.Or(s.servers[i].Kill(), s.servers[i].Start("--min-replicas-to-write", "2147483647")); err != nil {
					t.Fatal(err)
				}
			}
			s.until("left over", func() bool {
				l := s.m.Snapshot().Locks.Get("job")
				return l != nil && l.Held == 3 && !l.ReliedOn()
			})
			s.tells("a released 0")
			s.is(monitor.LockOrphaned, time.Time{})
			s.again()
			s.tells("a released 0")
		})
	}
}

// A lock that is extended while nodes cannot be seen is one grant.
func TestAGrantOutOfSight(t *testing.T) {
	t.Parallel()
	all := []int{0, 1, 2, 3, 4}
	for name, c := range map[string]struct {
		hidden   int
		extended []int
		want     string
	}{
		"a majority, extended":     {3, all, "a goes on extended"},
		"all, extended":            {5, all, "a goes on extended"},
		"a majority, and it ended": {3, nil, "a not seen 10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			race.Only(t, name, "a majority, extended")
			s := newScene(t, labtest.Servers(t, 5))
			s.end()
			proxies := labtest.Proxies(t, s.servers)
			var nodes []*redlock.Node
			for _, p := range proxies {
				nodes = append(nodes, p.Node())
			}
			s.maxTTL = time.Minute // a busy machine may take long
			s.begin(nodes)
			end := time.Now().Add(10 * time.Second)
			s.set("a", time.Until(end), all...)
			s.event("acquired")
			for _, p := range proxies[:c.hidden] {
				p.Swallow(true)
			}
			s.until("out of sight", func() bool { return s.m.Snapshot().Cluster.Serving == 5-c.hidden })
			s.extend(50*time.Second, c.extended...)
			time.Sleep(time.Until(end) + 500*time.Millisecond)
			for _, p := range proxies {
				p.Heal()
			}
			s.until("in sight", func() bool { return s.m.Snapshot().Cluster.Serving == 5 })
			if c.extended != nil {
				s.event("extended")
			}
			s.tells(c.want)
		})
	}
}

// A holder relies on the end that it was granted when another client, or a clock, cuts a
// copy short.
func TestAGrantCutShort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play func(s *scene)
		want string
	}{
		"by a clock": {func(s *scene) {
			if err := s.servers[0].SetClock(4*time.Second, 1); err != nil {
				s.Fatal(err)
			}
		}, "a lost majority 6"},
		"by all clocks": {func(s *scene) {
			for _, server := range s.servers {
				if err := server.SetClock(4*time.Second, 1); err != nil {
					s.Fatal(err)
				}
			}
		}, "a lost majority 6"},
		"by somebody":   {func(s *scene) { s.extend(2*time.Second, 0) }, "a lost majority 6"},
		"by its holder": {func(s *scene) { s.extend(3*time.Second, 0, 1, 2) }, "a expired 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			race.Only(t, name, "by somebody")
			s := newScene(t, labtest.ClockServers(t, 5))
			s.set("a", 6*time.Second, 0, 1, 2)
			s.event("acquired")
			c.play(s)
			s.event("expired")
			s.tells(c.want)
		})
	}
}
