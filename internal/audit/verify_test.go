package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// written makes a log with n links.
func written(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	more(t, path, n)
	return path
}

func more(t *testing.T, path string, n int) {
	t.Helper()
	l := open(t, path)
	for i := range n {
		if err := l.Write(Record{ID: fmt.Sprint(i), Act: "acquire", Target: "job:1", Phase: Intent}); err != nil {
			t.Fatal(err)
		}
	}
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, opt VerifyOptions, paths ...string) Report {
	t.Helper()
	r, err := Verify(paths, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatWasWrittenIsIntact(t *testing.T) {
	path := written(t, 5)
	r := verify(t, VerifyOptions{}, path)
	if !r.Intact() || len(r.Remarks) > 0 || r.Links != 5 || r.First != 1 || r.Last != 5 || r.Lines != 5 || len(r.Head) != hashLen {
		t.Errorf("got %+v", r)
	}
	if _, err := Verify([]string{filepath.Join(t.TempDir(), "none")}, VerifyOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a log: %v", err)
	}
	if r := verify(t, VerifyOptions{Known: r.Head[:20]}, path); !r.Intact() {
		t.Errorf("its own hash is not known: %v", r.Broken)
	}
	if r := verify(t, VerifyOptions{Known: noHash}, path); r.Intact() {
		t.Error("a hash that is nowhere is found")
	}
	for _, bad := range []string{"abc", strings.Repeat("a", 65), strings.Repeat("A", 20)} {
		if _, err := Verify([]string{path}, VerifyOptions{Known: bad}); !errors.Is(err, ErrHash) {
			t.Errorf("%q: %v; want ErrHash", bad, err)
		}
	}
}

// forge recomputes the chain from line i, as an attacker could who can write the log.
func forge(t *testing.T, lines []string, i int, change func(*link)) []string {
	t.Helper()
	out := slices.Clone(lines)
	prev := ""
	for ; i < len(out); i++ {
		l, _, err := parse([]byte(strings.TrimSuffix(out[i], "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if prev != "" {
			l.Prev = prev
		} else {
			change(&l)
		}
		line, sum, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		out[i], prev = string(line), sum
	}
	return out
}

// Each mutant of a log is reported, with its line.
func TestVerifyNamesTheLine(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mutate func(t *testing.T, lines []string) []string
		line   int
		says   string
	}{
		{"a line was edited", func(_ *testing.T, l []string) []string {
			l[2] = strings.Replace(l[2], "job:1", "job:2", 1)
			return l
		}, 3, "it was changed"},
		{"a hash was edited", func(_ *testing.T, l []string) []string {
			l[2] = l[2][:len(l[2])-8] + "00000" + l[2][len(l[2])-3:]
			return l
		}, 3, "it was changed"},
		{"a line was edited and its hash made anew", func(t *testing.T, l []string) []string {
			return append(l[:2:2], append(forge(t, l[2:3], 0, func(k *link) { k.Target = "job:2" }), l[3:]...)...)
		}, 4, "number 3, which was replaced"},
		{"a line was removed", func(_ *testing.T, l []string) []string { return slices.Delete(l, 2, 3) }, 3, "number 3 is missing before it"},
		{"two lines were removed", func(_ *testing.T, l []string) []string { return slices.Delete(l, 1, 3) }, 2, "numbers 2 to 3 are missing"},
		{"two lines were swapped", func(_ *testing.T, l []string) []string { l[1], l[2] = l[2], l[1]; return l }, 2, "missing before it"},
		{"a line was repeated", func(_ *testing.T, l []string) []string { return slices.Insert(l, 2, l[1]) }, 3, "moved or repeated"},
		{"a line was inserted", func(_ *testing.T, l []string) []string { return slices.Insert(l, 2, `{"id":"x"}`+"\n") }, 3, "has no hash"},
		{"the first line was removed", func(_ *testing.T, l []string) []string { return l[1:] }, 1, "begins with number 2"},
		{"a line was put in front", func(_ *testing.T, l []string) []string { return slices.Insert(l, 0, `{"id":"x"}`+"\n") }, 1, "has no hash"},
		{"the tail was cut", func(_ *testing.T, l []string) []string { return l[:3] }, 0, "at the end of the log: numbers 4 to 5 are missing"},
		{"the last line was removed", func(_ *testing.T, l []string) []string { return l[:4] }, 0, "number 5 is missing"},
		{"the last line was replaced", func(t *testing.T, l []string) []string {
			return forge(t, l, 4, func(k *link) { k.Target = "job:2" })
		}, 0, "number 5 is not the line that was written last"},
		{"all from line 3 on was forged", func(t *testing.T, l []string) []string {
			return forge(t, l, 2, func(k *link) { k.Target = "job:2" })
		}, 0, "number 5 is not the line that was written last"},
		{"it was emptied", func(_ *testing.T, l []string) []string { return nil }, 0, "numbers 1 to 5 are missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := written(t, 5)
			put(t, path, strings.Join(tt.mutate(t, linesOf(t, path)), ""))
			r := verify(t, VerifyOptions{}, path)
			if r.Intact() || r.Broken[0].Line != tt.line || !strings.Contains(r.Broken[0].Text, tt.says) {
				t.Fatalf("got %v; want line %d: %s", r.Broken, tt.line, tt.says)
			}
			// Further lines must not hide it.
			more(t, path, 2)
			if r := verify(t, VerifyOptions{}, path); r.Intact() {
				t.Error("two more lines, and nobody sees it any more")
			}
		})
	}
}

// A forgery of the whole chain, including the side file, is revealed only by a hash that
// was noted elsewhere.
func TestAHashNotedDownElsewhereFindsAForgery(t *testing.T) {
	path := written(t, 5)
	noted := verify(t, VerifyOptions{}, path).Head
	lines := forge(t, linesOf(t, path), 2, func(k *link) { k.Target = "job:2" })
	put(t, path, strings.Join(lines, ""))
	_, sum, err := parse([]byte(strings.TrimSuffix(lines[4], "\n")))
	if err != nil {
		t.Fatal(err)
	}
	put(t, HeadPath(path), string(head{5, sum}.encode()))
	if r := verify(t, VerifyOptions{}, path); !r.Intact() {
		t.Fatalf("it is not forged well: %v", r.Broken)
	}
	if r := verify(t, VerifyOptions{Known: noted}, path); r.Intact() {
		t.Error("the hash that was noted down is not missed")
	}
}

func TestSideFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, side string)
		says string
	}{
		{"missing", func(t *testing.T, side string) {
			if err := os.Remove(side); err != nil {
				t.Fatal(err)
			}
		}, "missing"},
		{"empty", func(t *testing.T, side string) { put(t, side, "") }, "missing"},
		{"cut short", func(t *testing.T, side string) { put(t, side, headWord+" 000") }, "missing"},
		{"damaged", func(t *testing.T, side string) { put(t, side, "nonsense") }, "damaged"},
		{"of another log", func(t *testing.T, side string) {
			put(t, side, string(head{2, noHash}.encode()))
		}, "number 2 is not the line"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := written(t, 3)
			tt.do(t, HeadPath(path))
			r := verify(t, VerifyOptions{}, path)
			if r.Intact() || !strings.Contains(r.Broken[0].Text, tt.says) {
				t.Fatalf("got %+v; want it broken: %s", r, tt.says)
			}
			more(t, path, 1)
			if tt.name == "of another log" {
				// The chain continues from the side file, so the damage stays visible.
				if verify(t, VerifyOptions{}, path).Intact() {
					t.Error("after one more line it is intact")
				}
				return
			}
			if r := verify(t, VerifyOptions{}, path); r.Intact() || r.Broken[0].Line != 4 || !strings.Contains(r.Broken[0].Text, tt.says) {
				t.Errorf("after one more line: %+v", r)
			}
		})
	}
}

