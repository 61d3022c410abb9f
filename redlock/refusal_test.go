package redlock

import (
	"strings"
	"testing"
)

func TestRefusals(t *testing.T) {
	for text, want := range map[string]Status{
		"NOPERM this user has no permissions to run the 'set' command":                                             StatusDenied,
		"NOPERM ACL failure in script: User u has no permissions to run the 'del' command script: 3c, on @user":    StatusDenied,
		"ERR The user executing the script can't run this command or subcommand script: 3c, on @user_script:1.":    StatusDenied,
		"ERR Error running script (call to f_3c): @user_script:5: -NOPERM The user executing the script can't run": StatusDenied,
		"NOAUTH Authentication required.":               StatusDenied,
		"NOREPLICAS Not enough good replicas to write.": StatusFenced,
		"ERR Error running script (call to f_3c): @user_script:5: -NOREPLICAS Not enough good replicas to write.": StatusFenced,
		"READONLY You can't write against a read only replica.":                                                   StatusProtocol,
		"ERR unknown command 'NOPERM'": StatusProtocol,
	} {
		if got := (&call{request: &request{op: opRelease, key: "a"}}).refusal(text); got.Status != want || !strings.Contains(got.Err.Error(), text) {
			t.Errorf("%s: %s, %v", text, got.Status, got.Err)
		}
	}
}
