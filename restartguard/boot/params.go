package boot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
)

// setting is a line that sets one of the two parameters of the fence.
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

// settingsOf returns the lines that set the parameters of the fence.
func settingsOf(lines []directive) (settings []setting, err error) {
	for i := range lines {
		d := &lines[i]
		s := setting{directive: d}
		switch strings.Replace(d.words[0], "slave", "replica", 1) {
		case minreplicas.Param:
		case minreplicas.LagParam:
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

// lastSettings returns the settings that are effective; nil: the parameter is not set.
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
	return value != nil && (value.value == minreplicas.FenceUp || value.value == minreplicas.FenceCordon) && (lag == nil || lag.value > 0)
}

// rewritten returns the settings after CONFIG REWRITE while value is set. The server rewrites only
// the main file: it puts each parameter at its first line there and drops its other lines. If there
// is none, it adds a line at the end, after all includes, unless the value is the default.
func rewritten(settings []setting, value int64) []setting {
	_, lag := lastSettings(settings)
	now := [2]setting{{false, value, &directive{}}, {true, minreplicas.FenceLag, &directive{}}}
	if lag != nil && lag.value > 0 {
		now[1].value = lag.value
	}
	missing := [2]bool{value != minreplicas.FenceNone, now[1].value != minreplicas.FenceLag}
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

// outlives reports whether the server starts fenced after any number of CONFIG REWRITE, while
// fenced or serving, in any order. After the first one the main file has at most one line for each
// parameter, at a fixed place, so three in a row show every outcome.
func outlives(settings []setting, rewrites int) bool {
	if !setsFence(settings) {
		return false
	}
	if rewrites == 0 {
		return true
	}
	return outlives(rewritten(settings, minreplicas.FenceUp), rewrites-1) && outlives(rewritten(settings, minreplicas.FenceNone), rewrites-1)
}

// assessParams decides by the two parameters.
func (v *Verdict) assessParams(t Text) {
	if t.argsDecide() {
		// The command line overrides every file, so no file is read.
		t.Read = func(string) ([]File, error) { return nil, nil }
	}
	lines, main, err := t.readAll()
	if err != nil {
		v.because("its configuration cannot be read from here: %s", safetext.Error(err))
		return
	}
	settings, err := settingsOf(lines)
	if err != nil {
		v.because("%s", err)
		return
	}
	value, lag := lastSettings(settings)
	includes := slices.IndexFunc(settings, func(s setting) bool { return !s.lag && s.source == inIncluded && s.value >= minreplicas.FenceCordon }) >= 0
	switch {
	case value == nil && t.ArgsKnown:
		v.Form = FormNone
	case value == nil: // its command line may do it
	case value.source == inArgs:
		v.Form = FormCommandLine
	case value.source == inMain && !includes:
		v.Form = FormMainFile
	case value.value < minreplicas.FenceCordon && value.source != inMain:
		v.Form = FormNone
	case main == "" || outlives(settings, 3):
		v.Form = FormAnchors
	default:
		v.Form = FormInclude
	}
	switch {
	case value == nil && t.ArgsKnown:
		v.Boot = Unfenced
		if main == "" {
			v.because("its command line sets no %s, and it has no file", minreplicas.Param)
		} else {
			v.because("neither %s nor its command line sets %s", safetext.Escape(main), minreplicas.Param)
		}
	case value == nil:
		v.because("%s sets no %s; whether its command line does cannot be seen", nameOf(main), minreplicas.Param)
	case value.value != minreplicas.FenceUp && value.value != minreplicas.FenceCordon:
		v.Boot = Unfenced
		v.because("%s sets %s %d: no fence", value.place(), minreplicas.Param, value.value)
		if v.Form == FormInclude && value.source == inMain {
			v.because("it stands behind the include, where the server's own CONFIG REWRITE put it, and overrules the included file")
		}
	case lag != nil && lag.value == 0:
		v.Boot = Unfenced
		v.because("%s sets %s 0, which switches the fence off", lag.place(), minreplicas.LagParam)
	case main != "" && !outlives(settings, 3):
		v.Boot = Fragile
		v.because("%s sets the fence", value.place())
		if v.Form == FormInclude {
			v.because("%s has no such line before the include: CONFIG REWRITE adds one behind it, and the next CONFIG REWRITE while the node serves makes it 0: from then on it starts unfenced", nameOf(main))
		} else {
			v.because("CONFIG REWRITE while the node serves changes it to 0: from then on it starts unfenced")
		}
	default:
		v.Boot = Fenced
		v.because("%s sets the fence", value.place())
		if v.Form == FormCommandLine {
			v.because("no CONFIG REWRITE changes a command line")
		} else {
			v.because("CONFIG REWRITE changes only the lines before the include, which overrules them")
		}
	}
	if v.Boot == Fenced {
		return
	}
	if v.Form == FormInclude {
		v.do("use the command line, or anchors: put the lines \"%s\" and \"%s\" into %s before the include, and delete each %s that stands behind it", minreplicas.FenceLines[0], minreplicas.FenceLines[1], nameOf(main), minreplicas.Param)
		return
	}
	v.do("use the command line, or anchors")
}

// argsDecide reports whether the command line sets both parameters of the fence.
func (t Text) argsDecide() bool {
	value, lag := false, false
	for _, words := range splitArgs(t.Args) {
		name := strings.ToLower(words[0])
		value = value || name == minreplicas.Param
		lag = lag || name == minreplicas.LagParam
		if name == "include" {
			return false
		}
	}
	return value && lag
}
