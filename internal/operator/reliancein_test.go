package operator

import (
	"testing"
	"time"
)

// What is logged of a reliance is read again, until it ends.
func TestRelianceIn(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	for _, c := range []struct {
		r    reliance
		want string
	}{
		{reliance{}, ""},
		{reliance{known: true}, "may rely on it without end"},
		{reliance{true, now.Add(19 * time.Second)}, "may rely on it until 12:00:19"},
		{reliance{true, now.Add(300 * time.Millisecond)}, "may rely on it until 12:00:00"}, // the log has the fraction
		{reliance{true, now.Add(-time.Second)}, ""},
	} {
		if got := RelianceIn("gone on n1, n2; "+c.r.String()+"; more", now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
