package watch_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

var update = flag.Bool("update", false, "write the rows of docs/fences.md")

const fencesPage = "../../docs/fences.md"

// TestFencesStopEachWriteCommand tries every command that a server says can write against a fence of
// each kind: plain, in a transaction, from a script and from a function; on a writable replica too, and
// one that was blocked before. The page has a row for each server.
func TestFencesStopEachWriteCommand(t *testing.T) {
	for _, of := range labtest.Generations(t) {
		t.Run(of.Name, func(t *testing.T) {
			for _, method := range []fences.Method{{}, aclMethod} {
				row := fenceRow(t, of, method)
				text, err := os.ReadFile(fencesPage)
				if err != nil {
					t.Fatal(err)
				}
				head := strings.Join(strings.SplitAfterN(row, "|", 4)[:3], "")
				lines := strings.Split(string(text), "\n")
				i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, head) })
				switch {
				case i >= 0 && lines[i] == row:
				case !*update:
					t.Errorf("docs/fences.md has no row (go test ./restartguard/watch -run Fences -update)\n%s", row)
				case i < 0:
					t.Errorf("a row for %s has to be put into docs/fences.md by hand:\n%s", head, row)
				default:
					lines[i] = row
					if err := os.WriteFile(fencesPage, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// fenceRow is the row of a server and a fence.
func fenceRow(t *testing.T, of labtest.Generation, method fences.Method) string {
	s := startOf(t, of, "--user", "locks", "on", ">pw", "~*", "+@all")
	commands := writeCommands(t, s)
	_, err := s.Do(t.Context(), "FUNCTION", "LOAD", "#!lua name=t\nredis.register_function('call', function(k, a) return redis.call(unpack(a)) end)")
	functions := err == nil
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "locks", Password: "pw", MaxRetries: -1, ReadTimeout: 500 * time.Millisecond, DisableIdentity: true})
	defer c.Close()
	blocked := blockedBefore(t, of, method)
	raise(t, s, method)
	script := func(args []any) []any {
		return append([]any{"EVAL", "return redis.call(unpack(ARGV))", 0}, args...)
	}
	function := func(args []any) []any { return append([]any{"FCALL", "call", 0}, args...) }
	plain := func(args []any) []any { return args }
	cells := []string{
		version(t, s), method.Kind.String(), fmt.Sprint(len(commands)), passing(t, c, commands, plain), transaction(t, c, commands), passing(t, c, commands, script), "no functions",
	}
	if functions {
		cells[len(cells)-1] = passing(t, c, commands, function)
	}
	return "| " + strings.Join(append(cells, writableReplica(t, of, method), blocked), " | ") + " |"
}

// raise fences a server as a guard does, on a server that need not have all that the method needs.
func raise(t *testing.T, s *lab.Server, method fences.Method) {
	t.Helper()
	if method.Kind == fences.ACL {
		do(t, s, "ACL", "SETUSER", "locks", "-@write")
		return
	}
	do(t, s, "CONFIG", "SET", "min-replicas-max-lag", 10)
	do(t, s, "CONFIG", "SET", "min-replicas-to-write", minreplicas.FenceUp)
}

func version(t *testing.T, s *lab.Server) string {
	t.Helper()
	info, _ := do(t, s, "INFO", "server").(string)
	for _, f := range []struct{ field, name string }{{"valkey_version:", "Valkey "}, {"redis_version:", "Redis "}} {
		if _, rest, ok := strings.Cut(info, f.field); ok {
			v, _, _ := strings.Cut(rest, "\r\n")
			return f.name + v
		}
	}
	t.Fatal("no version")
	return ""
}

// writeCommands are all commands with which the server says one can write, with as many arguments as each needs.
func writeCommands(t *testing.T, s *lab.Server) (commands [][]any) {
	t.Helper()
	names, _ := do(t, s, "ACL", "CAT", "write").([]any)
	for _, n := range names {
		name := fmt.Sprint(n)
		words := strings.Split(name, "|")
		info, _ := do(t, s, "COMMAND", "INFO", words[0]).([]any)
		about, ok := info[0].([]any)
		if !ok {
			t.Fatalf("COMMAND INFO %s: %v", name, info)
		}
		if len(words) > 1 {
			subs, _ := about[9].([]any)
			for _, sub := range subs {
				if one, _ := sub.([]any); strings.EqualFold(fmt.Sprint(one[0]), name) {
					about = one
				}
			}
		}
		arity, _ := about[1].(int64)
		var args []any
		for _, w := range words {
			args = append(args, w)
		}
		for len(args) < int(max(arity, -arity)) {
			args = append(args, "1")
		}
		commands = append(commands, args)
	}
	return commands
}

// stopped reports whether a fence has refused a command.
func stopped(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) {
		return false
	}
	for _, word := range []string{
		"NOREPLICAS", "NOPERM", "can't run this command", "has no permissions", "permissions for the command",
		"not allowed from script", "not allowed inside a transaction",
	} {
		if strings.Contains(err.Error(), word) {
			return true
		}
	}
	return false
}

// passing says how many of the commands get through, sent in this way.
func passing(t *testing.T, c *redis.Client, commands [][]any, as func([]any) []any) string {
	var through []string
	for _, args := range commands {
		if err := c.Do(t.Context(), as(args)...).Err(); !stopped(err) {
			through = append(through, fmt.Sprint(args[0]))
		}
	}
	return count(through, len(commands))
}

func count(through []string, of int) string {
	switch {
	case len(through) == 0:
		return "all refused"
	case len(through) <= 4:
		return strings.Join(through, ", ") + " **get through**"
	}
	return fmt.Sprintf("**%d of %d get through**", len(through), of)
}

// transaction is the same within MULTI and EXEC.
func transaction(t *testing.T, c *redis.Client, commands [][]any) string {
	var through []string
	for _, args := range commands {
		cmds, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error { p.Do(t.Context(), args...); return nil })
		if len(cmds) > 0 && !stopped(cmds[0].Err()) && !stopped(err) {
			through = append(through, fmt.Sprint(args[0]))
		}
	}
	return count(through, len(commands))
}

