package restartguard

import (
	"fmt"
	"slices"
	"strings"
)

// MethodKind says how a node is fenced.
type MethodKind uint8

const (
	// MethodMinReplicas sets min-replicas-to-write; the guard's user needs CONFIG.
	MethodMinReplicas MethodKind = iota
	// MethodACL takes the commands that write from the user as whom the lock clients log
	// in. It needs ACL, and Redis 7.0. Users that are not named are not stopped.
	MethodACL
	// MethodNone fences nothing: the guard watches, and says what should be done.
	MethodNone
)

// Method is how one node is fenced and let rejoin. The zero Method is MethodMinReplicas.
type Method struct {
	Kind MethodKind
	// User is the ACL user of the lock clients; of MethodACL.
	User string
	// Allow are the rules that give the user its commands back, in the order of
	// ACL SETUSER; of MethodACL. Empty stands for [DefaultAllow].
	Allow []string
}

// methods are the words of the configuration, and who knows each method.
var methods = [...]struct {
	word  string
	codec func(Method) codec
}{
	MethodMinReplicas: {"min-replicas", func(Method) codec { return paramFence{} }},
	MethodACL:         {"acl", func(m Method) codec { return userFence{m.User, m.Allow} }},
	MethodNone:        {"none", func(Method) codec { return noFence{} }},
}

// String is the word of the configuration.
func (k MethodKind) String() string { return methods[k].word }

// MethodWords are the words of all methods.
func MethodWords() []string {
	words := make([]string, len(methods))
	for i, m := range methods {
		words[i] = m.word
	}
	return words
}

// MethodOf is the method of a word, and false if there is none.
func MethodOf(word string) (MethodKind, bool) {
	for i, m := range methods {
		if m.word == word {
			return MethodKind(i), true
		}
	}
	return 0, false
}

// FencingWords are the words of the methods that fence.
func FencingWords() []string {
	return slices.DeleteFunc(MethodWords(), func(word string) bool { return word == MethodNone.String() })
}

// Instead is the method of a word that fences, with the user of this one, or of "locks" where it
// has none.
func (m Method) Instead(word string) (Method, error) {
	kind, ok := MethodOf(word)
	switch {
	case !ok || kind == MethodNone:
		return m, fmt.Errorf("%q: it is %s", word, strings.Join(FencingWords(), " or "))
	case kind == m.Kind:
		return m, nil
	case kind == MethodACL:
		return Method{Kind: kind, User: "locks"}, nil
	}
	return Method{Kind: kind}, nil
}

func (m Method) codec() codec { return methods[m.Kind].codec(m) }

func (m Method) check() error {
	if int(m.Kind) >= len(methods) {
		return fmt.Errorf("method %d is not known", m.Kind)
	}
	return m.codec().check()
}

// id tells two methods of a node apart.
func (m Method) id() string { return strings.TrimSpace(m.Kind.String() + " " + m.User) }

// AssessBoot says whether a server that is started with these texts starts
// fenced, and whether that outlives whatever CONFIG REWRITE and ACL SAVE write
// into its files.
func AssessBoot(t BootText, method Method) BootVerdict {
	var v BootVerdict
	method.codec().assessBoot(&v, t)
	return v
}

// noFence sees a fence by min-replicas-to-write that somebody else put up.
type noFence struct{ paramFence }

func (noFence) assessBoot(v *BootVerdict, _ BootText) {
	v.Boot, v.Form = BootUnfenced, FormNone
	v.because(`its fence is "none": nothing starts it fenced`)
}
