package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"redlockctl/cli/flags"
	"redlockctl/tui/styles"
)

// The groups of commands, which are the sections of docs/commands.md.
const (
	toLook  = "To look"
	toLock  = "Locks"
	toGuard = "Masters and guard"
	toKeep  = "The record, the configuration"
	toTry   = "To try"
	toShell = "Shell" // has cobra's own: completion and help
)

// flagGroup is a group of flags on a page of help. The first one, without a title, has all
// flags that are in no other group.
type flagGroup struct {
	title string
	names []string
	// ours: flags of a command itself belong to it too, not only those that all commands have.
	ours bool
	// useless reports whether the common flags of the group do nothing for a command.
	useless func(cmd string) bool
}

var flagGroups = []flagGroup{
	{title: "Flags"},
	{
		title: "Which masters", names: []string{"config", "cluster", "nodes", "max-ttl"},
		useless: among("demo", "man", "schema", "version", "completion", "help"),
	},
	{
		title: "Login and TLS, with --nodes", names: []string{"user", "password-file", "password-command", "ask-password", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name"},
		useless: among("demo", "lab", "man", "schema", "version", "completion", "help", "audit", "config acl", "history", "report", "replay"),
	},
	{
		title: "Output", names: []string{"output", "columns", "sort", "quiet", "no-color", "ascii"}, ours: true,
		useless: among("man", "completion", "help"),
	},
	{
		title: "Safety", names: []string{"read-only", "dry-run", "reason", "yes"}, ours: true,
		useless: among("status", "clusters", "nodes", "locks", "who", "watch", "history", "replay", "report", "doctor", "man", "schema", "version",
			"guard status", "node boot-fence", "node wait", "audit", "config acl", "lab down", "completion", "help"),
	},
}

// uselessFlags are flags that do nothing for a command although their group does.
var uselessFlags = map[string]func(cmd string) bool{
	"config":  among("init"),
	"max-ttl": among("lab", "audit", "history", "report", "replay"),
	"output":  among("demo", "guard ", "run", "restart"),
	"nodes":   among("lab", "audit", "history", "report", "replay"),
	"ascii":   among("version", "schema"), "no-color": among("version", "schema"),
}

// among returns whether a command is one of these or below one; with a blank at the end of a
// name, it is that command alone.
func among(names ...string) func(cmd string) bool {
	return func(cmd string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			alone, only := strings.CutSuffix(name, " ")
			return cmd == alone || !only && strings.HasPrefix(cmd, name+" ")
		})
	}
}

// groupOf returns the group of a flag, as an index.
func groupOf(cmd *cobra.Command, f *pflag.Flag) int {
	own := cmd.HasParent() && cmd.LocalNonPersistentFlags().Lookup(f.Name) != nil
	for i, g := range flagGroups {
		if slices.Contains(g.names, f.Name) && (g.ours || !own) {
			return i
		}
	}
	return 0
}

// fitFlags hides the common flags that do nothing for a command, on its page of help and in
// completion, and has --output name the formats that it knows.
func fitFlags(cmd *cobra.Command) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		g := flagGroups[groupOf(cmd.Root(), f)]
		f.Hidden = g.useless != nil && g.useless(path) || uselessFlags[f.Name] != nil && uselessFlags[f.Name](path)
		if f.Name == "output" && cmd.HasParent() {
			f.Usage = "what to print: " + flags.Either(flags.OutputsOf(cmd)) + " (also $REDLOCKCTL_OUTPUT)"
		}
	})
}

// shownFlags returns the flags of a command by their groups; of some there is none.
func shownFlags(cmd *cobra.Command) [][]*pflag.Flag {
	fitFlags(cmd)
	cmd.InitDefaultHelpFlag()
	cmd.InheritedFlags() // merges them into Flags
	groups := make([][]*pflag.Flag, len(flagGroups))
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			i := groupOf(cmd, f)
			groups[i] = append(groups[i], f)
		}
	})
	for i, g := range flagGroups[1:] { // in the group's order, not by name
		slices.SortStableFunc(groups[i+1], func(a, b *pflag.Flag) int {
			return slices.Index(g.names, a.Name) - slices.Index(g.names, b.Name)
		})
	}
	return groups
}

