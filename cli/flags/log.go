package flags

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"redlockctl/cli/exit"
	"redlockctl/server/safetext"
)

// Log has the flags of a daemon's log, which goes to standard error.
type Log struct{ format, level string }

// Add adds the flags to a command.
func (l *Log) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.format, "log-format", "text", "form of the log: text or json")
	cmd.Flags().StringVar(&l.level, "log-level", "info", "least level that is logged: debug, info, warn or error")
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
}

// Logger returns the log according to the flags. It makes values such as errors printable.
func (l *Log) Logger(w io.Writer) (*slog.Logger, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[l.level]
	if !ok {
		return nil, exit.Usagef("--log-level %q: it is debug, info, warn or error", l.level)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
		if err, ok := at.Value.Any().(error); ok {
			at.Value = slog.StringValue(safetext.Escape(err.Error()))
		}
		return at
	}}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, exit.Usagef("--log-format %q: it is text or json", l.format)
}
