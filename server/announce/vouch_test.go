package announce

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"redlockctl/server/safetext"
)

func TestWhatIsKnownOfALockTravels(t *testing.T) {
	for _, want := range []Lock{
		{Key: safetext.New("job:1"), Token: TokenSum("secret"), Short: ShortToken("secret"), Until: time.UnixMilli(1_790_000_000_123), Lost: []string{"n1", "n3"}},
		{Key: safetext.New("a b&c=d\x1b["), Token: TokenSum("x"), Ended: true},
		{Key: safetext.New("k"), Token: TokenSum("y")}, // no TTL
	} {
		c, ok := want.Channel()
		if !ok || strings.Contains(c, "secret") {
			t.Errorf("%q %t", c, ok)
		}
		if got := DecodeLocks([]string{c}); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%+v, not %+v", got, want)
		}
		if guards := DecodeAll([]string{c}); len(guards) != 0 {
			t.Errorf("a lock is read as a guard: %+v", guards)
		}
	}
	if _, ok := (Lock{Key: safetext.New(strings.Repeat("k", 600))}).Channel(); ok {
		t.Error("a key too long is announced")
	}
	for _, bad := range []string{"", LockPrefix, LockPrefix + "1:", LockPrefix + "1:key=k", LockPrefix + "1:key=k&token=abc", LockPrefix + "2:key=k&token=AAAAAAAAAAA", LockPrefix + "1:key=k&token=AAAAAAAAAAA&until=-5", LockPrefix + "1:key=k&token=AAAAAAAAAAA&until=x"} {
		if got := DecodeLocks([]string{bad}); got != nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}

func FuzzDecodeLocks(f *testing.F) {
	c, _ := Lock{Key: safetext.New("job"), Token: TokenSum("a"), Short: "a", Until: time.UnixMilli(1), Lost: []string{"n1"}}.Channel()
	f.Add(c)
	f.Fuzz(func(t *testing.T, channel string) {
		for _, l := range DecodeLocks([]string{channel}) {
			again, ok := l.Channel()
			if ok && !reflect.DeepEqual(DecodeLocks([]string{again}), []Lock{l}) {
				t.Errorf("%q: %+v", channel, l)
			}
		}
	})
}
