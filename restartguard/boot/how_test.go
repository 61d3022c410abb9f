package boot

import (
	"redlockctl/server/fences"
	"testing"
)

func TestSecretsOfACommandLineAreNotShown(t *testing.T) {
	for line, want := range map[string]string{
		"redis-server /c --requirepass hunter2":               "redis-server /c --requirepass (SECRET)",
		"redis-server --user a on >hunter2 ~* +@all --port 1": "redis-server --user (SECRET) --port 1",
		"redis-server --MasterAuth hunter2 --port 1":          "redis-server --MasterAuth (SECRET) --port 1",
		"redis-server --masteruser ann --port 1":              "redis-server --masteruser ann --port 1",
	} {
		if got := withoutSecrets(line); !canShow(line) || got != want {
			t.Errorf("%s: %s", line, got)
		}
	}
	if canShow(`redis-server --requirepass "a --b hunter2"`) || canShow("") {
		t.Error("a password in quotes may look as if it ended")
	}
}

// A method without its own words would look like one that fences nothing.
func TestEachMethodSaysHowToStart(t *testing.T) {
	said := map[string]bool{}
	for kind := range fences.Words() {
		how := HowToStart(fences.Method{Kind: fences.Kind(kind), User: "locks"}, Check{})
		if how.Text == "" || said[how.Text] || (how.Lines == nil) != (fences.Kind(kind) == fences.None) {
			t.Errorf("%s: %+v", fences.Kind(kind), how)
		}
		said[how.Text] = true
	}
}
