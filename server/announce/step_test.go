package announce

import (
	"testing"
	"time"
)

func TestStepIsReadAsItWasAnnounced(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_123)
	older, s := Step{12 * time.Second, at.Add(-time.Minute)}, Step{-20 * time.Second, at}
	got := DecodeStep([]string{older.Channel(), s.Channel(), Prefix + "step:1:by=x&at=1", Prefix + "step:1:by=5&at=-1", Prefix + "step:1:by=9223372036854775807&at=1800000009999", Prefix + "step:2:by=1&at=1800000009999"})
	if got == nil || got.By != s.By || !got.At.Equal(s.At) {
		t.Errorf("%+v", got)
	}
	if got := DecodeStep([]string{Guard{ID: "a", Delay: time.Second}.Channel()}); got != nil {
		t.Errorf("%+v", got)
	}
	if _, ok := Decode(s.Channel()); ok {
		t.Error("it is taken for a guard")
	}
}
