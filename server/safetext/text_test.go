package safetext

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEscape(t *testing.T) {
	for raw, want := range map[string]string{
		"":                      "",
		"lock:job-1":            "lock:job-1",
		"größe 鍵 ключ مفتاح 🔒":  "größe 鍵 ключ مفتاح 🔒",
		"\x1b[2J":               `\x1b[2J`,
		"a\nb\tc\rd\x00":        `a\nb\tc\rd\x00`,
		"\x7f":                  `\x7f`,
		"\u009b31m":             `\u009b31m`,
		"abc\u202ecba":          `abc\u202ecba`,
		"a\u200bb\u200db\ufeff": `a\u200bb\u200db\ufeff`,
		"\xff\xfe":              `\xff\xfe`,
		"\xc3(":                 `\xc3(`,
		"\ufffd":                `\ufffd`,
		`\x1b`:                  `\\x1b`,
		"e\u0301":               `e\u0301`,
		"\ue000\U000e0001":      `\ue000\U000e0001`,
		"a\u00a0b\u2028":        `a\u00a0b\u2028`,
	} {
		if got := Escape(raw); got != want {
			t.Errorf("Escape(%q) = %s; want %s", raw, got, want)
		}
		if got := New(raw).String(); got != want {
			t.Errorf("String of %q = %s; want %s", raw, got, want)
		}
		if got := New(raw).Clean(); got != (raw == want) {
			t.Errorf("Clean of %q = %v", raw, got)
		}
		if New(raw).Raw() != raw || New(raw).Empty() != (raw == "") {
			t.Errorf("Raw or Empty of %q is wrong", raw)
		}
	}
}

// danger returns the first part of s with which a terminal may do more than draw a
// character in its own place. It shares no code with the renderer.
func danger(s string) string {
	for _, r := range s {
		switch {
		case r == utf8.RuneError:
			return "invalid UTF-8 or U+FFFD"
		case r < 0x20, r >= 0x7f && r <= 0x9f:
			return "a control character"
		case r == 0x200e, r == 0x200f, r == 0x61c, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return "a bidi control"
		case r >= 0x200b && r <= 0x200d, r == 0x2060, r == 0xfeff, r == 0xad, r == 0x034f, r == 0x180e, r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff:
			return "a zero-width character"
		case r == 0x3164, r == 0xffa0, r == 0x115f, r == 0x1160, r == 0x2800, r == 0x1d159:
			return "a letter that is blank"
		case r == 0x2028, r == 0x2029, r != ' ' && unicode.Is(unicode.Z, r):
			return "a space or line end other than the space"
		case unicode.Is(unicode.M, r):
			return "a combining mark"
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Noncharacter_Code_Point):
			return "a character without a shape of its own"
		}
	}
	return ""
}

// check tests everything that must hold for a text.
func check(t interface {
	Helper()
	Errorf(string, ...any)
}, raw string) {
	t.Helper()
	shown := Escape(raw)
	if d := danger(shown); d != "" {
		t.Errorf("Escape(%q) = %q holds %s", raw, shown, d)
	}
	if back, ok := unescape(shown); !ok || back != raw {
		t.Errorf("Escape(%q) = %q can be read as %q, %v: another text may look the same", raw, shown, back, ok)
	}
	doc, err := Marshal(map[string]Text{"text": New(raw)})
	if err != nil {
		t.Errorf("Marshal(%q): %v", raw, err)
		return
	}
	if d := danger(string(doc)); d != "" {
		t.Errorf("Marshal(%q) = %q holds %s", raw, doc, d)
	}
	var back struct {
		Text string  `json:"text"`
		Raw  *[]byte `json:"text_base64"`
	}
	if err := json.Unmarshal(doc, &back); err != nil {
		t.Errorf("Marshal(%q) = %q: %v", raw, doc, err)
	}
	if back.Raw != nil {
		back.Text = string(*back.Raw)
	}
	if back.Text != raw {
		t.Errorf("Marshal(%q) comes back as %q", raw, back.Text)
	}
}

