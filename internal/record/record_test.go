package record

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/base/race"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
)

// told is a source with the snapshots and events of a test.
type told struct {
	mu     sync.Mutex // for a test that runs beside a recorder
	s      monitor.Snapshot
	events []monitor.Event
	missed uint64
}

func (t *told) Snapshot() *monitor.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.s
	return &s
}

func (t *told) ChangedSince(uint64) ([]string, bool) { return nil, false }

func (t *told) EventsSince(seq uint64) (out []monitor.Event, missed uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.events {
		if e.Seq > seq {
			out = append(out, e)
		}
	}
	missed, t.missed = t.missed, 0
	return out, missed
}

func (t *told) tell(kind, key, token string, at, until time.Time) {
	times := 0
	if kind == "extended" {
		times = 3
	}
	t.events = append(t.events, monitor.Event{Seq: uint64(len(t.events) + 1), At: at, Kind: kind, Key: safetext.New(key), Token: safetext.New(token), Until: until, Times: times, Text: safetext.New(kind)})
}

// begin opens a record and a writer for it.
func begin(t *testing.T, path string, from *told, now time.Time) *writer {
	t.Helper()
	race.Skip(t) // it writes and reads in this goroutine
	db, lock, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(); _ = lock.Close() })
	w, err := newWriter(db, from.s.Cluster, Options{By: "test"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func write(t *testing.T, w *writer, from *told, now time.Time) {
	t.Helper()
	if from.s.At.Before(now) {
		from.s.At = now
	}
	if err := w.write(t.Context(), from, now); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) *Reader {
	t.Helper()
	r, err := OpenReader(path, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func cluster(now time.Time) monitor.Snapshot {
	return monitor.Snapshot{At: now, Settled: now.Add(-takeInAfter), Cluster: monitor.Cluster{Name: "orders", N: 3, Quorum: 2, MaxTTL: 30 * time.Second}}
}

// A grant is recorded with how it began, was extended and ended; two at the same time are
// marked.
func TestBiographyOfALock(t *testing.T) { eitherWay(t, testBiographyOfALock) }

// The existing locks are recorded some time after the first view; events until then are
// recorded anyway.
func TestTheFirstViewIsTakenInLater(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	from.s.Settled = now
	held := monitortest.LockOf(now, "job:1", monitor.LockHeld, "a", "60 60 60")
	from.s.Locks = monitor.NewLocks(held)
	w := begin(t, path, from, now)
	from.tell("acquired", "job:2", "b", now, now.Add(time.Minute))
	write(t, w, from, now)
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {takeInAfter - 1, 1}, {takeInAfter, 2}} {
		from.s.At = now.Add(c.after)
		from.s.Locks = monitor.NewLocks(held, monitortest.LockOf(now, "job:2", monitor.LockHeld, "b", "60 60 60"))
		write(t, w, from, from.s.At)
		if got, err := read(t, path).HeldAt(now.Add(time.Second)); err != nil || len(got) != c.want {
			t.Errorf("after %s: %d grants, not %d: %v", c.after, len(got), c.want, err)
		}
	}
}

// A grant from before the locks were recorded shows how it ended, even if that is known
// only later.
func TestGrantsBeforeTheFirstViewIsTakenIn(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	second := func(n float64) time.Time { return now.Add(time.Duration(n * float64(time.Second))) }
	from := &told{s: cluster(now)}
	from.s.Settled = now
	w := begin(t, path, from, now)
	from.tell("acquired", "job:1", "a", second(0.2), second(60))
	write(t, w, from, second(1))
	from.tell("released", "job:1", "a", second(1.2), time.Time{})
	from.tell("acquired", "job:1", "b", second(1.3), second(60))
	from.tell("force-released", "job:2", "c", second(1.5), time.Time{})
	from.s.At, from.s.Locks = second(2), monitor.NewLocks(monitortest.LockOf(now, "job:1", monitor.LockHeld, "b", "60 60 60"))
	write(t, w, from, second(2))
	from.tell("released", "job:1", "b", second(2.5), time.Time{})
	from.s.Locks = monitor.Locks{}
	write(t, w, from, second(3))
	for lock, want := range map[string]string{"job:1": "released released", "job:2": "force-released"} {
		var how []string
		grants, err := read(t, path).GrantsOf(lock, Span{now.Add(-time.Hour), now.Add(time.Hour)}, 10)
		for _, g := range grants {
			how = append(how, g.How)
		}
		if got := strings.Join(how, " "); err != nil || got != want {
			t.Errorf("%s ended as %q, not %q: %v", lock, got, want, err)
		}
	}
}

// Very many locks are recorded a part at a time. Their events are recorded meanwhile, and
// each lock has one grant.
func TestTakenInBitByBit(t *testing.T) { eitherWay(t, testTakenInBitByBit) }

func testTakenInBitByBit(t *testing.T, limit func(*writer)) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	var all []monitor.Lock
	for i := range 3 * takeInSome {
		all = append(all, monitortest.LockOf(now, fmt.Sprintf("job:%04d", i), monitor.LockHeld, "a", "60 60 60"))
	}
	late := fmt.Sprintf("job:%04d", 3*takeInSome)
	with := func(first, token string) {
		from.s.Locks = monitor.NewLocks(append(all[1:len(all):len(all)], monitortest.LockOf(now, first, monitor.LockHeld, token, "60 60 60"))...)
	}
	with("job:0000", "a")
	w := begin(t, path, from, now)
	w.most = 0
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	held := func() int {
		got, err := read(t, path).HeldAt(second(50))
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	write(t, w, from, now)
	if got := held(); got != takeInSome {
		t.Fatalf("%d of %d locks at once", got, 3*takeInSome)
	}
	limit(w)
	// A lock that was already recorded is released, and one that was not is acquired.
	from.tell("released", "job:0000", "a", second(1), time.Time{})
	from.tell("acquired", late, "b", second(1), second(60))
	with(late, "b")
	write(t, w, from, second(1))
	limit(w)
	for i := range 3 {
		write(t, w, from, second(2+i))
	}
	if got := held(); got != 3*takeInSome || !w.follows {
		t.Errorf("%d held in the end, all %v", got, w.follows)
	}
	for lock, want := range map[string]string{"job:0000": "released", late: "", "job:0001": ""} {
		grants, err := read(t, path).GrantsOf(lock, Span{now.Add(-time.Hour), second(60)}, 10)
		if err != nil || len(grants) != 1 || grants[0].How != want {
			t.Errorf("%s: %+v, %v", lock, grants, err)
		}
	}
}

// A recorder that ends during the pass through all locks stops it, and writes everything
// else.
func TestTakingInEndsWithItsContext(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	from.s.Locks = monitor.NewLocks(monitortest.LockOf(now, "job:1", monitor.LockHeld, "a", "60 60 60"))
	from.tell("acquired", "job:2", "b", now, now.Add(time.Minute))
	w := begin(t, path, from, now)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.write(ctx, from, now); err != nil {
		t.Fatal(err)
	}
	var names string
	if err := w.db.QueryRow(`SELECT group_concat(name) FROM grants JOIN locks ON locks.id = lock`).Scan(&names); err != nil || names != "job:2" || w.follows {
		t.Errorf("%s, all %v, %v", names, w.follows, err)
	}
}

// eitherWay runs a test with open grants in memory, and with grants read from the file
// each time.
func eitherWay(t *testing.T, test func(*testing.T, func(*writer))) {
	t.Run("remembered", func(t *testing.T) { test(t, func(*writer) {}) })
	t.Run("forgotten", func(t *testing.T) {
		test(t, func(w *writer) { w.grants.most = 0; w.grants.forget() })
	})
}

func testBiographyOfALock(t *testing.T, limit func(*writer)) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	limit(w)
	write(t, w, from, now)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from.tell("acquired", "job:1", "host_42_a", second(1), second(31))
	from.tell("extended", "job:1", "host_42_a", second(10), second(40))
	write(t, w, from, second(11))
	from.tell("released", "job:1", "host_42_a", second(12), time.Time{})
	from.tell("acquired", "job:1", "b", second(13), second(20))
	from.tell("expired", "job:1", "b", second(20), time.Time{})
	from.tell("acquired", "job:1", "c", second(21), time.Time{})
	write(t, w, from, second(22))

	got, err := read(t, path).GrantsOf("job:1", Span{now, second(100)}, 10)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d grants: %v", len(got), err)
	}
	a, b, c := got[0], got[1], got[2]
	if !a.Began.Equal(second(1)) || !a.Ended.Equal(second(12)) || a.How != "released" || a.Extensions != 3 || !a.Until.Equal(second(40)) {
		t.Errorf("the first is %+v", a)
	}
	if b.How != "expired" || b.Overlaps || !c.Ended.IsZero() || !c.Until.IsZero() {
		t.Errorf("the others are %+v, %+v", b, c)
	}
	if a.Token == b.Token || len(a.Token) != 16 {
		t.Errorf("tokens are %q, %q", a.Token, b.Token)
	}
	if got, err = read(t, path).HeldAt(second(5)); err != nil || len(got) != 1 || got[0].Token != a.Token {
		t.Errorf("held at second 5: %+v, %v", got, err)
	}
	if got, err = read(t, path).GrantsOf("job:1", Span{second(13), second(14)}, 10); err != nil || len(got) != 1 || got[0].Token != b.Token {
		t.Errorf("in second 13: %+v, %v", got, err)
	}
	patterns, err := read(t, path).Patterns(Span{now.Add(-time.Minute), second(100)}, 10)
	if err != nil || len(patterns) != 1 || patterns[0].Pattern != "job:*" || patterns[0].Grants != 2 {
		t.Errorf("patterns: %+v, %v", patterns, err)
	}
}

// A recorder that starts again continues the grants that still exist, and ends the others
// now, unless their TTL ended before. What was known before the stop does not change.
func TestGoesOnAfterAStop(t *testing.T) { eitherWay(t, testGoesOnAfterAStop) }

func testGoesOnAfterAStop(t *testing.T, limit func(*writer)) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	func() {
		w := begin(t, path, from, now)
		write(t, w, from, now)
		from.tell("acquired", "gone", "a", now, now.Add(time.Hour))
		write(t, w, from, now.Add(time.Second))
		_ = w.db.Close()
	}()
	// The lock file of the first is still open in this process, so another must record
	// elsewhere.
	if _, _, err := openFile(path); !errors.Is(err, ErrInUse) {
		t.Fatalf("a second recorder: %v", err)
	}
	db, err := sql.Open("sqlite", source(path, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	later := now.Add(time.Minute)
	w, err := newWriter(db, from.s.Cluster, Options{}, later)
	if err != nil {
		t.Fatal(err)
	}
	limit(w)
	w.seq = 99
	write(t, w, from, later)
	for until, want := range map[time.Time]string{later.Add(time.Millisecond): notSeen, later: "", now.Add(time.Second): ""} {
		got, err := read(t, path).GrantsOf("gone", Span{now, until}, 10)
		if err != nil || len(got) != 1 || got[0].How != want || want != "" && !got[0].Ended.Equal(later) {
			t.Errorf("%s: %+v, %v", until, got, err)
		}
	}
	events, err := read(t, path).Events("", "", Span{now, later.Add(time.Second)}, 10)
	if err != nil || len(events) != 1 || events[0].Kind != "recorder" {
		t.Errorf("%+v, %v", events, err)
	}
}

// A console that records on after a guard has events of the time before, too: the record has
// those, and gets the ones since.
func TestASuccessorRepeatsNothing(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "job", "a", second(1), second(31))
	from.tell("released", "job", "a", second(2), second(31))
	from.events = append(from.events, monitor.Event{Seq: 3, At: second(2), Level: monitor.LevelAlarm, Kind: "down", Node: "n1", Text: safetext.New("n1 is down")})
	write(t, w, from, second(3))
	from.tell("acquired", "job", "b", second(4), second(34))
	next, err := newWriter(w.db, from.s.Cluster, Options{By: "another"}, second(10))
	if err != nil {
		t.Fatal(err)
	}
	write(t, next, from, second(10))
	got, err := read(t, path).GrantsOf("job", Span{now, second(60)}, 10)
	if err != nil || len(got) != 2 || !got[0].Ended.Equal(second(2)) || !got[1].Began.Equal(second(4)) {
		t.Errorf("%+v, %v", got, err)
	}
	events, err := read(t, path).Events("n1", "", Span{now, second(60)}, 10)
	if err != nil || len(events) != 1 || !events[0].At.Equal(second(2)) {
		t.Errorf("%+v, %v", events, err)
	}
}

// The oldest data is deleted first, and the file stays within its limit.
func TestTheRecordIsBounded(t *testing.T) {
	race.Skip(t)
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	opt := New(Options{Path: path, MaxSize: 1 << 20}).opt
	for i := range 30 {
		from.events, w.seq = nil, 0
		for j := range 1000 {
			at := now.Add(time.Duration(i) * time.Minute).Add(time.Duration(j) * time.Millisecond)
			key := fmt.Sprintf("job:%d:%d", i, j)
			from.tell("acquired", key, key, at, at.Add(time.Second))
			from.tell("released", key, key, at.Add(time.Second), time.Time{})
		}
		at := now.Add(time.Duration(i) * time.Minute)
		write(t, w, from, at.Add(2*time.Second))
		if err := w.trim(opt, at.Add(2*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	size, err := w.size()
	if err != nil || size > 1<<20 {
		t.Errorf("%d bytes: %v", size, err)
	}
	end := now.Add(time.Hour)
	if got, err := read(t, path).GrantsOf("job:29:5", Span{now, end}, 10); err != nil || len(got) != 1 {
		t.Errorf("the newest: %d, %v", len(got), err)
	}
	if got, err := read(t, path).GrantsOf("job:0:5", Span{now, end}, 10); err != nil || len(got) != 0 {
		t.Errorf("the oldest: %d, %v", len(got), err)
	}
}

// Counts by minute are kept ninety days longer than the details.
func TestSummariesOutliveDetails(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Minute)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "job:1", "a", now, now.Add(time.Second))
	from.tell("lost majority", "job:1", "a", now.Add(time.Second), now.Add(1500*time.Millisecond))
	from.tell("expired", "job:1", "a", now.Add(1500*time.Millisecond), time.Time{})
	write(t, w, from, now.Add(2*time.Second))
	opt := New(Options{Path: path}).opt
	for _, c := range []struct {
		after           time.Duration
		grants, minutes int
	}{{opt.Keep - time.Hour, 1, 1}, {opt.Keep + time.Hour, 0, 1}, {opt.Keep + SummariesKept - time.Hour, 0, 1}, {opt.Keep + SummariesKept + time.Hour, 0, 0}} {
		if err := w.trim(opt, now.Add(c.after)); err != nil {
			t.Fatal(err)
		}
		all := Span{now.Add(-time.Hour), now.Add(time.Hour)}
		grants, err := read(t, path).GrantsOf("job:1", all, 10)
		if err != nil || len(grants) != c.grants {
			t.Errorf("after %s: %d grants: %v", c.after, len(grants), err)
		}
		patterns, err := read(t, path).Patterns(all, 10)
		if err != nil || len(patterns) != c.minutes || c.minutes > 0 && (patterns[0].Grants != 1 || patterns[0].Lost != 1) {
			t.Errorf("after %s: %+v: %v", c.after, patterns, err)
		}
	}
}

// A file of a newer version, of another kind, or one that others may have prepared is
// refused.
func TestOtherFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "record.db")
	db, lock, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE meta SET value = '2' WHERE key = 'version'`); err != nil {
		t.Fatal(err)
	}
	_, _ = db.Close(), lock.Close()
	if _, _, err := openFile(path); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer one, to write: %v", err)
	}
	if _, err := OpenReader(path, ""); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer one: %v", err)
	}
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no record\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openFile(text); err == nil {
		t.Error("a text was taken for a record")
	}
	if _, err := OpenReader(text, ""); !errors.Is(err, ErrOther) {
		t.Errorf("a text: %v", err)
	}
	if _, err := OpenReader(dir, ""); !errors.Is(err, ErrOther) {
		t.Errorf("a directory: %v", err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(empty, ""); !errors.Is(err, ErrNoRecord) || strings.Count(err.Error(), ErrNoRecord.Error()) != 1 {
		t.Errorf("an empty file: %v", err)
	}
	if _, err := OpenReader(filepath.Join(dir, "none.db"), ""); !errors.Is(err, ErrNoRecord) {
		t.Errorf("no file: %v", err)
	}
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openFile(link); err == nil {
		t.Error("a symbolic link was followed")
	}
	open := filepath.Join(dir, "open.db")
	if err := os.WriteFile(open, nil, 0o666); err != nil || os.Chmod(open, 0o666) != nil {
		t.Fatal(err)
	}
	if _, _, err := openFile(open); err == nil {
		t.Error("a file that others may write was taken")
	}
}

const (
	killedPath = "REDLOCKCTL_TEST_RECORD"
	killedFrom = "REDLOCKCTL_TEST_RECORD_FROM"
)

// TestMain runs the recorder that TestKilled kills, or the tests.
func TestMain(m *testing.M) {
	if path := os.Getenv(killedPath); path != "" {
		from, _ := strconv.Atoi(os.Getenv(killedFrom))
		recordUntilKilled(path, from)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // parallel tests wait for servers and timers
		panic(err)
	}
	os.Exit(m.Run())
}

// recordUntilKilled writes fifty grants per transaction and prints the last one.
func recordUntilKilled(path string, n int) {
	now := time.Now()
	from := &told{s: cluster(now)}
	db, _, err := openFile(path)
	if err == nil {
		var w *writer
		if w, err = newWriter(db, from.s.Cluster, Options{By: "test"}, now); err == nil {
			err = w.write(context.Background(), from, now) // records the existing locks
		}
		for ; err == nil; n++ {
			from.events, w.seq = nil, 0
			for range 50 {
				from.tell("acquired", fmt.Sprint("job:", n), strconv.Itoa(len(from.events)), now, now)
			}
			if err = w.write(context.Background(), from, time.Now()); err == nil {
				fmt.Println(n)
			}
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// A recorder that is killed at any time loses no committed transaction, and leaves a
// valid file. REDLOCKCTL_RECORD_KILLS is the number of kills, default 40.
func TestKilled(t *testing.T) {
	race.Skip(t)
	path, rounds := filepath.Join(t.TempDir(), "record.db"), 40
	if n, err := strconv.Atoi(os.Getenv("REDLOCKCTL_RECORD_KILLS")); err == nil {
		rounds = n
	}
	next := 0
	for i := range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), killedPath+"="+path, killedFrom+"="+strconv.Itoa(next))
		said, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		// Killed during its start, or some time after its first transaction.
		out, wrote := make(chan string), make(chan struct{})
		go func() {
			first := make([]byte, 1)
			n, _ := said.Read(first)
			close(wrote)
			rest, _ := io.ReadAll(said)
			out <- string(first[:n]) + string(rest)
		}()
		if i%4 > 0 {
			<-wrote
		}
		time.Sleep(time.Duration(i*7%80) * time.Millisecond)
		_ = cmd.Process.Kill()
		lines := strings.Split(<-out, "\n")
		_ = cmd.Wait()
		cancel()
		last := -1
		for _, line := range lines[:len(lines)-1] { // the last line may be incomplete
			n, err := strconv.Atoi(line)
			if err != nil {
				t.Fatalf("round %d: the recorder said %s", i, line)
			}
			last = n
		}
		db, err := sql.Open("sqlite", source(path, nil))
		if err != nil {
			t.Fatal(err)
		}
		var whole string
		if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&whole); err != nil || whole != "ok" {
			t.Fatalf("round %d: %s, %v", i, whole, err)
		}
		if last >= 0 {
			var n int
			if err := db.QueryRow(`SELECT count(*) FROM grants g JOIN locks l ON l.id = g.lock WHERE l.name = ?`, fmt.Sprint("job:", last)).Scan(&n); err != nil || n < 50 {
				t.Fatalf("round %d: %d of 50 grants of %d, %v", i, n, last, err)
			}
			next = last + 2
		}
		_ = db.Close()
	}
	if next == 0 {
		t.Error("none of them wrote anything before it was killed")
	}
}
