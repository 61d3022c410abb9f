package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"redlockctl/monitor/wire"
	"redlockctl/server/safetext"
	"redlockctl/server/userfence"
)

// userFence is the query whether a node is fenced by removing the write right of its lock
// clients' ACL user, which no server parameter shows.
type userFence struct{ may, rules *redis.Cmd }

// userFenceSight is the answer. If not known, the query is denied, and the node's guards
// answer instead.
type userFenceSight struct{ known, fenced, cordoned bool }

// askUserFence asks whether the user may write, and for the mark of a cordon.
func askUserFence(ctx context.Context, p redis.Pipeliner, user string) *userFence {
	return &userFence{
		may:   userfence.Ask(ctx, p, user, "redlockctl:fence"),
		rules: p.Do(ctx, "ACL", "GETUSER", user),
	}
}

func (f *userFence) read() (*userFenceSight, error) {
	for _, c := range []*redis.Cmd{f.may, f.rules} {
		if err := c.Err(); err != nil && (wire.Says(err, "NOAUTH", "LOADING", "BUSY") || !wire.IsAnswer(err)) {
			return nil, err
		}
	}
	text, err := f.may.Text()
	if err != nil {
		return &userFenceSight{}, nil
	}
	s := &userFenceSight{known: true, fenced: userfence.Stops(text)}
	s.cordoned = s.fenced && f.rules.Err() == nil && strings.Contains(fmt.Sprint(f.rules.Val()), userfence.CordonMark)
	return s, nil
}

// otherWriters returns the users that a fence by ACL does not stop: all except that user,
// the one that we log in as and set the fence with, and the administrator. nil: this may
// not be read.
func (p *prober) otherWriters(ctx context.Context, patterns []string) *string {
	if p.fenceUser == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.Patience.Setup())
	defer cancel()
	own, err := p.Conn.Do(ctx, "ACL", "WHOAMI").Text()
	if err != nil {
		return nil
	}
	users, err := p.Conn.Do(ctx, "ACL", "USERS").StringSlice()
	if err != nil || len(users) > mostUsers {
		return nil
	}
	users = slices.DeleteFunc(users, func(u string) bool { return u == own || u == p.fenceUser || u == "default" })
	key := strings.NewReplacer("*", "x", "?", "x", "\\", "").Replace(patterns[0])
	may := make([]*redis.Cmd, len(users))
	_ = p.Pipeline(ctx, func(pipe redis.Pipeliner) {
		for i, u := range users {
			may[i] = userfence.Ask(ctx, pipe, u, key)
		}
	})
	writers := []string{}
	for i, u := range users {
		if text, err := may[i].Text(); err == nil && text == "OK" {
			writers = append(writers, safetext.Escape(u))
		}
	}
	slices.Sort(writers)
	return new(strings.Join(writers, ", "))
}

// mostUsers is the largest number of users that are checked.
const mostUsers = 200
