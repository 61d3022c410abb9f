// Package embedded has a master in this process: a miniredis, with the features of a real server
// that a console, a guard and lock clients need and miniredis lacks.
package embedded

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Instance is one incarnation of an embedded master: a miniredis behind a listener of
// our own, with a hook before each command that adds what miniredis lacks. The next
// incarnation inherits nothing from it.
type Instance struct {
	redis    *miniredis.Miniredis
	srv      *server.Server
	clock    *Clock
	listener *net.TCPListener
	accepted chan struct{} // closed when the accept loop has ended
	own      map[string]command

	connMu sync.Mutex
	conns  map[*conn]struct{}

	// gate runs one command at a time, as the one thread of a real server does: no
	// write that passed the fence check runs after the CONFIG SET that fenced has been
	// answered. It guards all fields below.
	gate     sync.Mutex
	config   settings
	stats    stats
	readOnly bool // a read-only script is running

	stillMu sync.Mutex
	still   chan struct{} // closed when the instance continues; nil: it does not hang

	peerMu sync.Mutex
	peers  map[*server.Peer]*peer
	lastID int
}

// command answers a command here; if it returns false, miniredis answers it.
type command func(in *Instance, p *peer, c *server.Peer, args []string) bool

// peer is what the hook knows of a connection.
type peer struct {
	id     int
	inside bool // its command has passed the gate: nested calls do not pass it again
	// State of an open MULTI on this connection:
	multi bool
	dirty bool // a command was refused
	wrote bool // a write was queued
}

// Hang stops the instance from answering, or lets it continue.
func (in *Instance) Hang(still bool) {
	in.stillMu.Lock()
	defer in.stillMu.Unlock()
	switch {
	case still && in.still == nil:
		in.still = make(chan struct{})
	case !still && in.still != nil:
		close(in.still)
		in.still = nil
	}
}

// standing waits while the instance hangs.
func (in *Instance) standing() {
	in.stillMu.Lock()
	still := in.still
	in.stillMu.Unlock()
	if still != nil {
		<-still
	}
}

// End ends the incarnation and waits for its goroutines.
func (in *Instance) End() {
	_ = in.listener.Close()
	<-in.accepted
	in.connMu.Lock()
	for c := range in.conns {
		_ = c.SetLinger(0) // closing sends a reset
	}
	in.connMu.Unlock()
	in.Hang(false) // waiting commands get no answer: their connections are closed
	in.redis.Close()
}

// hook runs before each command, also before those that a script calls, which
// run while miniredis holds its lock. It reports whether the command has been answered.
func (in *Instance) hook(c *server.Peer, cmd string, args ...string) bool {
	p := in.peer(c)
	if p == nil || p.inside {
		return in.called(c, cmd, args, p == nil)
	}
	in.standing()
	in.gate.Lock()
	defer in.gate.Unlock()
	in.redis.SetTime(in.clock.At(time.Now()))
	refusal := ""
	if in.config.fenced() && in.writes(cmd) {
		refusal = msgNoReplicas
	}
	in.stats.count(cmd, args, refusal != "")
	if refusal != "" {
		p.dirty = p.multi
		c.WriteError(refusal)
		return true
	}
	switch own, ok := in.own[cmd]; {
	case ok && p.multi:
		p.dirty = true
		c.WriteError("ERR Command not allowed inside a transaction")
		return true
	case ok && own(in, p, c, args):
		return true
	}
	switch cmd {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		if !p.multi && len(args) > 0 {
			in.script(c, cmd, args)
			return true
		}
	case "MULTI":
		p.multi, p.dirty, p.wrote = true, false, false
	case "EXEC":
		if p.multi && in.abort(p, c) {
			return true
		}
		p.multi = false
	case "DISCARD":
		p.multi = false
	}
	if blocking[cmd] {
		return false // outside the gate, which it would block while it waits
	}
	if p.multi && in.writes(cmd) {
		p.wrote = true
	}
	in.dispatch(c, p, cmd, args)
	return true
}

// dispatch runs a command in miniredis, through the hook.
func (in *Instance) dispatch(c *server.Peer, p *peer, cmd string, args []string) {
	p.inside = true
	in.srv.Dispatch(c, append([]string{cmd}, args...))
	p.inside = false
}

// peer returns the state of the connection c; nil for a pseudo-connection that
// miniredis makes for a command in a script. That one is recognized by its context,
// which it has before its first command.
func (in *Instance) peer(c *server.Peer) *peer {
	in.peerMu.Lock()
	defer in.peerMu.Unlock()
	if p := in.peers[c]; p != nil {
		return p
	}
	if c.Ctx != nil {
		return nil
	}
	in.lastID++
	p := &peer{id: in.lastID}
	in.peers[c] = p
	c.OnDisconnect(func() { in.forget(c) })
	return p
}

