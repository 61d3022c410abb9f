package restartguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// guardName is what guards call their connections (CLIENT SETNAME); behind it and
// a colon stands the guard's own id, if it has a state directory.
const guardName = "redlockctl:guard"

// Stray is an order that was sent and has no answer. It may still be on its way:
// what was written to a connection is delivered after its sender gave it up, and a
// lift that comes late opens what was closed again meanwhile. The zero Stray is
// none.
type InFlightCommand struct {
	Sent    bool
	Removal bool  // it opens; an order to close that comes late does no harm
	Conn    int64 // CLIENT ID of its connection, 0 if that is not known
	// Until is when it is taken to be gone, where the server does not let us end
	// its connection; zero: that was not tried yet.
	Until time.Time
}

// sending takes note of an order before it is sent.
func (m *machine) sending(kind ActionKind) {
	if kind != Raise && kind != Remove || !m.Pending.Until.IsZero() {
		return
	}
	m.Pending = InFlightCommand{Sent: true, Removal: kind == Remove, Conn: m.conn}
}

// answeredBy takes note that the order that was sent by a connection has its
// answer, or was never sent: what it is asked next comes behind.
func (m *machine) answeredBy(conn int64) {
	if m.Pending.Until.IsZero() && m.Pending.Conn == conn {
		m.Pending = InFlightCommand{}
	}
}

// sweep ends connections that may still deliver something, and reports whether that is
// to be done before anything else: the one of an order without answer, and at the
// guard's first look those of the guard that had its state directory before it.
func (m *machine) sweep(o *Observation) bool {
	if o.Conn != 0 {
		m.answeredBy(o.Conn)
	}
	if m.Advice {
		return false
	}
	if u := m.Pending.Until; !u.IsZero() && !m.now.Before(u) {
		m.Pending = InFlightCommand{}
	}
	all := m.Sweep && !m.Swept
	if !m.Pending.Sent && !all {
		return false
	}
	m.actions = append(m.actions, Action{Kind: Kill, RunID: m.RunID, Conn: m.Pending.Conn, All: all})
	return true
}

// endRivals ends the connections of all other guards, once the node is fenced. What
// they have sent is not read any more, and who comes again sees the loss first.
func (m *machine) endRivals() {
	m.actions = append(m.actions, Action{Kind: Kill, RunID: m.RunID, Others: true})
}

// killing: the server has ended what may deliver something, or does not let us.
func (m *machine) killing(o *Observation) {
	if o.Others {
		m.Rivals = false
		if !o.Swept && m.Heard > 0 {
			m.tell("in-flight command", "cannot see if another guard is about to remove its fence by what it knew before the loss: %s", o.Err)
		}
		m.settle(o)
		return
	}
	if m.Sweep && !m.Swept {
		m.Swept = true
		if !o.Swept {
			m.tell("in-flight command", "cannot see if an earlier run of this guard has left connections: %s", o.Err)
		}
	}
	switch {
	case !m.Pending.Sent:
	case o.Gone || !m.Pending.Removal:
		if !m.Pending.Until.IsZero() {
			m.tell("in-flight command", "the connection of the in-flight command that removes its fence is ended")
		}
		m.Pending = InFlightCommand{}
	case m.Pending.Until.IsZero():
		// Nobody sends it again by now, but the network may hold it. For D no other
		// lift is sent, so that it finds nothing that was closed again.
		m.Pending.Until = m.now.Add(m.delay())
		m.tell("in-flight command", "in-flight commands cannot be ruled out: a command that removes its fence has no answer, and its connection cannot be ended: %s", o.Err)
		if m.due() && o.Params.fenced() {
			m.waitFrom()
			m.Cause = "a command that removes its fence may still be in flight"
		}
	}
	m.settle(o)
}

// removedTooEarly: the node is open before its time, and a lift of ours may have done it.
func (m *machine) removedTooEarly() bool {
	return m.Pending.Removal && !m.Pending.Until.IsZero() && !m.Deadline.IsZero() && !m.due() && !m.Cordoned
}

