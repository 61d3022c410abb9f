package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Remark is a note about one line of a log.
type Remark struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // from 1; 0: about the file
	Text string `json:"text"`
}

// String returns "file:line: text".
func (r Remark) String() string {
	if r.Line == 0 {
		return r.File + ": " + r.Text
	}
	return fmt.Sprintf("%s:%d: %s", r.File, r.Line, r.Text)
}

// Report is the result of [Verify].
type Report struct {
	Lines int `json:"lines"` // of all files
	Links int `json:"links"` // lines of the chain
	// First and Last are the numbers of the first and last link, 0 without links; Head is
	// the hash of the last.
	First uint64 `json:"first_seq,omitempty"`
	Last  uint64 `json:"last_seq,omitempty"`
	Head  string `json:"head,omitempty"`
	// Broken lists tampering: lines that were changed, moved, inserted or removed. Empty:
	// the chain is intact.
	Broken []Remark `json:"broken,omitempty"`
	// Remarks list what a crash can cause, and what could not be checked.
	Remarks []Remark `json:"remarks,omitempty"`
}

// Intact reports whether nothing is broken.
func (r Report) Intact() bool { return len(r.Broken) == 0 }

// VerifyOptions say what to expect of a log.
type VerifyOptions struct {
	// Rotated: older lines were rotated away; the chain may begin with any number.
	Rotated bool
	// Known is a hash, or at least its first 16 digits, that was noted earlier and must be
	// in the chain.
	Known string
}

// leastKnown is how many digits of a hash are required.
const leastKnown = 16

// mostBroken bounds each list of a report.
const mostBroken = 100

// ErrHash is returned for a [VerifyOptions.Known] that is not a hash.
var ErrHash = errors.New("it is not the hash of a line: 16 to 64 hexadecimal digits")

// Verify checks the chain of a log: the file at the last path, and the files that were
// rotated away before it, the oldest first. The error is [fs.ErrNotExist] if there never
// was a log.
//
// An intact chain proves that no line was changed, inserted, moved or removed, unless
// somebody recomputed the chain from there on. Whoever can write the log and the side
// file can do that; only a hash that was noted elsewhere reveals it, see [VerifyOptions].
//
// Only the side file reveals lines that were cut off the end, and only if it was not
// replaced too. Lines cut off the front look like a rotation. A line that a crash cut
// short does not break the chain.
func Verify(paths []string, opt VerifyOptions) (Report, error) {
	v := verifier{opt: opt, prev: noHash}
	if opt.Known != "" && (len(opt.Known) < leastKnown || len(opt.Known) > hashLen || strings.Trim(opt.Known, "0123456789abcdef") != "") {
		return v.Report, fmt.Errorf("%q: %w", opt.Known, ErrHash)
	}
	if len(paths) == 0 {
		return v.Report, errors.New("no audit log is named")
	}
	for _, path := range paths[:len(paths)-1] {
		f, err := os.Open(path)
		if err != nil {
			return v.Report, pathError("open", path, err)
		}
		err = v.read(path, f, 1<<62)
		_ = f.Close()
		if err != nil {
			return v.Report, pathError("read", path, err)
		}
	}
	path := paths[len(paths)-1]
	end, err := glance(path)
	if err != nil {
		return v.Report, err
	}
	if end.file != nil {
		defer end.file.Close()
		if end.err == nil {
			v.want = end.head.seq
		}
		if err := v.read(path, end.file, end.size); err != nil {
			return v.Report, pathError("read", path, err)
		}
	}
	v.end(path, end)
	if opt.Known != "" && !v.known {
		v.broken(path, 0, "no line has the hash %s that was noted down", opt.Known)
	}
	return v.Report, nil
}

// glimpse is a log and its side file at one moment.
type glimpse struct {
	file *os.File // nil: the log is gone
	size int64
	head head
	err  error // errNoHead, errBadHead
}

func glance(path string) (glimpse, error) {
	g := glimpse{err: errNoHead}
	side, err := os.Open(HeadPath(path))
	switch {
	case err == nil:
		defer side.Close()
		unlock, err := lock(side, true, lockWait)
		if err != nil {
			return g, pathError("read", path, err)
		}
		defer unlock()
		if g.head, g.err = readHead(side); g.err != nil && !errors.Is(g.err, errNoHead) && !errors.Is(g.err, errBadHead) {
			return g, pathError("read the end of the chain of", path, g.err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return g, pathError("read the end of the chain of", path, err)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && g.err == nil && g.head.seq > 0 {
		return g, nil
	} else if err != nil {
		return g, pathError("open", path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not an ordinary file")
	}
	if err != nil {
		_ = f.Close()
		return g, pathError("read", path, err)
	}
	g.file, g.size = f, info.Size()
	return g, nil
}

func pathError(what, path string, err error) error { return (&Log{path: path}).fail(what, err) }

// verifier checks a chain line by line.
type verifier struct {
	Report
	opt  VerifyOptions
	prev string // the hash of the last link

	want  uint64 // the number in the side file
	sum   string // the hash of that link
	known bool   // the noted hash was seen
}

func (v *verifier) broken(file string, line int, format string, args ...any) {
	if len(v.Broken) < mostBroken {
		v.Broken = append(v.Broken, Remark{file, line, fmt.Sprintf(format, args...)})
	}
}

func (v *verifier) remark(file string, line int, format string, args ...any) {
	if len(v.Remarks) < mostBroken {
		v.Remarks = append(v.Remarks, Remark{file, line, fmt.Sprintf(format, args...)})
	}
}

func (v *verifier) read(path string, f io.ReaderAt, size int64) error {
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, size), 64<<10)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			break
		} else if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		v.Lines++
		l, sum, perr := parse(bytes.TrimSuffix(line, []byte("\n")))
		switch {
		case errors.Is(perr, errNoRecord):
			v.remark(path, n, "no record: a write that a crash or a full disk cut short")
		case errors.Is(perr, errNoHash):
			v.broken(path, n, "%v: another program wrote it", perr)
		default:
			v.link(path, n, l, sum, perr)
		}
	}
	return nil
}

