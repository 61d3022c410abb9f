package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
)

// Node is one of [[nodes]].
type Node struct {
	Name  string
	Addr  string // host:port, or the absolute path of a unix socket
	DB    int
	TLS   bool
	Fence string // method: "min-replicas", "acl" or "none"
	// FenceUser is the user of the lock clients, and FenceAllow the rules that give
	// it back its commands; both of "acl" alone.
	FenceUser  string
	FenceAllow []string
	// Line is where the node stands in the file.
	Line int

	// options is how to reach it, with its secrets. It is a function so that
	// nothing that walks over values finds them: fmt does not call the methods of
	// unexported fields, but it does print what is in them.
	options func() *redis.Options
}

// String is the name and the address.
func (n Node) String() string { return n.Name + " (" + n.Addr + ")" }

// nodes reads [[nodes]]; label is what they are called.
func (f *file) nodes(c *Config, root *table, label string, getenv func(string) string) {
	tables := root.subs("nodes", label)
	if len(tables) == 0 {
		// A [nodes] in place of [[nodes]] has been reported as that.
		if _, ok := root.values["nodes"]; !ok {
			f.report(f.lines.at(root.path), label, "", "is missing; name at least one master, such as\n\t%s\n\tname = \"n1\"\n\taddr = \"127.0.0.1:7001\"", label)
		}
		return
	}
	names, servers := map[string]setting{}, map[string]setting{}
	dbs := map[int]bool{}
	for _, t := range tables {
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
				addrSetting.problem("is the same server as %s (line %d); one server has one vote, whatever its databases, so each node must be a server of its own",
					redact(first.raw), first.line())
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

func (f *file) nodeWarnings(n Node, label string) []string {
	if n.options == nil || n.TLS || n.options().Password == "" || !remote(n.Addr) {
		return nil
	}
	return []string{fmt.Sprintf("%s:%d: %s %q: the password goes over the network to %s in the clear; add [%s.tls]", f.path, n.Line, label, n.Name, n.Addr, strings.Trim(label, "[]"))}
}

// remote tells if an address is on another host.
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

// node reads one of [[nodes]]; server identifies the server that it names.
func (f *file) node(t *table, getenv func(string) string) (n Node, server string, name, addr setting) {
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
	network := ""
	if addr.set {
		addr.secret = strings.Contains(text, "@") // user:password@host
		var why string
		if network, n.Addr, server, why = address(text); why != "" {
			addr.problem("%s", why)
		}
	} else if t.values["addr"] == nil {
		addr.problem(`is missing; give "host:port", "[::1]:port" or the path of a unix socket`)
	}

	n.DB = t.integer("db", 0, 0, math.MaxInt32)
	n.Fence = t.choice("fence", "min-replicas", "min-replicas", "acl", "none")
	fenceUser := f.fence(t, &n)
	protocol := t.integer("protocol", 3, 2, 3)
	username, usernameSetting := t.text("username", "")
	if n.Fence == "acl" && fenceUser.set && n.FenceUser == cmp.Or(username, "default") {
		fenceUser.problem("is also the user as whom this program logs in: it would take its own rights away; give it a user of its own by username")
	}
	password := f.password(t, getenv)
	if usernameSetting.set && password == "" && t.values["password_env"] == nil && t.values["password_file"] == nil {
		usernameSetting.problem("stands without a password; add password_env or password_file")
	}

	// Its keys are asked for in any case, so that hints can name them.
	secure := f.tls(t.sub("tls", "["+strings.Trim(label, "[]")+".tls] of "+quotedOr(n.Name, "a node")), getenv)
	if _, n.TLS = t.values["tls"]; !n.TLS {
		secure = nil
	} else if network == "unix" {
		t.get("tls").problem("is set for %s: a unix socket speaks no TLS; remove one of the two", addr.refer(""))
	}

	dial := redis.Options{
		Network: network, Addr: n.Addr, DB: n.DB, Protocol: protocol,
		Username: username, Password: password, TLSConfig: secure,
	}
	n.options = func() *redis.Options {
		o := dial
		if secure != nil {
			o.TLSConfig = secure.Clone()
		}
		return &o
	}
	return n, server, name, addr
}

// fence reads what goes with the method of closing a node.
func (f *file) fence(t *table, n *Node) (user setting) {
	n.FenceUser, user = t.text("fence_user", "")
	allow := t.get("fence_allow")
	n.FenceAllow = t.texts("fence_allow")
	switch {
	case n.Fence != "acl":
		for _, s := range []setting{user, allow} {
			if s.set {
				s.problem("goes with fence = \"acl\" alone, and fence is %q", n.Fence)
			}
		}
		return user
	case !user.set && t.values["fence_user"] == nil:
		user.problem("is missing; fence = \"acl\" needs the ACL user as whom the lock clients log in, such as \"locks\"")
	case strings.ContainsAny(n.FenceUser, " \t\r\n\x00"):
		user.problem("has a space, which no ACL user has")
	}
	for _, r := range n.FenceAllow {
		if !restartguard.CommandRule(r) {
			allow.problem("%q neither gives nor takes a command; write rules such as \"+@write\" or \"-flushall\"", r)
		}
	}
	if n.FenceAllow == nil {
		n.FenceAllow = restartguard.DefaultAllow()
	}
	return user
}

// Method is how the guard closes the node.
func (n Node) Method() restartguard.Method {
	switch n.Fence {
	case "acl":
		return restartguard.Method{Kind: restartguard.ACL, User: n.FenceUser, Allow: n.FenceAllow}
	case "none":
		return restartguard.Method{Kind: restartguard.Advice}
	}
	return restartguard.Method{}
}

func quotedOr(s, def string) string {
	if s == "" {
		return def
	}
	return strconv.Quote(s)
}

// redact is an address as it may be shown.
func redact(raw any) string {
	if s, ok := raw.(string); ok && !strings.Contains(s, "@") {
		return strconv.Quote(s)
	}
	return "the address"
}

// address checks an address: the network and the address to dial, a word that
// is the same for each spelling of one server, and why it cannot be used.
func address(text string) (network, addr, server, why string) {
	const forms = `"host:port", "[::1]:port" or the path of a unix socket`
	if path, ok := strings.CutPrefix(text, "unix://"); ok || strings.HasPrefix(text, "/") {
		if !ok {
			path = text
		}
		if !strings.HasPrefix(path, "/") || filepath.Clean(path) == "/" {
			return "", "", "", `is not the absolute path of a unix socket, such as "unix:///run/redis/redis.sock"`
		}
		path = filepath.Clean(path)
		server = path
		if real, err := filepath.EvalSymlinks(path); err == nil {
			server = real
		}
		return "unix", path, server, ""
	}
	if strings.Contains(text, "://") || strings.Contains(text, "@") {
		return "", "", "", "is a URL or holds a user; write " + forms + ", and the rest as username, password_env, db and [nodes.tls]"
	}
	host, port, err := net.SplitHostPort(text)
	switch {
	case err != nil && strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "["):
		return "", "", "", `is an IPv6 address without brackets; write it as "[::1]:6379", with the port behind`
	case err != nil || port == "":
		return "", "", "", "has no port, and none is assumed; write " + forms
	case host == "":
		return "", "", "", "has no host; write " + forms
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return "", "", "", fmt.Sprintf("has the port %q, which is not a number from 1 to 65535", port)
	}
	port = strconv.FormatUint(number, 10)
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		if ip.IsUnspecified() || ip.IsMulticast() {
			return "", "", "", fmt.Sprintf("has the host %q, which is no server's address", host)
		}
		addr = net.JoinHostPort(ip.String(), port)
		return "tcp", addr, addr, ""
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !hostname(host) {
		return "", "", "", fmt.Sprintf("has the host %q, which is neither an IP address nor a host name", host)
	}
	addr = net.JoinHostPort(host, port)
	if host == "localhost" {
		return "tcp", addr, net.JoinHostPort("127.0.0.1", port), ""
	}
	return "tcp", addr, addr, ""
}

// hostname tells if a name could be one: labels of letters, digits, - and _,
// and not a mistyped IPv4 address.
func hostname(host string) bool {
	if len(host) > 253 {
		return false
	}
	digits := true
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			switch {
			case r >= '0' && r <= '9':
			case r >= 'a' && r <= 'z', r == '-', r == '_':
				digits = false
			default:
				return false
			}
		}
	}
	return !digits
}

