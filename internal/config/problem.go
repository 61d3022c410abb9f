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

// ErrNotFound is returned when no configuration exists in the searched places.
var ErrNotFound = errors.New("no configuration found")

// Problem is one error in a configuration.
type Problem struct {
	File string `json:"file,omitempty"`
	// Line is the line, from 1; 0 if no line is wrong: something is missing from the
	// whole file, or the environment is wrong.
	Line int `json:"line,omitempty"`
	// Key is the setting with its section, such as "[redlock] node_timeout".
	Key string `json:"key,omitempty"`
	// Value is what the file says, as TOML; empty if it says nothing, or if it may be a
	// secret.
	Value string `json:"value,omitempty"`
	// Text says what is wrong and what would be right.
	Text string `json:"text"`
}

// String returns "file:line: key = value: text" without the missing parts. It has no
// control characters.
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

// Error has all problems of a configuration, in the order of the file.
type Error struct {
	Problems []Problem
}

// Error returns one line for each problem.
func (e *Error) Error() string {
	said := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		said[i] = p.String()
	}
	return strings.Join(said, "\n")
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *Error) Unwrap() error { return ErrInvalid }
