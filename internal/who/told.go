package who

import (
	"os"
	"strconv"
	"strings"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
)

// ownName begins the names of this program's connections.
const ownName = "redlockctl:"

// Self is user@host:pid of this process, made to fit an owner of a token: of a long
// host its domain goes first, then its end, then that of the user.
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

// word is s without what cannot stand in an owner.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == ':' || r == '@' {
			return '-'
		}
		return r
	}, s)
}

// ConnName is how the connections of a command are called: redlockctl:WHAT:SELF.
// The guard ends connections named redlockctl:guard, which are those over which
// guards fence; its others have another name.
func ConnName(command, self string) string {
	if command == "guard" {
		command = "guard-daemon"
	}
	return ownName + strings.ReplaceAll(command, " ", "-") + ":" + self
}
