package monitor

import (
	"strconv"
	"time"

	"redlockctl/server/safetext"
)

// FactSection is the section of INFO, and FactParameters are the parameters of CONFIG,
// that are read only for facts.
const FactSection = "commandstats"

var FactParameters = [...]string{"maxmemory", "save"}

// Facts are the settings and the past of a server, as far as the assumptions of Redlock
// depend on them. An empty text or a number −1 means unknown.
type Facts struct {
	PID, Port int // of the process, as the server says

	AppendOnly, AppendFsync string // from CONFIG; AppendOnly also from INFO
	Save                    string // the save points of CONFIG
	SaveKnown               bool   // an empty Save then means none
	MaxMemory               int64  // bytes; 0: no limit
	MaxLag                  int64  // min-replicas-max-lag in seconds; 0: no fence works
	Evicted                 int64  // keys since the server's start
	MaxClients              int64  // limit of connections; unknown before Redis 7
	Refused                 int64  // connections beyond that, since the server's start
	DiskFails               string // result of the last attempt to save, if it failed
	Data                    Data

	// Number of calls since the server's start.
	Saves, BackgroundSaves, Rewrites, ConfigRewrites, ACLSaves int64
	// Wipes counts the calls of FLUSHALL, FLUSHDB and SWAPDB since the server's start.
	Wipes int64
	// Debugs counts the calls of DEBUG, which guards take for wipes.
	Debugs int64

	// ConfigError says why CONFIG GET failed; empty: it did not. ConfigMissing: the
	// server has no such command.
	ConfigError   string
	ConfigMissing bool

	// Open: the server accepts commands without a password.
	Open bool

	// Writers are the users that may write locks on a node fenced by ACL, besides the
	// lock clients' user and ours, as far as they can be read: "ops, batch".
	Writers string

	// StepAt and StepBy are the last clock step that was seen; StepAt is zero if there
	// was none.
	StepAt time.Time
	StepBy time.Duration
	// UnreportedAt is when keys were last found changed although the node had not reported
	// it; zero: never. Unreported is the number found since the start, UnreportedKey one of the
	// last.
	UnreportedAt  time.Time
	Unreported    int
	UnreportedKey safetext.Text
	// OpenAt is when it was seen to accept writes right after a restart; zero: never.
	OpenAt time.Time
}

// UnknownFacts returns the facts of a server that has not answered yet.
func UnknownFacts() Facts {
	return Facts{MaxMemory: -1, MaxLag: -1, Evicted: -1, MaxClients: -1, Refused: -1, Saves: -1, BackgroundSaves: -1, Rewrites: -1, ConfigRewrites: -1, ACLSaves: -1, Wipes: -1}
}

// ReadInfo reads the fields of INFO, unless it was refused.
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
	// Commands that were never called are not listed, so check for one that was called
	// just now.
	_, listed := info["cmdstat_info"]
	if listed {
		f.Wipes = 0
		for _, field := range []string{"cmdstat_flushall", "cmdstat_flushdb", "cmdstat_swapdb"} {
			f.Wipes += max(0, callsOf(info[field]))
		}
		f.Debugs = max(0, callsOf(info["cmdstat_debug"]))
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

// callsOf returns the number of calls in "calls=3,usec=…"; −1 if there is none.
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

// ReadConfig reads the parameters of CONFIG that were requested.
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

// Integer returns an integer field of INFO or CONFIG, or missing.
func Integer(fields map[string]string, name string, missing int64) int64 {
	n, err := strconv.ParseInt(fields[name], 10, 64)
	if err != nil {
		return missing
	}
	return n
}
