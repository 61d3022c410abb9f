package resp

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const testReply = 128 << 10

func newFrames(reply, exchange int) *frames {
	f := &frames{}
	f.allow(NewBudget(reply, exchange))
	return f
}

const wellFormed = "+OK\r\n-ERR no\r\n:12\r\n$5\r\na\r\nb\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n$0\r\n\r\n*2\r\n:1\r\n:2\r\n" +
	"%1\r\n+a\r\n*1\r\n_\r\n>2\r\n+invalidate\r\n_\r\n#t\r\n,1.5\r\n(12\r\n=5\r\ntxt:x\r\n~1\r\n:1\r\n"

func TestRepliesPassHoweverTheyAreCut(t *testing.T) {
	for size := 1; size <= len(wellFormed); size++ {
		f := newFrames(testReply, 0)
		for rest := wellFormed; rest != ""; {
			n := min(size, len(rest))
			if err := f.pass([]byte(rest[:n])); err != nil {
				t.Fatalf("cut at every %d bytes: %v", size, err)
			}
			rest = rest[n:]
		}
		if f.skip != 0 || len(f.line) != 0 || len(f.open) != 0 {
			t.Errorf("cut at every %d bytes, something is left: %+v", size, f)
		}
	}
}

func TestWhatIsNoReplyIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"another protocol":   "HTTP/1.1 400 Bad Request\r\n\r\n",
		"a text too long":    fmt.Sprintf("$%d\r\n", testReply+1),
		"a list too long":    "*2147483647\r\n",
		"a map too long":     fmt.Sprintf("%%%d\r\n", testReply/ItemCost+1),
		"a negative length":  "$-2\r\n",
		"no length":          "*many\r\n",
		"nested too deep":    strings.Repeat("*1\r\n", mostNested+1),
		"a line without end": "+" + strings.Repeat("x", mostLine+1),
		"an attribute":       "|1\r\n+a\r\n:1\r\n:2\r\n",
		"an empty line":      "\r\n",
		"a bare line feed":   "+OK\n",
		"behind a list":      "*2\r\n:1\r\n:2\r\nx\r\n",
	} {
		f := newFrames(testReply, 0)
		if err := f.pass([]byte(text)); !errors.Is(err, ErrBad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// As deep as that is allowed, and closes again.
	f := newFrames(testReply, 0)
	if err := f.pass([]byte(strings.Repeat("*1\r\n", mostNested) + ":1\r\n" + strings.Repeat("*1\r\n", mostNested) + ":1\r\n")); err != nil {
		t.Error(err)
	}
}

// FuzzFrames: whatever comes, in whatever pieces, is judged alike, and keeps to
// the bounds.
func FuzzFrames(f *testing.F) {
	f.Add(wellFormed, 3)
	f.Add("*3\r\n$1\r\na\r\n", 1)
	f.Add("$99999999999999999999\r\n", 5)
	f.Fuzz(func(t *testing.T, text string, size int) {
		whole, pieces := newFrames(testReply, 0), newFrames(testReply, 0)
		want := whole.pass([]byte(text))
		var got error
		for rest := text; rest != "" && got == nil; {
			n := min(max(size, 1), len(rest))
			got = pieces.pass([]byte(rest[:n]))
			rest = rest[n:]
		}
		if (got == nil) != (want == nil) {
			t.Fatalf("whole: %v, in pieces: %v", want, got)
		}
		if len(pieces.line) > mostLine || len(pieces.open) > mostNested || pieces.skip > testReply+2 {
			t.Fatalf("%d %d %d", len(pieces.line), len(pieces.open), pieces.skip)
		}
	})
}