// Lines with a correct chain that somebody added after the last one are reported, also
// after the next line: a crash leaves at most one line that the side file lacks.
func TestAddedLinesAreTold(t *testing.T) {
	for _, was := range []int{0, 1, 3} {
		path := written(t, was)
		if was == 0 {
			more(t, path, 1)
			put(t, HeadPath(path), string(head{0, noHash}.encode()))
		}
		side, err := os.ReadFile(HeadPath(path))
		if err != nil {
			t.Fatal(err)
		}
		more(t, path, 20)
		put(t, HeadPath(path), string(side))
		if r := verify(t, VerifyOptions{}, path); r.Intact() || !strings.Contains(r.Broken[0].Text, "were added") {
			t.Errorf("%d lines before: %+v", was, r)
		}
		more(t, path, 1)
		if r := verify(t, VerifyOptions{}, path); r.Intact() {
			t.Errorf("%d lines before, one after: %+v", was, r)
		}
	}
}

// The side file is updated before the next line, so that two crashes in a row do not look
// like added lines.
func TestSideFileIsBroughtUpToDateFirst(t *testing.T) {
	path := written(t, 2)
	before, err := os.ReadFile(HeadPath(path))
	if err != nil {
		t.Fatal(err)
	}
	more(t, path, 1)
	put(t, HeadPath(path), string(before)) // a crash
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	side, err := os.OpenFile(HeadPath(path), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer side.Close()
	l := &Log{path: path, file: f, head: side}
	if err := l.Write(Record{Phase: Intent}); err == nil {
		t.Fatal("a line was written to a file that is open for reading only")
	}
	last, err := readTail(f)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := readHead(side); err != nil || h.seq != last.last.Seq {
		t.Errorf("the side file knows of number %d (%v), the log of %d", h.seq, err, last.last.Seq)
	}
}

// After a crash between the line and the side file, the side file lacks the line.
func TestACrashBeforeTheSideFileBreaksNothing(t *testing.T) {
	for _, was := range []int{0, 1, 2} {
		path := written(t, was)
		before := head{0, noHash}.encode()
		if was > 0 {
			before, _ = os.ReadFile(HeadPath(path))
		}
		more(t, path, 1)
		put(t, HeadPath(path), string(before))
		if r := verify(t, VerifyOptions{}, path); !r.Intact() || len(r.Remarks) != 1 {
			t.Errorf("%d lines before: %+v; want a remark", was, r)
		}
		more(t, path, 1)
		if r := verify(t, VerifyOptions{}, path); !r.Intact() || len(r.Remarks) != 0 || r.Links != was+2 {
			t.Errorf("%d lines before, one after: %+v", was, r)
		}
	}
}

// A crash in the middle of a line leaves half of it.
func TestHalfALineBreaksNothing(t *testing.T) {
	path := written(t, 2)
	b, _ := os.ReadFile(path)
	half := linesOf(t, path)[1]
	put(t, path, string(b)+half[:len(half)/2])
	if r := verify(t, VerifyOptions{}, path); !r.Intact() || len(r.Remarks) != 1 || r.Remarks[0].Line != 3 {
		t.Errorf("got %+v", r)
	}
	more(t, path, 2)
	r := verify(t, VerifyOptions{}, path)
	if !r.Intact() || r.Links != 4 || r.Lines != 5 || len(r.Remarks) != 1 {
		t.Errorf("after two more lines: %+v", r)
	}
	n := 0
	if err := Read(path, func(e Entry) error { n++; return e.Doubt }); err != nil || n != 4 {
		t.Errorf("Read gave %d records, %v", n, err)
	}
	// Half of the very first line.
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	put(t, path, half[:len(half)/2])
	more(t, path, 2)
	if r := verify(t, VerifyOptions{}, path); !r.Intact() || r.Links != 2 || len(r.Remarks) != 1 {
		t.Errorf("after half of the first line: %+v", r)
	}
}

// A line without a hash is never trusted, wherever it is.
func TestLinesWithoutAHash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	put(t, path, `{"id":"a","phase":"intent"}`+"\n")
	for _, links := range []int{0, 2} {
		more(t, path, links)
		r := verify(t, VerifyOptions{}, path)
		if len(r.Broken) != 1 || r.Broken[0].Line != 1 || r.Links != links {
			t.Errorf("with %d links behind it: %+v", links, r)
		}
	}
	if err := Read(path, func(e Entry) error { return e.Doubt }); !errors.Is(err, errNoHash) {
		t.Errorf("Read: %v; want errNoHash", err)
	}
}

