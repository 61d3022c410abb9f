package redlock_test

import (
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// Connections that a NAT drops without a word are noticed while nobody uses them, those of
// the locks and those that listen, so that the next attempt loses no vote.
func TestIdleConnectionsThatAreDroppedInSilence(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 3)
	proxies := labtest.Proxies(t, servers)
	nodes := make([]*redlock.Node, len(proxies))
	for i, p := range proxies {
		nodes[i] = p.Node()
	}
	c, err := redlock.New(nodes, patient())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	l := acquire(t, c, "kept", 10*time.Minute) // extended after minutes
	k, err := l.Keep(redlock.KeepOptions{})
	if err != nil {
		t.Fatal(err)
	}
	everywhere(t, c, l)
	eventually(t, "the copies are not listened to", func() bool { return redlock.Listened(k) == len(servers) })
	had := make([]int, len(proxies))
	for i, p := range proxies {
		had[i] = p.Conns()
		for _, d := range []labtest.Direction{labtest.ToServer, labtest.ToClient} {
			defer p.Strand(d)()
		}
	}
	dropped := time.Now()
	for i, p := range proxies {
		eventually(t, "the connections are not opened again", func() bool { return p.Conns() >= had[i]+2 })
	}
	t.Logf("noticed after %s", time.Since(dropped).Round(time.Millisecond))
	everywhere(t, c, acquire(t, c, "next", time.Minute))
	if _, err := k.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
