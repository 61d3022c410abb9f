package config

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NodesFlag is the path of a configuration that comes from the command line.
const NodesFlag = "--nodes"

// Flags describe a cluster on the command line, without a file.
type Flags struct {
	// Nodes are addresses as in the configuration, and dns+tcp://NAME:PORT (each address
	// of the name is a node) or srv://NAME (each target is one).
	Nodes []string
	// Cluster is its name; "": the default.
	Cluster string
	// MaxTTL is as in [cluster]; "": unknown, so nothing can be guarded.
	MaxTTL string
	// Username, PasswordFile and PasswordCommand are as in [defaults]. If neither of the
	// last two is set, the password is in the environment variable [PasswordVariable].
	Username, PasswordFile, PasswordCommand string
	// TLS switches TLS on, as each of the other TLS options does.
	TLS                       bool
	CA, Cert, Key, ServerName string
}

// FromFlags makes the cluster that the flags describe, by the rules of a file. It looks
// up names with several addresses; it contacts no node.
func FromFlags(ctx context.Context, flags Flags, getenv func(string) string, opt Options) (*Set, error) {
	f := &configFile{path: NodesFlag, Options: opt, unlimited: flags.MaxTTL == ""}
	cluster, defaults := map[string]any{}, map[string]any{}
	put := func(in map[string]any, key, value string) {
		if value != "" {
			in[key] = value
		}
	}
	put(cluster, "name", flags.Cluster)
	put(cluster, "max_ttl", flags.MaxTTL)
	put(defaults, "username", flags.Username)
	put(defaults, "password_file", flags.PasswordFile)
	put(defaults, "password_command", flags.PasswordCommand)
	if flags.PasswordFile == "" && flags.PasswordCommand == "" && getenv(PasswordVariable) != "" {
		defaults["password_env"] = PasswordVariable
	}
	secure := map[string]any{}
	for key, value := range map[string]string{"ca": flags.CA, "cert": flags.Cert, "key": flags.Key, "server_name": flags.ServerName} {
		put(secure, key, value)
	}
	if flags.TLS || len(secure) > 0 {
		defaults["tls"] = secure
	}
	var nodes []map[string]any
	for _, named := range flags.Nodes {
		addresses, err := f.lookUp(ctx, named)
		if err != nil {
			f.report(0, "--nodes", strconv.Quote(named), "%v", err)
		}
		for _, addr := range addresses {
			nodes = append(nodes, map[string]any{"name": fmt.Sprintf("n%d", len(nodes)+1), "addr": addr})
		}
	}
	values := map[string]any{"cluster": cluster, "defaults": defaults, "nodes": nodes}
	var all []loaded
	if len(f.problems) == 0 {
		all, _ = f.configs(values, getenv)
	}
	return setOf([]*configFile{f}, all, setting{})
}

// lookUpTime is the timeout of a name lookup.
const lookUpTime = 5 * time.Second

// lookUp returns the addresses of a name, in an order that does not depend on the name
// server.
func (f *configFile) lookUp(ctx context.Context, named string) (addresses []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	if name, ok := strings.CutPrefix(named, "dns+tcp://"); ok {
		host, port, err := net.SplitHostPort(name)
		if err != nil {
			return nil, fmt.Errorf("has no port: write dns+tcp://NAME:PORT")
		}
		found, err := net.DefaultResolver.LookupHost(ctx, host)
		for _, ip := range found {
			addresses = append(addresses, net.JoinHostPort(ip, port))
		}
		slices.Sort(addresses)
		return addresses, err
	}
	if name, ok := strings.CutPrefix(named, "srv://"); ok {
		_, found, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
		for _, target := range found {
			addresses = append(addresses, net.JoinHostPort(strings.TrimSuffix(target.Target, "."), strconv.Itoa(int(target.Port))))
		}
		slices.Sort(addresses)
		return addresses, err
	}
	return []string{named}, nil
}
