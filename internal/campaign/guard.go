package campaign

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// GuardEnv is the variable of the environment that makes this program a guard:
// see [GuardMain].
const GuardEnv = "REDLOCKCTL_CAMPAIGN_GUARD"

const (
	// guardPoll is how often the campaign's guards look at a node.
	guardPoll = 10 * time.Millisecond
	// attemptBound is the longest time that an attempt of the clients may take.
	attemptBound = 300 * time.Millisecond
)

// guardOrder is what a guard is told, in a process of its own as JSON.
type guardOrder struct {
	Addrs []string
	Delay time.Duration
	Dir   string // of its memory
	ACL   bool
	Early string // the pattern of the locks; "" for no early rejoin
}

// guard is a guard by that order.
func (o guardOrder) guard(nodes []*redlock.Node, memory *restartguard.Memory) (*restartguard.Guard, error) {
	cfg := restartguard.Config{Delay: o.Delay, Poll: guardPoll, Memory: memory, Methods: map[string]restartguard.Method{}}
	if o.ACL {
		for _, n := range nodes {
			cfg.Methods[n.Name()] = restartguard.Method{Kind: restartguard.ACL, User: lockUser}
		}
	}
	if o.Early != "" {
		cfg.Early = restartguard.Early{AttemptBound: attemptBound, Patterns: []string{o.Early}}
	}
	return restartguard.New(nodes, cfg)
}

// guard starts guard number i, if there is to be one.
func (r *run) guard(ctx context.Context, i int, wg *sync.WaitGroup, stop context.CancelCauseFunc, spare <-chan struct{}) error {
	order := guardOrder{
		Delay: time.Duration(float64(r.delay) * r.DelayShare), ACL: r.ACL,
		Dir: filepath.Join(r.Dir, fmt.Sprintf("memory%d", i+1)),
	}
	for _, n := range r.nodes {
		order.Addrs = append(order.Addrs, n.Addr())
	}
	if r.Early {
		order.Early = r.Pattern
	}
	switch r.Guarding {
	case Inside:
		g, err := order.guard(r.nodes, nil)
		if err != nil {
			return err
		}
		wg.Go(func() { _ = g.Run(ctx) })
	case Killed:
		p := &guardProcess{
			order: order, rand: rand.New(rand.NewPCG(r.Seed, uint64(i)+2)), most: 2 * r.delay,
			kills: func() { r.guardKills.Add(1) }, spare: spare,
		}
		wg.Go(func() {
			if err := p.run(ctx); err != nil {
				stop(err)
			}
		})
	}
	return nil
}

// GuardMain is the guard in a process of its own, which a campaign kills. A
// program that runs campaigns calls it with the value of [GuardEnv] where that is
// set, and exits with the code. It ends when its standard input does, which is
// when the campaign ends, however.
func GuardMain(order string) int {
	if err := guardMain(order); err != nil {
		fmt.Fprintln(os.Stderr, "campaign guard:", err)
		return 1
	}
	return 0
}

func guardMain(text string) error {
	var o guardOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	nodes := make([]*redlock.Node, len(o.Addrs))
	for i, addr := range o.Addrs {
		n, err := redlock.NewNode(fmt.Sprintf("n%d", i+1), &redis.Options{Addr: addr})
		if err != nil {
			return err
		}
		nodes[i] = n
	}
	memory, err := restartguard.OpenMemory(o.Dir)
	if err != nil {
		return err
	}
	defer memory.Close()
	g, err := o.guard(nodes, memory)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return g.Run(ctx)
}

// guardProcess runs one life of a guard after the other until ctx ends, and
// kills each at a random moment. The memory of one in four is lost.
type guardProcess struct {
	order guardOrder
	rand  *rand.Rand
	most  time.Duration // longest life
	kills func()        // called after each kill
	spare <-chan struct{}
}

func (g *guardProcess) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if g.rand.IntN(4) == 0 {
			if err := os.RemoveAll(g.order.Dir); err != nil {
				return err
			}
		}
		if err := g.life(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (g *guardProcess) life(ctx context.Context) error {
	order, err := json.Marshal(g.order)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), GuardEnv+"="+string(order), "GORACE=atexit_sleep_ms=0")
	log, err := os.OpenFile(filepath.Join(filepath.Dir(g.order.Dir), "guard.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(time.Duration(g.rand.Int64N(int64(g.most))))
	defer timer.Stop()
	select {
	case <-timer.C:
		// The last life of a campaign is spared, to let the masters in again.
		select {
		case <-g.spare:
			<-ctx.Done()
		default:
		}
	case <-ctx.Done():
	case err := <-ended:
		_ = in.Close()
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("a guard has ended by itself (%w): see %s", err, log.Name())
	}
	_ = cmd.Process.Kill()
	<-ended
	_ = in.Close()
	if ctx.Err() == nil {
		g.kills()
	}
	return nil
}
