package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/restartguard/boot"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

// The manuals recommend the same forms in the same words, and the unit that is
// delivered is one of them.
func TestDocsRecommendTheSameBootFence(t *testing.T) {
	const begin, end = "**The command line** is best", "next start is unfenced.\n"
	var words string
	for _, name := range []string{"docs/guard.md"} {
		b, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(b), begin)
		part, _, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("%s does not recommend the boot fence", name)
		}
		if words == "" {
			words = part
		}
		if part != words {
			t.Errorf("%s says it otherwise:\n%s\n%s", name, part, words)
		}
	}
	const path = "../deploy/systemd/redis-server.service.d/redlockctl-fence.conf"
	unit, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, dropIn, _ := strings.Cut(string(unit), "[Service]\n")
	for _, part := range []string{dropIn, strings.Join(minreplicas.FenceLines, "\n") + "\ninclude /etc/redis/redlockctl-fence.conf\n"} {
		if !strings.Contains(words, part) {
			t.Errorf("the manuals do not have:\n%s", part)
		}
	}
	node, err := redlock.NewNode("n1", &redis.Options{Addr: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := boot.CheckFile(t.Context(), node, fences.Method{}, path)
	if err != nil || c.Boot != boot.Fenced || c.Form != boot.FormCommandLine {
		t.Errorf("the drop-in: %+v, %v", c, err)
	}
}
