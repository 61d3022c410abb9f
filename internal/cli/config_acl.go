package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"redlockctl/internal/announce"
	"redlockctl/internal/config"
	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
)

// aclJSON is the document of config acl.
type aclJSON struct {
	Schema  string        `json:"schema"`
	Cluster safetext.Text `json:"cluster"`
	Roles   []aclRoleJSON `json:"roles"`
}

type aclRoleJSON struct {
	Role  string          `json:"role"` // several, with + between them, where they were asked for as one user
	User  safetext.Text   `json:"user"`
	Rules []safetext.Text `json:"rules"` // as of ACL SETUSER
	Line  safetext.Text   `json:"line"`  // for an ACL file, or for redis.conf
	// SetUser is the command for a server that runs.
	SetUser safetext.Text `json:"setuser"`
}

// The roles, each for one user of the servers.
const (
	roleObserver = "observer"
	roleOperator = "operator"
	roleGuard    = "guard"
	roleClient   = "client"
	roleMonitor  = "monitor"
)

var aclRoles = []string{roleObserver, roleOperator, roleGuard, roleClient, roleMonitor}

// aclServers are the generations of servers whose ACLs differ, the newest first:
// Redis 7 came with rights to read alone and with EVAL_RO, 6.2 with channels.
var aclServers = []string{"7.0", "6.2", "6.0"}

// grants are rights on a server: commands, and what they may touch.
type grants struct {
	read, write, channels []string
	commands              []string
}

// grantsOf is the least that a role needs: what the parts of this program send.
func grantsOf(role string, cfg *config.Config, libraries []lockform.Needs) grants {
	patterns := make([]string, 0, len(cfg.Cluster.LockPatterns))
	for _, p := range cfg.Cluster.LockPatterns {
		patterns = append(patterns, aclPattern(p))
	}
	const own = "redlockctl:*"
	switch role {
	case roleObserver: // package monitor
		return grants{read: patterns, commands: []string{
			"ping", "time", "info", "config|get", "client|tracking", "client|list", "pubsub|channels",
			"scan", "eval_ro", "evalsha_ro", "type", "pttl", "strlen", "getrange",
			"hlen", "llen", "scard", "zcard", "xlen", "memory|usage", "hkeys", "zrange",
			"multi", "exec", // where scripts are not to be had
		}}
	case roleMonitor: // who --monitor
		return grants{read: patterns, commands: []string{
			"ping", "info", "pttl", "getrange", "client|id", "client|list", "client|kill", "monitor",
		}}
	case roleClient: // package redlock, and other libraries
		g := grants{write: patterns}
		for _, l := range libraries {
			g = g.and(grants{write: l.Keys, channels: l.Channels, commands: l.Commands})
		}
		return g
	case roleOperator: // both, and the taking away
		g := grantsOf(roleObserver, cfg, nil).and(grantsOf(roleClient, cfg, ownNeeds()))
		g.channels = []string{"redisson_lock__channel:*"}
		g.commands = append(g.commands, "exists", "hexists", "publish")
		return g
	case roleGuard: // package restartguard
		g := grants{read: patterns, write: []string{own}, channels: []string{announce.Pattern}, commands: []string{
			"ping", "subscribe", "unsubscribe", "pubsub|channels", "time", "info", "set", "get", "incr", "pexpire",
			"client|id", "client|setname", "client|list", "client|kill",
			"scan", "type", "pttl", "getrange", "multi", "exec",
		}}
		for _, n := range cfg.Nodes {
			switch n.Fence {
			case "acl":
				g.commands = append(g.commands, "acl|getuser", "acl|setuser", "acl|cat", "acl|dryrun")
			case "none":
			default:
				g.commands = append(g.commands, "config|get", "config|set")
			}
		}
		return g
	}
	return grants{}
}

func ownNeeds() []lockform.Needs {
	own, _ := librariesNamed([]string{"redlockctl"})
	return own
}

// plainLibraries are this program's own clients, and all libraries whose lock is
// one string.
func plainLibraries() []lockform.Needs {
	return slices.DeleteFunc(lockform.Libraries(), func(n lockform.Needs) bool { return !n.Plain() && n.Library != "redlockctl" })
}

