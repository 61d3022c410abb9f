package app

import (
	"testing"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/who"
)

// An answer is compared with a look: that one may see more copies of the lock, or nothing.
func TestWhoReliesOnALock(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers[:2] {
		get(t, s, "SET", "job:1", "token", "PX", "20000")
	}
	cfg, err := twoClusters(t, servers).Set.Choose("shop")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"job:1": true, "job:2": false} {
		l, s := ReliedOn(t.Context(), cfg, &who.Answer{Key: key, Held: 1, N: 3}, nil)
		if (l != nil) != want || s == nil {
			t.Errorf("%s: %+v %v", key, l, s)
		}
	}
}
