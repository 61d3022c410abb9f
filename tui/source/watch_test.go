package source

import (
	"context"
	"testing"
)

// A watch ends with its page, and its late results are not shown.
func TestWatch(t *testing.T) {
	var w Watch[int]
	var ends []context.Context
	n := 0
	begin := func(ctx context.Context) func() int {
		ends = append(ends, ctx)
		return func() int { n++; return n }
	}
	if w.While(t.Context(), false, 0, begin) != nil {
		t.Error("it looks where it is off")
	}
	first := w.While(t.Context(), true, 0, begin)().(SeenMsg[int])
	if first.It != 1 || !w.Shows(first) {
		t.Errorf("first %+v", first)
	}
	second, ok := first.Next().(SeenMsg[int])
	if !ok || second.It != 2 || w.While(t.Context(), true, 0, begin) != nil {
		t.Errorf("second %+v, or it began twice", second)
	}
	if w.While(t.Context(), false, 0, begin) != nil || w.Shows(second) || ends[0].Err() == nil || second.Next() != nil {
		t.Error("it goes on where it is off")
	}
	if again := w.While(t.Context(), true, 0, begin)().(SeenMsg[int]); w.Shows(second) || !w.Shows(again) {
		t.Error("an old look is shown")
	}
}