func TestRotation(t *testing.T) {
	path := written(t, 3)
	l := open(t, path)
	rotate := func(to string) {
		t.Helper()
		if err := os.Rename(path, to); err != nil {
			t.Fatal(err)
		}
		if err := l.Write(Record{ID: "next"}); err != nil {
			t.Fatal(err)
		}
	}
	rotate(path + ".2")
	rotate(path + ".1")
	if r := verify(t, VerifyOptions{}, path+".2", path+".1", path); !r.Intact() || r.Links != 5 {
		t.Errorf("all files: %+v", r)
	}
	if r := verify(t, VerifyOptions{Rotated: true}, path); !r.Intact() || r.First != 5 || len(r.Remarks) != 1 {
		t.Errorf("the last, rotated: %+v", r)
	}
	if r := verify(t, VerifyOptions{}, path); r.Intact() {
		t.Errorf("the last alone: %+v", r)
	}
	if r := verify(t, VerifyOptions{}, path+".2", path); r.Intact() || !strings.Contains(r.Broken[0].Text, "number 4 is missing") {
		t.Errorf("one is left out: %+v", r)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, VerifyOptions{Rotated: true}, path); r.Intact() || !strings.Contains(r.Broken[0].Text, "the log is gone") {
		t.Errorf("removed: %+v", r)
	}
}