func (in *Instance) forget(c *server.Peer) {
	in.peerMu.Lock()
	defer in.peerMu.Unlock()
	delete(in.peers, c)
}

// called is the hook of a command that has already passed the gate: one that a script
// calls, where the fence refuses each write, or one that dispatch repeats.
func (in *Instance) called(c *server.Peer, cmd string, args []string, byScript bool) bool {
	if !byScript {
		return false
	}
	write := in.writes(cmd)
	var refusal string
	switch {
	case in.own[cmd] != nil:
		refusal = "ERR This Redis command is not allowed from script"
	case write && in.readOnly:
		refusal = "ERR Write commands are not allowed from read-only scripts."
	case write && in.config.fenced():
		refusal = msgNoReplicas
	}
	in.stats.count(cmd, args, refusal != "")
	if refusal == "" {
		return false
	}
	c.WriteError(refusal)
	return true
}

// msgNoReplicas is the answer of a fenced server to a write.
const msgNoReplicas = "NOREPLICAS Not enough good replicas to write."

// abort ends a transaction that must not run, and reports whether it did.
func (in *Instance) abort(p *peer, c *server.Peer) bool {
	var why string
	switch {
	case p.dirty:
		why = "EXECABORT Transaction discarded because of previous errors."
	case p.wrote && in.config.fenced():
		why = "EXECABORT Transaction discarded because of: " + msgNoReplicas
	default:
		return false
	}
	p.multi = false
	in.capture(c, "DISCARD", nil)
	c.WriteError(why)
	return true
}

// capture runs a command for the connection c and returns its raw reply.
func (in *Instance) capture(c *server.Peer, cmd string, args []string) string {
	var buf bytes.Buffer
	inner := server.NewPeer(bufio.NewWriter(&buf))
	inner.Ctx, inner.Resp3 = c.Ctx, c.Resp3
	p := &peer{}
	in.peerMu.Lock()
	in.peers[inner] = p
	in.peerMu.Unlock()
	defer in.forget(inner)
	in.dispatch(inner, p, cmd, args)
	inner.Flush()
	c.Ctx = inner.Ctx
	return buf.String()
}

// scriptError is how miniredis words an error that ended a script: line, text.
var scriptError = regexp.MustCompile(`^-ERR Error compiling script \(new function\): (?:<string>)?:(\d+): ?(.*?) +stack traceback:`)

// script runs a script and words its errors as a real server does.
func (in *Instance) script(c *server.Peer, cmd string, args []string) {
	if name, ok := strings.CutSuffix(cmd, "_RO"); ok {
		// The read-only mode of miniredis refuses TIME and others too.
		cmd, in.readOnly = name, true
		defer func() { in.readOnly = false }()
	}
	reply := in.capture(c, cmd, args)
	if m := scriptError.FindStringSubmatch(reply); m != nil {
		sha := strings.ToLower(args[0])
		if cmd == "EVAL" {
			sum := sha1.Sum([]byte(args[0]))
			sha = hex.EncodeToString(sum[:])
		}
		text, _, _ := strings.Cut(m[2], " script: ")
		switch word, _, _ := strings.Cut(text, " "); {
		case word == "Unknown": // command
			text = "ERR " + text
		case word == "" || strings.ToUpper(word) != word: // the script's own
			text = "ERR user_script:" + m[1] + ": " + text
		}
		c.WriteError(text + " script: " + sha + ", on @user_script:" + m[1] + ".")
		return
	}
	c.Block(func(w *server.Writer) { w.WriteRaw(reply) })
}

// writes reports whether a real server counts cmd as a write.
func (in *Instance) writes(cmd string) bool {
	return !harmless[cmd] && in.srv.IsRegisteredCommand(cmd) && !in.srv.IsReadOnlyCommand(cmd)
}

// harmless are the commands that miniredis does not mark as read-only and that do not
// write. In a script each command is checked on its own.
var harmless = wordSet("AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DISCARD", "ECHO", "EVAL", "EVALSHA", "EXEC", "HELLO",

	"INFO", "MEMORY", "MULTI", "OBJECT", "PING", "PSUBSCRIBE", "PUBLISH", "PUBSUB", "PUNSUBSCRIBE", "QUIT", "ROLE", "SCRIPT",
	"SELECT", "SUBSCRIBE", "TIME", "UNSUBSCRIBE", "UNWATCH", "WAIT", "WATCH", "XINFO")

// blocking are the commands that may block.
var blocking = wordSet("BLMOVE", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT", "XREAD", "XREADGROUP")
