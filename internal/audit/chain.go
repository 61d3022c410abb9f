package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"redlockctl/server/safetext"
)

// link is a line of the log: a record and its place in the chain. The hash is the last
// field of the line. It covers the bytes before it, so it does not depend on how a
// program encodes the fields.
type link struct {
	Record
	// Chain says why the chain was interrupted before this line; usually empty.
	Chain string `json:"chain,omitempty"`
	Seq   uint64 `json:"seq"`  // 1 for the first
	Prev  string `json:"prev"` // hash of the line before; zeros for the first
}

const (
	hashLen  = 2 * sha256.Size
	hashHead = `,"hash":"`
	hashTail = `"}`
	// noHash is the hash before the first line.
	noHash = "0000000000000000000000000000000000000000000000000000000000000000"
)

// encode returns the link as a line that ends with a newline, and its hash.
func (l link) encode() (line []byte, sum string, err error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		return nil, "", err
	}
	body := bytes.TrimSuffix(safetext.EscapeJSON(b.Bytes()), []byte("\n"))
	sum = sumOf(body)
	line = append(body[:len(body)-1:len(body)-1], hashHead+sum+hashTail+"\n"...)
	return line, sum, nil
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// split separates a line from the hash at its end. body is what the hash covers; ok is
// false if the line has no hash.
func split(line []byte) (body []byte, sum string, ok bool) {
	at := len(line) - len(hashHead) - hashLen - len(hashTail)
	if at < 1 || !bytes.HasSuffix(line, []byte(hashTail)) || string(line[at:at+len(hashHead)]) != hashHead {
		return nil, "", false
	}
	sum = string(line[at+len(hashHead) : len(line)-len(hashTail)])
	if strings.Trim(sum, "0123456789abcdef") != "" {
		return nil, "", false
	}
	return append(line[:at:at], '}'), sum, true
}

// parse reads a line. It fails with errNoRecord if the line is not a record, with
// errNoHash if it is not part of a chain (then Seq is 0), and with errChanged if the
// hash is not that of the line.
func parse(line []byte) (l link, sum string, err error) {
	body, sum, chained := split(line)
	if !chained {
		body, sum = line, ""
	}
	if err := json.Unmarshal(body, &l); err != nil || body[0] != '{' {
		return link{}, "", errNoRecord
	}
	switch {
	case !chained, l.Seq == 0:
		l.Seq, l.Prev = 0, ""
		return l, "", errNoHash
	case sumOf(body) != sum:
		return l, sum, errChanged
	}
	return l, sum, nil
}

var (
	errNoRecord = errors.New("it is not a record")
	errNoHash   = errors.New("it has no hash")
	errChanged  = errors.New("its content does not have the hash that stands in it")
)

// head is the content of the side file: the number and the hash of the last line that
// was written. It shows that lines are missing at the end, which the log alone cannot
// show, and lets the chain continue in a new file after a rotation.
type head struct {
	seq uint64
	sum string
}

const headWord = "redlockctl-audit-head-1"

// headLen is the fixed length of the side file. It is shorter than a disk sector, so
// the file is overwritten as a whole or not at all.
const headLen = len(headWord) + 1 + 20 + 1 + hashLen + 1

func (h head) encode() []byte { return fmt.Appendf(nil, "%s %020d %s\n", headWord, h.seq, h.sum) }

// errNoHead: the side file is new and has no head yet. errBadHead: it is not readable.
var (
	errNoHead  = errors.New("the file with the end of the chain is missing")
	errBadHead = errors.New("the file with the end of the chain is damaged")
)

func readHead(f io.ReaderAt) (head, error) {
	b := make([]byte, headLen+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return head{}, err
	}
	// On a full disk the first write may have been cut short.
	if n < headLen && bytes.HasPrefix(head{0, noHash}.encode(), b[:n]) {
		return head{}, errNoHead
	}
	var h head
	parts := strings.Split(string(b[:n]), " ")
	if n != headLen || len(parts) != 3 || parts[0] != headWord {
		return head{}, errBadHead
	}
	if h.seq, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return head{}, errBadHead
	}
	h.sum = strings.TrimSuffix(parts[2], "\n")
	if len(h.sum) != hashLen || strings.Trim(h.sum, "0123456789abcdef") != "" {
		return head{}, errBadHead
	}
	return h, nil
}

// tail describes the end of a log for the next writer.
type tail struct {
	last *link // the last whole link; nil if there is none
	sum  string
	torn bool // the file does not end with a line end
	size int64
}

// tailStep is how many bytes are read at once, from the end. Most records are much
// shorter.
const tailStep = 64 << 10

// readTail finds the last whole link of a log.
func readTail(f *os.File) (tail, error) {
	info, err := f.Stat()
	if err != nil {
		return tail{}, err
	}
	t := tail{size: info.Size()}
	var rest []byte // read but not parsed yet, beginning at from
	for from := t.size; from > 0; {
		step := min(from, tailStep)
		from -= step
		b := make([]byte, step, int(step)+len(rest))
		if _, err := f.ReadAt(b, from); err != nil {
			return tail{}, err
		}
		if from+step == t.size {
			t.torn = b[step-1] != '\n'
		}
		rest = append(b, rest...)
		for {
			line := bytes.TrimSuffix(rest, []byte("\n"))
			at := bytes.LastIndexByte(line, '\n')
			if at < 0 && from > 0 {
				break // the line begins before from
			}
			if l, sum, err := parse(line[at+1:]); err == nil && l.Seq > 0 {
				t.last, t.sum = &l, sum
				return t, nil
			}
			if at < 0 {
				return t, nil
			}
			rest = rest[:at+1]
		}
	}
	return t, nil
}

// behind reports whether the side file lacks the last line of the log, as after a
// crash between the two writes. It never lacks more than one, because each writer
// updates it first: further lines were not written by this program.
func behind(t tail, h head) bool {
	return t.last != nil && t.last.Seq == h.seq+1 && (h.seq == 0 || t.last.Prev == h.sum)
}

// next returns the number and previous hash of the next line. It follows the line that
// the side file names as the last, or the one after it if the side file is [behind]. If
// lines were removed, changed or added, the chain still continues from the side file, so
// that the damage stays visible.
func next(t tail, h head, headErr error) link {
	var l link
	known := headErr == nil
	switch {
	case known && t.last == nil && h.seq > 0, known && t.last != nil && !behind(t, h) && (t.last.Seq != h.seq || t.sum != h.sum):
		l.Seq, l.Prev = h.seq+1, h.sum
		return l
	case t.last != nil:
		l.Seq, l.Prev = t.last.Seq+1, t.sum
	default:
		l.Seq, l.Prev = 1, noHash
	}
	// A new log has an empty side file and no links.
	if !known && (t.last != nil || !errors.Is(headErr, errNoHead)) {
		l.Chain = headErr.Error()
	}
	return l
}
