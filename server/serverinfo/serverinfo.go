// Package serverinfo reads what a server tells of itself as lines of text: the answers to INFO and
// CLIENT LIST. The text is untrusted; what is read out of it is as the server sent it.
package serverinfo

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Fields are the names and values of an answer to INFO, in its order.
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

// Field is one value of an answer to INFO; empty where the server does not tell it.
func Field(info, name string) string {
	for n, value := range Fields(info) {
		if n == name {
			return value
		}
	}
	return ""
}

// Number is a whole number of an answer to INFO. It reports whether the server tells one.
func Number(info, name string) (int64, bool) {
	n, err := strconv.ParseInt(Field(info, name), 10, 64)
	return n, err == nil
}

// Calls is how often the present incarnation has carried out a command, by INFO commandstats.
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

// Clients are the connections in an answer to CLIENT LIST, each as the names and values of
// its fields.
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
