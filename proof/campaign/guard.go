package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/restartguard/watch"
	"redlockctl/server/fences"
)

// guard starts guard number i, if there is to be one.
func (r *campaign) guard(ctx context.Context, i int, wg *sync.WaitGroup, stop context.CancelCauseFunc, spare <-chan struct{}) error {
	switch r.Guarding {
	case Inside:
		g, links, err := r.guardInside(i)
		if err != nil {
			return err
		}
		wg.Go(func() { _ = g.Run(ctx) })
		if r.Drains {
			dice := rand.New(rand.NewPCG(r.Seed, uint64(i)+40))
			wg.Go(func() {
				_ = sleep.For(ctx, time.Second) // one that never met the other knows nothing of its D
				r.cuts.Add(int64(cutLinks(ctx, dice, links, 2*r.delay())))
			})
		}
	case Killed:
		p, err := r.guardProgram(i)
		if err != nil {
			return err
		}
		r.programs = append(r.programs, p)
		wg.Go(func() {
			if err := p.run(ctx); err != nil {
				stop(err)
			}
		})
		dice := rand.New(rand.NewPCG(r.Seed, uint64(i)+20))
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = sleep.For(ctx, time.Duration(dice.Int64N(3*int64(r.delay()))))
				select {
				case <-spare: // the last incarnation of a campaign, to let the masters in again
					return
				default:
					p.kill()
				}
			}
		})
	}
	return nil
}

func (r *campaign) guardInside(i int) (*watch.Guard, []*link, error) {
	cfg := watch.Config{Delay: r.waitsOf(i), Poll: guardPoll, Patterns: []string{r.Pattern}, Methods: map[string]fences.Method{}}
	if r.ACL {
		for _, n := range r.nodes {
			cfg.Methods[n.Name()] = fences.Method{Kind: fences.ACL, User: lockUser}
		}
	}
	if r.Early {
		cfg.Early = watch.EarlyRejoin{AttemptBound: attemptBound, Patterns: []string{r.Pattern}}
	}
	nodes, links := r.nodes, make([]*link, len(r.nodes))
	if r.Drains {
		nodes = slices.Clone(nodes)
		for k := range nodes {
			links[k] = new(link)
			var err error
			if nodes[k], err = links[k].node(nodes[k]); err != nil {
				return nil, nil, err
			}
		}
	}
	g, err := watch.New(nodes, cfg)
	return g, links, err
}

// guardProgram is a guard in a process of its own. The memory of one start in four is
// lost.
func (r *campaign) guardProgram(i int) (*program, error) {
	name := filepath.Join(r.Dir, fmt.Sprintf("guard%d", i+1))
	var text strings.Builder
	fmt.Fprintf(&text, "[cluster]\nmax_ttl = %q\nlock_patterns = [%q]\n", maxTTLOf(r.waits()), r.Pattern)
	fmt.Fprintf(&text, "[guard]\npoll = %q\ntimeout = %q\nstate_dir = %q\n", guardPoll, max(maxTTLOf(r.waits())/2, 50*time.Millisecond), name)
	if r.Early {
		fmt.Fprintf(&text, "early_rejoin = true\nattempt_bound = %q\n", attemptBound)
	}
	for _, n := range r.nodes {
		fmt.Fprintf(&text, "[[nodes]]\nname = %q\naddr = %q\n", n.Name(), n.Addr())
		if r.ACL {
			fmt.Fprintf(&text, "fence = \"acl\"\nfence_user = %q\n", lockUser)
		}
	}
	dice := rand.New(rand.NewPCG(r.Seed, uint64(i)+2))
	return &program{
		argv: []string{r.Redlockctl, "guard", "--config", name + ".toml"}, log: name + ".log",
		before: func() error {
			if dice.IntN(4) > 0 {
				return nil
			}
			return os.RemoveAll(name)
		},
	}, os.WriteFile(name+".toml", []byte(text.String()), 0o600)
}