// password reads the secret of a node; "" if it has none or it cannot be read.
func (f *file) password(t *table, getenv func(string) string) string {
	if s := t.get("password"); s.set {
		s.problem("a password does not belong in this file, which is copied, shown and checked in; " +
			"name an environment variable by password_env, or a file that only you can read by password_file")
	}
	variable, env := t.text("password_env", "")
	path, in := t.text("password_file", "")
	env.secret, in.secret = true, false
	switch {
	case env.set && in.set:
		in.problem("stands beside password_env (line %d); give one of the two", env.line())
		return ""
	case env.set:
		if !variableName(variable) {
			// It may be the password itself that was written here: it is not shown.
			env.problem("is not the name of an environment variable (capital letters, digits and _), such as REDIS_PASSWORD; " +
				"the password itself does not belong in this file")
			return ""
		}
		if f.secretless {
			return ""
		}
		v := getenv(variable)
		if v == "" {
			env.problem("the environment variable %s is not set, or empty; export it before starting, or use password_file", variable)
		}
		env.came("$"+variable, "")
		f.passwordEnv = append(f.passwordEnv, variable)
		return v
	case in.set && !f.secretless:
		path = f.resolve(path, getenv)
		b, why := private(path, getenv)
		if why != "" {
			in.problem("%s", why)
			return ""
		}
		secret := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
		switch {
		case secret == "":
			in.problem("the file %q is empty; put the password on its first line", path)
		case strings.ContainsAny(secret, "\r\n"):
			in.problem("the file %q has more than one line; it must hold the password alone", path)
			return ""
		}
		in.came(path, "")
		return secret
	}
	return ""
}

