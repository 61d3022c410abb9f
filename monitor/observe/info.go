package observe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
)

func (w *watch) readInfo(info map[string]string) (restarted bool) {
	if id := info["run_id"]; id != "" {
		restarted = w.RunID != "" && w.RunID != id
		w.RunID = id
	}
	if restarted {
		w.Restarts++
		w.Facts.Data.Loaded, w.Facts.Data.Settled = false, false
	}
	set := func(to *string, field string) {
		if v, ok := info[field]; ok {
			*to = v
		}
	}
	set(&w.Version, "redis_version")
	set(&w.Version, "valkey_version")
	set(&w.Role, "role")
	w.Uptime = time.Duration(monitor.Integer(info, "uptime_in_seconds", int64(w.Uptime/time.Second))) * time.Second
	w.Replicas = int(monitor.Integer(info, "connected_slaves", int64(w.Replicas)))
	w.UsedMemory = monitor.Integer(info, "used_memory", w.UsedMemory)
	w.Clients = int(monitor.Integer(info, "connected_clients", int64(w.Clients)))
	w.Keys = keysOf(info, w.db, w.Keys)
	w.otherDB = otherDatabase(info, w.db, w.otherDB)
	w.ops = monitor.Integer(info, "instantaneous_ops_per_sec", w.ops)
	w.Facts.ReadInfo(info)
	if _, ok := info["role"]; ok {
		// The field exists only while min-replicas-to-write is in force.
		_, w.inForce = info["min_slaves_good_slaves"]
		w.good = monitor.Integer(info, "min_slaves_good_slaves", int64(w.Replicas))
	}
	w.loading = info["loading"] == "1"
	w.foreign = ""
	switch {
	case info["redis_mode"] == "sentinel":
		w.foreign = "a sentinel, not a master"
	case info["redis_mode"] == "cluster", info["cluster_enabled"] == "1":
		w.foreign = "a node in cluster mode, not an independent master"
	case info["role"] == "slave", info["role"] == "replica":
		w.foreign = fmt.Sprintf("a replica of %s:%s, not a master", info["master_host"], info["master_port"])
	}
	return restarted
}

// keysOf returns the number of keys in a database by INFO keyspace, which omits empty
// databases.
func keysOf(info map[string]string, db int, unknown int64) int64 {
	if _, ok := info["used_memory"]; !ok {
		return unknown // this probe did not ask
	}
	keys := int64(0)
	if _, err := fmt.Sscanf(info["db"+strconv.Itoa(db)], "keys=%d,", &keys); err != nil {
		return 0
	}
	return keys
}

// otherDatabase returns the number of the lowest database besides db that has keys, by INFO keyspace;
// -1: none has.
func otherDatabase(info map[string]string, db, unknown int) int {
	if _, ok := info["used_memory"]; !ok {
		return unknown // this probe did not ask
	}
	lowest := -1
	for field, value := range info {
		number, ok := strings.CutPrefix(field, "db")
		if !ok || !strings.HasPrefix(value, "keys=") {
			continue
		}
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && n != db && (lowest < 0 || n < lowest) {
			lowest = n
		}
	}
	return lowest
}

const (
	// keysBelieved limits the number of keys that a server may claim.
	keysBelieved = 1 << 30
	// A scan may return scanTimes as many keys and empty pages as there are keys (it may
	// return a key several times, and a table that was emptied is sparse), plus scanSlack
	// for keys that come and go meanwhile.
	scanTimes = 16
	scanSlack = 1 << 17
)

// keysMost returns the limit of keys and pages for one scan of this node.
func (w *watch) keysMost() int64 {
	if w.Keys < 0 {
		return keysBelieved
	}
	return scanTimes*min(w.Keys, keysBelieved) + scanSlack
}

func (w *watch) readConfig(config map[string]string) {
	w.MinReplicasToWrite = monitor.Integer(config, "min-replicas-to-write", -1)
	w.maxLag = monitor.Integer(config, "min-replicas-max-lag", -1)
	w.writable = config["replica-read-only"] == "no"
	w.Facts.ReadConfig(config)
	if v, ok := config["maxmemory-policy"]; ok {
		w.Eviction = safetext.Escape(v)
	}
	switch {
	case w.MinReplicasToWrite < 0:
		l := monitor.Limit{Text: "CONFIG unreadable: a fence is inferred from INFO, and a cordon looks the same there", Do: monitor.AdviceRights}
		if w.Facts.ConfigMissing {
			l.Do = "" // no right would help, see fenceDenied
		}
		w.note("fence", l)
	case w.MinReplicasToWrite >= minreplicas.FenceCordon && w.maxLag == 0:
		w.note("fence", monitor.Limit{Text: "min-replicas-max-lag 0 switches the fence off"}) // see fenceOff
	default:
		w.note("fence", monitor.Limit{})
	}
}
