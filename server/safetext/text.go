// Package safetext holds text that came from a Redis server: keys, tokens, client names,
// error messages. Anyone who can write a key can write escape codes into it. So such text
// is untrusted until it is rendered, and this package is the only renderer.
//
// A [Text] is made where data enters the program, and keeps the original bytes.
// [Text.String] makes every character visible that could move the cursor, hide, reorder or
// imitate text. Raw bytes leave only through [Text.Raw], to be sent back to a server, and
// as JSON escapes.
package safetext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a string from a server. The zero value is the empty text.
type Text struct{ raw string }

// New marks raw as untrusted.
func New(raw string) Text { return Text{raw} }

// Raw returns the original bytes, to send to a server or to compare. Never print them to a
// terminal or a log.
func (t Text) Raw() string { return t.raw }

// Empty reports whether the text has no bytes.
func (t Text) Empty() bool { return t.raw == "" }

// String renders the text so that a terminal shows each character and executes none. C0,
// C1, DEL, bidi controls, zero-width and other non-printing characters become \x1b or
// \u202e, and bytes that are not UTF-8 become \xff. A backslash is doubled, so that two
// different texts never look the same. Ordinary letters of any script stay as they are.
func (t Text) String() string { return Escape(t.raw) }

// Error returns the text of an error, which may hold a server's text, safe to print; "" if
// err is nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Escape(err.Error())
}

// Printable renders s as one safe line. Text that is already harmless stays unchanged, so
// that a name that was escaped once is not escaped again.
func Printable(s string) string {
	if New(strings.ReplaceAll(s, `\`, "")).Clean() {
		return s
	}
	return Escape(s)
}

// Escape is the renderer behind [Text.String], for text that is not a [Text], such as an
// error from a server.
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

// Word renders the text as one word of a shell: quoted only if needed, and with $'…' of
// bash, ksh and zsh if it has characters that a terminal would execute.
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
				// Three octal digits have a fixed length; hexadecimal escapes do not.
				b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
			}
		}
		s = s[size:]
	}
	b.WriteByte('\'')
	return b.String()
}

// Clean reports whether rendering leaves the text unchanged.
func (t Text) Clean() bool { return plain(t.raw) }

const hex = "0123456789abcdef"

// visible reports whether a terminal draws r as itself, in a place of its own. Combining
// marks are not visible: they are drawn over their neighbour, and a thousand of them fit
// into one cell. Characters of the private use area can look like anything. Some letters
// and symbols are blank: the Hangul fillers, the empty Braille pattern, the null notehead.
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

// Short returns the beginning of a token, for sentences: enough to compare it with one that
// is shown whole, and of no use to release a lock with.
func Short(token string) string {
	runes := []rune(token)
	return string(runes[:min(6, len(runes)/4)]) + "..."
}