// variableName tells if s looks like the name of an environment variable, and
// not like a password.
func variableName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

// othersMay are the rights on the file of a secret with which others could get at
// it. In the directory in which systemd hands over credentials the group may read:
// there it is how the unit's own user gets them from root.
func othersMay(path string, getenv func(string) string) fs.FileMode {
	dir := getenv("CREDENTIALS_DIRECTORY")
	if !filepath.IsAbs(dir) {
		return 0o077
	}
	if rel, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(rel) {
		return 0o077
	}
	return 0o037
}

// private reads a file that holds a secret, and says why it must not be used.
func private(path string, getenv func(string) string) (content []byte, why string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("the file %q cannot be read: %v", path, cause(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Sprintf("%q is not a file", path)
	case info.Mode().Perm()&othersMay(path, getenv) != 0:
		return nil, fmt.Sprintf("the file %q has mode %04o, so that others can get at the secret; chmod 600 it", path, info.Mode().Perm())
	case info.Size() > 64<<10:
		return nil, fmt.Sprintf("the file %q is too large to be a secret", path)
	}
	if content, err = fs.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path)); err != nil {
		return nil, fmt.Sprintf("the file %q cannot be read: %v", path, cause(err))
	}
	return content, ""
}

// tls reads [nodes.tls].
func (f *file) tls(t *table, getenv func(string) string) *tls.Config {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	ca, caSetting := t.text("ca", "")
	cert, certSetting := t.text("cert", "")
	key, keySetting := t.text("key", "")
	out.ServerName, _ = t.text("server_name", "")
	if f.secretless {
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
		certSetting.problem("stands without key; give both for a client certificate, or neither")
	case keySetting.set && !certSetting.set:
		keySetting.problem("stands without cert; give both for a client certificate, or neither")
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
