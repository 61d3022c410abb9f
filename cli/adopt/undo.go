package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"redlockctl/cli/app"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard/boot"
	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
)

// ErrNeeded is returned for a step that a master still needs.
var ErrNeeded = errors.New("cannot be undone now")

// Undoable are the steps of the runbook that can be undone, in the order in which they are.
var Undoable = []string{stepServers, stepGuard, stepUsers}

const (
	stepServers = "servers"
	stepGuard   = "guard"
	stepUsers   = "users"
)

// MayUndo reports why a step must not be undone now: with [ErrNeeded], one line for each
// master that would be left without a guard that lets it rejoin, or would start unfenced
// after a crash. It changes nothing.
func MayUndo(ctx context.Context, f Folder, step string, getenv func(string) string) error {
	c, err := f.configs(getenv)
	if err != nil {
		return err
	}
	logins := checkLogins(ctx, c.nodes, c.secrets, OpsUser)
	var s *monitor.Snapshot
	if slices.ContainsFunc(logins, func(l login) bool { return l.err == nil }) {
		if s, err = app.Look(ctx, c.ops, app.Aim{Most: checkTime}); err != nil {
			return err
		}
	}
	var reasons Problems
	for i, n := range c.nodes {
		why := ""
		switch {
		case logins[i].refused():
			continue // neither a guard nor this program can log in: nothing here needs this step
		case logins[i].err != nil:
			why = "does not answer, and may have crashed: it must start fenced, and needs a guard then: " + safetext.Escape(logins[i].err.Error())
		default:
			why = needs(s.Node(n.Name()), step, s.At)
		}
		if why == "" && step != stepServers {
			why = f.startNeeds(ctx, c, i, s.Node(n.Name()), step)
		}
		if why != "" {
			reasons = append(reasons, fmt.Errorf("%s %s", n.Name(), why))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return append(reasons, fmt.Errorf("%s.sh %w: nothing was changed", step, ErrNeeded))
}

// needs is why a node that answers needs a step now; "": it does not.
func needs(n *monitor.Node, step string, now time.Time) string {
	switch {
	case n.State == monitor.NodeFenced && n.RejoinsAfter.After(now):
		return fmt.Sprintf("is fenced and rejoins in %s: try again then", view.Left(n.RejoinsAfter.Sub(now)))
	case n.State == monitor.NodeFenced:
		return "is fenced: wait until it serves (redlockctl --config ops.toml node wait " + safetext.Escape(n.Name) + ")"
	case n.State == monitor.NodeCordoned:
		return "is cordoned: redlockctl --config ops.toml node uncordon " + safetext.Escape(n.Name)
	case n.State != monitor.NodeServing:
		return "is " + n.State.String() + ": it must serve before a step is undone"
	case step == stepUsers && len(n.Guards) > 0:
		return "has a guard, which logs in as " + GuardUser + ": sudo sh guard.sh undo"
	}
	return ""
}

// startNeeds is why the next start of a node needs guard or users; "": it does not. One of
// several guards may go.
func (f Folder) startNeeds(ctx context.Context, c *configs, i int, n *monitor.Node, step string) string {
	if step == stepGuard && len(n.Guards) > 1 {
		return ""
	}
	do := "sh servers.sh undo"
	if f.byHand(c.nodes[i]) {
		do = fmt.Sprintf("servers.sh left it out; take %q out of how it is started, by hand, restart it, and try again", strings.Join(minreplicas.FenceArgs, " "))
	}
	switch v := f.bootByFiles(ctx, c.nodes[i], c.guard.Nodes[i].Fence); {
	case v.Boot == boot.Fenced || v.Boot == boot.Fragile:
		return "would start fenced, and then nobody lets it rejoin: " + do
	case v.Boot != boot.Unknown || f.saw(c.nodes[i]):
		return ""
	case f.byHand(c.nodes[i]) && sawBoot(n, announce.BootUnfenced):
		return "" // its arguments are its own, and it was started without the fence
	case f.byHand(c.nodes[i]) && len(n.Guards) > 0:
		return "may start fenced, and no guard has seen it start otherwise: " + do
	case f.byHand(c.nodes[i]):
		return "may start fenced, and it cannot be seen from here: " + do + " with --force"
	}
	return "may start fenced: its files were not read from this folder; do this where servers.sh was run, or copy its seen.conf here: " + do
}

// sawBoot reports whether a guard saw a node's present process start so.
func sawBoot(n *monitor.Node, how announce.Boot) bool {
	return slices.ContainsFunc(n.Guards, func(g announce.Guard) bool { return g.Boot == how })
}

// byHand reports whether init left out a node, so that its start is changed by hand.
func (f Folder) byHand(n *redlock.Node) bool {
	_, err := os.Stat(filepath.Join(f.Path, n.Name(), "install.sh"))
	return errors.Is(err, fs.ErrNotExist)
}

// saw reports whether install.sh has read the files of a node for this folder.
func (f Folder) saw(n *redlock.Node) bool {
	_, err := os.Stat(filepath.Join(f.Path, n.Name(), app.SeenFile))
	return err == nil
}

// configs are the configurations of a folder with its passwords.
type configs struct {
	ops, guard *config.Config
	nodes      []*redlock.Node // as the guard reaches them
	secrets    Secrets
}

func (f Folder) configs(getenv func(string) string) (*configs, error) {
	if _, err := os.Stat(filepath.Join(f.Path, opsConfig)); err != nil {
		return nil, fmt.Errorf("--out %q: is not a folder that init has written with a guard: %w", f.Path, err)
	}
	c := &configs{}
	var err error
	if c.secrets, err = f.Secrets(); err != nil {
		return nil, err
	}
	load := func(name string) (*config.Config, error) {
		return config.Load(filepath.Join(f.Path, name), func(key string) string {
			if key == PasswordVariable {
				return c.secrets[GuardUser]
			}
			return getenv(key)
		})
	}
	if c.ops, err = load(opsConfig); err != nil {
		return nil, err
	}
	if c.guard, err = load(guardConfig); err != nil {
		return nil, err
	}
	c.nodes, err = c.guard.Masters()
	return c, err
}
