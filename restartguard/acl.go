package restartguard

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"redlockctl/server/safetext"
)

// DefaultAllow gives back all commands that write, but those that wipe a whole
// server, for which no lock client has a use.
func DefaultAllow() []string { return []string{"+@write", "-flushall", "-flushdb", "-swapdb"} }

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

// cordonSelector is a selector that gives no command, and so nothing at all. It marks
// a user that an operator has cordoned.
const cordonSelector = "redlockctl:hold"

// userFence is the method [MethodACL].
type userFence struct {
	user  string
	allow []string
}

func (f userFence) check() error {
	if f.user == "" {
		return errors.New("the method acl needs the user of the lock clients")
	}
	for _, r := range f.allow {
		if !CommandRule(r) {
			return fmt.Errorf("%q is no rule that gives or takes a command, such as +@write or -flushall", r)
		}
	}
	return nil
}

func (userFence) traits() traits {
	return traits{command: "ACL", refusal: "NOPERM", sets: []string{"acl|setuser", "acl|deluser"}, rewrites: []string{"config|rewrite", "acl|save"}, boot: true}
}

func (f userFence) words(p Params) string {
	switch {
	case p.cordoned():
		return fmt.Sprintf("user %q may not write, and is cordoned", f.user)
	case p.fenced():
		return fmt.Sprintf("user %q may not write", f.user)
	}
	return fmt.Sprintf("user %q may write", f.user)
}

func (f userFence) set(ctx context.Context, p redis.Pipeliner, value int64, _, _ bool) []redis.Cmder {
	return []redis.Cmder{p.Do(ctx, f.setUser(value)...)}
}

