package redlock

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPauseGrowsWithinItsBounds(t *testing.T) {
	opt, err := Options{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.IntRange(2, 1000).Draw(t, "attempt")
		random := rapid.Float64Range(0, 0.999).Draw(t, "random")
		least, most := opt.pause(attempt, 0), 2*opt.pause(attempt, 0)
		got := opt.pause(attempt, random)
		if got < least || got > most {
			t.Fatalf("pause %s is not in [%s, %s]", got, least, most)
		}
		if most > 8*opt.RetryDelay {
			t.Fatalf("pause may be %s", most)
		}
		if next := opt.pause(attempt+1, random); next < got {
			t.Fatalf("after %s only %s", got, next)
		}
	})
	if got := 2 * opt.pause(2, 0); got != opt.RetryDelay {
		t.Errorf("the first pause is up to %s, want %s", got, opt.RetryDelay)
	}
}
