package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"redlockctl/server/fences"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// String returns the name and the address.
func (n Node) String() string { return n.Name + " (" + n.Addr + ")" }

// nodes reads [[nodes]]; label is their name in messages.
func (f *configFile) nodes(c *Config, root *table, label string, getenv func(string) string) {
	tables := root.subs("nodes", label)
	defaults := f.defaults(root, label)
	if len(tables) == 0 {
		// A [nodes] instead of [[nodes]] has already been reported.
		if _, ok := root.values["nodes"]; !ok {
			f.report(f.lines.at(root.path), label, "", "is missing; name at least one master, such as\n\t%s\n\tname = \"n1\"\n\taddr = \"127.0.0.1:7001\"", label)
		}
		return
	}
	names, servers := map[string]setting{}, map[string]setting{}
	dbs := map[int]bool{}
	for _, t := range tables {
		t.defaults = defaults
		n, server, nameSetting, addrSetting := f.node(t, getenv)
		if n.Name != "" {
			if first, ok := names[n.Name]; ok {
				nameSetting.problem("is also the name of the node of line %d; each node needs a name of its own", first.line())
			} else {
				names[n.Name] = nameSetting
			}
		}
		if server != "" {
			if first, ok := servers[server]; ok {
				addrSetting.problem("is the same server as %s%s; one server has one vote, whatever its databases, so each node must be a server of its own",
					redact(first.raw), first.place())
			} else {
				servers[server] = addrSetting
			}
		}
		dbs[n.DB] = true
		c.Nodes = append(c.Nodes, n)
		c.Warnings = append(c.Warnings, f.nodeWarnings(n, label)...)
	}
	line := c.Nodes[0].Line
	switch n := len(c.Nodes); {
	case n%2 == 0:
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d: %s are %d, an even number: a quorum is %d, so that no more may fail than of %d; an odd number is better",
			f.path, line, label, n, n/2+1, n-1))
	case n == 1:
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d: %s is a single master: when it fails, nothing can be locked; 3 or 5 are usual", f.path, line, label))
	}
	if len(dbs) > 1 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d: %s differ in db: clients of one cluster use the same database on each master", f.path, line, label))
	}
}

// defaults reads [defaults], the keys for nodes that lack them.
func (f *configFile) defaults(root *table, label string) *table {
	t := root.sub("defaults", strings.Replace(strings.Trim(label, "[]"), "nodes", "defaults", 1))
	t.label = "[" + t.label + "]"
	for _, key := range []string{"name", "addr"} {
		if s := t.get(key); s.set {
			s.problem("is of one node; write it in %s", label)
			delete(t.values, key)
		}
	}
	return t
}

func (f *configFile) nodeWarnings(n Node, label string) []string {
	if n.options == nil || n.TLS || optionsOf(&n).Password == "" || !remote(n.Addr) {
		return nil
	}
	return []string{fmt.Sprintf("%s:%d: %s %q: the password goes over the network to %s in the clear; add [%s.tls]", f.path, n.Line, label, n.Name, n.Addr, strings.Trim(label, "[]"))}
}