// writableReplica says whether a replica that accepts writes does so behind the fence.
func writableReplica(t *testing.T, of labtest.Generation, method fences.Method) string {
	s, master := startOf(t, of, "--user", "locks", "on", ">pw", "~*", "+@all"), startOf(t, of)
	do(t, s, "CONFIG", "SET", "replica-read-only", "no")
	replicaOf(t, s, master)
	raise(t, s, method)
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "locks", Password: "pw", MaxRetries: -1, DisableIdentity: true})
	defer c.Close()
	if c.Set(t.Context(), "k", "v", time.Second).Err() == nil {
		return "**gets through**"
	}
	return "refused"
}

// blockedBefore says whether a command that was blocked when the fence went up is carried out when
// somebody whom the fence does not stop serves it.
func blockedBefore(t *testing.T, of labtest.Generation, method fences.Method) string {
	s := startOf(t, of, "--user", "locks", "on", ">pw", "~*", "+@all")
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "locks", Password: "pw", MaxRetries: -1, ReadTimeout: 5 * time.Second, DisableIdentity: true})
	defer c.Close()
	done := make(chan error, 1)
	go func() {
		done <- c.Do(context.Background(), "BRPOPLPUSH", "from", "to", 2).Err()
	}()
	if !wait(func() bool {
		info, _ := do(t, s, "INFO", "clients").(string)
		return strings.Contains(info, "blocked_clients:1")
	}) {
		t.Fatal("never blocked")
	}
	raise(t, s, method)
	_, pushed := s.Do(t.Context(), "LPUSH", "from", "v")
	err := <-done
	there, _ := do(t, s, "EXISTS", "to").(int64)
	switch {
	case there == 1:
		return "**is carried out**"
	case pushed != nil:
		return "nobody can serve it"
	}
	return "refused: " + strings.Fields(err.Error())[0]
}
