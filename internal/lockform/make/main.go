// Make takes a lock with each library that can be had here, on a real
// redis-server of its own, and writes down what then stands in it: the fixtures
// of the forms of locks. It is a module of its own, so that no other lock
// library becomes a dependency of the program.
//
// Run it by scripts/fixtures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
)

// fixture is a key as a library made it. It is read by the tests of lockform.
type fixture struct {
	Library string    `json:"library"`
	Version string    `json:"version"`
	Form    string    `json:"form"` // what it must be recognised as
	At      time.Time `json:"at"`
	Key     string    `json:"key"`
	Type    string    `json:"type"`
	Value   []byte    `json:"value"` // in base64
	TTLms   int64     `json:"ttl_ms"`
}

// maker takes a lock and leaves it.
type maker struct {
	library string
	form    string
	take    func(ctx context.Context, addr string) (version string, err error)
}

const ttl = 20 * time.Second

func main() {
	out := flag.String("o", "", "the file to write; default: standard output")
	scripts := flag.String("scripts", ".", "the directory of the scripts for node and python")
	modules := flag.String("node", "", "a directory with node_modules; empty: no Node libraries")
	python := flag.String("python", "/usr/bin/python3", "an interpreter with redis-py; empty: none")
	flag.Parse()
	if err := run(*out, *scripts, *modules, *python); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func run(out, scripts, modules, python string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fixtures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := lab.StartServer(bin, "fixtures", dir)
	if err != nil {
		return err
	}
	defer server.Kill()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	defer client.Close()

	makers := []maker{
		{"redlockctl", "redlockctl", byRedlockctl(server)},
		{"redlockctl, revoked", "redlockctl", byRevoke(server)},
		{"redsync", "redsync", byRedsync},
		{"bsm/redislock with metadata", "bsm/redislock", byRedislock},
		{"rueidislock", "rueidislock", byRueidislock},
	}
	if modules != "" {
		for _, m := range [...][2]string{
			{"node-redlock 4", "redlock"}, {"node-redlock 5", "redlock5"},
			{"redlock-universal", "redlock-universal"},
		} {
			makers = append(makers, maker{m[0], "node-redlock or redlock-universal", byScript(modules, "node", scripts+"/make.mjs", m[1])})
		}
	}
	if python != "" {
		makers = append(makers, maker{"redis-py", "redis-py", byScript(".", python, scripts+"/make.py")})
	}

	var fixtures []fixture
	for _, m := range makers {
		if err := client.FlushAll(ctx).Err(); err != nil {
			return err
		}
		version, err := m.take(ctx, server.Addr())
		if err != nil {
			return fmt.Errorf("%s: %w", m.library, err)
		}
		found, err := read(ctx, client)
		if err != nil {
			return fmt.Errorf("%s: %w", m.library, err)
		}
		if len(found) == 0 {
			return fmt.Errorf("%s left no key", m.library)
		}
		for _, f := range found {
			f.Library, f.Version, f.Form = m.library, version, m.form
			fixtures = append(fixtures, f)
		}
	}
	doc, err := json.MarshalIndent(fixtures, "", "  ")
	if err != nil {
		return err
	}
	doc = append(doc, '\n')
	if out == "" {
		_, err = os.Stdout.Write(doc)
		return err
	}
	return os.WriteFile(out, doc, 0o644)
}

// read is all keys of the server, sorted.
func read(ctx context.Context, client *redis.Client) ([]fixture, error) {
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	var found []fixture
	for _, key := range keys {
		typ, err := client.Type(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		if typ != "string" {
			return nil, fmt.Errorf("%q is a %s", key, typ)
		}
		value, err := client.Get(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		pttl, err := client.PTTL(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		left := pttl.Milliseconds()
		if pttl < 0 {
			left = -1
		}
		found = append(found, fixture{Key: key, Type: typ, Value: []byte(value), TTLms: left, At: time.Now().UTC().Truncate(time.Second)})
	}
	return found, nil
}

// moduleVersion is the version of a Go module in this build.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}

func byRedlockctl(server *lab.Server) func(context.Context, string) (string, error) {
	return func(ctx context.Context, _ string) (string, error) {
		client, err := redlock.New([]*redlock.Node{server.Node()}, redlock.Options{})
		if err != nil {
			return "", err
		}
		_, err = client.Acquire(ctx, "job:own", ttl)
		return "this tree", err
	}
}

func byRevoke(server *lab.Server) func(context.Context, string) (string, error) {
	return func(ctx context.Context, _ string) (string, error) {
		client, err := redlock.New([]*redlock.Node{server.Node()}, redlock.Options{})
		if err != nil {
			return "", err
		}
		lock, err := client.Acquire(ctx, "job:revoked", ttl)
		if err == nil {
			_, err = client.Revoke(ctx, "job:revoked", lock.Token(), ttl)
		}
		return "this tree", err
	}
}

func byRedsync(ctx context.Context, addr string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	m := redsync.New(goredis.NewPool(client)).NewMutex("job:redsync", redsync.WithExpiry(ttl))
	return moduleVersion("github.com/go-redsync/redsync/v4"), m.LockContext(ctx)
}

func byRedislock(ctx context.Context, addr string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	_, err := redislock.Obtain(ctx, client, "job:redislock", ttl, &redislock.Options{Metadata: `{"host":"web-7"}`})
	return moduleVersion("github.com/bsm/redislock"), err
}

func byRueidislock(ctx context.Context, addr string) (string, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:  2, KeyValidity: ttl,
	})
	if err != nil {
		return "", err
	}
	// Closing the locker would release the lock; the process ends soon enough.
	ctx, cancel, err := locker.WithContext(ctx, "job")
	if err != nil {
		return "", err
	}
	_ = cancel
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	time.Sleep(200 * time.Millisecond) // its majority answers first, the other keys follow
	return moduleVersion("github.com/redis/rueidis"), nil
}

// byScript runs a program that takes the lock at the address it is given last,
// and prints the version of the library.
func byScript(dir, program string, args ...string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, addr string) (string, error) {
		cmd := exec.CommandContext(ctx, program, append(args, addr)...)
		cmd.Dir = dir
		out, err := cmd.Output()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			return "", fmt.Errorf("%w: %s", err, ended.Stderr)
		}
		return strings.TrimSpace(string(out)), err
	}
}
