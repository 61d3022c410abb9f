package exit

import (
	"errors"
	"strings"
	"testing"

	"redlockctl/cli/app"
	"redlockctl/internal/config"
	"redlockctl/redlock"
)

func TestReport(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"nothing without an error", nil, ""},
		{"nothing when it was said", Silently(redlock.ErrNoQuorum), ""},
		{"one line", errors.New("boom"), "redlockctl: boom\n"},
		{"a server's text is not obeyed", errors.New("ERR \x1b[2J\nredlockctl: all is well\u202e"),
			`redlockctl: ERR \x1b[2J\nredlockctl: all is well\u202e` + "\n"},
		{"what is escaped already stays", errors.New(`lock a\x1bb is held`), `redlockctl: lock a\x1bb is held` + "\n"},
		{"a line for each problem of a configuration", app.ConfigError{Err: &config.Error{Problems: []config.Problem{
			{File: "a.toml", Line: 3, Key: "k", Value: "1", Text: "is wrong"}, {File: "a.toml", Text: "is bare, write\n\t[[nodes]]"},
		}}}, "redlockctl: a.toml:3: k = 1: is wrong\nredlockctl: a.toml: is bare, write\n    [[nodes]]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w strings.Builder
			Report(&w, test.err)
			if w.String() != test.want {
				t.Errorf("%q, want %q", w.String(), test.want)
			}
		})
	}
}
