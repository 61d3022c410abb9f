package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// oneName accepts exactly one argument, which is not empty.
func oneName(what string) cobra.PositionalArgs {
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

// optionalName accepts one argument, which is not empty, or none.
func optionalName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return oneName(what)(cmd, args)
	}
}

// severalNames accepts one argument or more, none empty or twice there.
func severalNames(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, arg := range args {
			if arg != "" && slices.Contains(args[:i], arg) {
				return fmt.Errorf("%s: %q is there twice", cmd.CommandPath(), arg)
			}
			if err := oneName(what)(cmd, args[i:i+1]); err != nil {
				return err
			}
		}
		if len(args) == 0 {
			return oneName(what)(cmd, nil)
		}
		return nil
	}
}

// noArgs accepts no argument.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// groupOf is a command that has only subcommands.
func groupOf(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, RunE: group, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(subs...)
	return cmd
}

// group is the code of a command that has only subcommands.
func group(cmd *cobra.Command, args []string) error {
	var names []string
	for _, sub := range subcommands(cmd) {
		names = append(names, sub.Name())
	}
	what := "a command is missing"
	if len(args) > 0 {
		what = fmt.Sprintf("unknown command %q", args[0])
	}
	return fmt.Errorf("%s: %s; there is %s", cmd.CommandPath(), what, strings.Join(names, ", "))
}

// outputsKey is where a command says what --output may be.
const outputsKey = "outputs"

// outputs says what --output may be for a command that knows more than table and
// json.
func outputs(cmd *cobra.Command, words ...string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[outputsKey] = strings.Join(words, " ")
	return cmd
}

// unixKey is where a command says what it needs that only Unix has.
const unixKey = "unix"

// onUnix is a command that needs what Windows has not.
func onUnix(cmd *cobra.Command, why string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[unixKey] = why
	return cmd
}

// runsOn refuses a command on a system that has not what it needs.
func runsOn(cmd *cobra.Command, goos string) error {
	if why := cmd.Annotations[unixKey]; why != "" && goos == "windows" {
		return fmt.Errorf("%s does not run on Windows: it needs %s; run it on Linux, macOS or FreeBSD, or in WSL", cmd.CommandPath(), why)
	}
	return nil
}

func outputsOf(cmd *cobra.Command) []string {
	if words := cmd.Annotations[outputsKey]; words != "" {
		return strings.Fields(words)
	}
	return []string{"table", "json"}
}

// either is "a, b or c".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// schedules is a number that may be written as 200000, 200_000 or 1e6.
type schedules int64

func (s *schedules) String() string { return strconv.FormatInt(int64(*s), 10) }

func (s *schedules) Type() string { return "number" }

func (s *schedules) Set(v string) error {
	f, err := strconv.ParseFloat(strings.ReplaceAll(v, "_", ""), 64)
	if err != nil || f != math.Trunc(f) || f < 1 || f > 1e12 {
		return errors.New("it is a whole number from 1 to 1e12")
	}
	*s = schedules(f)
	return nil
}
