package monitor

import (
	"strconv"
	"time"

	"redlockctl/server/safetext"
)

// FactSection is the section of INFO, and FactParameters are the parameters of CONFIG, that
// only facts come from.
const FactSection = "commandstats"

var FactParameters = [...]string{"maxmemory", "save"}

// Facts are what a server says of its settings and its past, as far as the
// assumptions of Redlock rest on it. A text that is empty and a number that is −1
// are not known.
type Facts struct {
	PID, Port int // of the process, as it says itself

	AppendOnly, AppendFsync string // as CONFIG says; AppendOnly also by INFO
	Save                    string // the points of CONFIG save
	SaveKnown               bool   // an empty Save means: none
	MaxMemory               int64  // bytes; 0: no limit
	MaxLag                  int64  // min-replicas-max-lag in seconds; 0: no fence works
	Evicted                 int64  // keys, since the server's start
	MaxClients              int64  // of connections; not told before Redis 7
	Refused                 int64  // connections beyond that, since the server's start
	DiskFails               string // what the last attempt to save says, if it failed
	Data                    Data

	// How often each was called since the server's start.
	Saves, BackgroundSaves, Rewrites, ConfigRewrites, ACLSaves int64
	// Wipes is how often FLUSHALL, FLUSHDB and SWAPDB were called since the server's start.
	Wipes int64

	// ConfigError is why CONFIG GET failed, empty if it did not; ConfigMissing: the
	// server has no such command, for nobody.
	ConfigError   string
	ConfigMissing bool

	// Open: whoever reaches the server is obeyed without a password.
	Open bool

	// Writers are the users beside the lock clients' and ours who may write locks, of a node that is
	// fenced by a user; as far as they may be asked for: "ops, batch".
	Writers string

	// StepAt and StepBy are the last step of its clock that was seen; StepAt is
	// zero if there was none.
	StepAt time.Time
	StepBy time.Duration
	// UntoldAt is when it was last found that keys had changed without the node telling of it;
	// zero: never. Untold is how many were found since the start, UntoldKey one of the last.
	UntoldAt  time.Time
	Untold    int
	UntoldKey safetext.Text
	// OpenAt is when it was seen to accept writes right after a restart; zero: it
	// was not.
	OpenAt time.Time
}

// UnknownFacts are those of a server that has not said anything.
func UnknownFacts() Facts {
	return Facts{MaxMemory: -1, MaxLag: -1, Evicted: -1, MaxClients: -1, Refused: -1, Saves: -1, BackgroundSaves: -1, Rewrites: -1, ConfigRewrites: -1, ACLSaves: -1, Wipes: -1}
}

// ReadInfo takes in the fields of INFO, where it was not refused.
func (f *Facts) ReadInfo(info map[string]string) {
	f.PID = int(Integer(info, "process_id", int64(f.PID)))
	f.Port = int(Integer(info, "tcp_port", int64(f.Port)))
	f.MaxMemory = Integer(info, "maxmemory", f.MaxMemory)
	f.Evicted = Integer(info, "evicted_keys", f.Evicted)
	f.MaxClients = Integer(info, "maxclients", f.MaxClients)
	f.Refused = Integer(info, "rejected_connections", f.Refused)
	switch info["aof_enabled"] {
	case "0":
		f.AppendOnly = "no"
	case "1":
		f.AppendOnly = "yes"
	}
	if _, ok := info["rdb_last_bgsave_status"]; ok {
		f.DiskFails = ""
		for _, field := range []string{"aof_last_write_status", "rdb_last_bgsave_status"} {
			if v, ok := info[field]; ok && v != "ok" {
				f.DiskFails = field + ":" + v
			}
		}
	}
	// A command that was never called is not listed, so the section is known by any
	// other: this one was called just now.
	_, listed := info["cmdstat_info"]
	if listed {
		f.Wipes = 0
		for _, field := range []string{"cmdstat_flushall", "cmdstat_flushdb", "cmdstat_swapdb"} {
			f.Wipes += max(0, callsOf(info[field]))
		}
	}
	f.Data.readInfo(info, listed)
	for field, to := range map[string]*int64{
		"cmdstat_save": &f.Saves, "cmdstat_bgsave": &f.BackgroundSaves, "cmdstat_bgrewriteaof": &f.Rewrites,
		"cmdstat_config|rewrite": &f.ConfigRewrites, "cmdstat_acl|save": &f.ACLSaves,
	} {
		if v, ok := info[field]; ok {
			*to = callsOf(v)
		} else if listed {
			*to = 0
		}
	}
}

// callsOf is the number of calls in "calls=3,usec=…"; −1 if it says none.
func callsOf(stat string) int64 {
	const name = "calls="
	if len(stat) < len(name) || stat[:len(name)] != name {
		return -1
	}
	n := int64(0)
	for _, c := range stat[len(name):] {
		if c < '0' || c > '9' || n > 1<<60/10 {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// ReadConfig takes in the parameters of CONFIG, where they were asked for.
func (f *Facts) ReadConfig(config map[string]string) {
	f.MaxLag = Integer(config, "min-replicas-max-lag", f.MaxLag)
	f.MaxMemory = Integer(config, "maxmemory", f.MaxMemory)
	if v, ok := config["save"]; ok {
		f.Save, f.SaveKnown = safetext.Escape(v), true
	}
	if v, ok := config["appendonly"]; ok {
		f.AppendOnly, f.AppendFsync = safetext.Escape(v), safetext.Escape(config["appendfsync"])
		f.Data.NoFsyncOnRewrite = safetext.Escape(config["no-appendfsync-on-rewrite"])
	}
}

// Integer is an integer field of INFO or CONFIG; missing: it has none.
func Integer(fields map[string]string, name string, missing int64) int64 {
	n, err := strconv.ParseInt(fields[name], 10, 64)
	if err != nil {
		return missing
	}
	return n
}
