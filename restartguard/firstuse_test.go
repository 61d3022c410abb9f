package restartguard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
)

// What nobody can vouch for may not vote before D, by the greatest D that is announced.
func TestFirstUse(t *testing.T) {
	const testD = 10 * time.Second
	up, cordonedUp, serving := minreplicas.Params{MinReplicas: minreplicas.FenceUp, MaxLag: 10}, minreplicas.Params{MinReplicas: minreplicas.FenceCordon, MaxLag: 10}, minreplicas.Params{MinReplicas: minreplicas.FenceNone, MaxLag: 10}
	now := time.Now()
	watched := func(u announce.Use) []announce.Guard {
		return []announce.Guard{{ID: "A", Delay: time.Minute, Use: announce.UseNone}, {ID: "B", Delay: 2 * testD, Use: u}}
	}
	unused := func() FirstUse {
		return FirstUse{Node: "n1", Seen: Observation{Role: "master", Params: up}, Guards: watched(announce.UseNone)}
	}
	if from, why := unused().MayVoteFrom(now, testD); why != nil || !from.Equal(now) {
		t.Fatalf("a new node waits until %s: %v", from, why)
	}
	for name, c := range map[string]struct {
		change func(*FirstUse)
		why    string
	}{
		"a guard has seen the cluster in use":     {func(f *FirstUse) { f.Guards = watched(announce.UseSeen) }, "guard B has known it in use"},
		"a guard does not say":                    {func(f *FirstUse) { f.Guards = watched(announce.UseUnknown) }, "does not say whether it was in use"},
		"nobody watches":                          {func(f *FirstUse) { f.Guards = nil }, "no guard announces itself"},
		"the guard here remembers that it served": {func(f *FirstUse) { f.Remembered.Served = true }, "has known node"},
		"or that it restarted":                    {func(f *FirstUse) { f.Remembered.Incarnations = 2 }, "has known node"},
		"it serves":                               {func(f *FirstUse) { f.Seen.Params = serving }, "neither fenced"},
		"it is cordoned":                          {func(f *FirstUse) { f.Seen.Params = cordonedUp }, "cordoned"},
		"it was configured":                       {func(f *FirstUse) { f.Seen.Configured = true }, "may have served"},
		"it has a lock":                           {func(f *FirstUse) { f.Keys = 1 }, "holds keys"},
		"it is a replica":                         {func(f *FirstUse) { f.Seen.Role = "slave" }, "role"},
		"its fence cannot be read":                {func(f *FirstUse) { f.Seen.Blind = true }, "neither fenced"},
	} {
		f := unused()
		c.change(&f)
		want := now.Add(announce.Greatest(f.Guards, ""))
		if f.Guards == nil {
			want = now.Add(testD)
		}
		from, why := f.MayVoteFrom(now, testD)
		if why == nil || !strings.Contains(why.Error(), c.why) || !from.Equal(want) || errors.Is(why, ErrNoGuard) != (f.Guards == nil) {
			t.Errorf("%s: may vote %s from now: %v", name, from.Sub(now), why)
		}
	}
}
