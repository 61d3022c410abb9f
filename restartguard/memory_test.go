package restartguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"redlockctl/base/private"
)

const bootNow = 5 * time.Hour

// waiting is the state of a node that waits, one second into D.
func waiting(t *testing.T) State {
	return newScript(t).sees("a", servingParams).sees("b", fenced).canary(CanaryFenced, fenced).state
}

func TestAGuardGoesOnWhereTheLastOneEnded(t *testing.T) {
	old := waiting(t)
	r := old.record("addr", Method{}.id(), epoch.Add(time.Second), bootNow)
	t.Run("in the same boot the deadline stays where it was", func(t *testing.T) {
		// 3 s later by the boot clock, on another process' monotonic clock.
		now := epoch.Add(777 * time.Hour)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.state(now, bootNow+3*time.Second, testDelay, true), now: now}
		s.sees("b", fenced).phase(PhaseFenced).does(proveIt("b"))
		if wait := s.state.Deadline.Sub(now); wait != testDelay-4*time.Second {
			t.Fatalf("waits for %s", wait)
		}
		s.after(testDelay-4*time.Second-1).sees("b", fenced).does(proveIt("b")).after(1).sees("b", fenced).does(removeIt("b"))
	})
	t.Run("in another boot D counts from now", func(t *testing.T) {
		now := epoch.Add(777 * time.Hour)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.state(now, time.Minute, testDelay, false), now: now}
		if s.state.Deadline != now.Add(testDelay) {
			t.Fatalf("deadline %s from now", s.state.Deadline.Sub(now))
		}
		s.sees("b", fenced).phase(PhaseFenced)
		if wait := s.state.Deadline.Sub(now); wait != testDelay {
			t.Fatalf("waits for %s", wait)
		}
	})
	t.Run("a node that restarted meanwhile waits D from now", func(t *testing.T) {
		now := epoch.Add(777 * time.Hour)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.state(now, bootNow+time.Second, testDelay, true), now: now}
		s.sees("c", servingParams).phase(PhaseExposed).does(raiseIt("c")).told("restart", "b → c")
		if wait := s.state.Deadline.Sub(now); wait != testDelay {
			t.Fatalf("waits for %s", wait)
		}
	})
	t.Run("a node that was open and restarted meanwhile is closed, also in another boot", func(t *testing.T) {
		open := newScript(t).sees("a", servingParams).state.record("addr", Method{}.id(), epoch, bootNow)
		for _, same := range []bool{true, false} {
			s := &script{t: t, policy: Policy{Delay: testDelay}, state: open.state(epoch, bootNow, testDelay, same), now: epoch}
			s.sees("b", servingParams).phase(PhaseExposed).does(raiseIt("b")).until(testDelay)
		}
	})
	t.Run("a node that was being closed is closed", func(t *testing.T) {
		exposed := newScript(t).sees("a", servingParams).sees("b", servingParams).state.record("addr", Method{}.id(), epoch, bootNow)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: exposed.state(epoch, bootNow, testDelay, true), now: epoch}
		s.sees("b", servingParams).phase(PhaseExposed).does(raiseIt("b"))
	})
	t.Run("a hold outlives guard and server", func(t *testing.T) {
		r := newScript(t).sees("a", cordoned).state.record("addr", Method{}.id(), epoch, bootNow)
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.state(epoch, 1, testDelay, false), now: epoch}
		s.sees("b", fenced).does(cordonIt("b"))
	})
	for name, c := range map[string]struct {
		away, step time.Duration
		loss       bool
	}{
		"a step of the clock behind its back is a loss":          {2 * time.Second, time.Second, true},
		"also after it was away for long":                        {time.Hour, 30 * time.Second, true},
		"a clock that went on is none":                           {2 * time.Second, 0, false},
		"one that drifted apart while nobody looked for an hour": {time.Hour, time.Hour * 2 / 10_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newScript(t).wall(tick, 0, time.Millisecond).state.record("addr", Method{}.id(), epoch, bootNow)
			s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.state(epoch, r.ClockAt+c.away, testDelay, true)}
			s.wall(tick+c.away, c.step, time.Millisecond) // the first look tells
			if s.has("clock", "forward") != c.loss {
				t.Fatalf("%+v", s.events)
			}
		})
	}
	t.Run("a deadline that is further away than D counts as none", func(t *testing.T) {
		r := r
		r.Deadline = bootNow + 1000*time.Hour
		if got := r.state(epoch, bootNow, testDelay, true).Deadline.Sub(epoch); got != testDelay {
			t.Fatalf("waits for %s", got)
		}
	})
	t.Run("another method has to close what waits", func(t *testing.T) {
		s := &script{t: t, policy: Policy{Delay: testDelay}, state: r.state(epoch, bootNow, testDelay, true).moved(), now: epoch}
		s.sees("b", servingParams).phase(PhaseExposed).does(raiseIt("b"))
	})
}

