// Package serverinfo parses the text replies to INFO and CLIENT LIST. The text is
// untrusted; values are returned as the server sent them.
package serverinfo

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Fields returns the names and values of a reply to INFO, in its order.
func Fields(info string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for line := range strings.Lines(info) {
			line = strings.TrimSpace(line)
			name, value, ok := strings.Cut(line, ":")
			if ok && !strings.HasPrefix(line, "#") && !yield(name, value) {
				return
			}
		}
	}
}

// Field returns one value of a reply to INFO; empty if it is missing.
func Field(info, name string) string {
	for n, value := range Fields(info) {
		if n == name {
			return value
		}
	}
	return ""
}

// Number returns a whole number of a reply to INFO, and whether it is there.
func Number(info, name string) (int64, bool) {
	n, err := strconv.ParseInt(Field(info, name), 10, 64)
	return n, err == nil
}

// Calls returns how often the current incarnation has executed a command, from INFO
// commandstats.
func Calls(info, command string) (int64, error) {
	stats := Field(info, "cmdstat_"+command)
	if stats == "" {
		return 0, nil
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("INFO commandstats: %s has no count of calls", command)
	}
	return n, nil
}

// Clients returns the connections in a reply to CLIENT LIST, each as names and values.
func Clients(list string) iter.Seq[iter.Seq2[string, string]] {
	return func(yield func(iter.Seq2[string, string]) bool) {
		for line := range strings.Lines(list) {
			if !yield(clientFields(line)) {
				return
			}
		}
	}
}

func clientFields(line string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for field := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(field, "=")
			if !yield(name, value) {
				return
			}
		}
	}
}

// IsWord reports whether s is a short word of ASCII letters and digits, which can be printed
// and compared unescaped.
func IsWord(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
