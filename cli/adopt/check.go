package adopt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/crash"
	"redlockctl/cli/app"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard/boot"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// State is how far a step of the runbook is.
type State string

// The states of a step.
const (
	Done  State = "done"
	Next  State = "next"  // to be done
	Wrong State = "wrong" // it prevents the step, or the step was done and has no effect
)

// Step is one step of the runbook, as it was read back.
type Step struct {
	Name  string `json:"step"`
	State State  `json:"state"`
	Text  string `json:"text"`         // what was seen
	Do    string `json:"do,omitempty"` // the command, or what is right; empty: nothing
}

// Progress is what [Check] found.
type Progress struct {
	Steps []Step
	Left  view.LeftToDo
	// Protected: each node starts fenced after its next crash, as far as its files tell,
	// a guard that can let it rejoin is there, and nothing is wrong.
	Protected bool
}

// checkTime bounds the first look of a check.
const checkTime = 10 * time.Second

// Check reads everything back from the servers, as the users that the folder has, and from
// what install.sh has read in the servers' files. It changes nothing.
func Check(ctx context.Context, f Folder, getenv func(string) string) (*Progress, error) {
	c, err := f.configs(getenv)
	if err != nil {
		return nil, err
	}
	logins := checkLogins(ctx, c.nodes, c.secrets, ClientUser, GuardUser, OpsUser)
	p := &Progress{Steps: []Step{loginStep(logins)}, Left: view.LeftToDo{Nodes: len(c.nodes)}}
	for _, l := range logins {
		switch {
		case l.err == nil:
		case l.refused():
			p.Left.Users = append(p.Left.Users, l.node)
		default:
			p.Left.Down = append(p.Left.Down, l.node)
		}
	}
	var s *monitor.Snapshot
	if slices.ContainsFunc(logins, func(l login) bool { return l.err == nil }) {
		if s, err = app.Look(ctx, c.ops, app.Aim{Most: checkTime}); err != nil {
			return nil, err
		}
		p.Left.Hidden, p.Left.Dangers = view.LeftToDoOf(s).Hidden, s.Dangers()
		for _, n := range s.Nodes {
			if n.GuardsKnown && len(n.Guards) == 0 {
				p.Left.Guard = append(p.Left.Guard, n.Name)
			}
		}
		p.Steps = append(p.Steps, guardStep(s, Instance(c.ops.Cluster.Name)))
	} else {
		p.Steps = append(p.Steps, Step{"guard", Next, "not known before the users are there", "sudo sh guard.sh"})
		for _, n := range c.nodes {
			p.Left.Guard = append(p.Left.Guard, n.Name())
		}
	}
	boots := make([]boot.Verdict, len(c.nodes))
	for i, n := range c.nodes {
		boots[i] = f.boot(ctx, n, c.guard.Nodes[i].Fence)
		if s != nil {
			proved(&boots[i], s.Node(n.Name()))
		}
		if boots[i].Boot != boot.Fenced {
			p.Left.Start = append(p.Left.Start, n.Name())
		}
	}
	p.Steps = append(p.Steps, f.startSteps(c.nodes, boots)...)
	if s != nil {
		p.Steps = append(p.Steps, stateSteps(s)...)
	}
	p.Protected = !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.State != Done })
	return p, nil
}

// login is the result of logging in to one node as each user.
type login struct {
	node string
	err  error
	user string // the one who was refused
}

// refused reports whether the node answers, and does not know the user with this password.
func (l login) refused() bool {
	return redis.HasErrorPrefix(l.err, "WRONGPASS") || redis.HasErrorPrefix(l.err, "NOAUTH") || redis.HasErrorPrefix(l.err, "ERR")
}

func checkLogins(ctx context.Context, nodes []*redlock.Node, secrets Secrets, users ...string) []login {
	out := make([]login, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(crash.Safe(func() {
			out[i].node = n.Name()
			for _, u := range users {
				c := redlock.Connect(n, 1, askTime, func(o *redis.Options) { o.Username, o.Password = u, secrets[u] })
				err := c.Ping(ctx).Err()
				_ = c.Close()
				if err != nil {
					out[i].err, out[i].user = err, u
					return
				}
			}
		}))
	}
	all.Wait()
	return out
}

func loginStep(logins []login) Step {
	var missing, down []string
	why := ""
	for _, l := range logins {
		switch {
		case l.err == nil:
		case l.refused():
			missing = append(missing, l.node)
			why = l.user + " cannot log in"
		default:
			down = append(down, l.node)
			why = safetext.Escape(l.err.Error())
		}
	}
	switch {
	case len(down) > 0:
		return Step{"users", Wrong, nodesText(down) + " cannot be reached: " + why, "all masters must answer"}
	case len(missing) > 0:
		return Step{"users", Next, "on " + nodesText(missing) + " " + why, "sh users.sh"}
	}
	return Step{"users", Done, fmt.Sprintf("%s, %s and %s log in on all %d masters", ClientUser, GuardUser, OpsUser, len(logins)), ""}
}

func nodesText(names []string) string { return strings.Join(names, ", ") }

