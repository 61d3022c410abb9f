package boottime_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"redlockctl/base/boottime"
)

// A clock that a time namespace shifts is another clock: a deadline on it means nothing
// to a guard outside.
func TestATimeNamespaceIsAnotherBoot(t *testing.T) {
	const child = "REDLOCKCTL_TEST_BOOT_ID"
	if os.Getenv(child) != "" {
		_, _ = os.Stdout.WriteString("boot id: " + boottime.ID() + "\n")
		return
	}
	run := func(wrapped ...string) (string, error) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		args := append(wrapped, exe, "-test.run=^"+t.Name()+"$")
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Env = append(os.Environ(), child+"=1")
		out, err := c.CombinedOutput()
		_, id, _ := strings.Cut(string(out), "boot id: ")
		id, _, _ = strings.Cut(id, "\n")
		return id, err
	}
	if id, err := run(); err != nil || id != boottime.ID() || id == "" {
		t.Fatalf("%q in another process, %q here: %v", id, boottime.ID(), err)
	}
	id, err := run("unshare", "--map-root-user", "--time", "--boottime", "3600", "--fork")
	if err != nil && (os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "") {
		t.Fatalf("no time namespace can be made here: %v", err)
	} else if err != nil {
		t.Skipf("no time namespace can be made here: %v", err)
	}
	if id == boottime.ID() || id == "" {
		t.Errorf("%q in another time namespace, too", id)
	}
}
