package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

func redact(raw any) string {
	if s, ok := raw.(string); ok && !strings.Contains(s, "@") {
		return strconv.Quote(s)
	}
	return "the address"
}

// endpoint is a parsed address of a server.
type endpoint struct {
	scheme        string // of a URL; "": not a URL
	network, addr string // to dial
	server        string // the same for each spelling of the same server
	user          string
	db            int
	tls           bool
}

const addressForms = `"host:port", "[::1]:port", the path of a unix socket, or redis://, rediss:// or unix:// URLs`

// parseAddress parses an address, or says why it cannot be used. A URL may have a user
// and a database, but never a password: addresses appear in files and arguments.
func parseAddress(text string) (at endpoint, why string) {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case strings.HasPrefix(text, "/"):
		return socket(text)
	case !isURL && strings.Contains(text, "@"):
		return at, "holds a user; write it as username, or the address as a URL: redis://user@host:port"
	case !isURL:
		return hostPort(text)
	}
	opt, err := redis.ParseURL(text)
	var u *url.URL
	if err == nil {
		u, err = url.Parse(text)
	}
	switch {
	case scheme != "redis" && scheme != "rediss" && scheme != "unix":
		return at, "is a URL of a kind that is not known here; write " + addressForms
	case err != nil && strings.Contains(text, "@"):
		return at, "is not a URL that can be read; write redis://user@host:port/db"
	case err != nil:
		return at, "is not a URL that can be read: " + strings.TrimPrefix(err.Error(), "redis: ")
	case opt.Password != "":
		return at, "holds a password, which does not belong here; name an environment variable by password_env, a file by password_file, or a command by password_command"
	case u.RawQuery != "" && scheme != "unix" || u.Fragment != "":
		return at, "is a URL with options, which are not read; keep user, host, port and database"
	}
	if scheme == "unix" {
		at, why = socket(strings.TrimPrefix(u.Host+u.Path, "@"))
	} else {
		at, why = hostPort(opt.Addr)
	}
	at.scheme, at.user, at.db, at.tls = scheme, opt.Username, opt.DB, scheme == "rediss"
	return at, why
}

func socket(path string) (at endpoint, why string) {
	if !strings.HasPrefix(path, "/") || filepath.Clean(path) == "/" {
		return at, `is not the absolute path of a unix socket, such as "unix:///run/redis/redis.sock"`
	}
	at = endpoint{network: "unix", addr: filepath.Clean(path)}
	at.server = at.addr
	if real, err := filepath.EvalSymlinks(at.addr); err == nil {
		at.server = real
	}
	return at, ""
}

func hostPort(text string) (at endpoint, why string) {
	host, port, err := net.SplitHostPort(text)
	switch {
	case err != nil && strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "["):
		return at, `is an IPv6 address without brackets; write it as "[::1]:6379", with the port behind`
	case err != nil || port == "":
		return at, "has no port, and none is assumed; write " + addressForms
	case host == "":
		return at, "has no host; write " + addressForms
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return at, fmt.Sprintf("has the port %q, which is not a number from 1 to 65535", port)
	}
	port = strconv.FormatUint(number, 10)
	at.network = "tcp"
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		if ip.IsUnspecified() || ip.IsMulticast() {
			return endpoint{}, fmt.Sprintf("has the host %q, which is not the address of a server", host)
		}
		at.addr = net.JoinHostPort(ip.String(), port)
		at.server = at.addr
		return at, ""
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !hostname(host) {
		return endpoint{}, fmt.Sprintf("has the host %q, which is neither an IP address nor a host name", host)
	}
	at.addr = net.JoinHostPort(host, port)
	at.server = at.addr
	if host == "localhost" {
		at.server = net.JoinHostPort("127.0.0.1", port)
	}
	return at, ""
}

// hostname reports whether a name can be a host name: labels of letters, digits, - and _,
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
