package wire

import (
	"errors"
	"math"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
	"redlockctl/server/serverinfo"
)

// readInfo reads what a look needs from sections of INFO.
func readInfo(o *restartguard.Observation, server, replication, stats, commands string, sets []string) error {
	o.RunID = serverinfo.Field(server, "run_id")
	if !serverinfo.IsWord(o.RunID) {
		return errors.New("INFO server has no run_id")
	}
	up, _ := serverinfo.Number(server, "uptime_in_seconds")
	o.Up = time.Duration(min(up, math.MaxInt32)) * time.Second
	o.Role = serverinfo.Field(replication, "role")
	if !serverinfo.IsWord(o.Role) {
		return errors.New("INFO replication has no role")
	}
	if mode := serverinfo.Field(server, "redis_mode"); mode != "standalone" && serverinfo.IsWord(mode) {
		o.Role = mode
	}
	if f := serverinfo.Field(replication, "master_replid2"); serverinfo.IsWord(f) {
		o.Former = f
	}
	o.Commands, _ = serverinfo.Number(stats, "total_commands_processed")
	// A server that does not count evictions has none to tell of.
	o.Evicted, _ = serverinfo.Number(stats, "evicted_keys")
	var err error
	if o.Wipes, err = CallsOf(commands, "flushall", "flushdb", "swapdb", "debug"); err != nil {
		return err
	}
	changes, err := CallsOf(commands, sets...)
	o.Configured = changes > 0
	return err
}

// lacksReplicas tells from INFO replication if a node refuses writes because it
// wants more replicas than it has. How many it wants is known if its parameters are;
// else only that it has none is certain to be too few.
func lacksReplicas(info string, p minreplicas.Params, known bool) bool {
	// The field is there only while both parameters are above 0.
	good, ok := serverinfo.Number(info, "min_slaves_good_slaves")
	switch {
	case !ok || known && (p.Fenced() || p.Cordoned()):
		return false
	case known:
		return !minreplicas.Accepts(p.MinReplicas, p.MaxLag, good)
	}
	return good == 0
}

// callsOf is how often commands were carried out in this incarnation, by INFO
// commandstats. DEBUG counts as a wipe, since its RELOAD is not counted apart. Before
// 7.0 the counter of CONFIG does not tell SET from GET, so there it is taken to
// be a GET.
func CallsOf(info string, commands ...string) (calls int64, err error) {
	for _, command := range commands {
		n, err := serverinfo.Calls(info, command)
		if err != nil {
			return 0, err
		}
		calls += n
	}
	return calls, nil
}

// isDenied reports whether the server does not let us: no right, wrong password, its
// protected mode, or a command that is renamed away.
func IsDenied(err error) bool {
	for _, p := range []string{"NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "unknown command", "invalid password"} {
		if redis.HasErrorPrefix(err, p) {
			return true
		}
	}
	return redis.IsPermissionError(err) || redis.IsAuthError(err)
}

// isRefused reports whether nobody listens at the address.
func IsRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
