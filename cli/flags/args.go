// Package flags declares and reads the flags and arguments that several commands share.
package flags

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"redlockctl/cli/exit"
)

// OneName accepts exactly one non-empty argument.
func OneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s: the name of the %s is missing", cmd.CommandPath(), what)
		case len(args) > 1:
			return fmt.Errorf("%s: one name, not %d", cmd.CommandPath(), len(args))
		case args[0] == "":
			return fmt.Errorf("%s: the name of the %s is empty", cmd.CommandPath(), what)
		}
		return nil
	}
}

// OptionalName accepts one non-empty argument or none.
func OptionalName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return OneName(what)(cmd, args)
	}
}

// SeveralNames accepts one or more different, non-empty arguments.
func SeveralNames(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, arg := range args {
			if arg != "" && slices.Contains(args[:i], arg) {
				return fmt.Errorf("%s: %q is there twice", cmd.CommandPath(), arg)
			}
			if err := OneName(what)(cmd, args[i:i+1]); err != nil {
				return err
			}
		}
		if len(args) == 0 {
			return OneName(what)(cmd, nil)
		}
		return nil
	}
}

// longestName bounds a line of names that are read.
const longestName = 64 << 10

// Names returns the arguments of a command; a single - stands for the lines of standard input,
// a name each. A name that comes again, and an empty line, are left out.
func Names(args []string, in io.Reader) (names []string, err error) {
	if !slices.Equal(args, []string{"-"}) {
		return args, nil
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestName)
	there := map[string]bool{"": true}
	for lines.Scan() {
		if name := lines.Text(); !there[name] {
			there[name] = true
			names = append(names, name)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, exit.Usagef("names from standard input: %w", err)
	}
	if len(names) == 0 {
		return nil, exit.Usagef("no name came from standard input")
	}
	return names, nil
}

// NoArgs accepts no argument.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// GroupOf returns a command that has only subcommands.
func GroupOf(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, RunE: Group, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(subs...)
	return cmd
}

// Group is the RunE of a command that has only subcommands.
func Group(cmd *cobra.Command, args []string) error {
	var names []string
	for _, sub := range Subcommands(cmd) {
		names = append(names, sub.Name())
	}
	what := "a command is missing"
	if len(args) > 0 {
		what = fmt.Sprintf("unknown command %q", args[0])
	}
	return fmt.Errorf("%s: %s; there is %s", cmd.CommandPath(), what, strings.Join(names, ", "))
}

// outputsKey is the annotation with the formats that a command knows.
const outputsKey = "outputs"

// Subcommands returns the subcommands that are not hidden.
func Subcommands(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(sub *cobra.Command) bool { return !sub.IsAvailableCommand() })
}

// Outputs sets the formats of a command that knows more than table and json.
func Outputs(cmd *cobra.Command, words ...string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[outputsKey] = strings.Join(words, " ")
	return cmd
}

// OutputsOf returns the formats that a command knows.
func OutputsOf(cmd *cobra.Command) []string {
	words := strings.Fields(cmd.Annotations[outputsKey])
	if len(words) == 0 {
		words = []string{"table", "json"}
	}
	for _, w := range []string{"yaml", "template=TEXT"} {
		if slices.Contains(words, "json") && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// KnowsOutput reports whether a format is one of those that [OutputsOf] returns.
func KnowsOutput(words []string, format string) bool {
	_, isTemplate := TemplateOf(format)
	return slices.Contains(words, format) || isTemplate && slices.Contains(words, "template=TEXT")
}

// TemplateOf returns the template in a format, if it has one. kubectl calls it go-template.
func TemplateOf(format string) (text string, ok bool) {
	for _, word := range []string{"template=", "go-template="} {
		if text, ok := strings.CutPrefix(format, word); ok {
			return text, true
		}
	}
	return "", false
}

// NoneNegative refuses negative numbers and durations: no flag has a use for them.
func NoneNegative(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if typ := f.Value.Type(); (typ == "int" || typ == "duration") && strings.HasPrefix(f.Value.String(), "-") {
			err = fmt.Errorf("--%s %s is negative", f.Name, f.Value)
		}
	})
	return err
}

// Either joins words to "a, b or c".
func Either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
