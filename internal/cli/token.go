package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// tokenFlags are the ways to name a token. An argument can be read in the list
// of processes by anyone on the machine; a file and standard input cannot.
type tokenFlags struct{ token, file string }

func (f *tokenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.token, "token", "", "the token of the grant; - reads it from standard input")
	cmd.Flags().StringVar(&f.file, "token-file", "", "file that holds the token")
	cmd.MarkFlagsMutuallyExclusive("token", "token-file")
}

// longestToken bounds what is read: the values of locks are short.
const longestToken = 64 << 10

// read is the token; empty if none is named.
func (f *tokenFlags) read(in io.Reader) (string, error) {
	switch {
	case f.file != "":
		file, err := os.Open(f.file)
		if err != nil {
			return "", usageError{fmt.Errorf("--token-file: %w", err)}
		}
		defer file.Close()
		return firstLine(file, "--token-file "+f.file)
	case f.token == "-":
		return firstLine(in, "--token -")
	}
	return f.token, nil
}

// need is the token, which must be named.
func (f *tokenFlags) need(in io.Reader) (string, error) {
	token, err := f.read(in)
	if err == nil && token == "" {
		err = usageError{errors.New("the token is missing: --token T, --token - or --token-file FILE")}
	}
	return token, err
}

func firstLine(r io.Reader, what string) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, longestToken)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", usageError{fmt.Errorf("%s: %w", what, err)}
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", usageError{fmt.Errorf("%s: there is no token", what)}
	}
	return line, nil
}