// unescape reads a rendered text back. There is only one way to read it, which is why two
// texts never look the same.
func unescape(s string) (string, bool) {
	var b bytes.Buffer
	for len(s) > 0 {
		if s[0] != '\\' {
			_, n := utf8.DecodeRuneInString(s)
			b.WriteString(s[:n])
			s = s[n:]
			continue
		}
		if len(s) < 2 {
			return "", false
		}
		short := map[byte]string{'\\': "\\", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}
		if c, ok := short[s[1]]; ok {
			b.WriteString(c)
			s = s[2:]
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
		if digits == 0 || len(s) < 2+digits {
			return "", false
		}
		v := 0
		for _, c := range s[2 : 2+digits] {
			v = v<<4 | strings.IndexRune(hex, c)
		}
		if digits == 2 {
			b.WriteByte(byte(v))
		} else {
			b.WriteRune(rune(v))
		}
		s = s[2+digits:]
	}
	return b.String(), true
}

func TestEachCharacterIsSafe(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r > 0x20000 && r>>12 != 0xe0 && r%997 != 0 {
			continue // ideographs, unassigned, private use: some of them are accepted
		}
		if utf8.ValidRune(r) {
			check(t, "a"+string(r)+"b")
		}
		if t.Failed() {
			t.Fatalf("at %U", r)
		}
	}
	for b := range 256 {
		check(t, string([]byte{byte(b)}))
	}
}

func TestAnyTextIsSafeAndUnmistakable(t *testing.T) {
	nasty := rapid.SampledFrom([]string{"\\", "x", "u", "n", "1b", "\x1b", "\x9b", "\u009b", "\u202e", "\u200b", "\xff", "\xc3", "\u0301", "é", "🔒", "\U000e0041", "\ufffd", "\x00", "a"})
	gen := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SliceOf(nasty), func(p []string) string { return strings.Join(p, "") }))
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		check(t, a)
		if a != b && Escape(a) == Escape(b) {
			t.Errorf("%q and %q look the same: %s", a, b, Escape(a))
		}
	})
}

func TestEscapeJSONKeepsTheDocument(t *testing.T) {
	doc := []byte("{\n  \"k\u202e\": [\"\u009b\", \"é\", \"\U000e0041\", 1, null]\n}\n")
	got := EscapeJSON(doc)
	if want := "{\n  \"k\\u202e\": [\"\\u009b\", \"é\", \"\\udb40\\udc41\", 1, null]\n}\n"; string(got) != want {
		t.Errorf("got %q; want %q", got, want)
	}
	var a, b any
	if json.Unmarshal(doc, &a) != nil || json.Unmarshal(got, &b) != nil || len(a.(map[string]any)) != 1 || b.(map[string]any)["k\u202e"] == nil {
		t.Errorf("the document changed: %v, %v", a, b)
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a", `\x1b`, "\x1b[2J", "\xff", "\u202e", "e\u0301", "\U000e0001", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) { check(t, raw) })
}

func BenchmarkEscapePlain(b *testing.B) {
	for b.Loop() {
		_ = Escape("lock:orders:12345")
	}
}

// A terminal shows what Word renders and executes nothing; a shell reads exactly the text
// from it.
func TestWordIsReadBackByAShell(t *testing.T) {
	for _, raw := range []string{
		"job:1", "", "a b", "it's", `back\slash`, "$(touch /tmp/x)", "`id`", "a;b|c&d", "-rf", "~root", "*?[x]", "#no",
		"new\nline", "\x1b[2Jclear", "\xff\xfe", "tab\there", "naïve 東京", "\u202ereversed", "mixed'\x07\\n", "!history",
	} {
		word := New(raw).Word()
		if !plain(strings.ReplaceAll(word, `\`, "")) {
			t.Errorf("%q: a terminal obeys %q", raw, word)
		}
		out, err := exec.Command("bash", "-c", "printf %s "+word).Output()
		if err != nil || string(out) != raw {
			t.Errorf("%q becomes %s, which bash reads as %q (%v)", raw, word, out, err)
		}
	}
}