// canary asks for the server's word on what the user might do: a status, or a sentence.
func (f userFence) canary(ctx context.Context, p redis.Pipeliner, key string) func() (Canary, error) {
	c := p.Do(ctx, "ACL", "DRYRUN", f.user, "SET", key, "1", "NX", "PX", "1")
	return func() (Canary, error) {
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
}

// setUser is the command that puts the user's fence to value. Rules are
// carried out from left to right, all or none; other rights stay as they are.
// The first command takes effect on connections that are logged in already.
func (f userFence) setUser(value int64) []any {
	args := []any{"ACL", "SETUSER", f.user}
	switch value {
	case FenceUp:
		return append(args, "-@write")
	case FenceCordon:
		return append(args, "-@write", "(%R~"+cordonSelector+")")
	}
	allow := f.allow
	if len(allow) == 0 {
		allow = DefaultAllow()
	}
	for _, rule := range allow {
		args = append(args, rule)
	}
	// Selectors can only be cleared all at once; a user with others is never seen
	// as one that this method can let rejoin, see userRules.
	return append(args, "clearselectors")
}

func (f userFence) ask(ctx context.Context, p redis.Pipeliner) func() (Params, error) {
	rules, write := p.Do(ctx, "ACL", "GETUSER", f.user), askWrites(ctx, p)
	return func() (Params, error) { return f.params(rules, write) }
}

// askWrites asks for the commands that write.
func askWrites(ctx context.Context, p redis.Pipeliner) *redis.Cmd {
	return p.Do(ctx, "ACL", "CAT", "write")
}

func (f userFence) params(rules, write *redis.Cmd) (Params, error) {
	raw, err := rules.Result()
	switch {
	case errors.Is(err, redis.Nil) || err == nil && raw == nil:
		return Params{}, fmt.Errorf("there is no ACL user %q", f.user)
	case err != nil:
		return Params{}, fmt.Errorf("ACL GETUSER: %w", err)
	}
	names, err := write.StringSlice()
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

// assessBoot goes by the rules of the lock clients' user.
func (f userFence) assessBoot(v *BootVerdict, t BootText) {
	lines, main, err := t.readAll()
	if err != nil {
		v.because("its configuration cannot be read from here: %s", show(err))
		return
	}
	aclFile := ""
	var users []directive
	dir := t.Dir
	for _, d := range lines {
		switch {
		case d.words[0] == "aclfile" && len(d.words) == 2:
			aclFile = d.words[1]
		case d.words[0] == "dir" && len(d.words) == 2:
			dir = absolute(d.words[1], dir)
		case d.words[0] == "user":
			users = append(users, d)
		}
	}
	if aclFile != "" {
		if len(users) > 0 {
			v.because("%s declares a user though there is an aclfile: the server does not start with both", users[0].place())
			return
		}
		r := &bootReader{text: t, dir: dir, users: true}
		if err := r.include(aclFile, 0, inIncluded); err != nil {
			v.because("its ACL file cannot be read from here: %s", show(err))
			return
		}
		users = r.lines
		aclFile = absolute(aclFile, dir)
	}
	i := slices.IndexFunc(users, func(d directive) bool {
		return d.words[0] == "user" && len(d.words) > 1 && d.words[1] == f.user
	})
	if i < 0 {
		if t.ArgsKnown {
			v.Boot, v.Form = BootUnfenced, FormNone
			v.because("neither a file of the server nor its command line has the user %q", f.user)
		} else {
			v.because("no file of the server has the user %q; whether its command line does cannot be seen", f.user)
		}
		v.do("put the user into an ACL file that the server cannot write")
		return
	}
	d := users[i]
	if len(t.Write) == 0 {
		v.because("the server does not tell which commands write (ACL CAT)")
		return
	}
	var rules []string
	for _, w := range d.words[2:] {
		if strings.HasPrefix(w, "(") {
			v.Boot = BootUnfenced
			v.because("%s gives the user a selector of its own, with which this method does not work", d.place())
			return
		}
		if CommandRule(w) || w == "allcommands" || w == "nocommands" || w == "reset" {
			rules = append(rules, w)
		}
	}
	switch {
	case aclFile == "" && d.source == inArgs && main == "":
		v.Form = FormCommandLine
	case aclFile == "":
		v.Form = FormUserLine
	case t.Writes != nil && t.Writes(aclFile) == WritableNo:
		v.Form = FormFixedACL
	default:
		v.Form = FormACLFile
	}
	if grantsWrite(strings.Join(rules, " "), t.Write) {
		v.Boot = BootUnfenced
		v.because("%s starts the user with commands that write", d.place())
		v.do("start the user without commands that write, in an ACL file that the server cannot write")
		return
	}
	v.because("%s starts the user without commands that write", d.place())
	v.assessRewrites(t, d, aclFile, main)
}

// assessRewrites says what becomes of a user that starts without commands that write
// when the server writes its files.
func (v *BootVerdict) assessRewrites(t BootText, d directive, aclFile, main string) {
	switch v.Form {
	case FormCommandLine:
		v.Boot = BootFenced
		v.because("without a configuration file there is nothing that the server could rewrite")
		return
	case FormFixedACL:
		v.Boot = BootFenced
		v.because("the server cannot write %s, so ACL SAVE fails", safetext.Escape(filepath.Dir(aclFile)))
		return
	case FormACLFile:
		v.Boot = BootFragile
		if t.Writes == nil || t.Writes(aclFile) == WritableUnknown {
			v.because("whether the server can write %s cannot be seen; if it can, ACL SAVE while the node serves writes the user with its commands: from then on it starts unfenced", safetext.Escape(filepath.Dir(aclFile)))
		} else {
			v.because("the server can write %s: ACL SAVE while the node serves writes the user with its commands, and from then on it starts unfenced", safetext.Escape(filepath.Dir(aclFile)))
		}
	case FormUserLine:
		v.Boot = BootFragile
		if d.source == inMain {
			v.because("CONFIG REWRITE while the node serves writes the user with its commands: from then on it starts unfenced")
		} else {
			v.because("CONFIG REWRITE writes the same user into %s: from then on the server does not start, since a user may be declared once", nameOf(main))
		}
	}
	v.do("put the user into an ACL file that the server cannot write, in a directory that it cannot write")
}
