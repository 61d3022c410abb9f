// Package fences has the ways in which a node is fenced.
package fences

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is how a node is fenced.
type Kind uint8

const (
	// MinReplicas sets min-replicas-to-write; the guard's user needs CONFIG.
	MinReplicas Kind = iota
	// ACL takes the write commands from the user with which the lock clients log in. It
	// needs ACL and Redis 7.0. It does not stop other users.
	ACL
	// None fences nothing: the guard watches and reports what should be done.
	None
)

// Method is how one node is fenced. The zero Method is MinReplicas.
type Method struct {
	Kind Kind
	// User is the ACL user of the lock clients, with ACL.
	User string
	// Allow are the rules that give the user its commands back, in the order of ACL SETUSER, with
	// ACL. Empty means [DefaultAllow].
	Allow []string
}

var methodWords = [...]string{MinReplicas: "min-replicas", ACL: "acl", None: "none"}

// String returns the word of the configuration.
func (k Kind) String() string { return methodWords[k] }

// Words returns the words of all methods.
func Words() []string { return slices.Clone(methodWords[:]) }

// KindOf returns the method of a word, and false if there is none.
func KindOf(word string) (Kind, bool) {
	i := slices.Index(methodWords[:], word)
	return Kind(max(i, 0)), i >= 0
}

// FencingWords returns the words of the methods that fence.
func FencingWords() []string {
	return slices.DeleteFunc(Words(), func(word string) bool { return word == None.String() })
}

// Instead returns the fencing method of a word, with the user of m, or "locks" if m has none.
func (m Method) Instead(word string) (Method, error) {
	kind, ok := KindOf(word)
	switch {
	case !ok || kind == None:
		return m, fmt.Errorf("%q: it is %s", word, strings.Join(FencingWords(), " or "))
	case kind == m.Kind:
		return m, nil
	case kind == ACL:
		return Method{Kind: kind, User: "locks"}, nil
	}
	return Method{Kind: kind}, nil
}

// Check returns why the method cannot be used.
func (m Method) Check() error {
	switch {
	case int(m.Kind) >= len(methodWords):
		return fmt.Errorf("method %d is not known", m.Kind)
	case m.Kind != ACL:
		return nil
	case m.User == "":
		return errors.New("the method acl needs the user of the lock clients")
	}
	for _, r := range m.Allow {
		if !CommandRule(r) {
			return fmt.Errorf("%q is no rule that gives or takes a command, such as +@write or -flushall", r)
		}
	}
	return nil
}

// ID distinguishes two methods of a node.
func (m Method) ID() string { return strings.TrimSpace(m.Kind.String() + " " + m.User) }

// DefaultAllow returns rules that give back all write commands except those that wipe a whole
// server, which no lock client needs.
func DefaultAllow() []string { return []string{"+@write", "-flushall", "-flushdb", "-swapdb"} }

// CommandRule reports whether a rule of ACL SETUSER gives or takes a command or a category of
// commands, and nothing else: no password, no key.
func CommandRule(rule string) bool {
	if len(rule) < 2 || rule[0] != '+' && rule[0] != '-' {
		return false
	}
	name := strings.TrimPrefix(rule[1:], "@")
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '|' && r != '.' {
			return false
		}
	}
	return name != ""
}
