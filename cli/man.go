package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
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
		for _, sub := range flags.Subcommands(of) {
			names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
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
				return exit.Usagef("there is no command %q", strings.Join(args, " "))
			}
			return manPage.Execute(a.Out, of)
		}
		if len(args) > 0 {
			return exit.Usagef("--dir is for the pages of all commands")
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, of := range everyCommand(cmd.Root()) {
			var page bytes.Buffer
			if err := manPage.Execute(&page, of); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, pageName(of)+".1"), page.Bytes(), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().StringVar(&dir, "dir", "", "write the pages of all commands into this directory")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func everyCommand(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range flags.Subcommands(cmd) {
		all = append(all, everyCommand(sub)...)
	}
	return all
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the manual page of a command, in the macros of man(7).
var manPage = template.Must(template.New("").Funcs(template.FuncMap{
	"page": pageName, "roff": roff, "paragraphs": roffText, "flags": roffFlags, "subs": flags.Subcommands, "upper": strings.ToUpper,
	"version":     func() string { return build().Version },
	"codes":       func() string { return exit.Help },
	"environment": func() []config.Variable { return config.Environment },
	"others": func(cmd *cobra.Command) []*cobra.Command {
		if p := cmd.Parent(); p != nil {
			return append([]*cobra.Command{p}, flags.Subcommands(cmd)...)
		}
		return flags.Subcommands(cmd)
	},
}).Parse(`.TH {{page . | upper | roff}} 1 "" "redlockctl {{version | roff}}" "redlockctl"
.SH NAME
{{page . | roff}} \- {{roff .Short}}
.SH SYNOPSIS
{{if .Runnable}}.nf
\fB{{roff .UseLine}}\fR
.fi
{{end}}{{if subs .}}.PP
\fB{{roff .CommandPath}}\fR \fICOMMAND\fR
{{end}}.SH DESCRIPTION
{{if .Long}}{{paragraphs .Long}}{{else}}{{roff .Short}}.
{{end}}{{with subs .}}.SH COMMANDS
{{range .}}.TP
\fB{{roff .Name}}\fR
{{roff .Short}}
{{end}}{{end}}{{flags .}}{{with .Example}}.SH EXAMPLES
.nf
{{roff .}}
.fi
{{end}}.SH EXIT STATUS
{{roff codes}} Where a command has further ones, its description names them.
.SH ENVIRONMENT
{{range environment}}.TP
\fB{{roff .Name}}\fR
{{roff .Effect}}
{{end}}.SH SEE ALSO
{{range $i, $other := others .}}{{if $i}},
{{end}}.BR {{page $other | roff}} (1){{end}}
`))

func roffFlags(cmd *cobra.Command) string {
	var b strings.Builder
	for i, group := range shownFlags(cmd) {
		if len(group) == 0 {
			continue
		}
		title := "OPTIONS"
		if i > 0 {
			title += ": " + strings.ToUpper(flagGroups[i].title)
		}
		fmt.Fprintf(&b, ".SH \"%s\"\n", roff(title))
		for _, f := range group {
			b.WriteString(".TP\n")
			if f.Shorthand != "" {
				fmt.Fprintf(&b, "\\fB%s\\fR, ", roff("-"+f.Shorthand))
			}
			name, value := flagSyntax(f)
			word := strings.Trim(value, " []=")
			fmt.Fprintf(&b, "\\fB%s\\fR%s\n%s\n", roff(name), strings.Replace(value, word, `\fI`+roff(word)+`\fR`, 1), roff(flagUsage(f)))
		}
	}
	return b.String()
}

// roffText formats paragraphs; indented lines are kept unchanged.
func roffText(s string) string {
	paragraphs := strings.Split(strings.Trim(s, "\n"), "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") {
			p = ".nf\n" + roff(p) + "\n.fi\n"
		} else {
			p = roff(p) + "\n"
		}
		paragraphs[i] = p
	}
	return strings.Join(paragraphs, ".PP\n")
}

// roff escapes text for roff.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "“", `"`, "”", `"`).Replace(s)
	return lineOfMacro.ReplaceAllString(s, `\&$0`)
}

// lineOfMacro matches the beginning of a line that roff would interpret.
var lineOfMacro = regexp.MustCompile(`(?m)^[.']`)
