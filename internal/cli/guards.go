package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/announce"
	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// guardsJSON is what a guard on this machine has written down, beside what is
// seen of the nodes now.
type guardsJSON struct {
	DelayMs  int64         `json:"delay_ms"`
	StateDir safetext.Text `json:"state_dir"`
	Memory   string        `json:"memory"` // there, none or unreadable
	guardsSeenJSON
	Error *safetext.Text  `json:"error,omitempty"`
	Nodes []view.GuardDoc `json:"nodes"`
	// As in the document of status.
	FirstNode    *safetext.Text `json:"first_rejoin_node,omitempty"`
	FirstMs      *int64         `json:"first_rejoin_ms,omitempty"`
	QuorumBackMs *int64         `json:"quorum_back_ms,omitempty"`
	Outlook      *safetext.Text `json:"outlook,omitempty"`
}

// viewGuard is the same for those who show nodes.
func (g guardsJSON) viewGuard(s *monitor.Snapshot) view.Guard {
	var list []restartguard.NodeStatus
	for i, one := range g.Nodes {
		status := restartguard.NodeStatus{Node: s.Nodes[i].Name, Known: one.BootFence != "unknown", Verified: one.BootFence == "verified", Phase: restartguard.PhaseServing}
		if one.RejoinMs != nil {
			status.Phase, status.Until = restartguard.PhaseFenced, s.At.Add(time.Duration(*one.RejoinMs)*time.Millisecond)
		}
		if status.Known || one.RejoinMs != nil {
			list = append(list, status)
		}
	}
	guard := view.NewGuard("", list)
	guard.Configured = time.Duration(g.DelayMs) * time.Millisecond
	guard.See(s)
	return guard
}

// guardsOf is what is known of the guards: of the one on this machine by what it has
// written down, and of the one that was asked, if told is not nil.
func guardsOf(cfg *config.Config, s *monitor.Snapshot, told *metrics.Told) guardsJSON {
	doc := guardsJSON{DelayMs: cfg.Guard.Delay.Milliseconds(), StateDir: safetext.New(cfg.Guard.StateDir), Memory: "none"}
	memory, err := app.Remembered(cfg)
	switch {
	case err != nil:
		doc.Memory, doc.Error = "unreadable", safetext.OptionalError(err)
	case memory != nil:
		doc.Memory = "there"
	}
	doc.guardsSeenJSON = seenDoc(app.GuardsOf(cfg, s))
	running, _ := app.GuardRuns(cfg)
	if told != nil {
		yes := true
		doc.Running = &yes
	}
	methods, waits := app.Methods(cfg), map[string]time.Duration{}
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
			one.BootFence = map[string]string{
				announce.BootFenced.String(): "verified", announce.BootUnfenced.String(): "not verified",
			}[t.Boot]
			one.BootFence = cmp.Or(one.BootFence, "unknown")
			one.RejoinMs = nil
			if t.Wait >= 0 && n.State == monitor.NodeFenced {
				one.RejoinMs, waits[n.Name] = new(t.Wait.Milliseconds()), t.Wait
			}
		}
		doc.Nodes = append(doc.Nodes, one)
	}
	o, known := app.OutlookOf(cfg, s)
	if told != nil {
		o, known = app.OutlookBy(s, waits)
	}
	if known || err == nil && memory != nil && !o.Possible() {
		doc.Outlook = safetext.Optional(o.Text(s.At))
		if o.First != "" {
			doc.FirstNode, doc.FirstMs = safetext.Optional(o.First), view.MSUntil(o.FirstAt, s.At)
		}
		doc.QuorumBackMs = view.MSUntil(o.Until, s.At)
	}
	return doc
}

// toldOf is what a guard that was asked told of a node.
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

// asking are the flags by which the guard that listens at an address is asked.
type asking struct{ url, ca, passwordFile string }

// add adds the flags to a command.
func (k *asking) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.url, "url", "", "ask the guard that listens there too, such as http://127.0.0.1:9622 or https://USER@HOST:9622")
	cmd.Flags().StringVar(&k.ca, "url-ca", "", "with --url: a file (PEM) of who vouches for its certificate")
	cmd.Flags().StringVar(&k.passwordFile, "url-password-file", "", "with --url: a file (mode 0600) that holds the password of its user (default $"+config.URLPasswordVariable+")")
}

// access is what the flags and the environment give to be let in.
func (k *asking) access(getenv func(string) string) (access metrics.Access, err error) {
	access.Password = getenv(config.URLPasswordVariable)
	if k.passwordFile != "" {
		if access.Password, err = config.ReadSecret(k.passwordFile, getenv); err != nil {
			return access, usageError{fmt.Errorf("--url-password-file: %w", err)}
		}
	}
	if k.ca != "" {
		if access.CA, err = os.ReadFile(k.ca); err != nil {
			return access, usageError{fmt.Errorf("--url-ca: %w", err)}
		}
	}
	return access, nil
}

// ask asks the guard that listens at the address of --url; nil: there is none.
func (a *commandLine) ask(ctx context.Context, cfg *config.Config, k asking) (*metrics.Told, error) {
	if k.url == "" {
		if k.ca+k.passwordFile != "" {
			return nil, usageError{errors.New("--url-ca and --url-password-file are for --url")}
		}
		return nil, nil
	}
	access, err := k.access(a.getenv)
	if err != nil {
		return nil, err
	}
	told, err := metrics.ReadStatus(ctx, k.url, cfg.Cluster.Name, access)
	switch {
	case errors.Is(err, metrics.ErrCA):
		return nil, usageError{fmt.Errorf("--url-ca %q: %w", k.ca, err)}
	case errors.Is(err, metrics.ErrURL), errors.Is(err, metrics.ErrPasswordInURL), errors.Is(err, metrics.ErrPlain):
		return nil, usageError{fmt.Errorf("--url: %w", err)} // without the address, which may have a password
	case errors.Is(err, metrics.ErrAccess):
		return nil, fmt.Errorf("--url: %w: write https://USER@HOST:PORT, and give the password by --url-password-file or $%s", err, config.URLPasswordVariable)
	case err != nil:
		return nil, fmt.Errorf("--url: %w", err)
	case told.Cluster != cfg.Cluster.Name:
		return nil, fmt.Errorf("--url: the guard there is one of the cluster %s, not of %q", safetext.New(told.Cluster).Word(), cfg.Cluster.Name)
	}
	return &told, nil
}

// guardsSeenJSON are the guards that run, as far as it can be told from here.
type guardsSeenJSON struct {
	Running     *bool           `json:"guard_running,omitempty"` // left out: not known
	GuardsKnown bool            `json:"guards_known"`
	Guards      []seenGuardJSON `json:"guards"`
}

// seenGuardJSON is a guard that announces itself on nodes.
type seenGuardJSON struct {
	ID      string          `json:"id"`
	Host    safetext.Text   `json:"host"`
	PID     int             `json:"pid,omitempty"`
	DelayMs int64           `json:"delay_ms"`
	On      []safetext.Text `json:"on"`
}

// seenDoc is what can be told of the guards.
func seenDoc(g app.Guards) guardsSeenJSON {
	doc := guardsSeenJSON{Running: g.Running(), GuardsKnown: g.Known, Guards: []seenGuardJSON{}}
	for _, one := range g.All {
		on := append([]safetext.Text{}, safetext.Texts(g.On(one))...)
		doc.Guards = append(doc.Guards, seenGuardJSON{ID: one.ID, Host: one.Host, PID: one.PID, DelayMs: one.Delay.Milliseconds(), On: on})
	}
	return doc
}
