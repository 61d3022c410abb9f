package attempt

import (
	"testing"
	"time"
)

// TestCopies are the rules of what may be put back and what counts, with random
// histories of one node.
func TestCopies(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * float64(time.Second))) }
	var c Copies
	step := func(what string, counts, missing bool) {
		t.Helper()
		if c.Counts(0) != counts || c.Missing(0) != missing {
			t.Errorf("%s: counts %t, missing %t", what, c.Counts(0), c.Missing(0))
		}
	}
	c.Reset(1)
	c.Unanswered(0, "r1")
	step("may come late", false, false)
	c.Extended(0, StatusOK, "r1", at(1))
	c.Confirmed(at(2))
	step("came, perhaps behind a force-release", false, false)
	c.Confirmed(at(3))
	step("settled as one that was put back", true, false)
	c.Unanswered(0, "r1")
	c.Voted(0, "r1")
	step("answered in time", true, false)
	c.Reset(1)
	step("never asked", true, false)
	c.Extended(0, StatusAbsent, "r1", at(1))
	step("never there", true, true)
	c.Extended(0, StatusHeld, "r1", at(2))
	step("another is there", true, false)
	c.Extended(0, StatusAbsent, "r1", at(3))
	c.Repaired(0, StatusFenced, true, "r1", at(3))
	step("refused", true, true)
	c.Repaired(0, StatusOK, true, "r1", at(4))
	step("put back", false, false)
	c.Confirmed(at(5.9))
	step("an extension that began too soon", false, false)
	c.Extended(0, StatusOK, "r1", at(6))
	c.Confirmed(at(6))
	step("settled", true, false)
	c.Extended(0, StatusAbsent, "r1", at(8))
	step("deleted", true, false)
	c.Extended(0, StatusAbsent, "r2", at(9))
	step("restarted", true, true)
	c.Repaired(0, StatusSlow, true, "r2", at(10))
	c.Confirmed(at(20))
	step("not known to be there", false, false)
	c.Extended(0, StatusOK, "r2", at(21))
	c.Confirmed(at(20.9))
	step("known since just now", false, false)
	c.Extended(0, StatusAbsent, "r2", at(22))
	step("gone again", true, false)
	c.Extended(0, StatusAbsent, "", at(23))
	step("who is it?", true, false)
	c.May(0, "")
	c.Extended(0, StatusAbsent, "r3", at(24))
	step("it may have been here", true, false)
	c.Extended(0, StatusAbsent, "r4", at(25))
	step("and here not", true, true)
}
