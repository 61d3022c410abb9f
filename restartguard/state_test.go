package restartguard

import (
	"encoding/json"
	"testing"
	"time"
)

func TestLossBy(t *testing.T) {
	before := Incarnation{RunID: "a", Role: "master", Wipes: 3, Evicted: 2, Commands: 100, Former: "0000"}
	for name, c := range map[string]struct {
		change func(*Incarnation)
		want   lossKind
	}{
		"nothing":                             {func(*Incarnation) {}, noLoss},
		"more commands":                       {func(i *Incarnation) { i.Commands++ }, noLoss},
		"another process":                     {func(i *Incarnation) { *i = Incarnation{RunID: "b", Role: "slave"} }, lossRestart},
		"a replica":                           {func(i *Incarnation) { i.Role = "slave" }, lossRole},
		"a replica between two looks":         {func(i *Incarnation) { i.Former = "a1" }, lossReplaced},
		"a backlog that was let go":           {func(i *Incarnation) { i.Former = "" }, noLoss},
		"a flush":                             {func(i *Incarnation) { i.Wipes++ }, lossWipe},
		"an eviction":                         {func(i *Incarnation) { i.Evicted++ }, lossEviction},
		"counters that were reset":            {func(i *Incarnation) { i.Wipes, i.Evicted, i.Commands = 0, 0, 1 }, noLoss},
		"a flush behind a reset":              {func(i *Incarnation) { i.Wipes, i.Evicted, i.Commands = 1, 0, 1 }, lossWipe},
		"as many flushes as before the reset": {func(i *Incarnation) { i.Evicted, i.Commands = 0, 10 }, lossWipe},
	} {
		now := before
		c.change(&now)
		if got := before.lossBy(now); got != c.want {
			t.Errorf("%s: loss %d, want %d", name, got, c.want)
		}
	}
}

// What earlier versions have written of a node is read.
func TestTheRecordsNamesStay(t *testing.T) {
	const written = `{"addr":"h:1","fence":"min-replicas","run_id":"a","role":"master","wipes":1,"evicted":2,"cause":"restarted","hold":true,"owed":3,
		"revert":4,"known":true,"verified":true,"lives":5,"opened":true,"leaked":true,"open":true,"exposed_ns":6,"at_start":true,
		"boot_exposed_ns":7,"deadline_ns":8,"delay_ns":9,"open_since_ns":10,"last_seen_ns":11,"clock":{"Sent":1,"Got":2,"Wall":3,"Denied":false},
		"clock_at_ns":12,"clock_drift_ns":13,"astray":true,"astray_lift":true,"astray_conn":14,"astray_until_ns":15,"commands":16,
		"former":"f","counter":17,"counter_until_ns":18}`
	var got record
	if err := json.Unmarshal([]byte(written), &got); err != nil {
		t.Fatal(err)
	}
	want := record{
		Addr: "h:1", Fence: "min-replicas",
		Incarnation: Incarnation{RunID: "a", Role: "master", Wipes: 1, Evicted: 2, Commands: 16, Former: "f"},
		Cordoned:    true, Owed: 3, Fencing: Fencing{Revert: 4, Leaked: true, Delay: 9},
		Starts: Starts{Known: true, Verified: true, Incarnations: 5, Served: true, Unfenced: true, Exposed: 6, AtStart: true, BootExposed: 7,
			Cause: "restarted"},
		ClockBase: ClockBase{Clock: Reading{Sent: 1, Got: 2, Wall: 3}, ClockAt: 12, ClockDrift: 13},
		Deadline:  8, OpenSince: 10, LastSeen: 11, PendingSent: true, PendingRemoval: true, PendingConn: 14, PendingUntil: 15,
		Counter: 17, CounterUntil: 18,
	}
	if got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// What is for people does not decide.
func TestDecidingLeavesOutWhatIsToldOnly(t *testing.T) {
	a := State{Phase: PhaseFenced, Duty: Duty{Kind: DutyWait}}
	b := a
	b.Starts, b.Moments, b.Report = Starts{Incarnations: 3, Cause: "x"}, Moments{LastSeen: epoch}, Report{Reason: "y", Since: epoch.Add(time.Second)}
	if a.Deciding() != b.Deciding() {
		t.Error("they decide differently")
	}
	if b.Leaked = true; a.Deciding() == b.Deciding() {
		t.Error("they decide alike")
	}
}
