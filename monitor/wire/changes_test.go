package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChangesAreReadOnceInTheirOrder(t *testing.T) {
	c := NewChanges()
	now := time.Now()
	c.Add("a", "b", "a")
	c.Add("c", "b")
	c.queuedUpTo(now)
	if keys, until := c.Take(2, 1<<20); !slices.Equal(keys, []string{"a", "b"}) || !until.IsZero() {
		t.Error(keys, until)
	}
	c.Add("a") // changed again since
	if keys, until := c.Take(10, 1<<20); !slices.Equal(keys, []string{"c", "a"}) || !until.IsZero() {
		t.Error(keys, until)
	}
	if keys, until := c.Take(10, 1<<20); keys != nil || !until.Equal(now) {
		t.Error(keys, until)
	}
	if _, until := c.Take(10, 1<<20); !until.IsZero() {
		t.Error("told twice")
	}
	c.Add("long", "longer")
	if keys, _ := c.Take(10, 4); !slices.Equal(keys, []string{"long"}) {
		t.Error(keys)
	}
}

// Constant changes do not keep old ones from being confirmed: otherwise a busy master
// would never confirm the state of a lock.
func TestWhatWasReadIsVouchedForUnderConstantChange(t *testing.T) {
	c := NewChanges()
	now := time.Now()
	c.Add("a", "b", "c")
	c.queuedUpTo(now)
	vouched := -1
	for round := range 10 {
		keys, until := c.Take(2, 1<<20)
		if len(keys) == 0 {
			t.Fatal("the queue was empty")
		}
		if !until.IsZero() {
			vouched = round
			break
		}
		c.Add(fmt.Sprint(round), fmt.Sprint(round, "b"))
	}
	if vouched != 2 { // a and b, then c and another; both have been read then
		t.Error(vouched)
	}
}

// Changes beyond the limit are found by a full read; until then nothing is confirmed.
func TestTooManyChangesAreAFullRead(t *testing.T) {
	for name, fill := range map[string]func(*Changes){
		"many": func(c *Changes) {
			for i := range changesKept + 1 {
				c.Add(fmt.Sprint(i))
			}
		},
		"long":  func(c *Changes) { c.Add(strings.Repeat("a", changesBytes/2), strings.Repeat("b", changesBytes/2), "c") },
		"flush": func(c *Changes) { c.flush() },
	} {
		t.Run(name, func(t *testing.T) {
			c := NewChanges()
			fill(c)
			c.queuedUpTo(time.Now())
			if keys, until := c.Take(10, 1<<20); keys != nil || !until.IsZero() {
				t.Error(keys, until)
			}
			if !c.Everything() || c.Everything() {
				t.Error("not once")
			}
		})
	}
}

func TestAFloodHasToLast(t *testing.T) {
	var f flood
	now := time.Now()
	second := func(keys int) (flooded bool) {
		for range 10 {
			flooded = f.count(push{other: keys / 10}, now) || flooded
			now = now.Add(100 * time.Millisecond)
		}
		return flooded
	}
	for range 2 {
		for _, keys := range []int{2 * floodKeys, 2 * floodKeys, floodKeys / 2, 0} {
			if second(keys) {
				t.Fatal("a short one")
			}
		}
	}
	n := 0
	for !second(2 * floodKeys) {
		if n++; n > 5 {
			t.Fatal("never")
		}
	}
}
