package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *commandLine) manCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man [COMMAND...]",
		Short: "Manual pages, for man(1)",
		Long: `Prints the manual page of redlockctl, or of one of its commands, in the form that
man(1) shows. With --dir it writes one page for each command into that directory,
such as redlockctl-node-cordon.1, which is made if it is not there.`,
		Example: `redlockctl man acquire | man -l -
redlockctl man --dir /usr/local/share/man/man1`,
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		of, _, err := cmd.Root().Find(args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, sub := range of.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = a.run(func(_ context.Context, args []string) error {
		if err := a.tableOnly("a manual page is text"); err != nil {
			return err
		}
		if dir == "" {
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageError{fmt.Errorf("there is no command %q", strings.Join(args, " "))}
			}
			_, err = fmt.Fprint(a.out, manPage(of))
			return err
		}
		if len(args) > 0 {
			return usageError{errors.New("--dir is for the pages of all commands")}
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, of := range everyCommand(cmd.Root()) {
			if err := os.WriteFile(filepath.Join(dir, pageName(of)+".1"), []byte(manPage(of)), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().StringVar(&dir, "dir", "", "write the pages of all commands into this directory")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// everyCommand is a command and all below it that people may use.
func everyCommand(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, everyCommand(sub)...)
		}
	}
	return all
}

// pageName is the name of a command's page.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the page of one command, in the macros of man(7).
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(name string) { fmt.Fprintf(&b, ".SH %s\n", name) }
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"redlockctl %s\" \"redlockctl\"\n", roff(strings.ToUpper(pageName(cmd))), roff(build().Version))
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	section("SYNOPSIS")
	if cmd.Runnable() {
		fmt.Fprintf(&b, ".nf\n\\fB%s\\fR\n.fi\n", roff(cmd.UseLine()))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".PP\n\\fB%s\\fR \\fICOMMAND\\fR\n", roff(cmd.CommandPath()))
	}
	section("DESCRIPTION")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	b.WriteString(roffText(long))
	if cmd.HasAvailableSubCommands() {
		section("COMMANDS")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(sub.Name()), roff(sub.Short))
			}
		}
	}
	flags := func(title string, set *pflag.FlagSet) {
		if !set.HasAvailableFlags() {
			return
		}
		section(title)
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				b.WriteString(roffFlag(f))
			}
		})
	}
	flags("OPTIONS", cmd.LocalFlags())
	flags("COMMON OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		section("EXAMPLES")
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roffLines(cmd.Example))
	}
	section("EXIT STATUS")
	b.WriteString(roffText(exitCodes))
	section("ENVIRONMENT")
	for _, e := range environment {
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(e.Name), roff(e.Effect))
	}
	section("SEE ALSO")
	var others []string
	if p := cmd.Parent(); p != nil {
		others = append(others, pageName(p))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			others = append(others, pageName(sub))
		}
	}
	for i, o := range others {
		end := ","
		if i == len(others)-1 {
			end = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(o), end)
	}
	return b.String()
}

// exitCodes is what all commands have in common.
const exitCodes = "0 done, 1 failed, 2 wrong usage or configuration, 3 contended, 4 no quorum, 5 not the owner, or lost, 6 refused (read-only, not confirmed). Where a command has further ones, its description names them."

func roffFlag(f *pflag.Flag) string {
	word, usage := pflag.UnquoteUsage(f)
	var b strings.Builder
	b.WriteString(".TP\n")
	if f.Shorthand != "" {
		fmt.Fprintf(&b, "\\fB%s\\fR, ", roff("-"+f.Shorthand))
	}
	fmt.Fprintf(&b, "\\fB%s\\fR", roff("--"+f.Name))
	switch {
	case f.NoOptDefVal != "" && f.Value.Type() != "bool":
		fmt.Fprintf(&b, "[=\\fI%s\\fR]", roff(word))
	case word != "":
		fmt.Fprintf(&b, " \\fI%s\\fR", roff(word))
	}
	fmt.Fprintf(&b, "\n%s", roff(usage))
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		fmt.Fprintf(&b, " (default %s)", roff(f.DefValue))
	}
	b.WriteString("\n")
	return b.String()
}

// roffText is paragraphs: what is indented in them stays as it stands.
func roffText(s string) string {
	var b strings.Builder
	for i, p := range strings.Split(strings.Trim(s, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") {
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roffLines(p))
		} else {
			b.WriteString(roffLines(p) + "\n")
		}
	}
	return b.String()
}

func roffLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = roff(l)
	}
	return strings.Join(lines, "\n")
}

// roff is one line of text that means nothing to roff.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "“", `"`, "”", `"`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
