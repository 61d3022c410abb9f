package audit

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzHead: the end of a chain reads back as it was written.
func FuzzHead(f *testing.F) {
	f.Add(head{7, noHash}.encode())
	f.Add(head{0, noHash}.encode()[:20])
	f.Add([]byte(headWord + " +0000000000000000001 " + noHash + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHead(bytes.NewReader(b))
		switch {
		case err == nil && !bytes.Equal(h.encode(), b):
			t.Fatalf("%q is read as %q", b, h.encode())
		case err != nil && !errors.Is(err, errNoHead) && !errors.Is(err, errBadHead):
			t.Fatal(err)
		}
	})
}

// FuzzChain: a chain with any byte changed is not intact, and its lines can be shown.
func FuzzChain(f *testing.F) {
	var log bytes.Buffer
	var end head
	prev := noHash
	for seq := range uint64(4) {
		line, sum, err := link{Record: Record{ID: "a", Act: "revoke", Target: "k"}, Seq: seq + 1, Prev: prev}.encode()
		if err != nil {
			f.Fatal(err)
		}
		log.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			log.WriteByte('\n')
		}
		prev, end = sum, head{seq + 1, sum}
	}
	whole := log.Bytes()
	verify := func(text []byte, h head) Report {
		v := verifier{prev: noHash, want: h.seq}
		if err := v.read("log", bytes.NewReader(text), int64(len(text))); err != nil {
			f.Fatal(err)
		}
		v.end("log", glimpse{head: h, size: int64(len(text))})
		return v.Report
	}
	if r := verify(whole, end); !r.Intact() || r.Links != 4 {
		f.Fatalf("a chain as it was written: %+v", r)
	}
	f.Add(0, []byte("x"), uint8(1))
	f.Add(len(whole), []byte("{}\n"), uint8(0))
	f.Add(0, []byte{}, uint8(255))
	f.Fuzz(func(t *testing.T, at int, in []byte, out uint8) {
		at = int(uint(at) % uint(len(whole)+1))
		text := append(append(bytes.Clone(whole[:at]), in...), whole[min(len(whole), at+int(out)):]...)
		r := verify(text, end)
		for _, remark := range append(r.Broken, r.Remarks...) {
			if strings.ContainsFunc(remark.String(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("raw: %q", remark)
			}
		}
		// Lines that are not records may be in between: a crash leaves such lines.
		if r.Intact() && len(r.Remarks) == 0 && !bytes.Equal(bytes.TrimSuffix(text, []byte("\n")), bytes.TrimSuffix(whole, []byte("\n"))) {
			t.Fatalf("%q is intact", text)
		}
	})
}
