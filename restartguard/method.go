package restartguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// MethodKind says how a node is closed.
type MethodKind uint8

const (
	// MinReplicas sets min-replicas-to-write; the guard's user needs CONFIG.
	MinReplicas MethodKind = iota
	// ACL takes the commands that write from the user as whom the lock clients log
	// in. It needs ACL, and Redis 7.0. Users that are not named are not stopped.
	ACL
	// Advice closes nothing: the guard watches, and says what should be done.
	Advice
)

// String is the word of the configuration.
func (k MethodKind) String() string { return [...]string{"min-replicas", "acl", "none"}[k] }

// Method is how one node is closed and opened. The zero Method is MinReplicas.
type Method struct {
	Kind MethodKind
	// User is the ACL user of the lock clients; of ACL.
	User string
	// Allow are the rules that give the user its commands back, in the order of
	// ACL SETUSER; of ACL. Empty stands for [DefaultAllow].
	Allow []string
}

// DefaultAllow gives back all commands that write, but those that wipe a whole
// server, for which no lock client has a use.
func DefaultAllow() []string { return []string{"+@write", "-flushall", "-flushdb", "-swapdb"} }

// check tells why the method cannot be used.
func (m Method) check() error {
	switch {
	case m.Kind > Advice:
		return fmt.Errorf("method %d is not known", m.Kind)
	case m.Kind == ACL && m.User == "":
		return errors.New("the method acl needs the user of the lock clients")
	}
	for _, r := range m.Allow {
		if !CommandRule(r) {
			return fmt.Errorf("%q is no rule that gives or takes a command, such as +@write or -flushall", r)
		}
	}
	return nil
}

// CommandRule reports whether a rule of ACL SETUSER gives or takes a command or a
// category of them, and nothing else: no password, no key.
func CommandRule(rule string) bool {
	if len(rule) < 2 || rule[0] != '+' && rule[0] != '-' {
		return false
	}
	name := strings.TrimPrefix(rule[1:], "@")
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '|' && r != '.' {
			return false
		}
	}
	return name != ""
}

// reading is a pending reading of a fence. Whatever the method, it says what
// min-replicas-to-write would: 0, FenceUp, FenceCordon, or another number that
// is no fence.
type reading interface{ result() (Params, error) }

// ask reads the fence.
func (m Method) ask(ctx context.Context, p redis.Pipeliner) reading {
	if m.Kind == ACL {
		return askUser(ctx, p, m.User)
	}
	return askParams(ctx, p)
}

// set puts the fence to value.
func (m Method) set(ctx context.Context, p redis.Pipeliner, value int64, lag bool) []redis.Cmder {
	if m.Kind == ACL {
		return []redis.Cmder{p.Do(ctx, m.setUser(value)...)}
	}
	var sets []redis.Cmder
	if lag {
		// First: the fence must not be up in name only.
		sets = append(sets, p.ConfigSet(ctx, paramMaxLag, strconv.Itoa(setLag)))
	}
	return append(sets, p.ConfigSet(ctx, paramMinReplicas, strconv.FormatInt(value, 10)))
}

// canaryPrefix begins the keys of canary writes.
const canaryPrefix = "redlockctl:canary:"

// canary tries a write that leaves nothing.
func (m Method) canary(ctx context.Context, p redis.Pipeliner) func() (Canary, error) {
	key := canaryPrefix + rand.Text()
	if m.Kind == ACL {
		c := p.Do(ctx, "ACL", "DRYRUN", m.User, "SET", key, "1", "NX", "PX", "1")
		return func() (Canary, error) { return dryRunResult(c) }
	}
	// A key that nobody else has, for 1 ms.
	c := p.SetArgs(ctx, key, "1", redis.SetArgs{Mode: "NX", TTL: time.Millisecond})
	return func() (Canary, error) { return canaryResult(c) }
}