// flagSyntax returns how a flag is written, with the kind of its value.
func flagSyntax(f *pflag.Flag) (name, value string) {
	word, _ := pflag.UnquoteUsage(f)
	switch {
	case word == "":
		return "--" + f.Name, ""
	case f.NoOptDefVal != "":
		return "--" + f.Name, "[=" + word + "]"
	}
	return "--" + f.Name, " " + word
}

// flagUsage returns what a flag means, with its default.
func flagUsage(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return usage
	}
	return usage + " (default " + f.DefValue + ")"
}

// helpPage prints the page of help of a command.
func (a *commandLine) helpPage(cmd *cobra.Command, _ []string) {
	width := 100
	if out, ok := a.Out.(*os.File); ok && a.OutTTY {
		if w, _, err := term.GetSize(out.Fd()); err == nil && w > 0 {
			width = min(w, width)
		}
	}
	p := &page{out: a.Out, width: width}
	if a.Color() && !slices.Contains(a.args, "--no-color") { // flags are not read before a page of help
		p.bold = ansi.Style{}.Bold()
	}
	p.text(cmd)
	for _, g := range commandsByGroup(cmd) {
		p.head(g.title)
		var rows [][2]string
		for _, sub := range g.commands {
			rows = append(rows, [2]string{sub.Name(), sub.Short})
		}
		p.rows(rows)
	}
	for i, of := range shownFlags(cmd) {
		if len(of) == 0 {
			continue
		}
		p.head(flagGroups[i].title)
		var rows [][2]string
		for _, f := range of {
			name, value := flagSyntax(f)
			short := "    "
			if f.Shorthand != "" {
				short = "-" + f.Shorthand + ", "
			}
			rows = append(rows, [2]string{short + name + value, flagUsage(f)})
		}
		p.rows(rows)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(p.out, "\n\"%s COMMAND --help\" has more about a command.\n", cmd.CommandPath())
	}
}

type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// commandsByGroup returns the subcommands of a command by their groups.
func commandsByGroup(cmd *cobra.Command) (groups []commandGroup) {
	for _, sub := range flags.Subcommands(cmd) {
		title := sub.GroupID
		if title == "" {
			title = "Commands"
		}
		i := slices.IndexFunc(groups, func(g commandGroup) bool { return g.title == title })
		if i < 0 {
			groups, i = append(groups, commandGroup{title: title}), len(groups)
		}
		groups[i].commands = append(groups[i].commands, sub)
	}
	order := []string{toLook, toLock, toGuard, toKeep, toTry, toShell}
	slices.SortStableFunc(groups, func(a, b commandGroup) int {
		return slices.Index(order, a.title) - slices.Index(order, b.title)
	})
	return groups
}

// page writes a page of help.
type page struct {
	out   io.Writer
	width int
	bold  ansi.Style
}

// text writes what a command is, how it is written, and examples.
func (p *page) text(cmd *cobra.Command) {
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	fmt.Fprintln(p.out, strings.TrimSpace(long))
	p.head("Usage")
	if cmd.Runnable() && !(cmd.HasAvailableSubCommands() && !cmd.Flags().HasFlags()) {
		fmt.Fprintln(p.out, "  "+cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(p.out, "  "+cmd.CommandPath()+" COMMAND")
	}
	if cmd.Example != "" {
		p.head("Examples")
		for line := range strings.Lines(cmd.Example + "\n") {
			if line != "\n" {
				line = "  " + line
			}
			fmt.Fprint(p.out, line)
		}
	}
}

func (p *page) head(title string) {
	fmt.Fprintf(p.out, "\n%s\n", p.bold.Styled(title+":"))
}

// rows writes two columns, the second one wrapped.
func (p *page) rows(rows [][2]string) {
	first := 0
	for _, r := range rows {
		first = max(first, len(r[0]))
	}
	indent := first + 4
	for _, r := range rows {
		lines := styles.Wrap(r[1], max(p.width-indent, 30), 0)
		fmt.Fprintf(p.out, "  %-*s  %s\n", first, r[0], lines[0])
		for _, l := range lines[1:] {
			fmt.Fprintf(p.out, "%*s%s\n", indent, "", l)
		}
	}
}
