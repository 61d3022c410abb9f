// Package acl knows which rights each part of this program and each lock library needs on
// the servers, and writes them as ACL users.
package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"redlockctl/internal/config"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// User is a user of a server with its rules.
type User struct {
	Name  string
	Rules []string // in the syntax of ACL SETUSER
}

// NewUser returns a user with the least rights that these roles need on this server
// generation. libraries are those of the clients. hash is from [Hash]; if it is empty,
// nobody can log in.
func NewUser(name string, roles []string, cfg *config.Config, libraries []lockform.Needs, server, hash string) User {
	var g grants
	if slices.ContainsFunc(cfg.Nodes, func(n config.Node) bool { return n.DB != 0 }) {
		g.commands = []string{"select"}
	}
	for _, role := range roles {
		g = g.and(grantsOf(role, cfg, libraries))
	}
	return User{Name: name, Rules: g.rules(server, hash)}
}

// Line returns the user as a line of an ACL file or of redis.conf.
func (u User) Line() string { return "user " + u.Name + " " + strings.Join(u.Rules, " ") }

// SetUser returns the command that creates the user on a running server.
func (u User) SetUser() string { return "ACL SETUSER " + u.Name + " " + strings.Join(u.Rules, " ") }

// Hash returns a password in the form that ACL rules use.
func Hash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// The parts of the program, and the clients.
const (
	Observer = "observer"
	Operator = "operator"
	Guard    = "guard"
	Client   = "client"
	Monitor  = "monitor"
)

// Roles lists all roles.
var Roles = []string{Observer, Operator, Guard, Client, Monitor}

// Servers lists the server generations with different ACLs, newest first: 7.0 added
// read-only key rights and EVAL_RO, 6.2 added channels.
var Servers = []string{"7.0", "6.2", "6.0"}

// ServerOf returns the server generation. It looks at the field names in a reply to ACL
// GETUSER, which show the available rights whatever the server is called.
func ServerOf(fields []string) string {
	switch {
	case slices.Contains(fields, "selectors"):
		return "7.0"
	case slices.Contains(fields, "channels"):
		return "6.2"
	}
	return "6.0"
}

// grants are rights on a server: commands, and the keys and channels they may use.
type grants struct {
	read, write, channels []string
	commands              []string
}

// grantsOf returns the least rights for a role, derived from the commands that it sends.
func grantsOf(role string, cfg *config.Config, libraries []lockform.Needs) grants {
	patterns := make([]string, 0, len(cfg.Cluster.LockPatterns))
	for _, p := range cfg.Cluster.LockPatterns {
		patterns = append(patterns, pattern(p))
	}
	const own = "redlockctl:*"
	switch role {
	case Observer: // package monitor
		return fenceReader(cfg).and(grants{read: patterns, commands: []string{
			"ping", "time", "info", "config|get", "client|tracking", "client|list", "pubsub|channels",
			"scan", "eval_ro", "evalsha_ro", "type", "pttl", "strlen", "getrange",
			"hlen", "llen", "scard", "zcard", "xlen", "memory|usage", "hkeys", "zrange",
			"multi", "exec", // if scripts are not available
		}})
	case Monitor: // who --monitor
		return grants{read: patterns, commands: []string{
			"ping", "info", "pttl", "getrange", "client|id", "client|list", "client|kill", "monitor",
		}}
	case Client: // package redlock, and other libraries
		g := grants{write: patterns}
		for _, l := range libraries {
			g = g.and(grants{write: l.Keys, channels: l.Channels, commands: l.Commands})
		}
		return g
	case Operator: // both, and force-release
		g := grantsOf(Observer, cfg, nil).and(grantsOf(Client, cfg, ownNeeds()))
		g.channels = []string{"redisson_lock__channel:*"}
		g.commands = append(g.commands, "exists", "hexists", "publish")
		return g
	case Guard: // package restartguard
		g := grants{read: patterns, write: []string{own}, channels: []string{announce.Pattern}, commands: []string{
			"ping", "subscribe", "unsubscribe", "pubsub|channels", "time", "info", "set", "get", "incr", "pexpire",
			"client|id", "client|setname", "client|list", "client|kill",
			"scan", "type", "pttl", "getrange", "multi", "exec",
		}}
		for _, n := range cfg.Nodes {
			switch n.Fence.Kind {
			case fences.ACL:
				g.commands = append(g.commands, "acl|getuser", "acl|setuser", "acl|cat", "acl|dryrun")
			case fences.None:
			default:
				g.commands = append(g.commands, "config|get", "config|set", "eval")
			}
		}
		return g
	}
	return grants{}
}