// words are params for people, where the numbers are not what the server has.
func (m Method) words(p Params) string {
	if m.Kind != ACL {
		return ""
	}
	switch {
	case p.cordoned():
		return fmt.Sprintf("user %q may not write, and is cordoned", m.User)
	case p.fenced():
		return fmt.Sprintf("user %q may not write", m.User)
	}
	return fmt.Sprintf("user %q may write", m.User)
}

// readBack is what the fence reads, in words.
func (m Method) readBack(p Params) string {
	if w := m.words(p); w != "" {
		return "read back: " + w
	}
	return readBack(p)
}

func (m Method) command() string {
	if m.Kind == ACL {
		return "ACL"
	}
	return "CONFIG"
}

// refusal is how the server refuses a write behind this fence.
func (m Method) refusal() string {
	if m.Kind == ACL {
		return "NOPERM"
	}
	return "NOREPLICAS"
}

const (
	paramMinReplicas = "min-replicas-to-write"
	paramMaxLag      = "min-replicas-max-lag"

	// setLag is the server's own default of min-replicas-max-lag, in seconds.
	setLag = 10
)

// paramsCmd is a pending reading of the parameters. Each is asked for by itself,
// since a server before 7.0 takes a single name.
type paramsCmd struct {
	minReplicas, maxLag *redis.MapStringStringCmd
}

func askParams(ctx context.Context, p redis.Pipeliner) paramsCmd {
	return paramsCmd{p.ConfigGet(ctx, paramMinReplicas), p.ConfigGet(ctx, paramMaxLag)}
}

func (c paramsCmd) result() (Params, error) {
	minReplicas, err := paramValue(c.minReplicas, paramMinReplicas)
	if err != nil {
		return Params{}, err
	}
	maxLag, err := paramValue(c.maxLag, paramMaxLag)
	if err != nil {
		return Params{}, err
	}
	return Params{MinReplicas: minReplicas, MaxLag: maxLag}, nil
}

func paramValue(c *redis.MapStringStringCmd, name string) (int64, error) {
	m, err := c.Result()
	if err != nil {
		return 0, fmt.Errorf("CONFIG GET %s: %w", name, err)
	}
	v, ok := m[name]
	if !ok {
		return 0, fmt.Errorf("the server knows no %s", name)
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("CONFIG GET %s: %q is no number", name, v)
	}
	return n, nil
}

func canaryResult(c *redis.StatusCmd) (Canary, error) {
	err := c.Err()
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return CanaryAccepted, nil
	case redis.IsNoReplicasError(err):
		return CanaryFenced, nil
	default:
		return CanaryRefused, fmt.Errorf("canary write: %w", err)
	}
}

// cordonMark is a selector that gives no command, and so nothing at all. It marks
// a user that an operator holds closed.
const cordonSelector = "redlockctl:hold"

// setUser is the command that puts the user's fence to value. Rules are
// carried out from left to right, all or none; other rights stay as they are.
// The first command takes effect on connections that are logged in already.
func (m Method) setUser(value int64) []any {
	args := []any{"ACL", "SETUSER", m.User}
	switch value {
	case FenceUp:
		return append(args, "-@write")
	case FenceCordon:
		return append(args, "-@write", "(%R~"+cordonSelector+")")
	}
	allow := m.Allow
	if len(allow) == 0 {
		allow = DefaultAllow()
	}
	for _, rule := range allow {
		args = append(args, rule)
	}
	// Selectors can only be cleared all at once; a user with others is never seen
	// as one that this method can open, see userRules.
	return append(args, "clearselectors")
}

// userCmd is a pending reading of a user.
type userCmd struct {
	user         string
	rules, write *redis.Cmd
}

func askUser(ctx context.Context, p redis.Pipeliner, user string) userCmd {
	return userCmd{user, p.Do(ctx, "ACL", "GETUSER", user), p.Do(ctx, "ACL", "CAT", "write")}
}

