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

	// A fence: the copy is found there and not extended, until its own end.
	fenced := func(ends float64) {
		c.Reset(1)
		c.Voted(0, "r1")
		if ends > 0 {
			c.Ends(0, at(ends))
		}
		c.Refused(0, "r1")
	}
	gone := func(what string, on string, s float64, missing bool) {
		t.Helper()
		c.Extended(0, StatusAbsent, on, at(s))
		step(what, true, missing)
	}
	fenced(8)
	gone("it expired", "r1", 8, true)
	c.Extended(0, StatusAbsent, "r1", at(9))
	c.Extended(0, StatusHeld, "r1", at(10))
	gone("and nobody had it since", "r1", 11, true)
	c.Repaired(0, StatusOK, true, "r1", at(12))
	gone("deleted after it was put back", "r1", 13, false)
	fenced(8)
	gone("deleted before its end", "r1", 7.9, false)
	gone("and that is known", "r1", 9, false)
	fenced(8)
	c.Ends(0, at(6))
	gone("an extension shortens nothing", "r1", 7, false)
	fenced(0)
	gone("its end is not known", "r1", 8, false)
	fenced(8)
	c.Ends(0, time.Time{})
	gone("it may have been extended", "r1", 9, false)
	for _, s := range []Status{StatusOK, StatusHeld, StatusSlow, StatusFenced, StatusProtocol} {
		fenced(8)
		c.Extended(0, s, "r1", at(7))
		gone("then "+s.String(), "r1", 9, false)
	}
	fenced(8)
	c.Refused(0, "r2")
	gone("another incarnation refused", "r1", 9, false)
	fenced(8)
	c.May(0, "")
	c.Refused(0, "r1")
	gone("which one has it?", "r1", 9, false)
}
