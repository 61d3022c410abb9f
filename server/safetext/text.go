// Package safetext holds text that came from a Redis server: keys, tokens,
// client names, error messages. Whoever can write a key can write escape
// codes into it, so such text is untrusted until it is rendered, and this
// package is the only renderer.
//
// A [Text] is made at the boundary where data enters and kept as it came;
// [Text.String] makes every character visible that could move the cursor,
// hide, reorder or imitate. Raw bytes leave only through [Text.Raw], for
// sending them back to a server, and inside the escapes of JSON.
package safetext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a string from outside. The zero value is the empty text.
type Text struct{ raw string }

// New marks raw as untrusted.
func New(raw string) Text { return Text{raw} }

// Raw is the text as it came, for sending to a server or comparing; never for
// a terminal or a log.
func (t Text) Raw() string { return t.raw }

// Empty reports whether the text has no bytes.
func (t Text) Empty() bool { return t.raw == "" }

// String renders the text so that a terminal shows each character and obeys
// none: C0, C1, DEL, bidi controls, zero-width and other non-printing
// characters become \x1b or \u202e, bytes that are no UTF-8 become \xff, and a
// backslash is doubled, so that two different texts never look the same
// through an escape. Ordinary letters of any script stay as they are.
func (t Text) String() string { return Escape(t.raw) }

// Printable is one line of text that a terminal shows and does not obey. What is
// harmless already stays as it is, so that a name which was escaped by whoever made
// the message is not escaped twice.
func Printable(s string) string {
	if New(strings.ReplaceAll(s, `\`, "")).Clean() {
		return s
	}
	return Escape(s)
}

// Escape is the renderer behind [Text.String], for text that has no need of
// the type, such as an error that a server sent.
func Escape(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x`)
			b.WriteByte(hex[s[0]>>4])
			b.WriteByte(hex[s[0]&15])
		case r == '\\':
			b.WriteString(`\\`)
		case visible(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// Word renders the text as one word of a shell, which stands for exactly this text:
// as it is where a shell reads it so, else in quotes, and with $'…' of bash, ksh and
// zsh where it has characters that a terminal would obey.
func (t Text) Word() string {
	ordinary := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@%", r)
	}
	switch s := t.raw; {
	case s != "" && strings.IndexFunc(s, func(r rune) bool { return !ordinary(r) }) < 0:
		return s
	case plain(strings.ReplaceAll(s, `\`, "")):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for s := t.raw; len(s) > 0; {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\\' || r == '\'':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r != utf8.RuneError && visible(r):
			b.WriteRune(r)
		default:
			for _, c := range []byte(s[:size]) {
				// Three octal digits end by themselves, hexadecimal ones do not.
				b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
			}
		}
		s = s[size:]
	}
	b.WriteByte('\'')
	return b.String()
}

// Clean reports whether rendering leaves the text as it is.
func (t Text) Clean() bool { return plain(t.raw) }

const hex = "0123456789abcdef"

// visible reports whether a terminal draws r as itself, in its place. Combining
// marks are drawn over their neighbour, so they are not: a thousand of them
// fit into one cell. The private use area is drawn as anything, and some
// characters that count as letters or symbols are blank: the Hangul fillers,
// the empty Braille pattern, the null notehead.
func visible(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r != 0x7f
	}
	return r != utf8.RuneError && r != '\u2800' && r != '\U0001d159' && unicode.IsPrint(r) &&
		!unicode.In(r, unicode.M, unicode.Co, unicode.Other_Default_Ignorable_Code_Point)
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '\\' || c >= 0x7f {
			return plainRunes(s)
		}
	}
	return true
}

func plainRunes(s string) bool {
	for _, r := range s {
		if r == '\\' || !visible(r) {
			return false
		}
	}
	return true
}

// Texts marks each of them as untrusted.
func Texts(raw []string) (texts []Text) {
	for _, s := range raw {
		texts = append(texts, New(s))
	}
	return texts
}
