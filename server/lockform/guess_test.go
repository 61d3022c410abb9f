package lockform

import (
	"testing"

	"redlockctl/server/safetext"
)

// A library is a guess, unless the token names its holder.
func TestGuess(t *testing.T) {
	f := Form{Library: "redsync"}
	if f.Guess() != "perhaps redsync" || f.MadeBy() != "perhaps made by redsync" {
		t.Errorf("%q, %q", f.Guess(), f.MadeBy())
	}
	f.Owner = safetext.New("web-7")
	if f.Guess() != "redsync" || f.MadeBy() != "made by redsync" {
		t.Errorf("%q, %q", f.Guess(), f.MadeBy())
	}
}
