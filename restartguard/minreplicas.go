package restartguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/server/safetext"
)

// setLag is the server's own default of min-replicas-max-lag, in seconds.
const setLag = 10

// paramFence is the method [MethodMinReplicas].
type paramFence struct{}

func (paramFence) check() error { return nil }

func (paramFence) words(Params) string { return "" }

func (paramFence) traits() traits {
	return traits{command: "CONFIG", refusal: "NOREPLICAS", sets: []string{"config|set"}, rewrites: []string{"config|rewrite"}}
}

// ask asks for each parameter by itself, since a server before 7.0 takes a single name.
func (paramFence) ask(ctx context.Context, p redis.Pipeliner) func() (Params, error) {
	minReplicas, maxLag := p.ConfigGet(ctx, paramMinReplicas), p.ConfigGet(ctx, paramMaxLag)
	return func() (Params, error) { return paramsOf(minReplicas, maxLag) }
}

func paramsOf(minReplicas, maxLag *redis.MapStringStringCmd) (p Params, err error) {
	if p.MinReplicas, err = paramValue(minReplicas, paramMinReplicas); err != nil {
		return Params{}, err
	}
	if p.MaxLag, err = paramValue(maxLag, paramMaxLag); err != nil {
		return Params{}, err
	}
	return p, nil
}

