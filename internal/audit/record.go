package audit

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"
)

// The phases of an action.
const (
	Intent = "intent"
	Done   = "done"
	Failed = "failed"
	// Undecided is no phase of a line: see [Follower.Taken].
	Undecided = "undecided"
)

// Record is one line of the log.
type Record struct {
	Time     time.Time `json:"time"`
	ID       string    `json:"id"`    // the same for the intent and its outcome
	Phase    string    `json:"phase"` // "intent", then "done" or "failed"
	Actor    string    `json:"actor"` // user@host
	Cluster  string    `json:"cluster"`
	Act      string    `json:"act"` // "force-release", "node cordon", …
	Target   string    `json:"target"`
	Reason   string    `json:"reason,omitempty"`
	TokenSHA string    `json:"token_sha256,omitempty"` // never the token itself
	Detail   string    `json:"detail,omitempty"`
}

// Obeyed returns the nodes that did as asked, by the detail of an outcome: «n1 fenced, n2 ok».
func (r Record) Obeyed() (nodes []string) { return r.nodes(" ok") }

// FoundNothing reports whether a node answered that it has no copy, and none had one, by the detail of
// an outcome.
func (r Record) FoundNothing() bool {
	return len(r.nodes(" absent")) > 0 && len(r.nodes(" ok"))+len(r.nodes(" held")) == 0
}

func (r Record) nodes(status string) (nodes []string) {
	for _, part := range strings.Split(r.Detail, "; ") {
		for _, one := range strings.Split(part, ", ") {
			if node, ok := strings.CutSuffix(one, status); ok {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// NewID returns a random id for an intent and its outcome.
func NewID() string { return rand.Text() }

// Actor returns who acts, for a record: user@host of this process, with the user who
// called sudo.
func Actor(getenv func(string) string) string {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	actor := cmp.Or(name, getenv("USER"), fmt.Sprintf("uid %d", os.Getuid())) + "@" + cmp.Or(host, "unknown")
	if by := getenv("SUDO_USER"); by != "" && by != name {
		actor += " (sudo of " + by + ")"
	}
	return actor
}
