package fence

import (
	"errors"
	"testing"
)

func TestRefusalsOfCanaries(t *testing.T) {
	const before7 = "ERR Error running script (call to f_1162f50f67c5095cc491ebad9dd87eecf81a7471): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write."
	for text, want := range map[string][2]bool{
		before7: {true, false},
		"ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'":    {false, true},
		"ERR Error compiling script (new function): user_script:1: unexpected symbol near 'call'": {false, false},
		"NOPERM this user has no permissions to run the 'eval' command":                           {false, false},
	} {
		err := errors.New(text)
		if got := [2]bool{isNoReplicas(err), isUnknownScript(err)}; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
