package view

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// A contender's copy beside a lost majority is named, with its node, on the lock's page and by who.
func TestAContendersCopyIsNamed(t *testing.T) {
	now := monitortest.Epoch
	l := monitortest.LockOf(now, "job:1", monitor.LockLostMajority, monitortest.TokenA, "- 4b - 9 9").Until(now.Add(9 * time.Second))
	ctx := &Context{Glyphs: Plain(true), Snap: monitortest.Safe(now), Now: now}
	text := "2: " + ctx.Token(l.Copies.At(1).Token) + " on n2; " + ctx.Token(l.Holder) + " on n4 n5"
	if !slices.ContainsFunc(LockFacts(ctx, &l), func(f Fact) bool { return f.Label == "Tokens" && f.Text == text }) {
		t.Errorf("%+v", LockFacts(ctx, &l))
	}
	if got := WhoElseRelies(ctx, &l); !slices.Equal(got, []string{"copies of several tokens: " + text}) {
		t.Error(got)
	}
}
