package labtest

import (
	"cmp"
	"errors"
	"os"
	"testing"

	"redlockctl/internal/lab"
)

// ClockServers starts n real redis-servers as [Servers] does, each with a wall
// clock of its own that [lab.Server.SetClock] moves. Without a C compiler the
// test is skipped, but fails in CI and under scripts/test, where there must be
// one.
func ClockServers(tb testing.TB, n int, args ...string) []*lab.Server {
	tb.Helper()
	servers := Servers(tb, n, args...)
	shim, err := lab.BuildClockShim(tb.TempDir())
	if errors.Is(err, lab.ErrNoCompiler) && os.Getenv("CI") == "" && os.Getenv("REDLOCKCTL_TEST_ALL") == "" {
		tb.Skip(err)
	}
	for _, s := range servers {
		if err := cmp.Or(err, s.Kill(), s.UseClock(shim), s.Start()); err != nil {
			tb.Fatal(err)
		}
	}
	return servers
}
