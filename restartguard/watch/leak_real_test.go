package watch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/restartguard"
	"redlockctl/restartguard/boot"
	"redlockctl/restartguard/oneshot"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

// startOf starts a server of a generation.
func startOf(t *testing.T, of labtest.Generation, args ...string) *lab.Server {
	t.Helper()
	servers, err := lab.StartServers(of.Bin, 1, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = servers.Close() })
	return servers[0]
}

const writeByScript = "return redis.call('set', KEYS[1], 'v', 'NX', 'PX', '20000')"

// TestScriptsMeetTheFence: on no server is a fence proven through which a script writes, and on one
// whose scripts pass it the guard says so.
func TestScriptsMeetTheFence(t *testing.T) {
	for _, of := range labtest.Generations(t) {
		t.Run(of.Name, func(t *testing.T) {
			t.Parallel()
			s := startOf(t, of, minreplicas.FenceArgs...)
			_, err := s.Do(t.Context(), "EVAL", writeByScript, 1, "k")
			leaks := err == nil
			g := guard(t, watch.Config{Delay: time.Minute}, s.Node())
			if !leaks {
				g.becomes("fenced and proven", func(st restartguard.NodeStatus) bool {
					return st.Phase == restartguard.PhaseFenced && st.Proven
				})
				return
			}
			st := g.reaches(restartguard.PhaseExposed)
			if st.Proven || st.Verified || !strings.Contains(st.Err, "script") {
				t.Errorf("a fence that scripts pass: %+v", st)
			}
			if err := oneshot.Cordon(t.Context(), s.Node(), fences.Method{}); !errors.Is(err, oneshot.ErrNotFenced) {
				t.Errorf("cordon: %v", err)
			}
		})
	}
}

// replicaOf makes a server that has a fence a replica of another.
func replicaOf(t *testing.T, s, master *lab.Server) {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	do(t, s, "REPLICAOF", host, port)
	if !wait(func() bool {
		info, _ := do(t, s, "INFO", "replication").(string)
		return strings.Contains(info, "master_link_status:up")
	}) {
		t.Fatal("never a replica")
	}
}

// TestReplicaStaysFenced: a replica is not let rejoin, and meets whoever promotes it with its fence up;
// a writable one is made read-only.
func TestReplicaStaysFenced(t *testing.T) {
	for _, of := range labtest.Generations(t) {
		if of.Name == "6.0" {
			continue // its fence does not hold for scripts
		}
		t.Run(of.Name, func(t *testing.T) {
			t.Parallel()
			s, master := startOf(t, of), startOf(t, of)
			do(t, s, "CONFIG", "SET", "replica-read-only", "no")
			replicaOf(t, s, master)
			g := guard(t, watch.Config{}, s.Node())
			g.reaches(restartguard.PhaseFenced)
			if !wait(func() bool { return !setsNX(t, s) }) {
				t.Fatal("a writable replica goes on taking votes behind its fence")
			}
			time.Sleep(2 * delay)
			if st := g.Status()[0]; st.Phase != restartguard.PhaseFenced || !strings.Contains(st.Reason, "replica") {
				t.Fatalf("a replica rejoins: %+v", st)
			}
			if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); !errors.Is(err, oneshot.ErrNotServing) {
				t.Errorf("rejoin of a replica by hand: %v", err)
			}
			promoted := time.Now()
			do(t, s, "REPLICAOF", "NO", "ONE")
			notBefore(t, delay, promoted, firstWrite(t, s))
			g.reaches(restartguard.PhaseServing)
		})
	}
}

func setsNX(t *testing.T, s *lab.Server) bool {
	t.Helper()
	_, err := s.Do(t.Context(), "SET", "vote", "v", "PX", "1")
	return err == nil
}

// TestLeakIsAnnounced: a monitor without its own guard learns that a fence does not hold.
func TestLeakIsAnnounced(t *testing.T) {
	for _, of := range labtest.Generations(t) {
		if of.Name != "6.0" {
			continue
		}
		s := startOf(t, of, minreplicas.FenceArgs...)
		guard(t, watch.Config{Delay: time.Minute}, s.Node()).reaches(restartguard.PhaseExposed)
		if !wait(func() bool {
			all := guardsOn(t, s)
			return len(all) == 1 && all[0].Fence == announce.FenceLeaks && strings.Contains(all[0].Leak.Raw(), "script")
		}) {
			t.Errorf("announced: %+v", guardsOn(t, s))
		}
	}
}

// TestBootCheckBehindALoader: of a server that was started through ld.so, with its title over its
// arguments, what its start showed counts.
func TestBootCheckBehindALoader(t *testing.T) {
	for _, of := range labtest.Generations(t) {
		if of.Name == "6.0" {
			continue
		}
		for _, title := range []string{"yes", "no"} {
			t.Run(of.Name+" title "+title, func(t *testing.T) {
				t.Parallel()
				s := startOf(t, of, append([]string{"--set-proc-title", title}, minreplicas.FenceArgs...)...)
				c, err := boot.CheckNode(t.Context(), s.Node(), fences.Method{}, nil)
				if err != nil || c.Boot != boot.Fenced {
					t.Errorf("%s, %q, %v", c.Boot, c.Because, err)
				}
				do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
				id := runID(t, s)
				saw := &restartguard.Fact{Known: true, Verified: true, RunID: id}
				if c, err = boot.CheckNode(t.Context(), s.Node(), fences.Method{}, saw); err != nil || c.Boot != boot.Fenced {
					t.Errorf("serving, as a guard saw it start: %s, %q, %v", c.Boot, c.Because, err)
				}
			})
		}
	}
}

// TestBootCheckKnowsScripts: on a version whose scripts pass it, a boot fence is none.
func TestBootCheckKnowsScripts(t *testing.T) {
	for _, of := range labtest.Generations(t) {
		if of.Name != "6.0" {
			continue
		}
		s := startOf(t, of, minreplicas.FenceArgs...)
		c, err := boot.CheckNode(t.Context(), s.Node(), fences.Method{}, nil)
		if err != nil || c.Boot != boot.Unfenced || !strings.Contains(strings.Join(c.Because, " "), "scripts") {
			t.Errorf("%s, %q, %v", c.Boot, c.Because, err)
		}
	}
}

func runID(t *testing.T, s *lab.Server) string {
	t.Helper()
	info, _ := do(t, s, "INFO", "server").(string)
	_, rest, _ := strings.Cut(info, "run_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	return id
}
