package redlock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// TestReleaseNeverDeletesAnotherGrant: neither a late release nor one with a
// made-up token, shorter or longer, touches what others hold.
func TestReleaseNeverDeletesAnotherGrant(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	old := acquire(t, c, "a", 10*time.Second)
	for _, s := range servers {
		eventually(t, "no copy", func() bool { return value(t, s, "a") != "" }) // the third comes later
		if _, err := s.Do(t.Context(), "DEL", "a"); err != nil {                // it expired
			t.Fatal(err)
		}
	}
	var l *redlock.Lock
	eventually(t, "not free", func() bool {
		var err error
		l, err = c.TryAcquire(t.Context(), "a", 10*time.Second)
		return err == nil
	})
	for _, token := range []string{old.Token(), l.Token()[1:], l.Token() + "x", "*", "x"} {
		results, err := c.Release(t.Context(), "a", token)
		if !errors.Is(err, redlock.ErrNotHeld) || countTrue(results, redlock.StatusHeld)+countTrue(results, redlock.StatusAbsent) != 3 {
			t.Errorf("%q: %s, %v", token, statuses(results), err)
		}
	}
	for _, s := range servers {
		if v := value(t, s, "a"); v != l.Token() {
			t.Errorf("%q is there", v)
		}
	}
}

func TestExtensionNeverRevives(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	l := acquire(t, c, "a", 10*time.Second)
	awaitCopies(t, servers, "a")
	// A minority has lost it: held, and still not there.
	if _, err := servers[0].Do(t.Context(), "DEL", "a"); err != nil {
		t.Fatal(err)
	}
	if err := l.Extend(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if v := value(t, servers[0], "a"); v != "" {
		t.Errorf("made anew: %q", v)
	}
	// A majority has lost it: lost for good, by the token too.
	if _, err := servers[1].Do(t.Context(), "SET", "a", "another", "PX", 60000); err != nil {
		t.Fatal(err)
	}
	if err := l.Extend(t.Context(), 30*time.Second); !errors.Is(err, redlock.ErrNotHeld) {
		t.Fatal(err)
	}
	if l.Valid(time.Now()) {
		t.Error("valid though it is known to be lost")
	}
	if _, err := c.Extend(t.Context(), "a", l.Token(), 30*time.Second); !errors.Is(err, redlock.ErrNotHeld) {
		t.Errorf("by token: %v", err)
	}
	if v := value(t, servers[0], "a"); v != "" {
		t.Errorf("made anew: %q", v)
	}
	if v := value(t, servers[1], "a"); v != "another" {
		t.Errorf("overwritten: %q", v)
	}
}

func TestExtendByToken(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	l := acquire(t, c, "a", 10*time.Second)
	awaitCopies(t, servers, "a")
	other := open(t, servers, patient())
	m, err := other.Extend(t.Context(), "a", l.Token(), 40*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if m.Token() != l.Token() || !m.Valid(time.Now().Add(30*time.Second)) {
		t.Errorf("%q until %s", m.Token(), m.Until())
	}
	// An extension with a shorter TTL shortens nothing that is relied upon.
	if err := m.Extend(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if !m.Valid(time.Now().Add(30 * time.Second)) {
		t.Error("the validity became shorter")
	}
	// A node that did not know the script yet runs it after the later requests.
	eventually(t, "a copy is shorter", func() bool {
		results, err := other.Inspect(t.Context(), "a")
		return err == nil && !slices.ContainsFunc(results, func(r redlock.NodeResult) bool { return r.TTL < 30*time.Second })
	})
	if _, err := m.Release(t.Context()); err != nil {
		t.Error(err)
	}
	settled(t, servers)
}
