package adopt

import (
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/config"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// A server is asked which rights its users can have, not for its version.
func TestServersTellTheirGeneration(t *testing.T) {
	for _, g := range labtest.Generations(t) {
		port, err := lab.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		cmd := exec.Command(g.Bin, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		node, err := redlock.NewNode("n1", &redis.Options{Addr: addr})
		if err != nil {
			t.Fatal(err)
		}
		var got Server
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if got = ask(t.Context(), config.Node{Name: "n1", Addr: addr}, node); got.Err == nil {
				break
			}
		}
		if want := min(g.Name, "7.0"); got.Err != nil || got.ACL != want { // by their names 7.0 is the least of all but 6.0
			t.Errorf("%s: its ACLs are of %q, not of %q: %v", g.Name, got.ACL, want, got.Err)
		}
	}
}