// remote reports whether an address is on another host.
func remote(addr string) bool {
	if strings.HasPrefix(addr, "/") {
		return false
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.Unmap().IsLoopback()
}

// node reads one of [[nodes]]; server identifies its server.
func (f *configFile) node(t *table, getenv func(string) string) (n Node, server string, name, addr setting) {
	n.Line = f.lines.at(t.path)
	label := t.label
	n.Name, name = t.text("name", "")
	switch {
	case n.Name != "":
		if why := badName(n.Name, 32, false); why != "" {
			name.problem("%s", why)
		}
		t.label = fmt.Sprintf("%s %q", label, n.Name)
		f.settings[len(f.settings)-1].Key = name.name()
	case t.values["name"] == nil:
		name.problem(`is missing; give the node a short name, such as "n1"`)
	}

	text, addr := t.text("addr", "")
	var at endpoint
	if addr.set {
		addr.secret = strings.Contains(text, "@") // user:password@host
		var why string
		if at, why = parseAddress(text); why != "" {
			addr.problem("%s", why)
		}
		n.Addr = at.addr
	} else if !t.has("addr") {
		addr.problem(`is missing; give "host:port", "[::1]:port", the path of a unix socket, or a URL such as "rediss://user@host:6379/0"`)
	}

	if n.DB = t.integer("db", at.db, 0, math.MaxInt32); at.db != 0 && n.DB != at.db {
		t.overrides("db", addr)
		n.DB = at.db
	}
	fenceUser := f.fence(t, &n.Fence)
	protocol := t.integer("protocol", 3, 2, 3)
	username, usernameSetting := t.text("username", at.user)
	if at.user != "" && username != at.user {
		t.overrides("username", addr)
		username = at.user
	}
	if n.Fence.Kind == fences.ACL && fenceUser.set && n.Fence.User == cmp.Or(username, "default") {
		fenceUser.problem("is also the user as whom this program logs in: it would take its own rights away; give it a user of its own by username")
	}
	password := f.password(t, getenv)
	if username != "" && password == "" && !slices.ContainsFunc(alternatives, t.has) {
		if !usernameSetting.set {
			usernameSetting = addr
		}
		usernameSetting.problem("has no password; add password_env, password_file or password_command")
	}

	// Always read the keys, so that hints can name them.
	secure := f.tls(t.sub("tls", "["+strings.Trim(label, "[]")+".tls] of "+quotedOr(n.Name, "a node")), getenv)
	table := t.has("tls")
	if t.values["tls"] == nil && (at.network == "unix" || at.scheme == "redis") {
		table = false // the address overrides a default
	}
	switch n.TLS = table || at.tls; {
	case table && at.network == "unix":
		t.get("tls").problem("is set for %s: a unix socket does not use TLS; remove one of the two", addr.refer(""))
	case table && at.scheme == "redis":
		t.get("tls").problem("is set for %s, a URL without TLS; write rediss://", addr.refer(""))
	case !n.TLS:
		secure = nil
	}

	dial := redis.Options{
		Network: at.network, Addr: n.Addr, DB: n.DB, Protocol: protocol,
		Username: username, Password: password, TLSConfig: secure,
	}
	n.options = func() any {
		o := dial
		if secure != nil {
			o.TLSConfig = secure.Clone()
		}
		return &o
	}
	return n, at.server, name, addr
}

// overrides reports that a key of the node contradicts its address. A default does not
// count.
func (t *table) overrides(key string, addr setting) {
	if t.values[key] != nil {
		t.get(key).problem("contradicts %s, which names another; remove one of the two", addr.refer(""))
	}
}

func (f *configFile) fence(t *table, m *fences.Method) (user setting) {
	m.Kind, _ = fences.KindOf(t.choice("fence", fences.MinReplicas.String(), fences.Words()...))
	m.User, user = t.text("fence_user", "")
	allow := t.get("fence_allow")
	m.Allow = t.texts("fence_allow")
	switch {
	case m.Kind != fences.ACL:
		for _, s := range []setting{user, allow} {
			if s.set {
				s.problem("goes with fence = \"acl\" alone, and fence is %q", m.Kind)
			}
		}
		return user
	case !user.set && t.values["fence_user"] == nil:
		user.problem("is missing; fence = \"acl\" needs the ACL user as whom the lock clients log in, such as \"locks\"")
	case strings.ContainsAny(m.User, " \t\r\n\x00"):
		user.problem("has a space, which no ACL user has")
	}
	for _, r := range m.Allow {
		if !fences.CommandRule(r) {
			allow.problem("%q neither gives nor takes a command; write rules such as \"+@write\" or \"-flushall\"", r)
		}
	}
	if m.Allow == nil {
		m.Allow = fences.DefaultAllow()
	}
	return user
}

func quotedOr(s, def string) string {
	if s == "" {
		return def
	}
	return strconv.Quote(s)
}

func (f *configFile) tls(t *table, getenv func(string) string) *tls.Config {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	ca, caSetting := t.text("ca", "")
	cert, certSetting := t.text("cert", "")
	key, keySetting := t.text("key", "")
	out.ServerName, _ = t.text("server_name", "")
	if f.Secretless {
		return out
	}

	if caSetting.set {
		path := f.resolve(ca, getenv)
		out.RootCAs = x509.NewCertPool()
		if b, err := os.ReadFile(path); err != nil {
			caSetting.problem("the file %q cannot be read: %v", path, cause(err))
		} else if !out.RootCAs.AppendCertsFromPEM(b) {
			caSetting.problem("the file %q holds no certificate in PEM form", path)
		}
	}
	switch {
	case certSetting.set && !keySetting.set:
		certSetting.problem("needs key beside it; give both for a client certificate, or neither")
	case keySetting.set && !certSetting.set:
		keySetting.problem("needs cert beside it; give both for a client certificate, or neither")
	case certSetting.set:
		path := f.resolve(cert, getenv)
		b, err := os.ReadFile(path)
		if err != nil {
			certSetting.problem("the file %q cannot be read: %v", path, cause(err))
		}
		secret, why := private(f.resolve(key, getenv), getenv)
		if why != "" {
			keySetting.problem("%s", why)
		}
		if err != nil || why != "" {
			break
		}
		pair, err := tls.X509KeyPair(b, secret)
		if err != nil {
			certSetting.problem("does not go with %s: %v", keySetting.refer(""), err)
			break
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out
}
