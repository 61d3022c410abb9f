// Package labtest starts real redis-servers for tests.
package labtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
)

// RedisServer is the path of redis-server. Without one the test is skipped,
// but fails in CI and under scripts/test, where there must be one.
func RedisServer(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
		tb.Fatal("no redis-server: apt-get install redis-server")
	}
	tb.Skip("no redis-server: apt-get install redis-server")
	return ""
}

// Servers starts n real redis-servers named n1, n2, …, unfenced, with the additional
// arguments args, and ends them with the test. If the test fails it prints the last log
// lines of those that have ended.
func Servers(tb testing.TB, n int, args ...string) lab.Servers {
	tb.Helper()
	servers, err := lab.StartServers(RedisServer(tb), n, args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for _, s := range servers {
			if tb.Failed() && !s.Up() {
				tb.Logf("%s does not run: %s", s.Node().Name(), s.LastLog())
			}
		}
		_ = servers.Close()
	})
	return servers
}

// Nodes returns the servers as masters of one cluster.
func Nodes(servers []*lab.Server) []*redlock.Node { return lab.Servers(servers).Nodes() }

// Generation is a server program and the generation of its ACLs.
type Generation struct{ Name, Bin string }

// Generations returns the installed redis-server, and those in the variable
// REDLOCKCTL_TEST_SERVERS, as scripts/servers prints them.
func Generations(tb testing.TB) []Generation {
	tb.Helper()
	all := []Generation{{"7.0", RedisServer(tb)}}
	for field := range strings.FieldsSeq(os.Getenv("REDLOCKCTL_TEST_SERVERS")) {
		name, bin, ok := strings.Cut(field, "=")
		if !ok {
			tb.Fatalf("REDLOCKCTL_TEST_SERVERS: %q is not NAME=PROGRAM", field)
		}
		all = append(all, Generation{name, bin})
	}
	return all
}