func guardStep(s *monitor.Snapshot, instance string) Step {
	const do = "sudo sh guard.sh"
	var without, hidden []string
	who := ""
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch {
		case !n.GuardsKnown:
			hidden = append(hidden, n.Name)
		case len(n.Guards) == 0:
			without = append(without, n.Name)
		default:
			who = fmt.Sprintf("on %s (process %d), D %s", safetext.Escape(n.Guards[0].Host.Raw()), n.Guards[0].PID, view.Span(n.Guards[0].Delay))
		}
	}
	switch {
	case len(without) > 0 && who != "":
		return Step{"guard", Wrong, "one runs " + who + ", but not for " + nodesText(without), "journalctl -u redlockctl-guard@" + instance}
	case len(without) > 0:
		return Step{"guard", Next, "none is seen on " + nodesText(without), do}
	case len(hidden) > 0:
		return Step{"guard", Next, "none can be seen yet on " + nodesText(hidden), do}
	}
	return Step{"guard", Done, "one runs " + who, ""}
}

// startSteps are the steps of the nodes' starts, those alike together.
func (f Folder) startSteps(nodes []*redlock.Node, boots []boot.Verdict) []Step {
	const ours, byHand = "sh servers.sh", "by hand, as step 3 of RUNBOOK.md says, and restart it"
	cure := func(n *redlock.Node, state State) string {
		switch {
		case state == Done:
			return ""
		case f.byHand(n):
			return byHand
		}
		return ours
	}
	var steps []Step
	for _, kind := range []struct {
		boot  boot.State
		state State
		text  string
	}{
		{boot.Fenced, Done, "would start fenced"},
		{boot.Unfenced, Next, "would start UNFENCED"},
		{boot.Unknown, Next, "how it would start is not known"},
		{boot.Fragile, Wrong, "would start fenced, but not after CONFIG REWRITE"},
	} {
		for _, do := range []string{"", ours, byHand} {
			var names []string
			because := ""
			for i, v := range boots {
				if v.Boot == kind.boot && cure(nodes[i], kind.state) == do {
					names = append(names, nodes[i].Name())
					because = strings.Join(v.Because, "; ")
				}
			}
			if len(names) == 0 {
				continue
			}
			text := nodesText(names) + " " + kind.text
			if kind.state != Done {
				text += ": " + because
			}
			steps = append(steps, Step{"start", kind.state, text, do})
		}
	}
	return steps
}

func stateSteps(s *monitor.Snapshot) []Step {
	var steps []Step
	for i := range s.Findings {
		if f := &s.Findings[i]; f.Severity == monitor.SeverityDanger {
			what := f.Title
			if f.Node != "" {
				what = f.Node + ": " + what
			}
			steps = append(steps, Step{"doctor", Wrong, what + ": " + safetext.Escape(f.Evidence.Raw()), cureOf(f.ID)})
		}
	}
	var proved []string
	for i := range s.Nodes {
		if sawBoot(&s.Nodes[i], announce.BootFenced) {
			proved = append(proved, s.Nodes[i].Name)
		}
	}
	if len(proved) > 0 {
		steps = append(steps, Step{"proof", Done, "a guard saw " + nodesText(proved) + " start fenced", ""})
	}
	return steps
}

// cureOf is the command that removes a finding: the step of the runbook that it is about, or
// what says more.
func cureOf(finding string) string {
	switch finding {
	case "guard-delays", "not-protected":
		return "sudo sh guard.sh"
	}
	return "redlockctl --config ops.toml doctor"
}

// bootByFiles is how a node starts: by what install.sh has read in its files, and by the
// files themselves if they can be read from here.
func (f Folder) bootByFiles(ctx context.Context, n *redlock.Node, method fences.Method) boot.Verdict {
	v, ok := app.ReadSeen(f.Path, n.Name(), method)
	switch {
	case ok:
	case f.byHand(n):
		v.Because = []string{"servers.sh leaves it out, and no guard has seen it start yet"}
	default:
		v.Because = []string{"its files were not read yet"}
	}
	if c, err := boot.CheckNode(ctx, n, method, nil); err == nil && c.Local && c.Boot != boot.Unknown {
		v = c.Verdict
	}
	return v
}

// boot is [Folder.bootByFiles]; without the users in its files too it is not known.
func (f Folder) boot(ctx context.Context, n *redlock.Node, method fences.Method) boot.Verdict {
	v := f.bootByFiles(ctx, n, method)
	seen, err := os.ReadFile(filepath.Join(f.Path, n.Name(), app.SeenFile))
	for _, u := range users {
		if err == nil && !strings.Contains(string(seen), "\n# user: "+u.name+"\n") && v.Boot == boot.Fenced {
			v.Boot, v.Because = boot.Unknown, []string{"its files lack the user " + u.name}
		}
	}
	return v
}

// proved corrects what files say by what a guard has seen: a start shows more.
func proved(v *boot.Verdict, n *monitor.Node) {
	switch {
	case sawBoot(n, announce.BootUnfenced) && v.Boot == boot.Fenced:
		v.Boot, v.Because = boot.Unknown, []string{"its files say fenced, but a guard saw its last start unfenced: a restart shows which holds"}
	case sawBoot(n, announce.BootFenced) && v.Boot == boot.Unknown:
		v.Boot = boot.Fenced
	}
}
