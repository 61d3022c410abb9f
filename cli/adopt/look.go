package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/cli/app"
	"redlockctl/internal/acl"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard/boot"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// askTime bounds one question to a server.
const askTime = 2 * time.Second

// lookEvery is how often the locks are looked through, and mostBeyond how much longer than
// asked for, where not all keys have been read by then.
const (
	lookEvery  = 200 * time.Millisecond
	mostBeyond = 30 * time.Second
)

// Look watches the masters of a configuration for this span. It changes nothing.
func Look(ctx context.Context, cfg *config.Config, span time.Duration) (*Facts, error) {
	f := &Facts{Watched: span, Servers: make([]Server, len(cfg.Nodes))}
	nodes, err := cfg.Masters()
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	for i, n := range cfg.Nodes {
		all.Go(crash.Safe(func() { f.Servers[i] = ask(ctx, n, nodes[i]) }))
	}
	all.Wait()
	err = app.Watch(ctx, cfg, app.Aim{}, func(mon *observe.Monitor) error {
		sum := &summary{groups: map[string]*group{}}
		began := time.Now()
		for {
			s := mon.Snapshot()
			sum.add(s, mon.ChangedSince)
			if past := time.Since(began) - span; past >= 0 && s.Complete || past >= mostBeyond {
				f.Snapshot = s
				break
			}
			if sleep.For(ctx, lookEvery) != nil {
				return ctx.Err()
			}
		}
		f.Prefixes, f.Others, f.LongestTTL = sum.prefixes(), f.Snapshot.Counts[monitor.LockNotALock], sum.longest
		return nil
	})
	for i := range f.Servers {
		if f.Snapshot == nil {
			break
		}
		s, n := &f.Servers[i], &f.Snapshot.Nodes[i]
		s.Role, s.Replicas, s.Eviction = n.Role, n.Replicas, n.Eviction
		s.Persistence = persistence(n)
	}
	return f, err
}

// persistence is what a server keeps on its disk, in words.
func persistence(n *monitor.Node) string {
	switch {
	case n.Persistent:
		return "every write"
	case n.Facts.AppendOnly == "yes" && n.Facts.AppendFsync == "always":
		return "every write now, not verified for its next start"
	case n.Facts.AppendOnly == "yes":
		return "append only, fsync " + n.Facts.AppendFsync
	case n.Facts.SaveKnown && n.Facts.Save != "":
		return "snapshots"
	case n.Facts.SaveKnown:
		return "none"
	}
	return "unknown"
}

func ask(ctx context.Context, cfg config.Node, node *redlock.Node) (s Server) {
	defer resp.Contain(&s.Err, cfg.Name)
	s = Server{Name: cfg.Name, Addr: cfg.Addr, TLS: cfg.TLS, DB: cfg.DB, MinReplicas: -1}
	ctx, cancel := context.WithTimeout(ctx, 3*askTime)
	defer cancel()
	c := redlock.Connect(node, 1, askTime, func(o *redis.Options) { s.User = o.Username })
	defer c.Close()
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		s.Err = err
		return s
	}
	s.Cluster = serverinfo.Field(info, "redis_mode") == "cluster" || serverinfo.Field(info, "server_mode") == "cluster"
	s.Version = cmp.Or(serverinfo.Field(info, "valkey_version"), serverinfo.Field(info, "redis_version"))
	parameters, err := c.ConfigGet(ctx, "aclfile").Result()
	if err != nil {
		s.Err = err
		return s
	}
	s.ACLFile = parameters["aclfile"]
	if parameters, err = c.ConfigGet(ctx, "min-replicas-to-write").Result(); err == nil {
		if s.MinReplicas, err = strconv.ParseInt(parameters["min-replicas-to-write"], 10, 64); err != nil {
			s.MinReplicas = -1
		}
	}
	if names, err := c.Do(ctx, "ACL", "USERS").StringSlice(); err == nil {
		s.Users = slices.DeleteFunc(names, func(name string) bool { return name == "default" })
	}
	if fields, err := userFields(c.Do(ctx, "ACL", "GETUSER", "default").Result()); err == nil {
		s.ACL = acl.ServerOf(fields)
	}
	open := redlock.Connect(node.Anonymous(), 1, askTime)
	defer open.Close()
	s.Password = redis.HasErrorPrefix(open.Ping(ctx).Err(), "NOAUTH")

	boot, err := boot.CheckNode(ctx, node, cfg.Fence, nil)
	if err != nil {
		s.Err = err
		return s
	}
	s.ConfigFile, s.Boot = boot.File, bootWords[boot.Boot]
	if s.Unit = boot.Process.Unit; s.Unit == "" {
		s.Unit = debianUnit(s.ConfigFile)
		s.Guessed = s.Unit != ""
	}
	return s
}

// userFields are the names of the fields of an answer to ACL GETUSER, a map or a list of
// names and values.
func userFields(answer any, err error) (fields []string, _ error) {
	switch answer := answer.(type) {
	case map[any]any:
		for name := range answer {
			fields = append(fields, fmt.Sprint(name))
		}
	case []any:
		for i := 0; i+1 < len(answer); i += 2 {
			fields = append(fields, fmt.Sprint(answer[i]))
		}
	default:
		return nil, cmp.Or(err, errors.New("no user"))
	}
	return fields, err
}

