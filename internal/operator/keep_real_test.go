package operator_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
)

// The release of a kept lock has the answer of each node, and so has the log: one
// that answers after a quorum deleted its copy too.
func TestReleaseOfAKeptLockHasAllAnswers(t *testing.T) {
	proxies := labtest.Proxies(t, labtest.Servers(t, 5))
	nodes := make([]*redlock.Node, len(proxies))
	for i, p := range proxies {
		nodes[i] = p.Node()
	}
	client, err := redlock.New(nodes, redlock.Options{NodeTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	o, path := logged(t, client)
	if _, err := o.Inspect(t.Context(), "job"); err != nil { // all are connected
		t.Fatal(err)
	}
	k, err := o.Keep(t.Context(), "job", 30*time.Second, operator.AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	proxies[0].Delay(labtest.ToClient, 100*time.Millisecond, 100*time.Millisecond)
	proxies[3].Delay(labtest.ToClient, 100*time.Millisecond, 100*time.Millisecond)
	results, err := k.Release(t.Context())
	if err != nil || slices.ContainsFunc(results, func(r redlock.NodeResult) bool { return r.Status != redlock.StatusOK || !r.MayLiveUntil.IsZero() }) {
		t.Errorf("%+v, %v; want a copy deleted on each node", results, err)
	}
	lines, err := audit.Latest(path, 1, func(audit.Entry) bool { return true })
	if want := "n1 ok, n2 ok, n3 ok, n4 ok, n5 ok"; err != nil || lines[0].Act != "release" || lines[0].Detail != want {
		t.Errorf("the log ends with %+v, %v; want %s", lines, err, want)
	}
}

// A kept lock that is lost leaves no copies that would keep others out.
func TestALostKeptLockLeavesNoCopies(t *testing.T) {
	servers := labtest.Servers(t, 3)
	client, err := redlock.New(labtest.Nodes(servers), redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	o, _ := logged(t, client)
	k, err := o.KeepWith(t.Context(), "job", time.Minute, operator.AcquireOptions{}, redlock.KeepOptions{Every: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers[:2] {
		if _, err := s.Do(t.Context(), "SET", "job", "another", "PX", 60000); err != nil {
			t.Fatal(err)
		}
	}
	if state, err := k.Hold(t.Context(), func(redlock.KeeperState, error) {}); state != redlock.Lost {
		t.Fatalf("%s, %v", state, err)
	}
	if left, err := servers[2].Do(t.Context(), "EXISTS", "job"); err != nil || left != int64(0) {
		t.Errorf("its copy is still there: %v, %v", left, err)
	}
	if v, err := servers[0].Do(t.Context(), "GET", "job"); err != nil || v != "another" {
		t.Errorf("the other client's copy is %v now, %v", v, err)
	}
}

// logged returns an operator with an audit log, and the path of the log.
func logged(t *testing.T, client *redlock.Client) (o *operator.Operator, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return operator.New(client, operator.Options{Cluster: "test", Log: log}), path
}
