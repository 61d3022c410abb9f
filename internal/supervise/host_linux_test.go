package supervise

import (
	"testing"

	"redlockctl/restartguard"
)

// The number of a time namespace that has ended is given to another: the name of a boot has
// the shift of the clock in it too, for a supervisor as for a guard.
func TestABootHasTheNameThatGuardsGiveIt(t *testing.T) {
	h, err := newHost()
	if want := restartguard.BootID(); err != nil || h.now().Boot != want || want == "" {
		t.Errorf("boot %q, want %q: %v", h.now().Boot, want, err)
	}
}
