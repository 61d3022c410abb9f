package who

import (
	"os"
	"strconv"
	"strings"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
)

// ownName is the prefix of the names of this program's connections.
const ownName = "redlockctl:"

// Self returns user@host:pid of this process, shortened to fit an owner in a token: first
// the domain of the host is cut, then the end of the host, then that of the user.
func Self(getenv func(string) string) string {
	actor, _, _ := strings.Cut(audit.Actor(getenv), " ")
	user, host, _ := strings.Cut(actor, "@")
	return self(user, host, os.Getpid())
}

func self(user, host string, pid int) string {
	user, host = word(user), word(host)
	end := ":" + strconv.Itoa(pid)
	room := redlock.MostOwner - len("@") - len(end)
	if len(user)+len(host) > room {
		host, _, _ = strings.Cut(host, ".")
	}
	user = user[:min(len(user), room/2)]
	host = host[:min(len(host), room-len(user))]
	return user + "@" + host + end
}

// word returns s without characters that an owner cannot contain.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == ':' || r == '@' {
			return '-'
		}
		return r
	}, s)
}

// ConnName returns the name of a command's connections: redlockctl:WHAT:SELF. A guard
// that starts ends connections named redlockctl:guard, over which guards fence; its other
// connections have another name.
func ConnName(command, self string) string {
	if command == "guard" {
		command = "guard-daemon"
	}
	return ownName + strings.ReplaceAll(command, " ", "-") + ":" + self
}