func (c userCmd) result() (Params, error) {
	raw, err := c.rules.Result()
	switch {
	case errors.Is(err, redis.Nil) || err == nil && raw == nil:
		return Params{}, fmt.Errorf("there is no ACL user %q", c.user)
	case err != nil:
		return Params{}, fmt.Errorf("ACL GETUSER: %w", err)
	}
	names, err := c.write.StringSlice()
	if err != nil {
		return Params{}, fmt.Errorf("ACL CAT: %w", err)
	}
	u, err := userRulesOf(raw)
	if err != nil {
		return Params{}, fmt.Errorf("ACL GETUSER: %w", err)
	}
	return u.params(names)
}

// userRules are what a user may do, of which its passwords are no part.
type userRules struct {
	commands  string
	selectors []userRules
	keys      string
}

// userRulesOf reads the answer to ACL GETUSER, a map or a list of names and
// values.
func userRulesOf(raw any) (userRules, error) {
	var u userRules
	seen := false
	err := eachField(raw, func(name string, value any) error {
		var err error
		switch name {
		case "commands":
			u.commands, seen = value.(string)
		case "keys":
			u.keys, _ = value.(string)
		case "selectors":
			list, _ := value.([]any)
			for _, e := range list {
				var s userRules
				if s, err = userRulesOf(e); err != nil {
					return err
				}
				u.selectors = append(u.selectors, s)
			}
		}
		return err
	})
	if err == nil && !seen {
		err = errors.New("the answer tells no commands; Redis 7.0 or later is needed")
	}
	return u, err
}

func eachField(raw any, f func(string, any) error) error {
	switch fields := raw.(type) {
	case map[any]any:
		for k, v := range fields {
			if name, ok := k.(string); ok {
				if err := f(name, v); err != nil {
					return err
				}
			}
		}
	case []any:
		for i := 0; i+1 < len(fields); i += 2 {
			if name, ok := fields[i].(string); ok {
				if err := f(name, fields[i+1]); err != nil {
					return err
				}
			}
		}
	default:
		return errors.New("the answer has an unknown form")
	}
	return nil
}

// params is what the rules make of the fence; write are the names of all
// commands that write.
func (u userRules) params(write []string) (Params, error) {
	held := false
	for _, s := range u.selectors {
		if s.keys != "%R~"+cordonSelector || grantsWrite(s.commands, write) {
			return Params{}, errors.New("the user has selectors of its own, with which the method acl does not work")
		}
		held = true
	}
	switch {
	case grantsWrite(u.commands, write):
		return Params{MinReplicas: FenceNone, MaxLag: 1}, nil
	case held:
		return Params{MinReplicas: FenceCordon, MaxLag: 1}, nil
	}
	return Params{MinReplicas: FenceUp, MaxLag: 1}, nil
}

// grantsWrite reports whether rules, read from left to right, give any command that
// writes. Where that cannot be told it says so: the node then counts as open,
// and is closed.
func grantsWrite(rules string, write []string) bool {
	grants := false
	for rule := range strings.FieldsSeq(strings.ToLower(rules)) {
		switch rule {
		case "-@all", "nocommands", "-@write", "reset":
			grants = false
			continue
		case "+@read", "+@connection", "+@scripting", "+@pubsub", "+@transaction":
			continue // none of them holds a command that changes a key
		}
		name, isGrant := strings.CutPrefix(rule, "+")
		if rule == "allcommands" {
			grants = true
		}
		if !isGrant {
			continue
		}
		name, _, _ = strings.Cut(name, "|")
		if strings.HasPrefix(name, "@") || slices.ContainsFunc(write, func(w string) bool {
			w, _, _ = strings.Cut(w, "|")
			return w == name && name != "function" // which changes no key
		}) {
			grants = true
		}
	}
	return grants
}

// dryRunResult reads the server's word on what the user might do: a status, or
// a sentence.
func dryRunResult(c *redis.Cmd) (Canary, error) {
	text, err := c.Text()
	switch {
	case err != nil:
		return CanaryRefused, fmt.Errorf("ACL DRYRUN: %w", err)
	case strings.Contains(text, "permissions to run"):
		return CanaryFenced, nil
	default:
		// OK, or a key that is not the user's: the command it may use.
		return CanaryAccepted, nil
	}
}
