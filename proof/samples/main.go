// Make acquires a lock with each installed library, on its own real redis-server, and
// records the keys on the server: the fixtures of the forms of locks. It is a separate
// module, so that no other lock library becomes a dependency of the program.
//
// With -redlockctl each library instead takes, extends and releases its locks as
// the user whose rights `config acl --role client --library NAME` prints, and
// nothing may be denied.
//
// Run it by scripts/fixtures and scripts/libraries.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	gozero "github.com/zeromicro/go-zero/core/stores/redis"

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
	Value   []byte    `json:"value"` // in base64; fields and members are a line each
	Length  int64     `json:"length,omitempty"`
	TTLms   int64     `json:"ttl_ms"`
}

// maker takes a lock and leaves it.
type maker struct {
	library string
	form    string
	take    func(ctx context.Context, to target) (version string, err error)
	needs   string // the library's name for config acl; empty: there are no rights of its own
}

// target is the server, and as whom to log in.
type target struct {
	addr, user, password string
	whole                bool // the lock is extended and released as well
}

func (t target) options() *redis.Options {
	return &redis.Options{Addr: t.addr, Username: t.user, Password: t.password}
}

const ttl = 20 * time.Second

func main() {
	out := flag.String("o", "", "the file to write; default: standard output")
	scripts := flag.String("scripts", ".", "the directory of the scripts for node and python")
	modules := flag.String("node", "", "a directory with node_modules; empty: no Node libraries")
	python := flag.String("python", "/usr/bin/python3", "an interpreter with redis-py; empty: none")
	php := flag.String("php", "", "a PHP with the redis extension and Symfony Lock; empty: none")
	program := flag.String("redlockctl", "", "a redlockctl, whose rights the libraries are tried under; empty: fixtures are written")
	flag.Parse()
	if err := run(*out, *scripts, *modules, *python, *php, *program); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

// makersOf are the libraries that are here.
func makersOf(server *lab.Server, scripts, modules, python, php string) []maker {
	makers := []maker{
		{"redlockctl", "redlockctl", byRedlockctl(server), ""},
		{"redlockctl, revoked", "redlockctl", byRevoke(server), ""},
		{"redsync", "redsync", byRedsync, "redsync"},
		{"bsm/redislock with metadata", "bsm/redislock", byRedislock, "bsm/redislock"},
		{"rueidislock", "rueidislock", byRueidislock, "rueidislock"},
		{"go-zero", "go-zero or Laravel", byGoZero, "go-zero"},
	}
	if modules != "" {
		const shared = "node-redlock or redlock-universal"
		for _, m := range [...][4]string{
			{"node-redlock 4", "redlock", shared, "node-redlock"}, {"node-redlock 5", "redlock5", shared, "node-redlock"},
			{"redlock-universal", "redlock-universal", shared, "redlock-universal"},
			{"redis-semaphore", "redis-semaphore", "redis-semaphore, redlock-rb, aioredlock, @microfleet/ioredis-lock or Spring Integration", "redis-semaphore"},
			{"ioredis-lock", "ioredis-lock", "ioredis-lock", "ioredis-lock"},
			{"@microfleet/ioredis-lock", "@microfleet/ioredis-lock", "redlock-rb, aioredlock, @microfleet/ioredis-lock or Spring Integration", "@microfleet/ioredis-lock"},
			{"node-redis-warlock", "node-redis-warlock", "node-redis-warlock", "node-redis-warlock"},
			{"redis-promise-lock", "redis-promise-lock", "redis-promise-lock", "redis-promise-lock"},
			{"simple-redis-mutex", "simple-redis-mutex", "simple-redis-mutex", "simple-redis-mutex"},
			{"@redis-kit/lock", "@redis-kit/lock", "@redis-kit/lock", "@redis-kit/lock"},
			{"ioredfour", "ioredfour", "ioredfour", "ioredfour"},
		} {
			makers = append(makers, maker{m[0], m[2], byScript(modules, "node", scripts+"/make.mjs", m[1]), m[3]})
		}
	}
	if python != "" {
		makers = append(makers, maker{"redis-py", "redis-py", byScript(".", python, scripts+"/make.py"), "redis-py"})
	}
	if php != "" {
		makers = append(makers, maker{"Symfony Lock", "Symfony Lock", byScript(".", php, scripts+"/make.php"), "Symfony Lock"})
	}
	return makers
}

func run(out, scripts, modules, python, php, program string) error {
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

	makers := makersOf(server, scripts, modules, python, php)
	if program != "" {
		return try(ctx, server, client, makers, program, dir)
	}

	var fixtures []fixture
	for _, m := range makers {
		if err := client.FlushAll(ctx).Err(); err != nil {
			return err
		}
		version, err := m.take(ctx, target{addr: server.Addr()})
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
			if v := string(f.Value); m.library == "@redis-kit/lock" && !strings.ContainsAny(v, "+/") {
				f.Form = "redlock-py or @redis-kit/lock"
				if strings.ContainsAny(v[len(v)-1:], "AQgw") {
					f.Form = "bsm/redislock, redlock-py or @redis-kit/lock"
				}
			}
			if f.Type == "zset" { // the same libraries' other kinds
				f.Form = map[string]string{"redis-semaphore": "redis-semaphore (semaphore)"}[m.library]
				if m.library == "Symfony Lock" {
					f.Form = m.library
					if !strings.Contains(string(f.Value), "__write__") {
						f.Form += " (readers)"
					}
				}
			}
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
		value, length := "", int64(0)
		switch typ {
		case "string":
			value, err = client.Get(ctx, key).Result()
		case "hash", "zset":
			command := []any{"hkeys", key}
			if typ == "zset" {
				command = []any{"zrange", key, 0, -1}
			}
			var members []string
			members, err = client.Do(ctx, command...).StringSlice()
			value, length = strings.Join(members, "\n"), int64(len(members))
		default:
			err = fmt.Errorf("%q is a %s", key, typ)
		}
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
		found = append(found, fixture{Key: key, Type: typ, Value: []byte(value), Length: length, TTLms: left, At: time.Now().UTC().Truncate(time.Second)})
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

func byRedlockctl(server *lab.Server) func(context.Context, target) (string, error) {
	return func(ctx context.Context, _ target) (string, error) {
		client, err := redlock.New([]*redlock.Node{server.Node()}, redlock.Options{})
		if err != nil {
			return "", err
		}
		_, err = client.Acquire(ctx, "job:own", ttl)
		return "this tree", err
	}
}

func byRevoke(server *lab.Server) func(context.Context, target) (string, error) {
	return func(ctx context.Context, _ target) (string, error) {
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

func byRedsync(ctx context.Context, to target) (string, error) {
	client := redis.NewClient(to.options())
	defer client.Close()
	m := redsync.New(goredis.NewPool(client)).NewMutex("job:redsync", redsync.WithExpiry(ttl))
	err := m.LockContext(ctx)
	if err == nil && to.whole {
		if _, err = m.ExtendContext(ctx); err == nil {
			_, err = m.UnlockContext(ctx)
		}
	}
	return moduleVersion("github.com/go-redsync/redsync/v4"), err
}

func byGoZero(ctx context.Context, to target) (string, error) {
	client, err := gozero.NewRedis(gozero.RedisConf{Host: to.addr, Type: gozero.NodeType, User: to.user, Pass: to.password})
	if err != nil {
		return "", err
	}
	lock := gozero.NewRedisLock(client, "job:go-zero")
	lock.SetExpire(int(ttl.Seconds()))
	ok, err := lock.AcquireCtx(ctx)
	if err == nil && to.whole {
		if ok, err = lock.AcquireCtx(ctx); ok && err == nil { // again extends it
			ok, err = lock.ReleaseCtx(ctx)
		}
	}
	if err == nil && !ok {
		err = errors.New("not locked")
	}
	return moduleVersion("github.com/zeromicro/go-zero"), err
}

func byRedislock(ctx context.Context, to target) (string, error) {
	client := redis.NewClient(to.options())
	defer client.Close()
	lock, err := redislock.Obtain(ctx, client, "job:redislock", ttl, &redislock.Options{Metadata: `{"host":"web-7"}`})
	if err == nil && to.whole {
		if err = lock.Refresh(ctx, ttl, nil); err == nil {
			if _, err = lock.TTL(ctx); err == nil {
				err = lock.Release(ctx)
			}
		}
	}
	return moduleVersion("github.com/bsm/redislock"), err
}

func byRueidislock(ctx context.Context, to target) (string, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{to.addr}, Username: to.user, Password: to.password},
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
	if to.whole {
		defer locker.Close()
		defer cancel()
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	time.Sleep(200 * time.Millisecond) // its majority answers first, the other keys follow
	return moduleVersion("github.com/redis/rueidis"), nil
}

// byScript runs a program that takes the lock at the address it is given last,
// and prints the version of the library.
func byScript(dir, program string, args ...string) func(context.Context, target) (string, error) {
	return func(ctx context.Context, to target) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, append(args, to.addr)...)
		cmd.Dir = dir
		cmd.Env = os.Environ()
		if to.user != "" {
			cmd.Env = append(cmd.Env, "LOCK_USER="+to.user, "LOCK_PASSWORD="+to.password)
		}
		if to.whole {
			cmd.Env = append(cmd.Env, "LOCK_WHOLE=1")
		}
		out, err := cmd.Output()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			return "", fmt.Errorf("%w: %s", err, ended.Stderr)
		}
		return strings.TrimSpace(string(out)), err
	}
}

// try lets each library do its work under the rights that are printed for it, and
// looks that the server denied nothing.
func try(ctx context.Context, server *lab.Server, client *redis.Client, makers []maker, program, dir string) error {
	config := filepath.Join(dir, "config.toml")
	text := "[cluster]\nmax_ttl = \"30s\"\nlock_patterns = [\"job*\", \"mutex:*\", \"semaphore:*\", \"redis-promise-lock:*\", \"lock:*\"]\n" +
		"[[nodes]]\nname = \"n1\"\naddr = \"" + server.Addr() + "\"\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	failed := 0
	for _, m := range makers {
		if m.needs == "" {
			continue
		}
		cmd := exec.CommandContext(ctx, program, "--config", config, "config", "acl", "--role", "client", "--library", m.needs,
			"--user", "app", "--password-env", "APP_PASSWORD", "--setuser")
		cmd.Env = append(os.Environ(), "APP_PASSWORD=sesame")
		line, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("config acl --library %s: %w", m.needs, err)
		}
		var words []any
		for _, w := range strings.Fields(string(line)) {
			words = append(words, w)
		}
		for _, command := range [][]any{{"flushall"}, {"acl", "log", "reset"}, {"acl", "deluser", "app"}, words} {
			if err := client.Do(ctx, command...).Err(); err != nil {
				return fmt.Errorf("%v: %w", command[:2], err)
			}
		}
		version, err := m.take(ctx, target{addr: server.Addr(), user: "app", password: "sesame", whole: true})
		denied, lerr := client.ACLLog(ctx, 10).Result()
		if lerr != nil {
			return lerr
		}
		var what []string
		for _, d := range denied {
			what = append(what, d.Reason+" "+d.Object)
		}
		if err != nil || len(what) > 0 {
			failed++
			fmt.Printf("FAIL  %-26s %s: denied: %s; %v\n", m.library, version, strings.Join(what, ", "), err)
			continue
		}
		fmt.Printf("ok    %-26s %s\n", m.library, version)
	}
	if failed > 0 {
		return fmt.Errorf("%d libraries did not get on with the rights that are printed for them", failed)
	}
	return nil
}