// TestMemoryNeverHurries kills the guard at any moment, and lets any time pass,
// on a boot clock that goes on while the monotonic one stands still.
func TestMemoryNeverHurries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.IntRange(1, 1000).Draw(t, "delay"))
		p := Policy{Delay: delay}
		now, boot := epoch, bootNow
		var s State
		var seen string
		var lost time.Duration // on the boot clock
		bootOK := true
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			d := time.Duration(rapid.IntRange(0, 600).Draw(t, "pass"))
			now, boot = now.Add(d), boot+d
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0: // the guard is killed and starts again, after a while
				r := s.record("addr", Method{}.id(), now, boot)
				away := time.Duration(rapid.IntRange(0, 600).Draw(t, "away"))
				boot += away
				now = epoch.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "clock")))
				if bootOK = rapid.Bool().Draw(t, "same boot"); !bootOK {
					boot = time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "boot"))
					lost = boot // what the other boot said means nothing
				}
				if s.RunID != "" {
					s = r.state(now, boot, delay, bootOK)
				}
			default:
				run := rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "run")
				if run != seen {
					seen, lost = run, boot
				}
				var actions []Action
				s, actions, _ = Step(p, s, Observation{About: Seen, RunID: run, Role: "master", Params: fenced}, now)
				for _, a := range actions {
					if a.Kind == Remove && boot-lost < delay {
						t.Fatalf("a lift %s after the loss, D is %s", boot-lost, delay)
					}
				}
			}
		}
	})
}

