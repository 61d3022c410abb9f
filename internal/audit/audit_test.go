package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func open(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// records reads the log; each line must be one complete record.
func records(t *testing.T, path string) []Record {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []Record
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		d := json.NewDecoder(strings.NewReader(s.Text()))
		d.DisallowUnknownFields()
		var l struct {
			link
			Hash string `json:"hash"`
		}
		if err := d.Decode(&l); err != nil {
			t.Fatalf("line %d is no record: %v: %q", len(out)+1, err, s.Text())
		}
		out = append(out, l.Record)
	}
	return out
}

func TestWriteAppendsOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "redlockctl", "audit.jsonl")
	want := []Record{
		{Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), ID: "a", Phase: Intent, Actor: "ops@host", Cluster: "lab",
			Act: "force-release", Target: "job:1", Reason: "holder is dead", TokenSHA: TokenSHA("t")},
		{Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), ID: "a", Phase: Done, Actor: "ops@host", Cluster: "lab",
			Act: "force-release", Target: "job:1", Detail: "n1 ok, n2 ok"},
	}
	for _, r := range want { // a new process each time
		if err := open(t, path).Write(r); err != nil {
			t.Fatal(err)
		}
	}
	got := records(t, path)
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLogIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "state", "redlockctl")
	path := filepath.Join(dir, "audit.jsonl")
	open(t, path)
	for p, want := range map[string]fs.FileMode{path: 0o600, HeadPath(path): 0o600, dir: 0o700 | fs.ModeDir, filepath.Dir(dir): 0o700 | fs.ModeDir} {
		if info, err := os.Stat(p); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want mode %v", p, info.Mode(), err, want)
		}
	}
}

func TestLineHoldsNothingThatATerminalObeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	nasty := "a\x1b[2J\u009b\u202e\u200b\u2028\x7f\n<&>é"
	want := Record{Target: nasty, Reason: nasty, Detail: nasty, Actor: nasty}
	if err := open(t, path).Write(want); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(path)
	for _, r := range strings.TrimSuffix(string(b), "\n") {
		if r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u202e' || r == '\u200b' || r == '\u2028' {
			t.Errorf("the line holds %U", r)
		}
	}
	if !bytes.Contains(b, []byte("<&>é")) {
		t.Errorf("readable characters were escaped: %s", b)
	}
	if got := records(t, path); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
}

func TestWritersDoNotMixTheirLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	const logs, writers, lines = 3, 4, 10
	var wg sync.WaitGroup
	for range logs {
		l := open(t, path)
		for range writers {
			wg.Go(func() {
				for range lines {
					if err := l.Write(Record{ID: NewID(), Detail: strings.Repeat("x", 5000)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	ids := map[string]bool{}
	for _, r := range records(t, path) {
		ids[r.ID] = true
	}
	if len(ids) != logs*writers*lines {
		t.Errorf("%d different records; want %d", len(ids), logs*writers*lines)
	}
}

// The process was killed in the middle of a line, or the disk was full.
func TestTornLineIsNotContinued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte("{\"id\":\"whole\"}\n{\"id\":\"to"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, path)
	for _, id := range []string{"next", "last"} {
		if err := l.Write(Record{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := os.ReadFile(path)
	lines := strings.Split(string(b), "\n")
	if len(lines) != 5 || lines[1] != `{"id":"to` || !strings.Contains(lines[2], `"next"`) || !strings.Contains(lines[3], `"last"`) || lines[4] != "" {
		t.Errorf("the file is %q", b)
	}
}

func TestFailedWriteIsAnError(t *testing.T) {
	t.Run("no space", func(t *testing.T) {
		full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
		if err != nil {
			t.Skip(err)
		}
		link := filepath.Join(t.TempDir(), "full")
		if err := os.Symlink("/dev/full", link); err != nil {
			t.Fatal(err)
		}
		l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"))
		_ = l.file.Close()
		l.path, l.file = link, full
		if err := os.Rename(l.head.Name(), HeadPath(link)); err != nil {
			t.Fatal(err)
		}
		if err := l.Write(Record{ID: "x"}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), link) {
			t.Errorf("got %v; want ENOSPC and the path", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"))
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		if err := l.Write(Record{ID: "x"}); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("got %v; want ErrClosed", err)
		}
	})
	t.Run("directory gone", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		l := open(t, filepath.Join(dir, "audit.jsonl"))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.Write(Record{ID: "x"}); err == nil {
			t.Error("writing to a file that nobody will find succeeded")
		}
	})
}

// A full disk in the middle of a line, simulated by a limit on file size in a separate
// process.
func TestShortWriteIsAnErrorAndTorn(t *testing.T) {
	path := os.Getenv("AUDIT_TEST_SHORT")
	if path == "" {
		path = filepath.Join(t.TempDir(), "audit.jsonl")
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run", "^"+t.Name()+"$", "-test.count", "1")
		cmd.Env = append(os.Environ(), "AUDIT_TEST_SHORT="+path)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b, _ := os.ReadFile(path)
		if r, err := Verify([]string{path}, VerifyOptions{}); err != nil || !r.Intact() || r.Links != 1 {
			t.Errorf("after a full disk: %+v, %v; want one link, intact", r, err)
		}
		if lines := strings.Split(string(b), "\n"); len(lines) != 3 || !strings.Contains(lines[1], `"after"`) {
			t.Errorf("the file is %q", b)
		}
		return
	}
	l := open(t, path)
	var size syscall.Rlimit // its fields differ between systems
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &size); err != nil {
		t.Fatal(err)
	}
	limit := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &size); err != nil {
			t.Fatal(err)
		}
	}
	size.Cur = 150 // enough for the side file
	limit()
	if err := l.Write(Record{ID: "before", Detail: strings.Repeat("x", 100)}); !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("a short write gave %v; want EFBIG", err)
	}
	size.Cur = 1 << 20
	limit()
	if err := l.Write(Record{ID: "after"}); err != nil {
		t.Fatal(err)
	}
}

func TestRotatedLogIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	write := func(id string) {
		t.Helper()
		if err := l.Write(Record{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write("two")
	write("three")
	if old, now := records(t, path+".1"), records(t, path); len(old) != 1 || len(now) != 2 {
		t.Errorf("%d records in the old file, %d in the new; want 1 and 2", len(old), len(now))
	}
}

func TestOnlyOrdinaryFilesAreOpened(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/null", t.TempDir(), "/dev/null/audit.jsonl"} {
		if l, err := Open(path); err == nil || !strings.Contains(err.Error(), strconv.Quote(path)) {
			t.Errorf("Open(%q) = %v, %v; want an error that names it", path, l, err)
		}
	}
}

func TestTokenSHA(t *testing.T) {
	if got := TokenSHA("token"); got != "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0" {
		t.Errorf("got %s", got)
	}
	if got := TokenSHA(""); got != "" {
		t.Errorf("the empty token has the hash %q", got)
	}
}

func TestNewIDsDiffer(t *testing.T) {
	if a, b := NewID(), NewID(); a == b || len(a) < 16 || !utf8.ValidString(a) {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestActorNamesTheUserBehindSudo(t *testing.T) {
	got := Actor(func(k string) string { return map[string]string{"SUDO_USER": "alice"}[k] })
	if !strings.Contains(got, "@") || !strings.HasSuffix(got, " (sudo of alice)") {
		t.Errorf("got %q", got)
	}
	if got := Actor(func(string) string { return "" }); strings.Contains(got, "sudo") || strings.HasPrefix(got, "@") || strings.HasSuffix(got, "@") {
		t.Errorf("got %q", got)
	}
}
