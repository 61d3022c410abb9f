package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"redlockctl/internal/lab/labtest"
)

// typist is a person at a terminal, in front of an interactive shell.
type typist struct {
	t      *testing.T
	screen *os.File

	mu   sync.Mutex
	seen strings.Builder
	read int // of it, by await
}

func newTypist(t *testing.T, dir string, argv ...string) *typist {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 200}); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, line, line, line
	cmd.Env = append(os.Environ(), "PS1=> ", "TERM=dumb", "HISTFILE=", "HOME="+dir, "XDG_STATE_HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = line.Close()
	p := &typist{t: t, screen: master}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil { // EIO: nobody has the other side open
				return
			}
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the terminal hangs up on all that it ran
		_ = cmd.Wait()
		select {
		case <-gone:
		case <-time.After(20 * time.Second):
			t.Error("something keeps the terminal")
		}
		_ = master.Close()
	})
	return p
}

func (p *typist) types(text string) {
	p.t.Helper()
	if _, err := p.screen.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// await waits for text after the text of the last await.
func (p *typist) await(text string) {
	p.t.Helper()
	p.awaitTyping(text, "")
}

// awaitTyping is await that types again and again meanwhile: a shell reports a
// background job only before its next prompt.
func (p *typist) awaitTyping(text, keys string) {
	p.t.Helper()
	typed := time.Now()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		all := p.seen.String()
		at := strings.Index(all[p.read:], text)
		if at >= 0 {
			p.read += at + len(text)
		}
		p.mu.Unlock()
		if at >= 0 {
			return
		}
		if now := time.Now(); keys != "" && now.Sub(typed) >= handover {
			typed = now
			p.types(keys)
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no %q behind byte %d of:\n%s", text, p.read, all)
		}
	}
}

// handover is the time in which a shell has handed the terminal over; what is
// typed meanwhile it may discard.
const handover = 300 * time.Millisecond

// continues brings the stopped job into the foreground; the shell shows what it
// is.
func (p *typist) continues(job string) {
	p.t.Helper()
	p.types("fg\n")
	p.await(job)
	time.Sleep(handover)
}

// TestJobControl runs a command under a lock in front of a real shell on a real
// terminal: it reads the terminal, is stopped and continued from the keyboard,
// gets each interrupt once, and in a pipeline leaves the terminal to the others.
func TestJobControl(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			t.Fatal("no bash")
		}
		t.Skip("no bash")
	}
	servers := labtest.Servers(t, 3)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config.toml": "[cluster]\nmax_ttl = \"30s\"\n[redlock]\nnode_timeout = \"1s\"\n" + servers.NodesConfig(),
		"ints.sh":     "trap 'n=$((n+1)); echo interrupt $n' INT\ntrap 'echo ended with $n; exit 0' TERM\necho ready $$ $(ps -o tpgid= -p $$)\nwhile :; do sleep 0.02; done\n",
		"script.sh":   "redlockctl run job -- sh -c 'echo inside; exec sleep 60'\necho the script went on\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newTypist(t, dir, bash, "--norc", "--noprofile", "-i")
	// Echoed input must not be taken for output: '' breaks the words.
	p.await("> ")

	// The command reads what is typed, and is stopped and continued with its job.
	p.types("redlockctl run job -- sh -c 'echo st''art; read a; echo got $a; read b; echo got $b'; echo st''atus $?\n")
	p.await("start")
	p.types("one\n")
	p.await("got one")
	p.types("\x1a")
	p.await("Stopped")
	p.types("echo at the pro''mpt\n")
	p.await("at the prompt")
	p.continues("echo got $b")
	p.types("two\n")
	p.await("got two")

	// An interrupt reaches it once, and only it. What starts commands again and again is a
	// bash: dash starts them by vfork, and waits unstoppably for one that is stopped before
	// its exec, so that a stop at that moment never becomes one of the whole group.
	p.types("redlockctl run job -- bash ints.sh\n")
	p.await("ready")
	p.types("\x03")
	p.await("interrupt 1")
	p.types("\x1a")
	p.await("Stopped")
	p.continues("ints.sh")
	p.types("\x03")
	p.await("interrupt 2")
	p.types("\x1a")
	p.await("Stopped")
	p.types("kill %1; fg; echo st''atus $?\n")
	p.await("ended with 2")
	p.await("status 0")

	// Stopped beyond the validity, it does not go on.
	p.types("redlockctl run job --ttl 3s -- bash -c 'trap \"echo still a''live\" TERM; echo rea''dy; while :; do sleep 0.02; done'\n")
	p.await("ready")
	p.types("\x1a")
	p.await("Stopped")
	for _, srv := range servers { // its copies last longer than its validity
		for n, err := srv.Do(t.Context(), "EXISTS", "job"); n != int64(0); n, err = srv.Do(t.Context(), "EXISTS", "job") {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	p.continues("--ttl 3s")
	p.await("and the command was ended ")
	p.await("AFTER its validity had ended")

	// A script ends with the command that it ran, as it does without us.
	p.types("bash script.sh\n")
	p.await("inside")
	p.types("\x03")
	p.await("> ")
	p.types("echo st''atus $?\n")
	p.await("status 130")

	// In a pipeline the others may need the terminal; the command gets it when it
	// asks for it.
	p.types("redlockctl run job -- sh -c 'read a </dev/tty; echo got $a' | cat; echo st''atus $?\n")
	time.Sleep(handover)
	p.types("three\n")
	p.await("got three")
	p.await("status 0")

	// In the background it continues until it reads from the terminal.
	p.types("redlockctl run job -- sh -c 'echo behi''nd; read a; echo got $a' &\n")
	p.await("behind")
	p.awaitTyping("Stopped", "\n")
	p.continues("echo got $a")
	p.types("four\n")
	p.await("got four")

	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.Contains(p.seen.String(), "the script went on") || strings.Contains(p.seen.String(), "still alive") || strings.Contains(p.seen.String(), "interrupt 3") {
		t.Errorf("on the screen:\n%s", p.seen.String())
	}
}
