package schedule

import "testing"

func TestFaultsAreReadAsTheyAreWritten(t *testing.T) {
	for s := range AllFaults + 1 {
		if got, err := ParseFaults(s.String()); err != nil || got != s {
			t.Errorf("%s is read as %s, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "crashes", "crash,", "all,crash"} {
		if _, err := ParseFaults(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
