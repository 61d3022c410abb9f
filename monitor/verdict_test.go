package monitor

import (
	"fmt"
	"testing"
	"time"

	"redlockctl/server/announce"
)

// goodCluster has five serving masters and no guard.
func goodCluster() Snapshot {
	s := Snapshot{Cluster: Cluster{Name: "test", N: 5, Quorum: 3, MaxTTL: 30 * time.Second}}
	for i := range 5 {
		s.Nodes = append(s.Nodes, Node{Name: fmt.Sprintf("n%d", i+1), State: NodeServing, GuardsKnown: true})
	}
	return s
}

// The verdict, its reason, and what is missing for a safe one.
func TestVerdicts(t *testing.T) {
	fenced, unseen, unfenced := announce.Guard{ID: "a", Boot: announce.BootFenced}, announce.Guard{ID: "b"}, announce.Guard{ID: "c", Boot: announce.BootUnfenced}
	guards := func(of ...announce.Guard) func(*Snapshot) {
		return func(s *Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Guards = of
			}
		}
	}
	all := func(fs ...func(*Snapshot)) func(*Snapshot) {
		return func(s *Snapshot) {
			for _, f := range fs {
				f(s)
			}
		}
	}
	down := func(lost ...int) func(*Snapshot) {
		return func(s *Snapshot) {
			for _, i := range lost {
				s.Nodes[i].State = NodeDown
			}
		}
	}
	danger := func(s *Snapshot) {
		s.Findings = append(s.Findings, Finding{ID: "split-lock", Severity: SeverityDanger, Title: "locks on which two clients may rely"})
	}
	const none = "not protected against restarts: no guard"
	for name, c := range map[string]struct {
		change  func(*Snapshot)
		want    Verdict
		reason  string
		missing string
	}{
		"plain servers are not safe":        {func(*Snapshot) {}, VerdictUnprotected, none, none},
		"guarded, each started fenced":      {guards(fenced), VerdictSafe, "", ""},
		"another guard has seen no start":   {guards(fenced, unseen), VerdictSafe, "", ""},
		"another guard saw an unfenced one": {guards(fenced, unfenced), VerdictUnprotected, "not protected against restarts: n1, n2, n3 and 2 more started unfenced", "not protected against restarts: n1, n2, n3 and 2 more started unfenced"},
		"guarded, and no start was seen": {guards(unseen), VerdictUnprotected, "protection against restarts is not known: start not seen yet",
			"protection against restarts is not known: start not seen yet"},
		"durable": {func(s *Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Persistent = true
			}
		}, VerdictSafe, "", ""},
		"one is left out": {all(guards(fenced), func(s *Snapshot) { s.Nodes[3].Guards = nil }), VerdictUnprotected,
			"not protected against restarts: no guard on n4", "not protected against restarts: no guard on n4"},
		"it cannot be seen": {func(s *Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].GuardsKnown = false
			}
		}, VerdictUnprotected, "protection against restarts is not known: guards cannot be seen", "protection against restarts is not known: guards cannot be seen"},
		"degraded, and guarded":     {all(guards(fenced), down(1)), VerdictDegraded, "n2 down", ""},
		"degraded, and not guarded": {down(1), VerdictDegraded, "n2 down; not protected against restarts: no guard", "not protected against restarts: no guard"},
		"a danger outranks":         {all(guards(fenced), danger, down(1)), VerdictDanger, "locks on which two clients may rely; n2 down", ""},
		"two dangers":               {all(guards(fenced), danger, danger), VerdictDanger, "2 dangers, the first: locks on which two clients may rely", ""},
		"nothing can be locked":     {all(guards(fenced), danger, down(0, 1, 2)), VerdictUnavailable, "n1 down, n2 down, n3 down; locks on which two clients may rely", ""},
		"too early to tell":         {all(guards(fenced), func(s *Snapshot) { s.Ripening, s.Young = 2, true }), VerdictUnknown, "looking longer at 2 locks", ""},
		"contenders, later":         {all(guards(fenced), func(s *Snapshot) { s.Ripening = 2 }), VerdictSafe, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := goodCluster()
			c.change(&s)
			s.Assess(true, true, nil)
			if got := s.Cluster; got.Verdict != c.want || got.Reason != c.reason || got.Missing != c.missing || got.Protected != (c.missing == "") {
				t.Errorf("%s: %q, missing %q", got.Verdict, got.Reason, got.Missing)
			}
		})
	}
	s := goodCluster()
	s.Assess(true, false, nil)
	if s.Cluster.Verdict != VerdictUnknown {
		t.Errorf("before the locks were read: %s", s.Cluster.Verdict)
	}
	s.Assess(true, true, &GuardView{Nodes: map[string]GuardedNode{}})
	own := &GuardView{Nodes: map[string]GuardedNode{}}
	for i := range s.Nodes {
		own.Nodes[s.Nodes[i].Name] = GuardedNode{Known: true, Verified: true, OpenFor: time.Second}
	}
	if s.Assess(true, true, own); s.Cluster.Verdict != VerdictSafe {
		t.Errorf("with a guard in this process: %s: %s", s.Cluster.Verdict, s.Cluster.Reason)
	}
}

// A cluster in which not all is well is not clean, also if no finding warns of it.
func TestTheVerdictCountsAsAFinding(t *testing.T) {
	for _, c := range []struct {
		verdict Verdict
		found   Severity
		want    Severity
	}{
		{VerdictSafe, SeverityInfo, SeverityInfo},
		{VerdictSafe, SeverityWarning, SeverityWarning},
		{VerdictDegraded, SeverityInfo, SeverityWarning},
		{VerdictUnprotected, SeverityInfo, SeverityWarning},
		{VerdictUnknown, SeverityInfo, SeverityWarning},
		{VerdictDegraded, SeverityDanger, SeverityDanger},
		{VerdictUnavailable, SeverityInfo, SeverityDanger},
	} {
		s := Snapshot{Cluster: Cluster{Verdict: c.verdict}, Findings: []Finding{{Severity: c.found}}}
		if got := s.Gravest(); got != c.want {
			t.Errorf("%s with %s: %s", c.verdict, c.found, got)
		}
	}
}

// Of many nodes the reason names the worst three, and says how many more there are.
func TestManyNodesInAReason(t *testing.T) {
	s := Snapshot{Cluster: Cluster{N: 21, Quorum: 11}}
	for i := range 21 {
		s.Nodes = append(s.Nodes, Node{Name: fmt.Sprintf("n%d", i+1), State: NodeServing, GuardsKnown: true})
	}
	for _, i := range []int{1, 2, 3, 4} {
		s.Nodes[i].State = NodeFenced
	}
	s.Nodes[19].State = NodeDown
	s.Nodes[20].Guards = []announce.Guard{{ID: "a", Boot: announce.BootFenced}}
	s.Assess(true, true, nil)
	want := "n20 down, n2 fenced, n3 fenced and 2 more; not protected against restarts: no guard on n1, n2, n3 and 16 more"
	if s.Cluster.Reason != want {
		t.Errorf("%q, want %q", s.Cluster.Reason, want)
	}
}
