package labtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program returns the path of redlockctl as it is built for users: the one that
// scripts/test has built, or else one built in dir from the sources at root.
func Program(dir, root string) (string, error) {
	if path := os.Getenv("REDLOCKCTL_TEST_PROGRAM"); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "redlockctl")
	if out, err := exec.Command("go", "build", "-C", root, "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
