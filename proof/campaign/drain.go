package campaign

import (
	"context"
	"fmt"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/internal/lab"
	"redlockctl/server/minreplicas"
)

// drain empties a master that serves and restarts it, as redlockctl restart does: cordoned, waited for, killed, started
// and uncordoned. Some are not waited for.
func (r *campaign) drain(ctx context.Context) error {
	m, ok := r.masters[r.rand.IntN(len(r.masters))].(fenced)
	if !ok || !r.record.serves(m.Node().Name()) {
		return nil
	}
	name := m.Node().Name()
	r.emptying.Store(name)
	defer r.emptying.Store("")
	if err := cordonBy(ctx, m.Server, minreplicas.FenceCordon); err != nil {
		return err
	}
	empty := false
	for end := time.Now().Add(2 * r.MaxTTL); !empty && time.Now().Before(end); _ = sleep.For(ctx, watchEvery) {
		n, err := m.Do(ctx, "DBSIZE")
		if err != nil {
			return err
		}
		if empty = n == int64(0); !empty && r.rand.IntN(2000) == 0 {
			break
		}
	}
	if empty { // and seen so
		_ = sleep.For(ctx, time.Duration(r.rand.Int64N(int64(2*countTime))))
		r.drained++
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.crashMaster(ctx, m, empty); err != nil {
		return err
	}
	r.kills++
	r.emptying.Store("")
	for end := time.Now().Add(rejoinTime); !r.record.serves(name) && !r.record.faulty(); _ = sleep.For(ctx, watchEvery) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(end):
			return fmt.Errorf("%s has not rejoined within %s of its restart", name, rejoinTime)
		}
	}
	return nil
}

// uncordon ends each cordon but that of the master that is to be emptied: guards that were cut off cordon again
// what was uncordoned meanwhile.
func (r *campaign) uncordon(ctx context.Context) {
	for ; ctx.Err() == nil; _ = sleep.For(ctx, 5*watchEvery) {
		for _, m := range r.masters {
			s := m.(fenced).Server
			if r.emptying.Load() == s.Node().Name() {
				continue
			}
			if value, err := s.Do(ctx, "CONFIG", "GET", "min-replicas-to-write"); err == nil && cordonedSays(value) {
				_ = cordonBy(ctx, s, minreplicas.FenceUp)
			}
		}
	}
}

// countTime is about how long guards take to see that a cordoned master is empty.
const countTime = 600 * time.Millisecond

func cordonBy(ctx context.Context, s *lab.Server, value int64) error {
	_, err := s.Do(ctx, "CONFIG", "SET", "min-replicas-to-write", value)
	return err
}

func cordonedSays(value any) bool {
	return fmt.Sprint(value) == fmt.Sprintf("map[min-replicas-to-write:%d]", minreplicas.FenceCordon)
}