// librariesNamed finds libraries by their names, in capitals or not; "all" is
// each of them.
func librariesNamed(names []string) ([]lockform.Needs, error) {
	all := lockform.Libraries()
	var found []lockform.Needs
	for _, name := range names {
		if name == "all" {
			return all, nil
		}
		i := slices.IndexFunc(all, func(n lockform.Needs) bool { return strings.EqualFold(n.Library, name) })
		if i < 0 {
			return nil, fmt.Errorf("--library %q: is not known (have: all, %s)", name, strings.Join(libraryNames(), ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}

func libraryNames() []string {
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

// rules are the grants as rules of ACL SETUSER, beginning with none, for this
// generation of servers. hash is that of the password in hex; without one nobody
// can log in.
func (g grants) rules(server, hash string) []string {
	rules := []string{"reset", "on"}
	if hash != "" {
		rules = append(rules, "#"+hash)
	}
	seen := map[string]bool{}
	add := func(prefix string, items []string) {
		// What comes beside * is an error to the server.
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
		rules = append(rules, "resetchannels") // servers differ in what a user begins with
		add("&", g.channels)
	}
	add("+", commands)
	return rules
}

// aclPattern is a pattern in the form that ACL rules can have: they know no
// blanks, and a rule is a line of text. One of any character stands in for each
// byte that cannot be written.
func aclPattern(p string) string {
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

// aclGuide is what to do with the lines, by the set-up of the servers.
const aclGuide = `Nothing was contacted. The lines name no default user: in each of these set-ups it stays as it is.
Which set-up a server has says: redis-cli CONFIG GET aclfile

Set-up 1: no ACL file (the answer is empty; so Debian installs it). requirepass stays in force.
  now:            %[1]s --setuser | redis-cli
  next start:     %[1]s >> redis.conf
  Never CONFIG REWRITE for this.

Set-up 2: an ACL file.
  now:            %[1]s --setuser | redis-cli
  next start:     %[2]s

From set-up 1 to 2: with an aclfile requirepass is void, and a file without a line for the user default opens
the server to everybody. Begin the file with the users that the server has, the default one and its password
among them:       redis-cli ACL LIST > users.acl
`

const (
	aclSave   = "redis-cli ACL SAVE"
	aclNoSave = " >> users.acl   (no ACL SAVE: with fence = \"acl\" it would store the rights of a node that serves)"
)

// aclAgain is the command as it was given, but for --setuser.
func aclAgain(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch value := f.Value.(type) {
		case pflag.SliceValue:
			words = append(words, "--"+f.Name, strings.Join(value.GetSlice(), ","))
		default:
			if f.Name != "setuser" {
				words = append(words, "--"+f.Name, f.Value.String())
			}
		}
	})
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\"'\\$`*?[]{}()<>|&;#~!") && i > 0 {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return safetext.Escape(strings.Join(words, " "))
}

func (a *commandLine) configACLCommand() *cobra.Command {
	var roles, names []string
	var user, server, passwordEnv string
	var setUser bool
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "acl",
		Short: "The least rights that each part needs on the servers, as ACL rules",
		Long: `Prints a line for each role, with no more rights than what the program sends:

  observer  to look: the console without acts, status, nodes, locks, doctor, watch
  operator  to act on locks as well: acquire, extend, release, revoke,
            force-release, run
  guard     to fence nodes and let them rejoin: the guard, and node hold, open
            and fence
  client    for the applications that take locks; --library names what they use,
            else the rights fit every library that keeps a lock in one string

  monitor   for who --monitor: sees all data of all clients; not for daily use

Several roles for one user: --role operator,guard is what the console with the
guard inside needs.

The lines fit an ACL file and redis.conf; with --setuser they are commands for a
server that runs. What to do with them is said on stderr. The user default
is in none of them: it stays as it is, with its password or off.

Nobody can log in as one of these users before it has a password: --password-env
names a variable that holds it, and its SHA-256 is put into the line. Without
it: redis-cli ACL SETUSER NAME '>PASSWORD', or #SHA256 in the line.

Nothing is contacted, and no password of the configuration is read.`,
		Example: "redlockctl config acl\nredlockctl config acl --role operator,guard --user ops --password-env OPS_PASSWORD\n" +
			"redlockctl config acl --role client --library node-redlock,redsync --setuser",
		Args: noArgs,
		RunE: a.run(func(context.Context, []string) error {
			for _, r := range roles {
				if !slices.Contains(aclRoles, r) {
					return usageError{fmt.Errorf("--role %q: it is %s", r, either(aclRoles))}
				}
			}
			switch {
			case user != "" && len(roles) == 0:
				return usageError{fmt.Errorf("--user %q: for which --role?", user)}
			case user != "" && (strings.ContainsAny(user, " \"'\\") || !safetext.New(user).Clean()):
				return usageError{fmt.Errorf("--user %q: no blanks, quotes or special characters", user)}
			case user == "default":
				return usageError{fmt.Errorf("--user %q: whoever logs in without a name is this user; name another", user)}
			case !slices.Contains(aclServers, server):
				return usageError{fmt.Errorf("--server %q: it is %s", server, either(aclServers))}
			case len(names) > 0 && len(roles) > 0 && !slices.Contains(roles, roleClient):
				return usageError{fmt.Errorf("--library: goes with --role %s", roleClient)}
			}
			libraries := plainLibraries()
			if len(names) > 0 {
				var err error
				if libraries, err = librariesNamed(names); err != nil {
					return usageError{err}
				}
			}
			hash := ""
			if passwordEnv != "" {
				password := a.getenv(passwordEnv)
				if password == "" {
					return usageError{fmt.Errorf("--password-env: the variable %s is not set, or empty", safetext.Escape(passwordEnv))}
				}
				sum := sha256.Sum256([]byte(password))
				hash = hex.EncodeToString(sum[:])
			}
			cfg, err := a.loadWithoutSecrets()
			if err != nil {
				return err
			}
			doc := aclJSON{Schema: Schema, Cluster: text(cfg.Cluster.Name)}
			add := func(role, user string, g grants) {
				if slices.ContainsFunc(cfg.Nodes, func(n config.Node) bool { return n.DB != 0 }) {
					g.commands = append([]string{"select"}, g.commands...)
				}
				rules := g.rules(server, hash)
				joined := user + " " + strings.Join(rules, " ")
				r := aclRoleJSON{Role: role, User: text(user), Line: text("user " + joined), SetUser: text("ACL SETUSER " + joined)}
				for _, rule := range rules {
					r.Rules = append(r.Rules, text(rule))
				}
				doc.Roles = append(doc.Roles, r)
			}
			if len(roles) > 0 {
				var g grants
				for _, r := range roles {
					g = g.and(grantsOf(r, cfg, libraries))
				}
				if user == "" {
					user = "redlockctl-" + strings.Join(roles, "-")
				}
				add(strings.Join(roles, "+"), user, g)
			} else {
				for _, r := range aclRoles {
					add(r, "redlockctl-"+r, grantsOf(r, cfg, libraries))
				}
			}
			if a.output == "json" {
				return printJSON(a.out, doc)
			}
			for _, r := range doc.Roles {
				line := r.Line
				if setUser {
					line = r.SetUser
				}
				fmt.Fprintln(a.out, safetext.Printable(line.Raw()))
			}
			again := aclAgain(cmd)
			later := aclSave
			if slices.ContainsFunc(cfg.Nodes, func(n config.Node) bool { return n.Fence == "acl" }) {
				later = again + aclNoSave
			}
			fmt.Fprintf(a.errOut, "\n"+aclGuide, again, later)
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&roles, "role", nil, "only this role, or these as one user: observer, operator, guard, client, monitor")
	f.StringVar(&user, "user", "", "the name of the user (default redlockctl-ROLE)")
	f.StringSliceVar(&names, "library", nil, "for the role client: the lock libraries in use, such as redsync; or all")
	f.StringVar(&server, "server", aclServers[0], "the servers: 7.0 (and later, and Valkey), 6.2 or 6.0")
	f.BoolVar(&setUser, "setuser", false, "commands for redis-cli instead of lines for a file")
	f.StringVar(&passwordEnv, "password-env", "", "the variable that holds the user's password; its hash is put into the line")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(aclRoles, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("library", cobra.FixedCompletions(append([]string{"all"}, libraryNames()...), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("server", cobra.FixedCompletions(aclServers, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
