package labtest

import (
	"errors"
	"fmt"
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
	bin, dir := RedisServer(tb), tb.TempDir()
	shim, err := lab.BuildClockShim(dir)
	if errors.Is(err, lab.ErrNoCompiler) && os.Getenv("CI") == "" && os.Getenv("REDLOCKCTL_TEST_ALL") == "" {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	servers := make([]*lab.Server, n)
	for i := range servers {
		for try := 1; ; try++ {
			s, err := lab.NewServer(bin, fmt.Sprintf("n%d", i+1), dir, 0, args...)
			if err != nil {
				tb.Fatal(err)
			}
			if err := s.UseClock(shim); err != nil {
				tb.Fatal(err)
			}
			err = s.Start()
			if err == nil {
				servers[i] = s
				break
			}
			if !errors.Is(err, lab.ErrPortTaken) || try == 10 {
				tb.Fatal(err)
			}
		}
		tb.Cleanup(func() { _ = servers[i].Kill() })
	}
	return servers
}
