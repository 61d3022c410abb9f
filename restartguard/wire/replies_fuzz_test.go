package wire

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
	"redlockctl/restartguard/fence"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
	"redlockctl/server/serverinfo"
)

// settings answers CONFIG GET.
type settings struct {
	redis.Pipeliner
	values map[string]string
}

func (s settings) ConfigGet(ctx context.Context, name string) *redis.MapStringStringCmd {
	c := redis.NewMapStringStringCmd(ctx)
	c.SetVal(map[string]string{name: s.values[name]})
	return c
}

// FuzzReplies: whatever a server's replies say, what is read of them can be shown and
// compared, and no node rejoins before D has passed since it was seen first.
func FuzzReplies(f *testing.F) {
	const server = "# Server\r\nredis_version:7.0.15\r\nrun_id:0123456789abcdef\r\n"
	const replication = "# Replication\r\nrole:master\r\nmaster_replid2:0000\r\nmin_slaves_good_slaves:0\r\n"
	const stats = "total_commands_processed:7\r\nevicted_keys:0\r\n"
	f.Add(server, replication, stats, "cmdstat_flushall:calls=1,usec=2\r\ncmdstat_config|set:calls=2,usec=3\r\n", "2147483647", "10", "redlockctl:guard:1", uint8(0))
	f.Add(server, replication, stats, "", "0", "10", "", uint8(1))
	f.Add(server, replication, stats, "", "2147483646", "0", "", uint8(2))
	f.Add(server, replication, stats, "cmdstat_flushdb:calls=99999999999999999999\r\n", "x", "", "", uint8(4))
	f.Add("run_id:\x1b[2J\r\n", "role:slave\r\n", "", "", "1", "1", "", uint8(8))
	f.Fuzz(func(t *testing.T, server, replication, stats, commands, replicas, lag, channel string, how uint8) {
		p := restartguard.Policy{Delay: 10 * time.Second, Sweep: how&1 != 0, FirstContact: restartguard.FirstContact(how >> 1 & 1)}
		now := time.Unix(1700000000, 0)
		o := restartguard.Observation{About: restartguard.Seen, Sent: now, Conn: 1}
		if readInfo(&o, server, replication, stats, commands, fence.Of(fences.Method{Kind: fences.Kind(how >> 2 & 1)}).Traits().Sets) != nil {
			return
		}
		if !serverinfo.IsWord(o.RunID) || !serverinfo.IsWord(o.Role) || o.Former != "" && !serverinfo.IsWord(o.Former) {
			t.Fatalf("%q, %q, %q cannot be shown", o.RunID, o.Role, o.Former)
		}
		if o.Wipes < 0 {
			t.Skip("a server that counts beyond 64 bits")
		}
		params, err := fence.Of(fences.Method{}).Ask(t.Context(), settings{values: map[string]string{minreplicas.Param: replicas, minreplicas.LagParam: lag}})()
		o.Params, o.Blind = params, err != nil
		o.Lacking = lacksReplicas(replication, o.Params, !o.Blind)
		for _, g := range announce.DecodeAll([]string{channel}) {
			o.Heard = max(o.Heard, g.Delay)
		}
		first := o.Params
		var s restartguard.State
		for _, after := range []time.Duration{0, p.Delay / 2, p.Delay - 1} {
			o.Sent = now.Add(after)
			var todo []restartguard.Action
			s, todo, _ = restartguard.Step(p, s, o, o.Sent)
			for n := 0; len(todo) > 0 && n < 8; n++ {
				a := todo[0]
				if a.RunID != o.RunID {
					t.Fatalf("%+v is meant for another life", a)
				}
				done := restartguard.Observation{RunID: o.RunID, Conn: 1, Sent: o.Sent, Before: o.Params, Params: o.Params}
				switch a.Kind {
				case restartguard.Remove:
					if a.Value == minreplicas.FenceNone && first.Fenced() {
						t.Fatalf("rejoins after %s", after)
					}
					done.About, o.Params.MinReplicas = restartguard.Removing, a.Value
				case restartguard.Raise:
					done.About, o.Params = restartguard.Raising, minreplicas.Params{MinReplicas: a.Value, MaxLag: max(1, o.Params.MaxLag)}
				case restartguard.Prove:
					done.About, done.Canary = restartguard.Proving, restartguard.CanaryFenced
				case restartguard.Kill:
					done.About, done.Gone, done.Swept = restartguard.Killing, true, true
				case restartguard.Count:
					done.About, done.Counted, done.Counter = restartguard.Counting, true, 1
				}
				done.Params = o.Params
				var more []restartguard.Action
				s, more, _ = restartguard.Step(p, s, done, o.Sent)
				todo = append(todo[1:], more...)
			}
		}
	})
}
