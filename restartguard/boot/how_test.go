package boot

import (
	"testing"

	"redlockctl/restartguard"
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
	for kind := range restartguard.MethodWords() {
		how := HowToStart(restartguard.Method{Kind: restartguard.MethodKind(kind), User: "locks"}, Check{})
		if how.Text == "" || said[how.Text] || (how.Lines == nil) != (restartguard.MethodKind(kind) == restartguard.MethodNone) {
			t.Errorf("%s: %+v", restartguard.MethodKind(kind), how)
		}
		said[how.Text] = true
	}
}
