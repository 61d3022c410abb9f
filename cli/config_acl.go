package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/acl"
	"redlockctl/internal/config"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// aclJSON is the document of config acl.
type aclJSON struct {
	Cluster safetext.Text `json:"cluster"`
	Roles   []aclRoleJSON `json:"roles"`
}

type aclRoleJSON struct {
	Role  string          `json:"role"` // roles joined by + if they are for one user
	User  safetext.Text   `json:"user"`
	Rules []safetext.Text `json:"rules"` // arguments of ACL SETUSER
	Line  safetext.Text   `json:"line"`  // for an ACL file, or for redis.conf
	// SetUser is the command for a running server.
	SetUser safetext.Text `json:"setuser"`
}

// aclGuide explains what to do with the lines.
const aclGuide = `Nothing was contacted. The lines name no default user: these set-ups do not change it.
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

// aclAgain returns the given command line without --setuser.
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
	for i, w := range words[1:] {
		words[i+1] = safetext.New(w).Word()
	}
	return strings.Join(words, " ")
}

func (a *commandLine) configACLCommand() *cobra.Command {
	var o aclOptions
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "acl",
		Short: "The least rights that each part needs on the servers, as ACL rules",
		Long: `Prints a line for each role, with no more rights than what the program sends:

  observer  to look: the console without actions, status, nodes, locks, doctor, watch
  operator  to act on locks as well: acquire, extend, release, revoke,
            force-release, run
  guard     to fence nodes and let them rejoin: the guard, and node cordon, uncordon, rejoin
            and boot-fence
  client    for the applications that take locks; --library names what they use,
            else the rights fit every library that keeps a lock in one string

  monitor   for who --monitor: sees all data of all clients; not for daily use

Several roles for one user: --role operator,guard is what the console with the
guard inside needs.

The lines fit an ACL file and redis.conf; with --setuser they are commands for a
server that runs. What to do with them is said on stderr. The user default
is in none of them: it keeps its password, or stays off.

Nobody can log in as one of these users before it has a password: --password-env
names a variable that holds it, and its SHA-256 is put into the line. Without
it: redis-cli ACL SETUSER NAME '>PASSWORD', or #SHA256 in the line.

Nothing is contacted, and no password of the configuration is read.`,
		Example: "redlockctl config acl\nredlockctl config acl --role operator,guard --user ops --password-env OPS_PASSWORD\n" +
			"redlockctl config acl --role client --library node-redlock,redsync --setuser",
		Args: flags.NoArgs,
		RunE: a.run(func(context.Context, []string) error {
			return a.configACL(o, aclAgain(cmd))
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.roles, "role", nil, "only this role, or these as one user: observer, operator, guard, client, monitor")
	f.StringVar(&o.user, "user", "", "the name of the user (default redlockctl-ROLE)")
	f.StringSliceVar(&o.libraries, "library", nil, "for the role client: the lock libraries in use, such as redsync; or all")
	f.StringVar(&o.server, "server", acl.Servers[0], "the servers: 7.0 (and later, and Valkey), 6.2 or 6.0")
	f.BoolVar(&o.setUser, "setuser", false, "commands for redis-cli instead of lines for a file")
	f.StringVar(&o.passwordEnv, "password-env", "", "the variable that holds the user's password; its hash is put into the line")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(acl.Roles, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("library", cobra.FixedCompletions(append([]string{"all"}, acl.LibraryNames()...), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("server", cobra.FixedCompletions(acl.Servers, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// aclOptions are the flags of config acl.
type aclOptions struct {
	roles, libraries          []string
	user, server, passwordEnv string
	setUser                   bool
}

func (o aclOptions) check() error {
	for _, r := range o.roles {
		if !slices.Contains(acl.Roles, r) {
			return fmt.Errorf("--role %q: it is %s", r, flags.Either(acl.Roles))
		}
	}
	switch {
	case o.user != "" && len(o.roles) == 0:
		return fmt.Errorf("--user %q: for which --role?", o.user)
	case o.user != "" && (strings.ContainsAny(o.user, " \"'\\") || !safetext.New(o.user).Clean()):
		return fmt.Errorf("--user %q: no blanks, quotes or special characters", o.user)
	case o.user == "default":
		return fmt.Errorf("--user %q: whoever logs in without a name is this user; name another", o.user)
	case !slices.Contains(acl.Servers, o.server):
		return fmt.Errorf("--server %q: it is %s", o.server, flags.Either(acl.Servers))
	case len(o.libraries) > 0 && len(o.roles) > 0 && !slices.Contains(o.roles, acl.Client):
		return fmt.Errorf("--library: goes with --role %s", acl.Client)
	}
	return nil
}

// configACL prints the rights; again is the command line to repeat.
func (a *commandLine) configACL(o aclOptions, again string) error {
	if err := o.check(); err != nil {
		return exit.Usage(err)
	}
	libraries := acl.PlainLibraries()
	if len(o.libraries) > 0 {
		var err error
		if libraries, err = acl.LibrariesNamed(o.libraries); err != nil {
			return exit.Usage(err)
		}
	}
	hash := ""
	if o.passwordEnv != "" {
		password := a.Getenv(o.passwordEnv)
		if password == "" {
			return exit.Usagef("--password-env: the variable %s is not set, or empty", safetext.Escape(o.passwordEnv))
		}
		hash = acl.Hash(password)
	}
	cfg, err := a.loadWithoutSecrets()
	if err != nil {
		return err
	}
	doc := aclJSON{Cluster: safetext.New(cfg.Cluster.Name)}
	add := func(role, name string, of ...string) {
		u := acl.NewUser(name, of, cfg, libraries, o.server, hash)
		doc.Roles = append(doc.Roles, aclRoleJSON{Role: role, User: safetext.New(name), Rules: safetext.Texts(u.Rules), Line: safetext.New(u.Line()), SetUser: safetext.New(u.SetUser())})
	}
	switch {
	case len(o.roles) == 0:
		for _, r := range acl.Roles {
			add(r, "redlockctl-"+r, r)
		}
	case o.user == "":
		add(strings.Join(o.roles, "+"), "redlockctl-"+strings.Join(o.roles, "-"), o.roles...)
	default:
		add(strings.Join(o.roles, "+"), o.user, o.roles...)
	}
	if a.Output == "json" {
		return a.JSON("acl", doc)
	}
	for _, r := range doc.Roles {
		line := r.Line
		if o.setUser {
			line = r.SetUser
		}
		fmt.Fprintln(a.Out, safetext.Printable(line.Raw()))
	}
	later := aclSave
	if slices.ContainsFunc(cfg.Nodes, func(n config.Node) bool { return n.Fence.Kind == fences.ACL }) {
		later = again + aclNoSave
	}
	fmt.Fprintf(a.Err, "\n"+aclGuide, again, later)
	return nil
}
