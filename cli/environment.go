package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/server/safetext"
)

// output reads --output, or $REDLOCKCTL_OUTPUT for a command that knows the format.
func (a *commandLine) output(cmd *cobra.Command) error {
	words, by := flags.OutputsOf(cmd), "--output"
	if env := a.Getenv("REDLOCKCTL_OUTPUT"); env != "" && !cmd.Flags().Changed("output") {
		switch every := []string{"table", "wide", "json", "jsonl", "csv", "yaml", "template=TEXT"}; {
		case flags.KnowsOutput(words, env):
			a.Output, a.outputBy, by = env, "REDLOCKCTL_OUTPUT", "REDLOCKCTL_OUTPUT"
		case !flags.KnowsOutput(every, env):
			return fmt.Errorf("REDLOCKCTL_OUTPUT %q: it is %s", env, flags.Either(every))
		}
	}
	switch text, isTemplate := flags.TemplateOf(a.Output); {
	case !flags.KnowsOutput(words, a.Output):
		return fmt.Errorf("%s %q: it is %s", by, a.Output, flags.Either(words))
	case isTemplate:
		form, err := printer.Template(text)
		if err != nil {
			return fmt.Errorf("%s %q: %w", by, a.Output, err)
		}
		a.Convert(form)
	case a.Output == "yaml":
		a.Convert(printer.YAML)
	}
	return nil
}

// nodesOfEnvironment takes the masters from $REDLOCKCTL_NODES if no flag says where they are.
func (a *commandLine) nodesOfEnvironment(cmd *cobra.Command) error {
	env := a.Getenv("REDLOCKCTL_NODES")
	if env == "" || cmd.Flags().Changed("nodes") || cmd.Flags().Changed("config") {
		return nil
	}
	if a.Getenv("REDLOCKCTL_CONFIG") != "" {
		return errors.New("REDLOCKCTL_NODES and REDLOCKCTL_CONFIG: set one of them")
	}
	for node := range strings.SplitSeq(env, ",") {
		if node = strings.TrimSpace(node); node != "" {
			a.named.Nodes = append(a.named.Nodes, node)
		}
	}
	if len(a.named.Nodes) == 0 {
		return errors.New("REDLOCKCTL_NODES names no master")
	}
	a.nodesBy = "REDLOCKCTL_NODES"
	return nil
}

// tellUnknown warns of variables of the environment that look like this program's, and that
// nothing reads. set may be nil.
func (a *commandLine) tellUnknown(set *config.Set) {
	if a.toldUnknown {
		return
	}
	a.toldUnknown = true
	var known []string
	for _, v := range config.Environment {
		known = append(known, v.Name)
	}
	if set != nil && len(set.Clusters) > 0 {
		known = append(known, set.Clusters[0].PasswordEnv...)
	}
	for _, v := range a.environ {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "REDLOCKCTL_") || slices.Contains(known, name) || forChildren.MatchString(name) || strings.HasPrefix(name, "REDLOCKCTL_TEST_") || strings.HasSuffix(name, "_PASSWORD") && set == nil {
			continue
		}
		hint := "redlockctl info lists those that it reads"
		if best := config.Nearest(name, known); best != "" {
			hint = "did you mean " + best + "?"
		}
		a.Note("warning: nothing reads the variable %s; %s", safetext.Escape(name), hint)
	}
}

// forChildren matches the variables that "run" and "restart" set for their commands, which may call
// this program.
var forChildren = regexp.MustCompile(`^REDLOCKCTL_(LOCK_NAME|LOCK_TOKEN|LOCK_TTL_MS|FENCING_TOKEN)(_[0-9]+)?$`)

// asciiOnly reports whether the locale has no characters beyond ASCII, and which variable says so.
func asciiOnly(getenv func(string) string) (string, bool) {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return name, !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return "", false
}

// plainTerminal reports whether the terminal cannot show a screen: lines of text are for it.
func (a *commandLine) plainTerminal() bool {
	term := a.Getenv("TERM")
	return a.InTTY && a.OutTTY && (term == "" || term == "dumb")
}
