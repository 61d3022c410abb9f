package observe

import (
	"strconv"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// infoCommands is the section of INFO that counts commands, beyond those that
// the probe asks for anyway.
const infoCommands = "commandstats"

// findingParameters are the parameters that only findings look at.
var findingParameters = [...]string{"maxmemory", "save"}

// readFacts takes in the fields of INFO, where it was not refused.
func readFacts(f *monitor.Facts, info map[string]string) {
	f.PID = int(number(info, "process_id", int64(f.PID)))
	f.Port = int(number(info, "tcp_port", int64(f.Port)))
	f.MaxMemory = number(info, "maxmemory", f.MaxMemory)
	f.Evicted = number(info, "evicted_keys", f.Evicted)
	f.MaxClients = number(info, "maxclients", f.MaxClients)
	f.Refused = number(info, "rejected_connections", f.Refused)
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

// readSettings takes in the parameters of CONFIG, where they were asked for.
func readSettings(f *monitor.Facts, config map[string]string) {
	f.MaxLag = number(config, "min-replicas-max-lag", f.MaxLag)
	f.MaxMemory = number(config, "maxmemory", f.MaxMemory)
	if v, ok := config["save"]; ok {
		f.Save, f.SaveKnown = safetext.Escape(v), true
	}
	if v, ok := config["appendonly"]; ok {
		f.AppendOnly, f.AppendFsync = safetext.Escape(v), safetext.Escape(config["appendfsync"])
	}
}

// noteBirth takes note of how the server of a new incarnation was met.
func noteBirth(f *monitor.Facts, state monitor.NodeState, uptime time.Duration, at time.Time) {
	f.OpenAt = time.Time{}
	// Who was out of sight for longer may have waited closed, and been opened.
	if state == monitor.NodeServing && uptime <= youngLife {
		f.OpenAt = at
	}
}

// youngLife is the age up to which an open server has not waited closed: no D
// is that short that a guard could have opened it.
const youngLife = 2 * time.Second

// number reads an integer field that may be missing.
func number(fields map[string]string, name string, missing int64) int64 {
	n, err := strconv.ParseInt(fields[name], 10, 64)
	if err != nil {
		return missing
	}
	return n
}
