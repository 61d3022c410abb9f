package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
)

// The console tells metrics too, if it is asked to: of the cluster that it shows,
// and with the other one after ":cluster".
func TestConsoleListens(t *testing.T) {
	servers := labtest.Servers(t, 3)
	dir := t.TempDir()
	var cfg strings.Builder
	for _, name := range []string{"shop", "bank"} {
		fmt.Fprintf(&cfg, "[clusters.%s]\nmax_ttl = \"30s\"\n", name)
		for i, s := range servers {
			fmt.Fprintf(&cfg, "[[clusters.%s.nodes]]\nname = \"n%d\"\naddr = %q\n", name, i+1, s.Addr())
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(cfg.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "redlockctl") // that is what it is, under this name
	if err := os.Symlink(bin, program); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	p := newTypist(t, dir, "env", "TERM=xterm", program, "--cluster", "shop", "--no-guard", "--listen", addr)
	tells := func(want string) {
		t.Helper()
		said := ""
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			answer, err := http.Get("http://" + addr + "/metrics")
			if err != nil {
				said = err.Error()
				continue
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if said = string(text); strings.Contains(said, want) {
				return
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		t.Fatalf("no %s in:\n%s\nthe screen: %q", want, said, p.seen.String())
	}
	tells(`redlockctl_node_up{cluster="shop",node="n3"} 1`)
	p.await("shop")
	p.types(":cluster bank\r")
	tells(`redlockctl_node_up{cluster="bank",node="n3"} 1`)
	p.types("q")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + addr + "/healthz")
		if err != nil {
			break // it has ended
		}
		_ = answer.Body.Close()
		if time.Now().After(deadline) {
			t.Fatal("the console does not end")
		}
	}
}

// A terminal that can show no screen gets lines of text, without being asked.
func TestConsoleOfADumbTerminal(t *testing.T) {
	addr := labtest.Servers(t, 1)[0].Addr()
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(t.TempDir(), "redlockctl")
	if err := os.Symlink(bin, program); err != nil {
		t.Fatal(err)
	}
	for _, term := range []string{"TERM=dumb", "TERM="} {
		p := newTypist(t, dir, "env", term, program, "--nodes", addr, "--no-guard")
		p.await(plainHelp)
		p.types("q\r")
		p.mu.Lock()
		if strings.Contains(p.seen.String(), "\x1b[") {
			t.Errorf("%s: %q", term, p.seen.String())
		}
		p.mu.Unlock()
	}
}
