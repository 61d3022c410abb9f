package embedded

import (
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// ownCommands are the commands that miniredis lacks, or answers differently from a
// server.
var ownCommands = map[string]command{
	"CLIENT":  (*Instance).client,
	"CLUSTER": (*Instance).cluster,
	"CONFIG":  (*Instance).configure,
	"HELLO":   (*Instance).hello,
	"INFO":    (*Instance).info,
	"ROLE":    (*Instance).role,
}

func (in *Instance) client(p *peer, c *server.Peer, args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch strings.ToUpper(args[0]) {
	case "ID":
		c.WriteInt(p.id)
	case "NO-EVICT", "SETINFO":
		c.WriteOK()
	default:
		return false
	}
	return true
}

func (in *Instance) cluster(_ *peer, c *server.Peer, _ []string) bool {
	c.WriteError("ERR This instance has cluster support disabled")
	return true
}

// role answers as a master without replicas, at replication offset 0.
func (in *Instance) role(_ *peer, c *server.Peer, _ []string) bool {
	c.Block(func(w *server.Writer) {
		w.WriteLen(3)
		w.WriteBulk("master")
		w.WriteInt(0)
		w.WriteLen(0)
	})
	return true
}

// hello switches the protocol as miniredis does, and answers as a server of the version
// in INFO.
func (in *Instance) hello(p *peer, c *server.Peer, args []string) bool {
	proto := 2
	if c.Resp3 {
		proto = 3
	}
	if len(args) > 0 {
		if reply := in.capture(c, "HELLO", args); strings.HasPrefix(reply, "-") {
			c.Block(func(w *server.Writer) { w.WriteRaw(reply) })
			return true
		}
		proto, _ = strconv.Atoi(args[0]) // it was accepted
	}
	c.Resp3 = proto == 3
	c.WriteMapLen(7)
	for _, v := range []any{"server", "redis", "version", embeddedVersion, "proto", proto, "id", p.id, "mode", "standalone", "role", "master"} {
		if n, ok := v.(int); ok {
			c.WriteInt(n)
		} else {
			c.WriteBulk(v.(string))
		}
	}
	c.WriteBulk("modules")
	c.WriteLen(0)
	return true
}

// configure answers CONFIG.
func (in *Instance) configure(_ *peer, c *server.Peer, args []string) bool {
	if len(args) == 0 {
		c.WriteError("ERR wrong number of arguments for 'config' command")
		return true
	}
	sub, args := strings.ToLower(args[0]), args[1:]
	wrong := "ERR wrong number of arguments for 'config|" + sub + "' command"
	switch sub {
	case "get":
		if len(args) == 0 {
			c.WriteError(wrong)
			return true
		}
		found := in.config.get(args)
		c.Block(func(w *server.Writer) {
			w.WriteMapLen(len(found))
			for k, v := range found {
				w.WriteBulk(k)
				w.WriteBulk(v)
			}
		})
	case "set":
		if len(args) < 2 {
			c.WriteError(wrong)
		} else if len(args)%2 != 0 {
			c.WriteError("ERR syntax error")
		} else if why := in.config.set(args); why != "" {
			c.WriteError(why)
		} else {
			c.WriteOK()
		}
	case "resetstat":
		in.stats.reset()
		c.WriteOK()
	case "rewrite":
		c.WriteError("ERR The server is running without a config file")
	default:
		c.WriteError("ERR unknown subcommand '" + sub + "'. Try CONFIG HELP.")
	}
	return true
}
