// Package adopt brings a running set of masters under a guard: it looks at them
// ([Look]), decides from what was found and what a person answered what each host needs
// ([Plan]), and writes that into one folder ([Folder]). [Check] reads everything back.
// It changes no server: the folder's runbook says which commands do.
package adopt

import (
	"time"

	"redlockctl/internal/acl"
	"redlockctl/monitor"
)

// Server is what was found of one master.
type Server struct {
	Name    string `json:"node"`
	Addr    string `json:"addr"`
	TLS     bool   `json:"-"`
	DB      int    `json:"-"`
	Err     error  `json:"-"` // why nothing is known of it
	Version string `json:"version"`
	Role    string `json:"role"`
	// Cluster reports whether it is a node of a Redis Cluster.
	Cluster bool `json:"-"`
	// ConfigFile is the server's configuration file, and ACLFile its file of users; empty:
	// it has none.
	ConfigFile string `json:"config_file,omitempty"`
	ACLFile    string `json:"acl_file,omitempty"`
	// Unit is the systemd unit: the one that it runs in, or, where Guessed, what Debian's
	// package would call it; empty: nobody can tell.
	Unit    string `json:"unit,omitempty"`
	Guessed bool   `json:"-"`
	// User is the login of init, which may change users; empty: the user default. Password says
	// that this one needs a password; Users are the others.
	User     string   `json:"-"`
	Password bool     `json:"-"`
	Users    []string `json:"users,omitempty"`
	// ACL is the generation of its ACLs; empty: it does not tell.
	ACL string `json:"-"`
	// MinReplicas is how many replicas a write needs by the operator's own wish.
	MinReplicas int64  `json:"-"`
	Replicas    int    `json:"replicas"`
	Persistence string `json:"persistence"`
	Eviction    string `json:"eviction"`
	Boot        string `json:"boot"` // how it starts, in words
}

// Login is how clients log in to the server, in words.
func (s *Server) Login() string {
	if s.Err != nil {
		return "unknown"
	}
	word := "no password"
	if s.Password {
		word = "password"
	}
	if s.ACLFile != "" {
		return word + ", ACL file"
	}
	if len(s.Users) > 0 {
		return word + ", user lines"
	}
	return word
}

// Facts are what was found.
type Facts struct {
	Servers  []Server
	Prefixes []Prefix
	// Others is how many keys look like no lock.
	Others int
	// LongestTTL is the longest remaining time of a lock that was seen; 0: none was.
	LongestTTL time.Duration
	Watched    time.Duration
	Snapshot   *monitor.Snapshot // at the end
}

// Prefix is a group of locks whose names begin alike.
type Prefix struct {
	Pattern   string // as of lock_patterns
	Locks     int    // different ones that were seen
	Libraries []string
	Longest   time.Duration
}

// Answers are what only a person can decide.
type Answers struct {
	Cluster  string
	MaxTTL   time.Duration
	Patterns []string
	// Libraries are those of the clients, by the names of config acl; none: every library
	// whose lock is one string.
	Libraries []string
	// CA is the file of the authorities to trust, as PEM text; Cert and Key are paths.
	CA, Cert, Key, ServerName string
	// WithoutGuard asks for a delay before each start instead of a guard.
	WithoutGuard bool
	Ansible      bool
	// Kubernetes is the image of the guards that run there; empty: they run elsewhere.
	Kubernetes string
}

// The users that redlockctl needs on the servers.
const (
	GuardUser  = "redlockctl-guard"
	OpsUser    = "redlockctl-ops"
	ClientUser = "redlockctl-client"
)

// users are the names with the roles that they play.
var users = []struct {
	name  string
	roles []string
}{
	{ClientUser, []string{acl.Client}},
	{GuardUser, []string{acl.Observer, acl.Guard}},
	{OpsUser, []string{acl.Operator, acl.Guard}},
}
