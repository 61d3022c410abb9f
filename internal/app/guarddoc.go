package app

import (
	"cmp"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// DocOfGuards is what is known of the guards: of the one on this machine by what it has
// written down, and of the one that was asked, if told is not nil.
func DocOfGuards(cfg *config.Config, s *monitor.Snapshot, told *metrics.Told) view.GuardsDoc {
	doc := view.GuardsDoc{DelayMs: cfg.Guard.Delay.Milliseconds(), StateDir: safetext.New(cfg.Guard.StateDir), Memory: "none"}
	memory, err := Remembered(cfg)
	switch {
	case err != nil:
		doc.Memory, doc.Error = "unreadable", safetext.OptionalError(err)
	case memory != nil:
		doc.Memory = "there"
	}
	doc.GuardsSeenDoc = DocOfSeen(GuardsOf(cfg, s))
	running, _ := GuardRuns(cfg)
	if told != nil {
		doc.Running = new(true)
	}
	methods, waits := Methods(cfg), map[string]time.Duration{}
	for _, n := range s.Nodes {
		one := view.GuardDoc{Name: safetext.New(n.Name), Addr: safetext.New(n.Addr), State: n.State.String(), Method: methods[n.Name].Kind.String(), BootFence: (&view.Guard{}).BootFence(&n)}
		// Of a node that does not answer it is not known whose incarnation comes next.
		if m, ok := memory[n.Name]; ok && m.Addr == n.Addr {
			one.Incarnations, one.Cordoned = m.Incarnations, m.Cordoned
			if one.Known = m.RunID == n.RunID && n.RunID != ""; one.Known {
				if m.Known {
					one.BootFence = "not verified"
					if m.Verified {
						one.BootFence = "verified"
					}
				}
				if running && m.Wait > 0 && n.State == monitor.NodeFenced {
					one.RejoinMs = new(m.Wait.Milliseconds())
				}
			}
		}
		if t, ok := toldOf(told, n.Name); ok {
			one.Known = t.Boot != announce.BootUnknown.String()
			one.BootFence = cmp.Or(map[string]string{
				announce.BootFenced.String(): "verified", announce.BootUnfenced.String(): "not verified",
			}[t.Boot], "unknown")
			one.RejoinMs = nil
			if t.Wait >= 0 && n.State == monitor.NodeFenced {
				one.RejoinMs, waits[n.Name] = new(t.Wait.Milliseconds()), t.Wait
			}
		}
		doc.Nodes = append(doc.Nodes, one)
	}
	o, known := OutlookOf(cfg, s)
	if told != nil {
		o, known = OutlookBy(s, waits)
	}
	if known || err == nil && memory != nil && !o.Possible() {
		doc.Outlook = safetext.Optional(o.Text(s.At))
		doc.OutlookDoc = view.DocOfOutlook(o, s.At)
	}
	return doc
}

func toldOf(told *metrics.Told, name string) (metrics.ToldNode, bool) {
	if told != nil {
		for _, n := range told.Nodes {
			if n.Name == name {
				return n, true
			}
		}
	}
	return metrics.ToldNode{}, false
}

// DocOfSeen is what can be told of the guards.
func DocOfSeen(g Guards) view.GuardsSeenDoc {
	doc := view.GuardsSeenDoc{Running: g.Running(), GuardsKnown: g.Known, Guards: []view.SeenGuardDoc{}}
	for _, one := range g.All {
		on := append([]safetext.Text{}, safetext.Texts(g.On(one))...)
		doc.Guards = append(doc.Guards, view.SeenGuardDoc{ID: one.ID, Host: one.Host, PID: one.PID, DelayMs: one.Delay.Milliseconds(), On: on})
	}
	return doc
}