// fenceReader may ask whether the lock clients' user is fenced, if nodes are fenced by ACL.
func fenceReader(cfg *config.Config) grants {
	for _, n := range cfg.Nodes {
		if n.Fence.Kind == fences.ACL {
			return grants{commands: []string{"acl|dryrun", "acl|whoami", "acl|users"}}
		}
	}
	return grants{}
}

func ownNeeds() []lockform.Needs {
	own, _ := LibrariesNamed([]string{"redlockctl"})
	return own
}

// PlainLibraries returns this program's own clients and all libraries whose lock is one
// string.
func PlainLibraries() []lockform.Needs {
	return slices.DeleteFunc(lockform.Libraries(), func(n lockform.Needs) bool { return !n.Plain() && n.Library != "redlockctl" })
}

// LibrariesNamed finds libraries by name, ignoring case; "all" means each of them.
func LibrariesNamed(names []string) ([]lockform.Needs, error) {
	all := lockform.Libraries()
	var found []lockform.Needs
	for _, name := range names {
		if name == "all" {
			return all, nil
		}
		i := slices.IndexFunc(all, func(n lockform.Needs) bool { return strings.EqualFold(n.Library, name) })
		if i < 0 {
			return nil, fmt.Errorf("--library %q: is not known (have: all, %s)", name, strings.Join(LibraryNames(), ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}

// LibraryNames returns the names of all libraries with known needs.
func LibraryNames() []string {
	var names []string
	for _, n := range lockform.Libraries() {
		names = append(names, n.Library)
	}
	return names
}

func (g grants) and(h grants) grants {
	return grants{
		read: slices.Concat(g.read, h.read), write: slices.Concat(g.write, h.write),
		channels: slices.Concat(g.channels, h.channels), commands: slices.Concat(g.commands, h.commands),
	}
}

// rules returns the grants as ACL SETUSER rules for this server generation; they begin with
// no rights. hash is the password's hash in hex; without it nobody can log in.
func (g grants) rules(server, hash string) []string {
	rules := []string{"reset", "on"}
	if hash != "" {
		rules = append(rules, "#"+hash)
	}
	seen := map[string]bool{}
	add := func(prefix string, items []string) {
		// The server rejects other patterns beside *.
		if slices.Contains(items, "*") {
			items = []string{"*"}
		}
		for _, item := range items {
			if rule := prefix + item; !seen[rule] {
				seen[rule] = true
				rules = append(rules, rule)
			}
		}
	}
	read, write, commands := g.read, g.write, g.commands
	if server < "7.0" {
		read, write = nil, slices.Concat(read, write)
		commands = slices.Concat(commands, []string{"hello"})
		for i, c := range commands {
			switch c {
			case "eval_ro":
				commands[i] = "eval"
			case "evalsha_ro":
				commands[i] = "evalsha"
			}
		}
		commands = slices.DeleteFunc(commands, func(c string) bool { return c == "acl|dryrun" || c == "client|no-evict" })
	}
	if !slices.Contains(write, "*") {
		add("%R~", slices.DeleteFunc(slices.Clone(read), func(p string) bool { return slices.Contains(write, p) }))
	}
	add("~", write)
	if server >= "6.2" {
		rules = append(rules, "resetchannels") // the default channels differ between servers
		add("&", g.channels)
	}
	add("+", commands)
	return rules
}

// pattern writes a key pattern as an ACL rule can have it: on one line and without blanks.
// ? replaces each byte that cannot be written.
func pattern(p string) string {
	var b strings.Builder
	for _, r := range p {
		if s := string(r); r == ' ' || r == '"' || r == '\'' || !safetext.New(s).Clean() && r != '\\' {
			b.WriteString(strings.Repeat("?", len(s)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
