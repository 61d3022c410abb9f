package sessions

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

// PlayRandom plays sessions with servers that answer with twisted variants of these texts, until
// this many answers were random. REDLOCKCTL_ANSWERS sets another number; scripts/fuzz uses it.
func PlayRandom(tb testing.TB, answers int, play func(said string), said ...string) {
	tb.Helper()
	logging.Disable() // go-redis logs each invalid answer
	if text := os.Getenv("REDLOCKCTL_ANSWERS"); text != "" {
		var err error
		if answers, err = strconv.Atoi(text); err != nil {
			tb.Fatal(err)
		}
	}
	r, played := rand.New(rand.NewPCG(1, 2)), 0
	var text string
	defer func() {
		if tb.Failed() || played < answers {
			tb.Logf("after %d answers: %q", played, text)
		}
	}()
	sessions := 0
	for ; played < answers; sessions++ {
		var n int
		text, n = Twisted(r, said[r.IntN(len(said))])
		play(text)
		played += n
	}
	tb.Logf("%d random answers in %d sessions", played, sessions)
}