// kill ends connections, and reads the fence after it. Ids of connections begin
// anew with each incarnation of a server: it is sent on the connection that has read
// the run_id.
func (l *conn) kill(ctx context.Context, a Action, o Observation) (Observation, error) {
	o.About, o.Others = Killing, a.Others
	var one, list *redis.Cmd
	several := a.All || a.Others
	all := several && l.id != 0 && !l.crowded // without its id it would end itself
	if a.Conn != 0 || all {
		putBack := l.roomFor(listReply)
		err := l.send(ctx, func(p redis.Pipeliner) {
			if a.Conn != 0 {
				one = p.Do(ctx, "CLIENT", "KILL", "ID", a.Conn)
			}
			if all {
				list = p.Do(ctx, "CLIENT", "LIST")
			}
		})
		putBack()
		if err != nil {
			return o, err
		}
	}
	var why []error
	switch {
	case one == nil && (all || several && l.crowded):
	case one == nil:
		why = append(why, errors.New("the server does not tell CLIENT ID"))
	case one.Err() != nil:
		why = append(why, fmt.Errorf("CLIENT KILL: %w", one.Err()))
	default:
		o.Gone = true // also if there was none any more
	}
	if several && l.crowded {
		why = append(why, fmt.Errorf("CLIENT LIST is longer than %d MiB", listReply>>20))
	}
	var others []int64
	if list != nil {
		text, err := list.Text()
		if err != nil {
			why = append(why, fmt.Errorf("CLIENT LIST: %w", err))
		} else {
			bears := func(name string) bool { return name == l.name }
			if a.Others {
				bears = isGuardName
			}
			others, o.Swept = connsNamed(text, bears, l.id), true
		}
	}
	var after reading
	kills := make([]*redis.Cmd, len(others))
	err := l.send(ctx, func(p redis.Pipeliner) {
		for i, id := range others {
			kills[i] = p.Do(ctx, "CLIENT", "KILL", "ID", id)
		}
		after = l.method.ask(ctx, p)
	})
	if err != nil {
		return o, err
	}
	for _, c := range kills {
		if c.Err() != nil {
			o.Swept = false
			why = append(why, fmt.Errorf("CLIENT KILL: %w", c.Err()))
		}
	}
	o.Err = show(errors.Join(why...))
	if o.Params, err = after.result(); err != nil {
		o.Blind = true
		if o.Err == "" {
			o.Err = show(err)
		}
	}
	o.Reads = l.method.words(o.Params)
	return o, nil
}

// isGuardName reports whether a connection of that name is a guard's.
func isGuardName(name string) bool {
	return name == guardName || strings.HasPrefix(name, guardName+":")
}

// connsNamed are the ids in an answer to CLIENT LIST of connections whose name is
// asked for, but for one's own.
func connsNamed(list string, bears func(name string) bool, own int64) (ids []int64) {
	for line := range strings.Lines(list) {
		var id int64
		asked := false
		for field := range strings.FieldsSeq(line) {
			if v, ok := strings.CutPrefix(field, "id="); ok {
				id, _ = strconv.ParseInt(v, 10, 64)
			} else if v, ok := strings.CutPrefix(field, "name="); ok {
				asked = asked || bears(v)
			}
		}
		if asked && id > 0 && id != own {
			ids = append(ids, id)
		}
	}
	return ids
}

// abrupt makes the end of a connection, also by the death of this process, a
// reset: the kernel drops what it has not delivered yet, which it would go on
// sending for minutes otherwise.
func abrupt(opt *redis.Options) {
	dial := opt.Dialer
	if dial == nil {
		dial = redis.NewDialer(opt)
	}
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		below := c
		if tls, ok := c.(interface{ NetConn() net.Conn }); ok {
			below = tls.NetConn()
		}
		if tcp, ok := below.(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0) // a belt only
		}
		return c, nil
	}
}
