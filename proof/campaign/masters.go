package campaign

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
	"redlockctl/server/serverinfo"
)

// master is a server that is killed.
type master interface {
	Node() *redlock.Node
	// crash kills it, and sees to its next start. lost is a moment before the end of
	// the incarnation, or the start of the next; zero if there was none to kill.
	crash(ctx context.Context) (lost time.Time, err error)
	// watch opens what asks the next incarnation whether it serves, and how many SETs
	// it has executed; !ok when it has ended.
	watch() (ask func(context.Context) (serves bool, sets int, ok bool), end func())
	end()
}

// startMaster starts master number i, so that it serves.
func (cfg *Config) startMaster(ctx context.Context, i int) (master, error) {
	name := "n" + strconv.Itoa(i+1)
	if cfg.Guarding == Delayed {
		return cfg.startDelayed(ctx, i)
	}
	var args []string
	serve := []any{"CONFIG", "SET", "min-replicas-to-write", "0"}
	switch {
	case cfg.ACL:
		args = []string{"--user", lockUser, "on", ">" + lockPassword, "~*", "&*", "+@all"}
		if cfg.Guarding != Nothing {
			args = append(args, "-@write")
		}
		serve = []any{"ACL", "SETUSER", lockUser, "+@write"}
	case cfg.Guarding != Nothing:
		args = lab.BootFence
	}
	s, err := lab.StartServer(cfg.RedisServer, name, cfg.Dir, args...)
	if err == nil {
		_, err = s.Do(ctx, serve...)
	}
	return fenced{s, cfg.ACL}, err
}

// clientNode is a master as the clients log in.
func (cfg *Config) clientNode(m master) (*redlock.Node, error) {
	opt := &redis.Options{Addr: m.Node().Addr()}
	if cfg.ACL {
		opt.Username, opt.Password = lockUser, lockPassword
	}
	return redlock.NewNode(m.Node().Name(), opt)
}

// fenced is a server that comes back at once.
type fenced struct {
	*lab.Server
	acl bool
}

func (f fenced) end() { _ = f.Kill() }

func (f fenced) crash(context.Context) (time.Time, error) {
	if err := f.Kill(); err != nil {
		return time.Time{}, err
	}
	started := time.Now()
	return started, f.Start()
}

func (f fenced) watch() (func(context.Context) (bool, int, bool), func()) {
	// The one connection of this client belongs to one incarnation.
	c := redlock.ConnectOnce(f.Node(), watchTimeout)
	return func(ctx context.Context) (serves bool, sets int, ok bool) {
		// One transaction: the count belongs to the state of the fence.
		var fence *redis.Cmd
		var stats *redis.StringCmd
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			if f.acl {
				fence = p.Do(ctx, "ACL", "DRYRUN", lockUser, "SET", prefix, "")
			} else {
				fence = p.Do(ctx, "CONFIG", "GET", "min-replicas-to-write")
			}
			stats = p.Info(ctx, "commandstats")
			return nil
		})
		if err != nil {
			return false, 0, false
		}
		answer := fmt.Sprint(fence.Val())
		return answer == "OK" || answer == "map[min-replicas-to-write:0]", accepted(stats.Val()), true
	}, func() { _ = c.Close() }
}

// accepted is how many SETs an incarnation has executed. Those that the fence refused
// are not among the calls.
func accepted(info string) int {
	calls, err := serverinfo.Calls(info, "set")
	if err != nil {
		return 1 // it counts something
	}
	return int(calls)
}
