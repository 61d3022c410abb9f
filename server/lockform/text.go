package lockform

import (
	"strings"
	"time"
)

// class is a set of ASCII characters, one bit each.
type class [2]uint64

func newClass(chars string) class {
	var c class
	for i := range len(chars) {
		c[chars[i]>>6] |= 1 << (chars[i] & 63)
	}
	return c
}

func (c *class) has(b byte) bool { return b < 128 && c[b>>6]&(1<<(b&63)) != 0 }

const (
	decimal = "0123456789"
	lower   = "abcdefghijklmnopqrstuvwxyz"
	upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

var (
	digits    = newClass(decimal)
	lowerHex  = newClass(decimal + "abcdef")
	upperHex  = newClass(decimal + "ABCDEF")
	letters   = newClass(decimal + lower + upper)
	base64Std = newClass(decimal + lower + upper + "+/")
	base64URL = newClass(decimal + lower + upper + "-_")

	// The last character of base64 text carries fewer than 6 bits of data; its other bits
	// are zero.
	base64Std2 = newClass("AQgw") // 2 bits
	base64URL2 = base64Std2
	base64URL4 = newClass("AEIMQUYcgkosw048") // 4 bits
)

// all reports whether every byte is in the class.
func all(s string, c class) bool {
	for i := range len(s) {
		if !c.has(s[i]) {
			return false
		}
	}
	return true
}

// last reports whether the last byte is in the class.
func last(s string, c class) bool { return s != "" && c.has(s[len(s)-1]) }

// mixed reports whether there are both upper and lower case letters. A word or a number is
// not mixed; of 20 random letters and digits, one text in 20,000 is not either.
func mixed(s string) bool { return strings.ContainsAny(s, upper) && strings.ContainsAny(s, lower) }

// text reports whether all bytes are printable ASCII.
func text(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// isUUID reports whether s is a lower-case UUID of this version.
func isUUID(s string, version byte) bool {
	if len(s) != 36 || s[14] != version || strings.IndexByte("89ab", s[19]) < 0 {
		return false
	}
	for i := range len(s) {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen != (s[i] == '-') || !hyphen && !lowerHex.has(s[i]) {
			return false
		}
	}
	return true
}

// parseHex returns the value of at most 15 digits of lowerHex.
func parseHex(s string) int64 {
	var n int64
	for i := range len(s) {
		d := int64(s[i] - '0')
		if s[i] >= 'a' {
			d = int64(s[i]-'a') + 10
		}
		n = n<<4 | d
	}
	return n
}

// parseInt returns the value of at most 18 digits.
func parseInt(s string) int64 {
	var n int64
	for i := range len(s) {
		n = 10*n + int64(s[i]-'0')
	}
	return n
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// The earliest plausible times in a value. They keep random text from being taken for a
// time.
var (
	since2010 = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	since2020 = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
)

const (
	day  = 24 * time.Hour // by which clocks may differ
	year = 366 * day      // the longest lock with a time in its value
)
