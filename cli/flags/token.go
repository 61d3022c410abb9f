package flags

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/cli/exit"
)

// Token has the flags that name a token. Anyone on the machine can read an argument in
// the list of processes, but not a file or standard input.
type Token struct{ token, file string }

// Add adds the flags to a command.
func (t *Token) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.token, "token", "", "the token of the grant; - reads it from standard input")
	cmd.Flags().StringVar(&t.file, "token-file", "", "file that holds the token")
	cmd.MarkFlagsMutuallyExclusive("token", "token-file")
}

// longestToken bounds a token that is read.
const longestToken = 64 << 10

// FromInput reports whether the token is read from standard input.
func (t *Token) FromInput() bool { return t.token == "-" }

// Read returns the token; empty if none is named.
func (t *Token) Read(in io.Reader) (string, error) {
	switch {
	case t.file != "":
		file, err := os.Open(t.file)
		if err != nil {
			return "", exit.Usagef("--token-file: %w", err)
		}
		defer file.Close()
		return firstLine(file, "--token-file "+t.file)
	case t.FromInput():
		return firstLine(in, "--token -")
	}
	return t.token, nil
}

// Need returns the token; it is an error if none is named.
func (t *Token) Need(in io.Reader) (string, error) {
	token, err := t.Read(in)
	if err == nil && token == "" {
		err = exit.Usagef("the token is missing: --token T, --token - or --token-file FILE")
	}
	return token, err
}

func firstLine(r io.Reader, what string) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, longestToken)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", exit.Usagef("%s: %w", what, err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", exit.Usagef("%s: there is no token", what)
	}
	return line, nil
}