var bootWords = map[boot.State]string{
	boot.Fenced: "fenced", boot.Fragile: "fenced, not for long",
	boot.Unfenced: "unfenced", boot.Unknown: "not seen",
}

var debianFile = regexp.MustCompile(`^/etc/(redis|valkey)/(?:redis|valkey)(?:-([A-Za-z0-9_.]+))?\.conf$`)

// debianUnit is the unit of a configuration file by the names of Debian's packages.
func debianUnit(file string) string {
	m := debianFile.FindStringSubmatch(path.Clean(file))
	switch {
	case m == nil:
		return ""
	case m[2] != "":
		return m[1] + "-server@" + m[2] + ".service"
	}
	return m[1] + "-server.service"
}

// summary is what was seen of locks so far.
type summary struct {
	version uint64
	longest time.Duration
	groups  map[string]*group
}

type group struct {
	keys      map[string]bool
	libraries map[string]bool
	longest   time.Duration
}

// mostGroups bounds the groups, where names have nothing in common, and mostCounted the
// names that are kept of one.
const (
	mostGroups  = 100
	mostCounted = 100_000
)

// add counts the locks that have changed since the last snapshot, or all if that is unknown.
func (m *summary) add(s *monitor.Snapshot, changedSince func(version uint64) (keys []string, ok bool)) {
	if s.Version == m.version {
		return
	}
	keys, ok := changedSince(m.version)
	first := m.version == 0
	m.version = s.Version
	if !ok || first {
		for l := range s.Locks.All() {
			m.lock(l, s.At)
		}
		return
	}
	for _, key := range keys {
		if l := s.Locks.Get(key); l != nil {
			m.lock(l, s.At)
		}
	}
}

// lock counts a key that is a lock: one of a form that is known, or with copies on several
// nodes.
func (m *summary) lock(l *monitor.Lock, now time.Time) {
	if l.State == monitor.LockNotALock || l.Form == nil && l.Held < 2 || l.Form != nil && l.Form.Companion {
		return
	}
	p := patternOf(l.Key.Raw())
	if m.groups[p] == nil && len(m.groups) >= mostGroups {
		p = "*"
	}
	g := m.groups[p]
	if g == nil {
		g = &group{keys: map[string]bool{}, libraries: map[string]bool{}}
		m.groups[p] = g
	}
	if len(g.keys) < mostCounted {
		g.keys[l.Key.Raw()] = true
	}
	if l.Form != nil {
		g.libraries[l.Form.Library] = true
	}
	for _, c := range l.Copies.All() {
		if c.State == monitor.CopyPresent && !c.Expires.IsZero() {
			g.longest = max(g.longest, c.Expires.Sub(now))
		}
	}
	m.longest = max(m.longest, g.longest)
}

func (m *summary) prefixes() []Prefix {
	var all []Prefix
	for pattern, g := range m.groups {
		all = append(all, Prefix{Pattern: pattern, Locks: len(g.keys), Libraries: slices.Sorted(maps.Keys(g.libraries)), Longest: g.longest})
	}
	slices.SortFunc(all, func(a, b Prefix) int { return cmp.Or(b.Locks-a.Locks, cmp.Compare(a.Pattern, b.Pattern)) })
	return all
}

// patternOf is the pattern of the keys with the same prefix up to the first colon; without a
// colon, the key itself.
func patternOf(key string) string {
	head, _, more := strings.Cut(key, ":")
	escaped := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(head)
	if more {
		return escaped + ":*"
	}
	return escaped
}

// Patterns are the lock_patterns to propose: all keys, where nothing else was seen.
func (f *Facts) Patterns() []string {
	var patterns []string
	for _, p := range f.Prefixes {
		if !safetext.New(p.Pattern).Clean() {
			return []string{"*"}
		}
		patterns = append(patterns, p.Pattern)
	}
	if f.Others == 0 || len(patterns) == 0 || len(patterns) > 16 {
		return []string{"*"}
	}
	slices.Sort(patterns)
	return patterns
}

// usualTTLs are what people write, in seconds.
var usualTTLs = []int{1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400}

// MaxTTL is the longest TTL to propose: the next usual one; 0: no lock was seen.
func (f *Facts) MaxTTL() time.Duration {
	for _, s := range usualTTLs {
		if d := time.Duration(s) * time.Second; f.LongestTTL > 0 && d >= f.LongestTTL {
			return d
		}
	}
	return 0
}

// ReadMaxTTL reads the longest TTL that a person names, which is no shorter than what was seen.
func (f *Facts) ReadMaxTTL(text string) (time.Duration, error) {
	seen := "no lock was seen in " + f.Watched.String()
	if f.LongestTTL > 0 {
		seen = fmt.Sprintf("the longest that was seen in %s had %s left", f.Watched, view.Left(f.LongestTTL))
	}
	d, err := time.ParseDuration(text)
	switch {
	case text == "":
		return 0, fmt.Errorf("--max-ttl is missing: name the longest TTL that any client uses; %s", seen)
	case err != nil || d <= 0:
		return 0, fmt.Errorf("--max-ttl %q: is not a duration such as 30s", text)
	case d < f.LongestTTL:
		return 0, fmt.Errorf("--max-ttl %s is too short: %s", text, seen)
	}
	return d, nil
}