// Several processes with several writers each make one chain.
func TestProcessesMakeOneChain(t *testing.T) {
	const processes, writers, lines = 3, 2, 15
	if path := os.Getenv("AUDIT_TEST_CHAIN"); path != "" {
		l := open(t, path)
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range lines {
					if err := l.Write(Record{ID: NewID(), Detail: strings.Repeat("x", 3000)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			cmd := exec.Command(exe, "-test.run", "^"+t.Name()+"$", "-test.count", "1")
			cmd.Env = append(os.Environ(), "AUDIT_TEST_CHAIN="+path, "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	r := verify(t, VerifyOptions{}, path)
	if !r.Intact() || r.Links != processes*writers*lines || len(r.Remarks) > 0 {
		t.Errorf("got %+v", r)
	}
}

// A record longer than one read from the end.
func TestLongRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	for _, n := range []int{10, 3 * tailStep, tailStep, 1} {
		if err := l.Write(Record{Detail: strings.Repeat("y", n)}); err != nil {
			t.Fatal(err)
		}
	}
	if r := verify(t, VerifyOptions{}, path); !r.Intact() || r.Links != 4 {
		t.Errorf("got %+v", r)
	}
}

// An action is refused instead of waiting for a writer that was stopped.
func TestALockThatIsNotGivenFree(t *testing.T) {
	path := written(t, 1)
	f, err := os.Open(HeadPath(path))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unlock, err := lock(f, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(HeadPath(path))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := lock(other, false, 0); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v; want ErrBusy", err)
	}
	unlock()
	more(t, path, 1)
}

func FuzzParse(f *testing.F) {
	line, _, err := link{Record: Record{ID: "a", Target: "\x1b\u202e"}, Seq: 1, Prev: noHash}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte(`{}`))
	f.Add([]byte(hashHead + noHash + hashTail))
	f.Fuzz(func(t *testing.T, line []byte) {
		l, sum, err := parse(line)
		if err == nil && sum != "" && l.Seq == 0 && len(sum) != hashLen {
			t.Errorf("hash %q", sum)
		}
	})
}