// link checks that l follows the link before it; err is the error of parse.
func (v *verifier) link(path string, n int, l link, sum string, err error) {
	if err != nil {
		v.broken(path, n, "%v: it was changed", err)
	}
	switch first := v.Links == 0; {
	case l.Chain != "":
		v.broken(path, n, "the chain could not simply go on here: %s", l.Chain)
	case first && l.Seq == 1:
		if l.Prev != noHash {
			v.broken(path, n, "it is number 1 and names a line before it")
		}
	case first:
		const gone = "the chain begins with number %d here: the lines before it were rotated away, or cut off"
		if v.opt.Rotated {
			v.remark(path, n, gone, l.Seq)
		} else {
			v.broken(path, n, gone, l.Seq)
		}
	case l.Seq > v.Last+1:
		v.broken(path, n, "it is number %d: %s missing before it", l.Seq, numbers(v.Last+1, l.Seq-1))
	case l.Seq <= v.Last:
		v.broken(path, n, "it is number %d, and number %d is due here: it was moved or repeated", l.Seq, v.Last+1)
	case l.Prev != v.prev:
		v.broken(path, n, "it does not go on from the line before it, number %d, which was replaced", v.Last)
	}
	if v.Links == 0 {
		v.First = l.Seq
	}
	v.Links++
	v.Last, v.Head, v.prev = l.Seq, sum, sum
	if l.Seq == v.want {
		v.sum = sum
	}
	if v.opt.Known != "" && strings.HasPrefix(sum, v.opt.Known) {
		v.known = true
	}
}

func (v *verifier) end(path string, g glimpse) {
	side := HeadPath(path)
	if g.err != nil {
		if v.Links > 0 {
			v.broken(side, 0, "%v: whether lines are missing at the end cannot be told", g.err)
		}
		return
	}
	switch {
	case g.head.seq > v.Last:
		what := "at the end of the log"
		if g.file == nil {
			what = "the log is gone"
		}
		v.broken(path, 0, "%s: %s missing", what, numbers(v.Last+1, g.head.seq))
	case v.Last > g.head.seq+1 && g.head.seq+1 >= v.First:
		v.broken(path, 0, "it goes on to number %d, and this program wrote up to number %d: the lines after it were added", v.Last, g.head.seq)
	case g.head.seq == 0:
		if v.Last > 0 {
			v.remark(side, 0, "it knows of no line yet: a crash came between the first line and it")
		}
	case g.head.seq < v.First:
		v.broken(side, 0, "it knows of number %d as the last, and the log begins with number %d", g.head.seq, v.First)
	case v.sum != g.head.sum:
		v.broken(path, 0, "number %d is not the line that was written last: it was replaced", g.head.seq)
	case g.head.seq < v.Last:
		v.remark(side, 0, "it knows of number %d as the last, of %d: a crash came between a line and it", g.head.seq, v.Last)
	}
}

func numbers(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("number %d is", from)
	}
	return fmt.Sprintf("numbers %d to %d are", from, to)
}

// Entry is a line of a log, trusted or not.
type Entry struct {
	Line int
	Record
	Seq  uint64 // 0: it has no place in the chain
	Hash string
	// Doubt says why the line cannot be trusted; nil if its hash is right.
	Doubt error
}

// Read calls each for every record of a log, the oldest first, until a call fails. It
// skips lines that are not records.
func Read(path string, each func(Entry) error) error {
	f, err := os.Open(path)
	if err != nil {
		return pathError("open", path, err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil
		} else if err != nil && !errors.Is(err, io.EOF) {
			return pathError("read", path, err)
		}
		l, sum, perr := parse(bytes.TrimSuffix(line, []byte("\n")))
		if errors.Is(perr, errNoRecord) {
			continue
		}
		if err := each(Entry{Line: n, Record: l.Record, Seq: l.Seq, Hash: sum, Doubt: perr}); err != nil {
			return err
		}
	}
}

// Latest returns the lines of a log that match, the oldest first; if last > 0, at most
// that many of the latest. A missing log is empty.
func Latest(path string, last int, match func(Entry) bool) (kept []Entry, err error) {
	err = Read(path, func(e Entry) error {
		if match(e) {
			if kept = append(kept, e); last > 0 && len(kept) > 2*last { // a log may be long
				kept = slices.Delete(kept, 0, len(kept)-last)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if last > 0 {
		kept = kept[max(0, len(kept)-last):]
	}
	return kept, nil
}
