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

	"redlockctl/internal/safetext"
)

// link is a line of the log: a record, and its place in the chain. Hash is the
// last field, and covers the line's bytes without itself, so that no question
// arises of how the fields are to be written.
type link struct {
	Record
	// Chain says, where the chain could not simply go on, why.
	Chain string `json:"chain,omitempty"`
	Seq   uint64 `json:"seq"`  // 1 for the first
	Prev  string `json:"prev"` // Hash of the one before; zeros for the first
}

const (
	hashLen  = 2 * sha256.Size
	hashHead = `,"hash":"`
	hashTail = `"}`
	// noHash stands where there is no line yet.
	noHash = "0000000000000000000000000000000000000000000000000000000000000000"
)

// encode is the link as one line with its line end, and its hash.
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

// split separates a line from the hash at its end: what the hash is of, and the
// hash as it stands there; false if the line has none.
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

// head is the end of the chain as the side file has it: how many lines were ever
// written, and the hash of the last one. It makes a cut tail visible, which the
// log alone cannot, and lets the chain go on in a new file when the old one was
// rotated away.
type head struct {
	seq uint64
	sum string
}

const headWord = "redlockctl-audit-head-1"

// headLen is the length of the side file. It is always the same and below that
// of a disk's sector, so that the file is overwritten at once or not at all.
const headLen = len(headWord) + 1 + 20 + 1 + hashLen + 1

func (h head) encode() []byte { return fmt.Appendf(nil, "%s %020d %s\n", headWord, h.seq, h.sum) }

// errNoHead is a side file without a head: a new one. errBadHead is one that
// cannot be read.
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
	// On a full disk the first one may have been cut short.
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

// tail is what a writer must know of the end of a log.
type tail struct {
	last *link // the last whole link; nil if there is none
	sum  string
	torn bool // the file does not end with a line end
	size int64
}

// tailStep is how much is read at once, from the end. Most records are shorter
// by far.
const tailStep = 64 << 10

// readTail finds the last whole link of a log.
func readTail(f *os.File) (tail, error) {
	info, err := f.Stat()
	if err != nil {
		return tail{}, err
	}
	t := tail{size: info.Size()}
	var rest []byte // from `from` to the end of what was not looked at
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
				break // it begins further in front
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

// behind reports whether the side file lacks one line of the log, as a crash between
// the two leaves it. More than one it never lacks, since a writer brings it up to date
// first: further lines were not written by us.
func behind(t tail, h head) bool {
	return t.last != nil && t.last.Seq == h.seq+1 && (h.seq == 0 || t.last.Prev == h.sum)
}

// next is the place of the line to come: behind the one that the side file knows as
// the last, or one further if it is [behind]. If lines of the log are gone, were
// changed or were added, the chain goes on from the side file all the same: then it
// can be seen for good.
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
	// An empty side file beside a log without links is how each begins.
	if !known && (t.last != nil || !errors.Is(headErr, errNoHead)) {
		l.Chain = headErr.Error()
	}
	return l
}
