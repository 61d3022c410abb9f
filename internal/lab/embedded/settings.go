package embedded

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"redlockctl/server/minreplicas"
)

// settings are the parameters that CONFIG of an embedded master supports.
type settings map[string]string

// The parameters of the fence.
const (
	ParamFence = minreplicas.Param
	ParamLag   = minreplicas.LagParam
)

// bootSettings are the settings of a new process: fenced, without persistence.
func bootSettings(port int) settings {
	return settings{
		ParamFence: strconv.Itoa(minreplicas.FenceUp), ParamLag: strconv.Itoa(minreplicas.FenceLag),
		"maxmemory": "0", "maxmemory-policy": "noeviction",
		"appendonly": "no", "appendfsync": "everysec", "save": "", "dir": "/",
		"port": strconv.Itoa(port), "bind": "127.0.0.1", "databases": "16", "cluster-enabled": "no",
		"maxclients": "10000", "timeout": "0", "notify-keyspace-events": "", "tracking-table-max-keys": "1000000",
	}
}

// fenced reports whether writes are refused. There are never replicas, so any value
// above 0 fences; a lag of 0 switches the check off.
func (s settings) fenced() bool { return s[ParamFence] != "0" && s[ParamLag] != "0" }

// aliases are the older names of parameters.
var aliases = map[string]string{"min-slaves-to-write": ParamFence, "min-slaves-max-lag": ParamLag}

// fixed are the parameters of a real server that cannot be changed here.
var fixed = wordSet("appendonly", "appendfsync", "bind", "cluster-enabled", "databases", "dir", "port", "save")

var evictionPolicies = []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",

	"allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"}

// get returns the parameters that match any of the glob patterns.
func (s settings) get(patterns []string) map[string]string {
	found := map[string]string{}
	for _, pattern := range patterns {
		pattern = strings.ToLower(pattern)
		for k, v := range s {
			if ok, _ := path.Match(pattern, k); ok {
				found[k] = v
			}
		}
		for alias, k := range aliases {
			if ok, _ := path.Match(pattern, alias); ok {
				found[alias] = s[k]
			}
		}
	}
	return found
}

// set changes all of the pairs, or none and returns the server's error.
func (s settings) set(pairs []string) string {
	changed := settings{}
	for i := 0; i < len(pairs); i += 2 {
		given, value := pairs[i], pairs[i+1]
		key := strings.ToLower(given)
		if k, ok := aliases[key]; ok {
			key = k
		}
		if _, ok := s[key]; !ok {
			return "ERR Unknown option or number of arguments for CONFIG SET - '" + given + "'"
		}
		value, why := checkSetting(key, value)
		if why != "" {
			return "ERR CONFIG SET failed (possibly related to argument '" + given + "') - " + why
		}
		changed[key] = value
	}
	maps.Copy(s, changed)
	return ""
}

func checkSetting(key, value string) (string, string) {
	switch {
	case fixed[key]:
		return "", "an embedded master cannot change it"
	case key == "maxmemory-policy":
		if !slices.Contains(evictionPolicies, value) {
			return "", "argument(s) must be one of the following: " + strings.Join(evictionPolicies, ", ")
		}
	case key != "notify-keyspace-events":
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return "", "argument couldn't be parsed into an integer"
		case n < 0 || (n > 2147483647 && key != "maxmemory"):
			return "", "argument must be between 0 and 2147483647 inclusive"
		}
		value = strconv.FormatInt(n, 10)
	}
	return value, ""
}
