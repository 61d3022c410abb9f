package monitor

import (
	"testing"

	"redlockctl/server/safetext"
)

// Of an announced token only the start is known, and of a long one only that was read.
func TestATokenIsKnownByItsStart(t *testing.T) {
	for shown, want := range map[string]bool{"token-1": true, "to…": true, "to": true, "tx…": false, "token-2": false, "": false} {
		if IsToken(safetext.New(shown), "token-1") != want {
			t.Errorf("%q: not %v", shown, want)
		}
	}
}
