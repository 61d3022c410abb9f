package config

import (
	"errors"
	"fmt"
	"strings"

	"redlockctl/server/safetext"
)

// ErrInvalid is returned, wrapped in an [*Error], when a configuration must not
// be used.
var ErrInvalid = errors.New("invalid configuration")

// ErrNotFound is returned when there is no configuration where it was looked
// for.
var ErrNotFound = errors.New("no configuration found")

// Problem is one thing that is wrong in a configuration.
type Problem struct {
	File string `json:"file,omitempty"`
	// Line is where, from 1; 0 where no line is to blame: something is missing
	// from the whole file, or the environment is at fault.
	Line int `json:"line,omitempty"`
	// Key is the setting with its section, such as "[redlock] node_timeout".
	Key string `json:"key,omitempty"`
	// Value is what the file says, as TOML; empty where nothing is said, and
	// where it may be a secret.
	Value string `json:"value,omitempty"`
	// Text is what is wrong with it and what would be right.
	Text string `json:"text"`
}

// String is "file:line: key = value: text" with the parts that there are. It
// holds no control characters.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(safetext.Escape(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key)
		if p.Value != "" {
			b.WriteString(" = " + p.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Error is all that is wrong in a configuration, in the order of the file.
type Error struct {
	Problems []Problem
}

// Error is one line for each problem.
func (e *Error) Error() string {
	said := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		said[i] = p.String()
	}
	return strings.Join(said, "\n")
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *Error) Unwrap() error { return ErrInvalid }
