package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// A lock without TTL whose third copy may be on a node that is down may be held without end: the page does
// not send anybody away with what is true of copies that were left behind.
func TestWhatIsSaidOfALockWithoutTTLWhileANodeIsDown(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 17, 25, 0, time.UTC)
	s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3, MaxTTL: 30 * time.Second}}
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		s.Nodes = append(s.Nodes, monitor.Node{Name: name, State: monitor.NodeServing, Since: now.Add(-time.Hour)})
	}
	s.Nodes[1].State, s.Nodes[1].Since = monitor.NodeDown, now
	held := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("a"), Len: 1}
	l := monitor.Lock{Key: safetext.New("job"), State: monitor.LockNoTTL, Holder: held.Token, Held: 2, Tokens: 1, Unending: true,
		Copies: monitor.PackCopies(held, monitor.Copy{State: monitor.CopyUnknown}, held, monitor.Copy{}, monitor.Copy{})}
	ctx := &Context{Glyphs: &Unicode, Snap: s, Now: now}
	said := []string{LockEnd(ctx, &l)}
	for _, f := range append(LockFacts(ctx, &l), MakerFacts(ctx, &l, []GrantDoc{{Began: now.Add(-time.Minute), TokenSHA: tokenSHA(l.Holder)}})...) {
		said = append(said, f.Label+": "+f.Text)
	}
	for _, bar := range LockBars(ctx, &l, 0, 20) {
		said = append(said, bar.Node+": "+bar.Note.Text)
	}
	// A guard fences n2 after its start, and lets it rejoin without its copy, as the lock never expires.
	for i := range s.Nodes {
		s.Nodes[i].GuardsKnown, s.Nodes[i].Guards = true, []announce.Guard{{ID: "g", Boot: announce.BootFenced}}
	}
	if cell, doc := lockAccess(ctx, &l), DocOfLock(&l, s); cell.Text != "may now" || doc.Access.When != "may now" {
		t.Errorf("who can get in: %s, %+v", cell.Text, doc.Access)
	}
	for _, f := range MarginFacts(ctx, &l) {
		said = append(said, f.Text)
	}
	text := strings.Join(said, "\n")
	for _, want := range []string{
		"another client can get in: maybe now: n2 does not answer",
		"may be held without end\n", "Means: no TTL on 2 of 5 nodes: may be held without end; nobody else gets the lock unless", "Held: maybe, without end",
		"n2: ? down: a copy there, if any, may have no TTL",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said:\n%s", want, text)
		}
	}
	for _, never := range []string{"can still grant", "Maker", "expires by", "never"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is said:\n%s", never, text)
		}
	}
}
