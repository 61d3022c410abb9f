package restartguard

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Boot says how a server starts.
type Boot uint8

const (
	BootUnknown  Boot = iota // it cannot be told from here
	BootFenced               // fenced, after any number of CONFIG REWRITE and ACL SAVE
	BootFragile              // fenced, until the server itself rewrites its files
	BootUnfenced             // unfenced
)

// String is the verdict as JSON shows it, in the words that it began with.
func (b Boot) String() string { return [...]string{"unknown", "closed", "fragile", "open"}[b] }

// BootForm is how the fence of a server's start is written down.
type BootForm uint8

const (
	FormUnknown     BootForm = iota // it cannot be seen
	FormNone                        // nowhere
	FormCommandLine                 // options on the command line
	FormAnchors                     // an included file, and the same lines in the main file before the include
	FormInclude                     // an included file only
	FormMainFile                    // the main file only
	FormFixedACL                    // an ACL file that the server cannot write
	FormACLFile                     // an ACL file that the server can write
	FormUserLine                    // a user line in the configuration
)

// String is the form as JSON and people read it.
func (f BootForm) String() string {
	return [...]string{"unknown", "none", "command line", "anchors", "include without anchors", "main file",
		"read-only ACL file", "writable ACL file", "user line"}[f]
}

// FenceLines are the two lines of a configuration file that start a server
// fenced, and FenceArgs the same as words of its command line.
var (
	FenceLines = []string{fmt.Sprintf("%s %d", paramMinReplicas, FenceUp), fmt.Sprintf("%s %d", paramMaxLag, setLag)}
	FenceArgs  = []string{"--" + paramMinReplicas, strconv.Itoa(FenceUp), "--" + paramMaxLag, strconv.Itoa(setLag)}
)

// Writable says whether a server can write one of its files.
type Writable uint8

const (
	WritableUnknown Writable = iota
	WritableYes
	WritableNo
)

// BootText is all that a server is started with, as text.
type BootText struct {
	// Args are the words of its command line after the program, where ArgsKnown.
	Args      []string
	ArgsKnown bool
	// Main is the path of its configuration file; empty: that of Args, or none.
	Main string
	// Dir is the directory to which its relative paths belong.
	Dir string
	// Read returns the files of a path, or of a pattern of paths, in the order in
	// which the server reads them.
	Read func(pattern string) ([]BootFile, error)
	// Write are the names of the server's commands that write; of [ACL].
	Write []string
	// Writes says whether the server can write the ACL file at a path; nil: unknown.
	Writes func(path string) Writable
}

// BootFile is one file of a server's configuration.
type BootFile struct{ Path, Text string }

// BootVerdict is what a [BootText] amounts to.
type BootVerdict struct {
	Boot Boot
	Form BootForm
	// Because are the reasons, and Do what is to be done, each a sentence that is
	// fit to be shown. Secrets are in neither.
	Because, Do []string
}

func (v *BootVerdict) because(format string, args ...any) {
	v.Because = append(v.Because, fmt.Sprintf(format, args...))
}

func (v *BootVerdict) do(format string, args ...any) {
	v.Do = append(v.Do, fmt.Sprintf(format, args...))
}

// shown makes text of a server or a file fit for a screen.
func shown(s string) string { return show(errors.New(s)) }

// JudgeBoot says whether a server that is started with these texts starts
// fenced, and whether that outlives whatever CONFIG REWRITE and ACL SAVE write
// into its files.
func JudgeBoot(t BootText, method Method) BootVerdict {
	var v BootVerdict
	if method.Kind == Advice {
		v.Boot, v.Form = BootUnfenced, FormNone
		v.because(`its fence is "none": nothing starts it fenced`)
		return v
	}
	if method.Kind == MinReplicas && t.argsDecide() {
		// It overrules every file, so that none has to be read.
		t.Read = func(string) ([]BootFile, error) { return nil, nil }
	}
	lines, main, err := t.readAll()
	if err != nil {
		v.because("its configuration cannot be read from here: %s", show(err))
		return v
	}
	if method.Kind == ACL {
		v.judgeUsers(t, method, lines, main)
	} else {
		v.judgeParams(t, lines, main)
	}
	return v
}

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
			return nil, fmt.Errorf("%s: %s is not one number that the server takes: it does not start with it", d.place(), shown(d.words[0]))
		}
		settings = append(settings, s)
	}
	return settings, nil
}

// last are the settings that hold; nil where none is set.
func last(settings []setting) (value, lag *setting) {
	for i := range settings {
		if settings[i].lag {
			lag = &settings[i]
		} else {
			value = &settings[i]
		}
	}
	return value, lag
}

// fenced reports whether a server that starts with the settings is fenced.
func setsFence(settings []setting) bool {
	value, lag := last(settings)
	return value != nil && (value.value == FenceUp || value.value == FenceCordon) && (lag == nil || lag.value > 0)
}

// rewritten are the settings after CONFIG REWRITE while value holds. The server
// knows only the main file: there it puts each parameter where its first line
// stands, and drops its other lines; where it has none it adds one at the end, behind
// all includes, unless the value is the default.
func rewritten(settings []setting, value int64) []setting {
	_, lag := last(settings)
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

// judgeParams judges by min-replicas-to-write.
func (v *BootVerdict) judgeParams(t BootText, lines []directive, main string) {
	settings, err := settingsOf(lines)
	if err != nil {
		v.because("%s", err)
		return
	}
	value, lag := last(settings)
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
			v.because("neither %s nor its command line sets %s", shown(main), paramMinReplicas)
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

// nameOf is a file's name, fit to be shown.
func nameOf(main string) string {
	if main == "" {
		return "no file"
	}
	return shown(main)
}

// judgeUsers judges by the rules of the lock clients' user.
func (v *BootVerdict) judgeUsers(t BootText, method Method, lines []directive, main string) {
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
		return d.words[0] == "user" && len(d.words) > 1 && d.words[1] == method.User
	})
	if i < 0 {
		if t.ArgsKnown {
			v.Boot, v.Form = BootUnfenced, FormNone
			v.because("neither a file of the server nor its command line has the user %q", method.User)
		} else {
			v.because("no file of the server has the user %q; whether its command line does cannot be seen", method.User)
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
	v.judgeRewrites(t, d, aclFile, main)
}

// judgeRewrites says what becomes of a user that starts without commands that write
// when the server writes its files.
func (v *BootVerdict) judgeRewrites(t BootText, d directive, aclFile, main string) {
	switch v.Form {
	case FormCommandLine:
		v.Boot = BootFenced
		v.because("without a configuration file there is nothing that the server could rewrite")
		return
	case FormFixedACL:
		v.Boot = BootFenced
		v.because("the server cannot write %s, so ACL SAVE fails", shown(filepath.Dir(aclFile)))
		return
	case FormACLFile:
		v.Boot = BootFragile
		if t.Writes == nil || t.Writes(aclFile) == WritableUnknown {
			v.because("whether the server can write %s cannot be seen; if it can, ACL SAVE while the node serves writes the user with its commands: from then on it starts unfenced", shown(filepath.Dir(aclFile)))
		} else {
			v.because("the server can write %s: ACL SAVE while the node serves writes the user with its commands, and from then on it starts unfenced", shown(filepath.Dir(aclFile)))
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
