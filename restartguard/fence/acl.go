package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"redlockctl/restartguard"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
	"redlockctl/server/userfence"
)

// cordonSelector is a selector that gives no command. It marks a user that an operator has
// cordoned.
const cordonSelector = "(%R~" + userfence.CordonMark + ")"

// userFence is the method [fences.ACL].
type userFence struct {
	user  string
	allow []string
}

func (userFence) Traits() traits {
	return traits{Command: "ACL", Refusal: "NOPERM", Sets: []string{"acl|setuser", "acl|deluser"}, Rewrites: []string{"config|rewrite", "acl|save"}}
}

func (f userFence) Words(p minreplicas.Params) string {
	switch {
	case p.Cordoned():
		return fmt.Sprintf("user %q may not write, and is cordoned", f.user)
	case p.Fenced():
		return fmt.Sprintf("user %q may not write", f.user)
	}
	return fmt.Sprintf("user %q may write", f.user)
}

func (f userFence) Set(ctx context.Context, p redis.Pipeliner, value int64, _, _ bool) []redis.Cmder {
	return []redis.Cmder{p.Do(ctx, f.setUser(value)...)}
}

// Canary asks the server what the user might do. It answers with a status or a sentence.
func (f userFence) Canary(ctx context.Context, p redis.Pipeliner, key string) func() (restartguard.Canary, error) {
	c := userfence.Ask(ctx, p, f.user, key)
	return func() (restartguard.Canary, error) {
		text, err := c.Text()
		switch {
		case err != nil:
			return restartguard.CanaryRefused, fmt.Errorf("ACL DRYRUN: %w", err)
		case userfence.Stops(text):
			return restartguard.CanaryFenced, nil
		default:
			// OK, or a key that the user may not use: it may use the command.
			return restartguard.CanaryAccepted, nil
		}
	}
}

// setUser returns the command that sets the user's fence to value. Rules take effect from left to
// right, all or none; other rights stay. The command also applies to connections that are already
// logged in.
func (f userFence) setUser(value int64) []any {
	args := []any{"ACL", "SETUSER", f.user}
	switch value {
	case minreplicas.FenceUp:
		return append(args, "-@write")
	case minreplicas.FenceCordon:
		return append(args, "-@write", cordonSelector)
	}
	allow := f.allow
	if len(allow) == 0 {
		allow = fences.DefaultAllow()
	}
	for _, rule := range allow {
		args = append(args, rule)
	}
	// Selectors can only be cleared together. A user with other selectors never reads as one that
	// this method may let rejoin, see userRules.
	return append(args, "clearselectors")
}

func (f userFence) Ask(ctx context.Context, p redis.Pipeliner) func() (minreplicas.Params, error) {
	rules, write := p.Do(ctx, "ACL", "GETUSER", f.user), AskWrites(ctx, p)
	return func() (minreplicas.Params, error) { return f.params(rules, write) }
}

// AskWrites asks for the names of the write commands.
func AskWrites(ctx context.Context, p redis.Pipeliner) *redis.Cmd {
	return p.Do(ctx, "ACL", "CAT", "write")
}

func (f userFence) params(rules, write *redis.Cmd) (minreplicas.Params, error) {
	raw, err := rules.Result()
	switch {
	case errors.Is(err, redis.Nil) || err == nil && raw == nil:
		return minreplicas.Params{}, fmt.Errorf("there is no ACL user %q", f.user)
	case err != nil:
		return minreplicas.Params{}, fmt.Errorf("ACL GETUSER: %w", err)
	}
	names, err := write.StringSlice()
	if err != nil {
		return minreplicas.Params{}, fmt.Errorf("ACL CAT: %w", err)
	}
	u, err := userRulesOf(raw)
	if err != nil {
		return minreplicas.Params{}, fmt.Errorf("ACL GETUSER: %w", err)
	}
	return u.params(names)
}

// userRules is what a user may do, without its passwords.
type userRules struct {
	commands  string
	selectors []userRules
	keys      string
}

// userRulesOf parses the reply to ACL GETUSER, a map or a list of names and values.
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
		err = errors.New("the answer names no commands; Redis 7.0 or later is needed")
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

// params returns what the rules mean for the fence; write are the names of all write commands.
func (u userRules) params(write []string) (minreplicas.Params, error) {
	held := false
	for _, s := range u.selectors {
		if s.keys != "%R~"+userfence.CordonMark || GrantsWrite(s.commands, write) {
			return minreplicas.Params{}, errors.New("the user has selectors of its own, with which the method acl does not work")
		}
		held = true
	}
	switch {
	case GrantsWrite(u.commands, write):
		return minreplicas.Params{MinReplicas: minreplicas.FenceNone, MaxLag: 1}, nil
	case held:
		return minreplicas.Params{MinReplicas: minreplicas.FenceCordon, MaxLag: 1}, nil
	}
	return minreplicas.Params{MinReplicas: minreplicas.FenceUp, MaxLag: 1}, nil
}

// GrantsWrite reports whether rules, read from left to right, allow any write command. If that is
// not certain it returns true, so that the node counts as unfenced and is fenced.
func GrantsWrite(rules string, write []string) bool {
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
