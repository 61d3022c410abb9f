// Package safetexttest has text for tests of code that shows text from a server.
package safetexttest

import "strings"

// Hostile are names that anyone who can write to a master can make.
var Hostile = []string{
	"\x1b[2J\x1b]0;owned\x07clear",
	"rtl-\u202e\u2066drow\u2069",
	"zero\u200bwidth\u200djoiner\ufeff",
	"日本語のロック名前はとても長い場合があります",
	"한글 \u1100\u1161\u11a8 parts",
	"flag 🇩🇪 👩‍👩‍👧 👍🏽",
	"bad\xff\xfe\xc3utf8",
	"new\nline\r\ttab\x00nul\x7fdel\u0085nel",
	"c1 \u009b31m \xc2\x9b",
	"combining e\u0301\u0301\u0301\u0301",
	strings.Repeat("long-", 205),
	strings.Repeat("宽", 400),
	" leading and trailing ",
	"\\x1b[2J as text",
	"",
}
