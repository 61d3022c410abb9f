package words

import (
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{1023: "1023 B", 1 << 20: "1.0 MiB", 5 << 40: "5.0 TiB", 1 << 60: "1048576.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, not %q", n, got, want)
		}
	}
}

// Over midnight a time of day still says which moment is meant.
func TestMomentHasADateWhereItsTimeIsNotEnough(t *testing.T) {
	now := time.Date(2026, 11, 28, 23, 59, 50, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		time.Minute: "00:00:50", -12*time.Hour + 1: "11:59:50", 12 * time.Hour: "2026-11-29 11:59:50", -24 * time.Hour: "2026-11-27 23:59:50",
	} {
		if got := Moment(now.Add(d), now); got != want {
			t.Errorf("Moment of %s from now is %q, not %q", d, got, want)
		}
	}
	if got := Moment(time.Time{}, now); got != "–" {
		t.Errorf("Moment of no time is %q", got)
	}
}
