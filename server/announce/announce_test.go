package announce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockctl/server/safetext"
)

func TestAnnouncementComesBackAsItWas(t *testing.T) {
	for _, g := range []Guard{
		{ID: "A1", Delay: 30350 * time.Millisecond, Host: safetext.New("ops-1.example.org"), PID: 4711, Cluster: safetext.New("billing")},
		{ID: "Z", Delay: time.Millisecond, Boot: BootFenced, Use: UseNone},
		{ID: "l", Delay: time.Second, Fence: FenceLeaks, Leak: safetext.New("scripts write & more")},
		{ID: "f", Delay: time.Second, Fence: FenceCordoned},
		{ID: "b2", Delay: MostDelay, Run: "5a0c1e2f3b4d", Boot: BootUnfenced, Exposed: 7 * time.Millisecond, Use: UseSeen},
		{ID: "d", Delay: time.Second, MayVote: time.UnixMilli(1_700_000_000_123), NoLossSince: time.UnixMilli(1_600_000_000_123), Wipes: 3, Cordoned: true, Drained: true},
		{ID: "c", Delay: time.Second, Host: safetext.New("a&b=c:%\x1b[2J\u202e*?"), Cluster: safetext.New("two words")},
	} {
		if got, ok := Decode(g.Channel()); !ok || got != g {
			t.Errorf("%+v came back from %q as %+v (%v)", g, g.Channel(), got, ok)
		}
	}
}

func TestTimesAreRoundedUp(t *testing.T) {
	g, _ := Decode(Guard{ID: "a", Delay: time.Second + 1, Boot: BootUnfenced, Exposed: 1}.Channel())
	if g.Delay != 1001*time.Millisecond || g.Exposed != time.Millisecond {
		t.Errorf("D %s, exposed %s", g.Delay, g.Exposed)
	}
}

func TestNothingElseIsAnAnnouncement(t *testing.T) {
	for _, c := range []string{
		"", "redlockctl:guard:", "redlockctl:guard:1:", "redlockctl:guard:2:id=a&d=1", "redlockctl:guard:1:id=a",
		"redlockctl:guard:1:id=a&d=0", "redlockctl:guard:1:id=a&d=-5", "redlockctl:guard:1:id=a&d=1s", "redlockctl:guard:1:id=a-b&d=1",
		"redlockctl:guard:1:id=&d=1", "redlockctl:guard:1:id=%zz&d=1", "redlockctl:guard:1:id=a;d=1",
		"redlockctl:guard:1:id=" + strings.Repeat("a", 65) + "&d=1", "redlockctl:guard:1:id=a&d=1&x=" + strings.Repeat("y", 2000),
	} {
		if g, ok := Decode(c); ok {
			t.Errorf("%q is taken for %+v", c, g)
		}
	}
}

func TestAbsurdDelayCountsAsTheMost(t *testing.T) {
	for _, d := range []string{"86400001", "9223372036854775807", "9999999999999999999"} {
		g, ok := Decode("redlockctl:guard:1:id=a&d=" + d)
		if !ok || g.Delay != MostDelay || !g.Absurd {
			t.Errorf("%s: %+v %v", d, g, ok)
		}
	}
	if g, _ := Decode("redlockctl:guard:1:id=a&d=86400000"); g.Absurd {
		t.Error("a day is a delay that a guard may have")
	}
}

func TestGreatestIsNeverLeftOut(t *testing.T) {
	var channels []string
	for i := range 10000 {
		channels = append(channels, Guard{ID: fmt.Sprint("g", i), Delay: time.Second}.Channel())
	}
	channels = append(channels, Guard{ID: "own", Delay: time.Minute}.Channel(), Guard{ID: "own", Delay: time.Hour}.Channel(),
		Guard{ID: "slow", Delay: 2 * time.Minute}.Channel(), "noise")
	all := DecodeAll(channels)
	if len(all) != mostGuards || all[0].Delay != time.Hour {
		t.Fatalf("%d guards, the first with %s", len(all), all[0].Delay)
	}
	if d := Greatest(all, "own"); d != 2*time.Minute {
		t.Errorf("the greatest D of the others is %s", d)
	}
	if d := Greatest(nil, ""); d != 0 {
		t.Errorf("of nobody it is %s", d)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Guard{ID: "A1", Delay: time.Second, Host: safetext.New("h"), PID: 1, Cluster: safetext.New("c"), Boot: BootUnfenced, Exposed: time.Second}.Channel())
	f.Add("redlockctl:guard:1:id=a&d=9999999999999999999&host=%00%1b")
	f.Fuzz(func(t *testing.T, channel string) {
		g, ok := Decode(channel)
		if !ok {
			return
		}
		if g.Delay <= 0 || g.Delay > MostDelay || !isID(g.ID) || len(g.Host.Raw()) > 3*mostName || g.Exposed < 0 || g.PID < 0 {
			t.Fatalf("%q gives %+v", channel, g)
		}
		// Encoding an accepted announcement again keeps its meaning.
		again, ok := Decode(g.Channel())
		if g.Absurd = false; !ok || again.ID != g.ID || again.Delay != g.Delay || again.Boot != g.Boot || again.Use != g.Use {
			t.Fatalf("%q gives %+v, and that %+v (%v)", channel, g, again, ok)
		}
	})
}
