package operator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
)

// cluster is a fake of three nodes that records each call.
type cluster struct {
	t     *testing.T
	log   string // path of the audit log
	calls []string
	// onCall runs before each call is answered.
	onCall func(call string)
	look   []redlock.NodeResult
	lookIs error
	// release answers for a token; nil deletes the copies in look.
	release func(token string) ([]redlock.NodeResult, error)
	handErr error
}

func (c *cluster) called(call string) {
	c.calls = append(c.calls, call)
	if c.onCall != nil {
		c.onCall(call)
	}
}

func (c *cluster) Nodes() []*redlock.Node {
	var nodes []*redlock.Node
	for _, name := range []string{"n1", "n2", "n3"} {
		n, err := redlock.NewNode(name, &redis.Options{Addr: name + ":1"})
		if err != nil {
			c.t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (c *cluster) Acquire(context.Context, string, time.Duration) (*redlock.Lock, error) {
	c.called("acquire")
	return &redlock.Lock{}, nil
}

func (c *cluster) Extend(context.Context, string, string, time.Duration) (*redlock.Lock, error) {
	c.called("extend")
	return &redlock.Lock{}, nil
}

func (c *cluster) Inspect(context.Context, string) ([]redlock.NodeResult, error) {
	c.called("inspect")
	return c.look, c.lookIs
}

func (c *cluster) AcquireFenced(ctx context.Context, resource string, ttl time.Duration) (*redlock.Lock, error) {
	return c.Acquire(ctx, resource, ttl)
}

func (c *cluster) ForceRelease(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
	return c.Release(ctx, resource, token)
}

func (c *cluster) ForceReleaseHash(ctx context.Context, resource, holder, _ string) ([]redlock.NodeResult, error) {
	c.called("hash")
	return c.Release(ctx, resource, holder)
}

func (c *cluster) Revoke(ctx context.Context, resource, token string, _ time.Duration) ([]redlock.NodeResult, error) {
	c.called("revoke")
	return c.Release(ctx, resource, token)
}

func (c *cluster) Release(_ context.Context, _, token string) ([]redlock.NodeResult, error) {
	c.called("release " + token)
	if c.release != nil {
		return c.release(token)
	}
	out := make([]redlock.NodeResult, len(c.look))
	for i, r := range c.look {
		out[i] = redlock.NodeResult{Node: r.Node, Status: r.Status, Err: r.Err}
		if r.Token == token {
			out[i].Status = redlock.StatusOK
		}
	}
	return out, nil
}

func (c *cluster) keep(*redlock.Lock, redlock.KeepOptions) (keeper, error) {
	c.called("keep")
	return kept{c: c}, nil
}

// kept is a fake keeper of a lock on the cluster, with only the methods that the tests
// use.
type kept struct {
	keeper
	c *cluster
}

func (k kept) Changes() <-chan redlock.KeeperState { return nil }

func (k kept) Stop() { k.c.called("stop") }

func (k kept) State() redlock.KeeperState { return redlock.Held }

func (k kept) Until() time.Time { return time.Now().Add(time.Second) }

func (k kept) Release(ctx context.Context) ([]redlock.NodeResult, error) {
	k.c.called("end of keep")
	return k.c.Release(ctx, "job", "t1")
}

func (c *cluster) hold(_ context.Context, n *redlock.Node) error {
	c.called("hold " + n.Name())
	return c.handErr
}

func (c *cluster) open(_ context.Context, n *redlock.Node) error {
	c.called("open " + n.Name())
	return c.handErr
}

// start makes an operator on a fake cluster. Token t1 has copies on two of its three
// nodes.
func start(t *testing.T, change func(*Options)) (*Operator, *cluster) {
	t.Helper()
	c := &cluster{t: t, log: filepath.Join(t.TempDir(), "audit.jsonl"), look: look("t1", "t1", "")}
	log, err := audit.Open(c.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	opt := Options{Cluster: "lab", Log: log, MaxTTL: 30 * time.Second, Actor: "ops@host"}
	if change != nil {
		change(&opt)
	}
	return build(c, c.keep, c.hold, c.open, opt), c
}

// look returns the answers of three nodes for a lock: "" has no copy, "!" does not
// answer.
func look(tokens ...string) []redlock.NodeResult {
	out := make([]redlock.NodeResult, len(tokens))
	for i, token := range tokens {
		r := redlock.NodeResult{Node: []string{"n1", "n2", "n3"}[i]}
		switch token {
		case "":
			r.Status = redlock.StatusAbsent
		case "!":
			r.Status, r.Err = redlock.StatusDown, errors.New("connection refused")
		case "slow":
			r.Status, r.Err = redlock.StatusSlow, errors.New("i/o timeout")
		default:
			r.Status, r.Type, r.Token, r.Len, r.TTL = redlock.StatusHeld, "string", token, int64(len(token)), time.Second
		}
		out[i] = r
	}
	return out
}

// records reads the audit log, and fails the test if a token is in it.
func (c *cluster) records() []audit.Record {
	c.t.Helper()
	b, err := os.ReadFile(c.log)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, token := range []string{"t1", "t2"} {
		if bytes.Contains(b, []byte(token)) {
			c.t.Errorf("the log holds the token %s: %s", token, b)
		}
	}
	var out []audit.Record
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var r audit.Record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			c.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// acts lists all actions of an operator with the calls that each sends.
var acts = []struct {
	name string
	do   func(context.Context, *Operator) error
	want audit.Record
	sent []string
}{
	{"acquire", func(ctx context.Context, o *Operator) error {
		_, err := o.AcquireWith(ctx, "job", time.Second, AcquireOptions{})
		return err
	},
		audit.Record{Act: "acquire", Target: "job", Detail: "ttl 1s"}, []string{"acquire"}},
	{"acquire fenced", func(ctx context.Context, o *Operator) error {
		_, err := o.AcquireWith(ctx, "job", time.Second, AcquireOptions{Fencing: true})
		return err
	}, audit.Record{Act: "acquire", Target: "job", Detail: "ttl 1s"}, []string{"acquire"}},
	{"keep", func(ctx context.Context, o *Operator) error {
		_, err := o.Keep(ctx, "job", time.Second, AcquireOptions{})
		return err
	},
		audit.Record{Act: "acquire", Target: "job", Detail: "ttl 1s, kept: extended until it is interrupted or released"}, []string{"acquire", "keep"}},
	{"extend", func(ctx context.Context, o *Operator) error {
		_, err := o.Extend(ctx, "job", "t1", time.Second)
		return err
	}, audit.Record{Act: "extend", Target: "job", TokenSHA: audit.TokenSHA("t1"), Detail: "ttl 1s"}, []string{"extend"}},
	{"release", func(ctx context.Context, o *Operator) error { _, err := o.Release(ctx, "job", "t1"); return err },
		audit.Record{Act: "release", Target: "job", TokenSHA: audit.TokenSHA("t1")}, []string{"release t1"}},
	{"force-release", func(ctx context.Context, o *Operator) error {
		_, err := o.ForceRelease(ctx, "job", "t1", "dead")
		return err
	}, audit.Record{Act: "force-release", Target: "job", TokenSHA: audit.TokenSHA("t1"), Reason: "dead"}, []string{"inspect", "release t1"}},
	{"force-release of any", func(ctx context.Context, o *Operator) error {
		_, err := o.ForceRelease(ctx, "job", "", "dead")
		return err
	}, audit.Record{Act: "force-release", Target: "job", Reason: "dead"}, []string{"inspect", "release t1"}},
	{"revoke", func(ctx context.Context, o *Operator) error {
		_, err := o.Revoke(ctx, "job", "t1", "runs for hours")
		return err
	}, audit.Record{Act: "revoke", Target: "job", TokenSHA: audit.TokenSHA("t1"), Reason: "runs for hours"}, []string{"inspect", "revoke", "release t1", "inspect"}},
	{"fence", func(ctx context.Context, o *Operator) error { return o.Cordon(ctx, "n2", "disk") },
		audit.Record{Act: "node cordon", Target: "n2", Reason: "disk"}, []string{"hold n2"}},
	{"drain", func(ctx context.Context, o *Operator) error { return o.Drain(ctx, "n2", "disk") },
		audit.Record{Act: "node drain", Target: "n2", Reason: "disk"}, []string{"hold n2"}},
	{"open", func(ctx context.Context, o *Operator) error { return o.RejoinNow(ctx, "n2", "done") },
		audit.Record{Act: "node rejoin", Target: "n2", Reason: "done"}, []string{"open n2"}},
}

// ForceRelease and Revoke remove one key, of one token; "" means all tokens.
func (o *Operator) ForceRelease(ctx context.Context, key, token, reason string) ([]redlock.NodeResult, error) {
	return o.removeOne(ctx, ForceRelease, key, token, reason)
}

func (o *Operator) Revoke(ctx context.Context, key, token, reason string) ([]redlock.NodeResult, error) {
	return o.removeOne(ctx, Revoke, key, token, reason)
}

func (o *Operator) removeOne(ctx context.Context, way RemovalKind, key, token, reason string) ([]redlock.NodeResult, error) {
	r := Removal{Kind: way, Keys: []string{key}, Reason: reason}
	if token != "" {
		r.Tokens = []string{token}
	}
	out := o.Remove(ctx, r)
	return out[0].Results, out.Err()
}
