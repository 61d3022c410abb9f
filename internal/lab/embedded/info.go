package embedded

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// sections are the sections of INFO in a real server's order, each with whether it is
// in the default set.
var sections = []struct {
	name   string
	always bool
	text   func(in *Instance, b *strings.Builder)
}{

	{"server", true, (*Instance).infoServer},
	{"clients", true, (*Instance).infoClients},
	{"memory", true, (*Instance).infoMemory},
	{"persistence", true, (*Instance).infoPersistence},
	{"stats", true, (*Instance).infoStats},
	{"replication", true, (*Instance).infoReplication},
	{"commandstats", false, (*Instance).infoCommandstats},
	{"cluster", true, (*Instance).infoCluster},
	{"keyspace", true, (*Instance).infoKeyspace},
}

// info answers INFO [section …].
func (in *Instance) info(_ *peer, c *server.Peer, args []string) bool {
	var b strings.Builder
	asked := wordSet(args...)
	for _, s := range sections {
		wanted := len(args) == 0 && s.always
		for a := range asked {
			switch a = strings.ToLower(a); a {
			case "default":
				wanted = wanted || s.always
			case "all", "everything", s.name:
				wanted = true
			}
		}
		if !wanted {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		fmt.Fprintf(&b, "# %s\r\n", strings.ToUpper(s.name[:1])+s.name[1:])
		s.text(in, &b)
	}
	if c.Resp3 { // a verbatim string
		c.Block(func(w *server.Writer) { w.WriteRaw(fmt.Sprintf("=%d\r\ntxt:%s\r\n", b.Len()+4, b.String())) })
		return true
	}
	c.WriteBulk(b.String())
	return true
}

// lines writes name:value pairs.
func lines(b *strings.Builder, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(b, "%v:%v\r\n", pairs[i], pairs[i+1])
	}
}

func (in *Instance) infoServer(b *strings.Builder) {
	now := in.clock.At(time.Now())
	// Whole seconds of the wall clock, as in a real server: negative if the clock was
	// set back.
	up := now.Unix() - in.stats.started.Unix()
	lines(b, "redis_version", embeddedVersion, "redis_git_sha1", "00000000", "redis_git_dirty", 0, "redis_build_id", "embedded",
		"redis_mode", "standalone", "os", "redlockctl lab", "arch_bits", 64, "multiplexing_api", "go",
		"process_id", os.Getpid(), "process_supervised", "no", "run_id", in.stats.runID, "tcp_port", in.stats.port,
		"server_time_usec", now.UnixMicro(), "uptime_in_seconds", up, "uptime_in_days", up/86400,
		"hz", 10, "configured_hz", 10, "executable", "", "config_file", "", "io_threads_active", 0)
}

func (in *Instance) infoClients(b *strings.Builder) {
	lines(b, "connected_clients", in.srv.ClientsLen(), "cluster_connections", 0, "maxclients", in.config["maxclients"],
		"blocked_clients", 0, "tracking_clients", 0)
}

// keyCount is the number of keys, and of those with a TTL, in a database.
func (in *Instance) keyCount(db int) (keys, expires int) {
	d := in.redis.DB(db)
	for _, k := range d.Keys() {
		keys++
		if d.TTL(k) > 0 {
			expires++
		}
	}
	return keys, expires
}

// databases is a server's default number of databases.
const databases = 16

func (in *Instance) infoMemory(b *strings.Builder) {
	used := 876432 // what an empty server uses
	for db := range databases {
		keys, _ := in.keyCount(db)
		used += 160 * keys
	}
	lines(b, "used_memory", used, "used_memory_human", fmt.Sprintf("%.2fM", float64(used)/(1<<20)), "used_memory_rss", used,
		"used_memory_peak", used, "maxmemory", in.config["maxmemory"], "maxmemory_human", in.config["maxmemory"]+"B",
		"maxmemory_policy", in.config["maxmemory-policy"], "mem_fragmentation_ratio", "1.00", "mem_allocator", "go",
		"active_defrag_running", 0, "lazyfree_pending_objects", 0)
}

func (in *Instance) infoPersistence(b *strings.Builder) {
	lines(b, "loading", 0, "async_loading", 0, "rdb_changes_since_last_save", 0, "rdb_bgsave_in_progress", 0,
		"rdb_last_save_time", in.stats.started.Unix(), "rdb_last_bgsave_status", "ok", "rdb_saves", 0,
		"aof_enabled", 0, "aof_rewrite_in_progress", 0, "aof_rewrite_scheduled", 0, "aof_last_bgrewrite_status", "ok",
		"aof_last_write_status", "ok")
}

func (in *Instance) infoStats(b *strings.Builder) {
	lines(b, "total_connections_received", in.srv.TotalConnections(), "total_commands_processed", in.srv.TotalCommands(),
		"instantaneous_ops_per_sec", 0, "rejected_connections", 0, "sync_full", 0, "sync_partial_ok", 0, "sync_partial_err", 0,
		"expired_keys", 0, "evicted_keys", 0, "evicted_clients", 0, "keyspace_hits", 0, "keyspace_misses", 0,
		"pubsub_channels", 0, "pubsub_patterns", 0, "latest_fork_usec", 0, "total_forks", 0, "tracking_total_keys", 0)
}

func (in *Instance) infoReplication(b *strings.Builder) {
	lines(b, "role", "master", "connected_slaves", 0)
	if in.config.fenced() {
		lines(b, "min_slaves_good_slaves", 0)
	}
	lines(b, "master_failover_state", "no-failover", "master_replid", in.stats.replID,
		"master_replid2", strings.Repeat("0", 40), "master_repl_offset", 0, "second_repl_offset", -1,
		"repl_backlog_active", 0, "repl_backlog_size", 1048576, "repl_backlog_first_byte_offset", 0, "repl_backlog_histlen", 0)
}

func (in *Instance) infoCommandstats(b *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(in.stats.calls)) {
		n := in.stats.calls[name]
		fmt.Fprintf(b, "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%d.00,rejected_calls=%d,failed_calls=0\r\n",
			name, n.done, n.done, min(n.done, 1), n.rejected)
	}
}

func (in *Instance) infoCluster(b *strings.Builder) { lines(b, "cluster_enabled", 0) }

func (in *Instance) infoKeyspace(b *strings.Builder) {
	for db := range databases {
		if keys, expires := in.keyCount(db); keys > 0 {
			fmt.Fprintf(b, "db%d:keys=%d,expires=%d,avg_ttl=0\r\n", db, keys, expires)
		}
	}
}