func (paramFence) set(ctx context.Context, p redis.Pipeliner, value int64, lag, replica bool) []redis.Cmder {
	var sets []redis.Cmder
	if replica {
		sets = append(sets, p.ConfigSet(ctx, "replica-read-only", "yes"))
	}
	if lag {
		// First: the fence must not be up in name only.
		sets = append(sets, p.ConfigSet(ctx, paramMaxLag, strconv.Itoa(setLag)))
	}
	return append(sets, p.ConfigSet(ctx, paramMinReplicas, strconv.FormatInt(value, 10)))
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

// The canaries: a plain command, a script as all servers take it, and one with the flags of a
// function, on which servers since 7.0 decide once for all that it does. Each writes a key that
// lives for 1 ms.
const (
	canaryScript   = "return redis.call('set', KEYS[1], '1', 'NX', 'PX', '1')"
	canaryFunction = "#!lua\n" + canaryScript
)

// canary tries each way in which a client can write. One that gets through is enough; all that the
// server has must be refused with NOREPLICAS.
func (paramFence) canary(ctx context.Context, p redis.Pipeliner, key string) func() (Canary, error) {
	plain := p.SetArgs(ctx, key, "1", redis.SetArgs{Mode: "NX", TTL: time.Millisecond})
	script := p.Eval(ctx, canaryScript, []string{key})
	function := p.Eval(ctx, canaryFunction, []string{key})
	return func() (Canary, error) {
		ways := []struct {
			name string
			err  error
		}{{"", plain.Err()}, {"script: ", script.Err()}, {"script with flags, as of functions: ", function.Err()}}
		for _, w := range ways {
			if (w.err == nil || errors.Is(w.err, redis.Nil)) && w.name != "" {
				return CanaryAccepted, errors.New(scriptsPass)
			} else if w.err == nil || errors.Is(w.err, redis.Nil) {
				return CanaryAccepted, nil
			}
		}
		for _, w := range ways {
			if !isNoReplicas(w.err) && !isUnknownScript(w.err) {
				return CanaryRefused, fmt.Errorf("canary write: %s%w", w.name, w.err)
			}
		}
		return CanaryFenced, nil
	}
}

// scriptsPass is why a fence does not hold that only plain commands meet.
const scriptsPass = "scripts write through it, as before Redis 6.0.17 and 6.2.7: upgrade the server"

// isNoReplicas reports whether a write was refused for a fence; before 7.0 a script says so in the
// middle of a sentence.
func isNoReplicas(err error) bool {
	return redis.IsNoReplicasError(err) || strings.Contains(err.Error(), ": -NOREPLICAS ")
}

// isUnknownScript reports whether a server knows no scripts with flags: it has no functions.
func isUnknownScript(err error) bool {
	text := err.Error()
	return strings.Contains(text, "Error compiling script") && strings.Contains(text, "'#'")
}

// FenceLines are the two lines of a configuration file that start a server
// fenced, and FenceArgs the same as words of its command line.
var (
	FenceLines = []string{fmt.Sprintf("%s %d", paramMinReplicas, FenceUp), fmt.Sprintf("%s %d", paramMaxLag, setLag)}
	FenceArgs  = []string{"--" + paramMinReplicas, strconv.Itoa(FenceUp), "--" + paramMaxLag, strconv.Itoa(setLag)}
)

// setting is one of the two parameters of the fence as a line sets it.
type setting struct {
	lag   bool // min-replicas-max-lag
	value int64
	*directive
}

func (s setting) index() int {
	if s.lag {
		return 1
	}
	return 0
}

// settingsOf are the lines that set the parameters of the fence.
func settingsOf(lines []directive) (settings []setting, err error) {
	for i := range lines {
		d := &lines[i]
		s := setting{directive: d}
		switch strings.Replace(d.words[0], "slave", "replica", 1) {
		case paramMinReplicas:
		case paramMaxLag:
			s.lag = true
		default:
			continue
		}
		if len(d.words) == 2 {
			s.value, err = strconv.ParseInt(d.words[1], 10, 32)
		}
		if len(d.words) != 2 || err != nil || s.value < 0 || strconv.FormatInt(s.value, 10) != d.words[1] {
			return nil, fmt.Errorf("%s: %s is not one number that the server takes: it does not start with it", d.place(), safetext.Escape(d.words[0]))
		}
		settings = append(settings, s)
	}
	return settings, nil
}

// lastSettings are the settings that hold; nil where none is set.
func lastSettings(settings []setting) (value, lag *setting) {
	for i := range settings {
		if settings[i].lag {
			lag = &settings[i]
		} else {
			value = &settings[i]
		}
	}
	return value, lag
}

// setsFence reports whether a server that starts with the settings is fenced.
func setsFence(settings []setting) bool {
	value, lag := lastSettings(settings)
	return value != nil && (value.value == FenceUp || value.value == FenceCordon) && (lag == nil || lag.value > 0)
}

// rewritten are the settings after CONFIG REWRITE while value holds. The server
// knows only the main file: there it puts each parameter where its first line
// stands, and drops its other lines; where it has none it adds one at the end, behind
// all includes, unless the value is the default.
func rewritten(settings []setting, value int64) []setting {
	_, lag := lastSettings(settings)
	now := [2]setting{{false, value, &directive{}}, {true, setLag, &directive{}}}
	if lag != nil && lag.value > 0 {
		now[1].value = lag.value
	}
	missing := [2]bool{value != FenceNone, now[1].value != setLag}
	for _, s := range settings {
		if s.source == inMain {
			missing[s.index()] = false
		}
	}
	out := make([]setting, 0, len(settings)+2)
	var placed [2]bool
	add := func() { // at the end of the main file
		for i := range missing {
			if missing[i] {
				out, missing[i] = append(out, now[i]), false
			}
		}
	}
	for _, s := range settings {
		i := s.index()
		switch {
		case s.source == inArgs:
			add()
		case s.source == inMain && placed[i]:
			continue
		case s.source == inMain:
			placed[i], s.value = true, now[i].value
		}
		out = append(out, s)
	}
	add()
	return out
}

// outlives reports whether the server starts fenced after any CONFIG REWRITE,
// while fenced or serving, in any order. After one of them the main file has at most
// one line for each parameter, and its place stays: three in a row show all that
// can become of it.
func outlives(settings []setting, rewrites int) bool {
	if !setsFence(settings) {
		return false
	}
	if rewrites == 0 {
		return true
	}
	return outlives(rewritten(settings, FenceUp), rewrites-1) && outlives(rewritten(settings, FenceNone), rewrites-1)
}

func (paramFence) assessBoot(v *BootVerdict, t BootText) {
	if t.argsDecide() {
		// It overrules every file, so that none has to be read.
		t.Read = func(string) ([]BootFile, error) { return nil, nil }
	}
	lines, main, err := t.readAll()
	if err != nil {
		v.because("its configuration cannot be read from here: %s", show(err))
		return
	}
	settings, err := settingsOf(lines)
	if err != nil {
		v.because("%s", err)
		return
	}
	value, lag := lastSettings(settings)
	includes := slices.IndexFunc(settings, func(s setting) bool { return !s.lag && s.source == inIncluded && s.value >= FenceCordon }) >= 0
	switch {
	case value == nil && t.ArgsKnown:
		v.Form = FormNone
	case value == nil: // its command line may do it
	case value.source == inArgs:
		v.Form = FormCommandLine
	case value.source == inMain && !includes:
		v.Form = FormMainFile
	case value.value < FenceCordon && value.source != inMain:
		v.Form = FormNone
	case main == "" || outlives(settings, 3):
		v.Form = FormAnchors
	default:
		v.Form = FormInclude
	}
	switch {
	case value == nil && t.ArgsKnown:
		v.Boot = BootUnfenced
		if main == "" {
			v.because("its command line sets no %s, and it has no file", paramMinReplicas)
		} else {
			v.because("neither %s nor its command line sets %s", safetext.Escape(main), paramMinReplicas)
		}
	case value == nil:
		v.because("%s sets no %s; whether its command line does cannot be seen", nameOf(main), paramMinReplicas)
	case value.value != FenceUp && value.value != FenceCordon:
		v.Boot = BootUnfenced
		v.because("%s sets %s %d: no fence", value.place(), paramMinReplicas, value.value)
		if v.Form == FormInclude && value.source == inMain {
			v.because("it stands behind the include, where the server's own CONFIG REWRITE put it, and overrules the included file")
		}
	case lag != nil && lag.value == 0:
		v.Boot = BootUnfenced
		v.because("%s sets %s 0, which switches the fence off", lag.place(), paramMaxLag)
	case main != "" && !outlives(settings, 3):
		v.Boot = BootFragile
		v.because("%s sets the fence", value.place())
		if v.Form == FormInclude {
			v.because("%s has no such line before the include: CONFIG REWRITE adds one behind it, and the next CONFIG REWRITE while the node serves makes it 0: from then on it starts unfenced", nameOf(main))
		} else {
			v.because("CONFIG REWRITE while the node serves changes it to 0: from then on it starts unfenced")
		}
	default:
		v.Boot = BootFenced
		v.because("%s sets the fence", value.place())
		if v.Form == FormCommandLine {
			v.because("no CONFIG REWRITE changes a command line")
		} else {
			v.because("CONFIG REWRITE changes only the lines before the include, which overrules them")
		}
	}
	if v.Boot == BootFenced {
		return
	}
	if v.Form == FormInclude {
		v.do("use the command line, or anchors: put the lines \"%s\" and \"%s\" into %s before the include, and delete each %s that stands behind it", FenceLines[0], FenceLines[1], nameOf(main), paramMinReplicas)
		return
	}
	v.do("use the command line, or anchors")
}

// argsDecide reports whether the command line sets both parameters of the fence.
func (t BootText) argsDecide() bool {
	value, lag := false, false
	for _, words := range splitArgs(t.Args) {
		name := strings.ToLower(words[0])
		value = value || name == paramMinReplicas
		lag = lag || name == paramMaxLag
		if name == "include" {
			return false
		}
	}
	return value && lag
}
