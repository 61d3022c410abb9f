package who

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// Conn is a connection, from a line of CLIENT LIST.
type Conn struct {
	ID        int64         `json:"-"`
	Addr      safetext.Text `json:"addr"` // of the client: host:port, or the path of a socket
	Name      safetext.Text `json:"name,omitzero"`
	User      safetext.Text `json:"user,omitzero"`
	Library   safetext.Text `json:"library,omitzero"` // "go-redis 9.5.1", if client and server report it
	Age, Idle int           `json:"-"`                // whole seconds
	Cmd       string        `json:"-"`                // the last command
	Cmds      int64         `json:"-"`                // commands sent; −1: the server does not count them (Valkey does since 8.1)
	Output    int64         `json:"-"`                // bytes waiting to be sent
}

// ParseList parses a reply of CLIENT LIST.
func ParseList(list string) (conns []Conn) {
	for client := range serverinfo.Clients(list) {
		c := Conn{Cmds: -1}
		var lib, version string
		for field, v := range client {
			n, _ := strconv.ParseInt(v, 10, 64)
			switch field {
			case "id":
				c.ID = n
			case "addr":
				c.Addr = safetext.New(v)
			case "name":
				c.Name = safetext.New(v)
			case "user":
				c.User = safetext.New(v)
			case "lib-name":
				lib = v
			case "lib-ver":
				version = v
			case "age":
				c.Age = int(n)
			case "idle":
				c.Idle = int(n)
			case "cmd":
				c.Cmd = v
			case "tot-cmds":
				c.Cmds = n
			case "omem":
				c.Output = n
			}
		}
		if c.ID != 0 {
			c.Library = safetext.New(strings.TrimSpace(lib + " " + version))
			conns = append(conns, c)
		}
	}
	return conns
}

// fits reports whether the last command may have acquired or extended a lock.
func (c *Conn) fits() bool {
	switch name, _, _ := strings.Cut(c.Cmd, "|"); name {
	case "set", "setnx", "getset", "psetex", "setex", "eval", "evalsha", "fcall", "exec",
		"pexpire", "pexpireat", "expire", "expireat", "hset", "hsetnx", "hincrby", "zadd":
		return true
	}
	return false
}

// holding are the commands of this program that take locks or extend them. The console is
// none of them: it reads all the time, and the tokens of its own locks tell that.
var holding = []string{"acquire", "extend", "run", "demo", "lab"}

// watches reports whether it belongs to a command of this program that takes no locks.
func (c *Conn) watches() bool {
	command, ours := strings.CutPrefix(c.Name.Raw(), ownName)
	if !ours {
		return false
	}
	command, _, _ = strings.Cut(command, ":")
	return !slices.Contains(holding, command)
}

// Host returns the client's address without its port.
func (c *Conn) Host() string {
	if host, _, err := net.SplitHostPort(c.Addr.Raw()); err == nil {
		return host
	}
	return c.Addr.Raw()
}

// Group is what counts as one application: the connections with one name; without names,
// of one user and address; without users, of one address.
type Group struct{ Name, User, Host string }

func (c *Conn) group() Group {
	switch user := c.User.Raw(); {
	case !c.Name.Empty():
		return Group{Name: c.Name.Raw()}
	case user != "" && user != "default":
		return Group{User: user, Host: c.Host()}
	}
	return Group{Host: c.Host()}
}

// String returns the group for people.
func (g Group) String() string {
	switch {
	case g.Name != "":
		return safetext.Escape(g.Name)
	case g.User != "":
		return safetext.Escape(g.User + "@" + g.Host)
	}
	return safetext.Escape(g.Host)
}

// findProcess returns the command that finds the process of a connection on its host.
func findProcess(addr string) string {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return ""
	}
	port := addr[i+1:]
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || port == "0" {
		return ""
	}
	return "ss -tnp 'sport = :" + port + "'"
}
