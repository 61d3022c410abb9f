package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/internal/announce"
	"redlockctl/internal/config"
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
	Rules []safetext.Text `json:"rules"` // as of ACL SETUSER, without the password
	Line  safetext.Text   `json:"line"`  // for an ACL file, with a placeholder for the password's hash
}

// aclPassword stands where the hash of the password belongs. It is no hash, so
// that a server refuses a line in which it was forgotten.
const aclPassword = "#SHA256-OF-THE-PASSWORD"

// The roles, each for one user of the servers.
const (
	roleObserver = "observer"
	roleOperator = "operator"
	roleGuard    = "guard"
	roleClient   = "client"
)

var aclRoles = []string{roleObserver, roleOperator, roleGuard, roleClient}

// grants are rights on a server: commands, and what they may touch.
type grants struct {
	read, write, channels []string
	commands              []string
}

// grantsOf is the least that a role needs: what the parts of this program send.
func grantsOf(role string, cfg *config.Config) grants {
	patterns := make([]string, 0, len(cfg.Cluster.LockPatterns))
	for _, p := range cfg.Cluster.LockPatterns {
		patterns = append(patterns, aclPattern(p))
	}
	const counters, own = "redlockctl:fencing:*", "redlockctl:*"
	switch role {
	case roleObserver: // package monitor
		return grants{read: patterns, commands: []string{
			"ping", "time", "info", "config|get", "client|tracking", "pubsub|channels",
			"scan", "eval_ro", "evalsha_ro", "type", "pttl", "strlen", "getrange",
			"hlen", "llen", "scard", "zcard", "xlen", "memory|usage", "hkeys",
			"multi", "exec", // where scripts are not to be had
		}}
	case roleClient: // package redlock: take, extend, release, wait, look
		return grants{write: append(patterns, counters), commands: []string{
			"ping", "time", "set", "get", "del", "strlen", "pttl", "pexpire", "eval", "evalsha",
			"client|tracking", "getrange", "multi", "exec", "type",
		}}
	case roleOperator: // both, and the taking away
		g := grantsOf(roleObserver, cfg).and(grantsOf(roleClient, cfg))
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

func (g grants) and(h grants) grants {
	return grants{
		read: slices.Concat(g.read, h.read), write: slices.Concat(g.write, h.write),
		channels: slices.Concat(g.channels, h.channels), commands: slices.Concat(g.commands, h.commands),
	}
}

// rules are the grants as rules of ACL SETUSER, beginning with none.
func (g grants) rules() []string {
	rules := []string{"reset", "on"}
	seen := map[string]bool{}
	add := func(prefix string, items []string) {
		for _, item := range items {
			if rule := prefix + item; !seen[rule] {
				seen[rule] = true
				rules = append(rules, rule)
			}
		}
	}
	for _, p := range g.read {
		if !slices.Contains(g.write, p) {
			add("%R~", []string{p})
		}
	}
	add("~", g.write)
	add("&", g.channels)
	add("+", g.commands)
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

func (a *app) configACLCommand() *cobra.Command {
	var roles []string
	var user string
	cmd := &cobra.Command{
		Use:   "acl",
		Short: "The least rights that each part needs on the servers, as ACL rules",
		Long: `Prints a line for the servers' ACL file (aclfile, or user lines in redis.conf)
for each role, with no more rights than what the program sends:

  observer  to look: the console without acts, status, nodes, locks, doctor, watch
  operator  to act on locks as well: acquire, extend, release, revoke,
            force-release, run
  guard     to close and open nodes: the guard, and node hold, open and fence
  client    for the applications that take locks

Several roles for one user: --role operator,guard is what the console with the
guard inside needs. Put the hash of the password in its place: it is what
printf %s PASSWORD | sha256sum prints. Nothing is contacted. The lines are for Redis
7.0 and Valkey; Redis 6 wants ~ for %R~, and +eval and +evalsha for what ends in _ro.`,
		Example: "redlockctl config acl\nredlockctl config acl --role operator,guard --user ops",
		Args:    noArgs,
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
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			doc := aclJSON{Schema: Schema, Cluster: text(cfg.Cluster.Name)}
			add := func(role, user string, g grants) {
				if slices.ContainsFunc(cfg.Nodes, func(n config.Node) bool { return n.DB != 0 }) {
					g.commands = append([]string{"select"}, g.commands...)
				}
				rules := g.rules()
				line := append([]string{"user", user, rules[0], rules[1], aclPassword}, rules[2:]...)
				r := aclRoleJSON{Role: role, User: text(user), Line: text(strings.Join(line, " "))}
				for _, rule := range rules {
					r.Rules = append(r.Rules, text(rule))
				}
				doc.Roles = append(doc.Roles, r)
			}
			if len(roles) > 0 {
				var g grants
				for _, r := range roles {
					g = g.and(grantsOf(r, cfg))
				}
				if user == "" {
					user = "redlockctl-" + strings.Join(roles, "-")
				}
				add(strings.Join(roles, "+"), user, g)
			} else {
				for _, r := range aclRoles {
					add(r, "redlockctl-"+r, grantsOf(r, cfg))
				}
			}
			if a.output == "json" {
				return printJSON(a.out, doc)
			}
			for _, r := range doc.Roles {
				fmt.Fprintf(a.out, "# %s\n%s\n", r.Role, printable(r.Line.Raw()))
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&roles, "role", nil, "only this role, or these as one user: observer, operator, guard, client")
	f.StringVar(&user, "user", "", "the name of the user (default redlockctl-ROLE)")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(aclRoles, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