func TestRecordKeepsWhatIsDurable(t *testing.T) {
	old := waiting(t)
	old.Wipes, old.Evicted, old.Revert, old.Incarnations, old.Exposed = 3, 4, 1, 5, time.Second
	old.Pending, old.Former = InFlightCommand{Sent: true, Removal: true, Conn: 7}, "f"
	back := old.record("addr", Method{}.id(), epoch, bootNow).state(epoch, bootNow, testDelay, true)
	if got, want := back.durable(), old.durable(); !got.Deadline.Equal(want.Deadline) {
		t.Fatalf("deadline %s, want %s", got.Deadline, want.Deadline)
	} else if got.Deadline = want.Deadline; !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func openMemory(t *testing.T, dir string) *Memory {
	t.Helper()
	m, err := OpenMemory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestMemoryOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "guard")
	path := filepath.Join(dir, memoryFile)
	m := openMemory(t, dir)
	if _, err := ReadMemory(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("an empty directory: %v", err)
	}
	now, boot := time.Now(), BootTime()
	s := waiting(t)
	s.Deadline, s.Delay = now.Add(testDelay), testDelay
	if _, err := m.put("n1", s.record("h:1", Method{}.id(), now, boot), boot); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		mode fs.FileMode
	}{{dir, 0o700}, {path, 0o600}} {
		if st, err := os.Stat(c.path); err != nil || st.Mode().Perm() != c.mode {
			t.Errorf("%s: %v, %v", c.path, st.Mode(), err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 { // and the lock, and the id
		t.Errorf("%v", files)
	}
	if _, err := OpenMemory(dir); !errors.Is(err, ErrInUse) {
		t.Fatalf("a second guard: %v", err)
	}
	if running, err := Running(dir); err != nil || !running {
		t.Errorf("a guard runs: %v, %v", running, err)
	}
	known, err := ReadMemory(dir)
	if err != nil || known["n1"].RunID != "b" || known["n1"].Wait <= 0 || known["n1"].Wait > testDelay {
		t.Fatalf("%+v, %v", known, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, filepath.Join(dir, "none")} {
		if running, err := Running(dir); err != nil || running {
			t.Errorf("%s: no guard runs: %v, %v", dir, running, err)
		}
	}
	t.Run("is read again", func(t *testing.T) {
		m := openMemory(t, dir)
		defer m.Close()
		got, ok := m.past(testDelay).at("n1", "h:1", Method{}.id())
		if wait := time.Until(got.Deadline); !ok || m.Damaged() != nil || wait <= 0 || wait > testDelay {
			t.Fatalf("%v, %+v", ok, got)
		}
		if got.owed() != FenceNone {
			t.Fatalf("owes a fence that is up: %+v", got)
		}
		if got, _ := m.past(testDelay).at("n1", "h:1", Method{Kind: MethodACL, User: "locks"}.id()); got.owed() != FenceUp {
			t.Fatalf("believes that another method has closed it: %+v", got)
		}
		if _, ok := m.past(testDelay).at("n1", "h:2", Method{}.id()); ok {
			t.Fatal("knows a node at another address")
		}
	})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string]func() error{
		"cut off":     func() error { return os.WriteFile(path, good[:len(good)-10], 0o600) },
		"one bit off": func() error { b := append([]byte{}, good...); b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) },
		"empty":       func() error { return os.WriteFile(path, nil, 0o600) },
		"a link":      func() error { _ = os.Remove(path); return os.Symlink("/dev/zero", path) },
		"others' too": func() error {
			_ = os.Remove(path)
			return errors.Join(os.WriteFile(path, good, 0o600), os.Chmod(path, 0o666))
		},
	}
	for name, damage := range damages {
		t.Run("is as good as none if it is "+name, func(t *testing.T) {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			m := openMemory(t, dir)
			defer m.Close()
			if _, ok := m.past(testDelay).at("n1", "h:1", Method{}.id()); ok || !errors.Is(m.Damaged(), ErrDamaged) {
				t.Fatalf("%v, %v", ok, m.Damaged())
			}
			if _, err := ReadMemory(dir); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%v", err)
			}
		})
	}
	t.Run("in a directory that others may write is refused", func(t *testing.T) {
		open := filepath.Join(t.TempDir(), "state")
		if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenMemory(open); err == nil || !strings.Contains(err.Error(), "mode 0777") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("that cannot be written is removed, so that nothing old is believed", func(t *testing.T) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil { // no file replaces a directory
			t.Fatal(err)
		}
		m := openMemory(t, dir)
		defer m.Close()
		if _, err := m.put("n1", s.record("h:1", Method{}.id(), now, boot), boot); err == nil {
			t.Fatal("no error")
		}
		if files, _ := os.ReadDir(dir); len(files) != 2 { // the lock and the id
			t.Fatalf("left: %v", files)
		}
		if _, err := m.put("n1", s.record("h:1", Method{}.id(), now, boot), boot); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStateDirectoryIsRemoved: under a guard that runs. What it writes next makes it again,
// as its start would have made it, and no other guard can be started there.
func TestStateDirectoryIsRemoved(t *testing.T) {
	r := waiting(t).record("h:1", Method{}.id(), epoch, bootNow)
	for _, c := range []struct {
		name   string
		remove func(dir string) error
		err    error
	}{
		{"with all in it", os.RemoveAll, nil},
		{"and its parent", func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) }, nil},
		{"and made again by somebody", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)) }, nil},
		{"and made again for all to write", func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777))
		}, private.ErrUnsafe},
		{"the lock alone", func(dir string) error { return os.Remove(filepath.Join(dir, lockFile)) }, nil},
		{"and another guard is in it", func(dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			other, err := OpenMemory(dir)
			if err == nil {
				t.Cleanup(func() { _ = other.Close() })
			}
			return err
		}, ErrInUse},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "guard")
			m := openMemory(t, dir)
			defer m.Close()
			for range 2 {
				if remade, err := m.put("n1", r, bootNow); remade || err != nil || m.removed() {
					t.Fatalf("before: %v, %v", remade, err)
				}
			}
			if err := c.remove(dir); err != nil || !m.removed() {
				t.Fatalf("not noticed: %v", err)
			}
			remade, err := m.put("n2", r, bootNow)
			if c.err != nil {
				if remade || !errors.Is(err, c.err) {
					t.Errorf("%v, %v; want %v", remade, err, c.err)
				}
				return
			}
			if !remade || err != nil {
				t.Fatalf("%v, %v", remade, err)
			}
			if remade, err := m.put("n2", r, bootNow); remade || err != nil || m.removed() {
				t.Errorf("again: %v, %v", remade, err)
			}
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", info, err)
			}
			if nodes, err := ReadMemory(dir); err != nil || len(nodes) != 2 {
				t.Errorf("remembered: %v, %v", nodes, err)
			}
			if _, err := OpenMemory(dir); !errors.Is(err, ErrInUse) {
				t.Errorf("a second guard: %v", err)
			}
			if id, noted, err := guardID(dir); id != m.ID() || !noted || err != nil {
				t.Errorf("the id is %s, not %s: %v", id, m.ID(), err)
			}
		})
	}
}

// Who only looks whether a guard runs does not keep one from starting.
func TestLookingAtTheLockIsNoGuard(t *testing.T) {
	dir := t.TempDir()
	openMemory(t, dir).Close()
	synctest.Test(t, func(t *testing.T) {
		look, err := os.Open(filepath.Join(dir, lockFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(look.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
		if running, err := Running(dir); err != nil || running {
			t.Errorf("another look is taken for a guard: %v, %v", running, err)
		}
		time.AfterFunc(lockAgain*3/2, func() { look.Close() })
		m, err := OpenMemory(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
	})
}
