package boot

import (
	"path/filepath"
	"slices"
	"strings"

	"redlockctl/restartguard/fence"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// assessUser decides by the rules of the lock clients' user.
func (v *Verdict) assessUser(t Text, user string) {
	lines, main, err := t.readAll()
	if err != nil {
		v.because("its configuration cannot be read from here: %s", safetext.Error(err))
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
		r := &reader{text: t, dir: dir, users: true}
		if err := r.include(aclFile, 0, inIncluded); err != nil {
			v.because("its ACL file cannot be read from here: %s", safetext.Error(err))
			return
		}
		users = r.lines
		aclFile = absolute(aclFile, dir)
	}
	i := slices.IndexFunc(users, func(d directive) bool {
		return d.words[0] == "user" && len(d.words) > 1 && d.words[1] == user
	})
	if i < 0 {
		if t.ArgsKnown {
			v.Boot, v.Form = Unfenced, FormNone
			v.because("neither a file of the server nor its command line has the user %q", user)
		} else {
			v.because("no file of the server has the user %q; whether its command line does cannot be seen", user)
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
			v.Boot = Unfenced
			v.because("%s gives the user a selector of its own, with which this method does not work", d.place())
			return
		}
		if fences.CommandRule(w) || w == "allcommands" || w == "nocommands" || w == "reset" {
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
	if fence.GrantsWrite(strings.Join(rules, " "), t.Write) {
		v.Boot = Unfenced
		v.because("%s starts the user with commands that write", d.place())
		v.do("start the user without commands that write, in an ACL file that the server cannot write")
		return
	}
	v.because("%s starts the user without commands that write", d.place())
	v.assessRewrites(t, d, aclFile, main)
}

// assessRewrites decides what happens to a user that starts without write commands when the server
// rewrites its files.
func (v *Verdict) assessRewrites(t Text, d directive, aclFile, main string) {
	switch v.Form {
	case FormCommandLine:
		v.Boot = Fenced
		v.because("without a configuration file there is nothing that the server could rewrite")
		return
	case FormFixedACL:
		v.Boot = Fenced
		v.because("the server cannot write %s, so ACL SAVE fails", safetext.Escape(filepath.Dir(aclFile)))
		return
	case FormACLFile:
		v.Boot = Fragile
		if t.Writes == nil || t.Writes(aclFile) == WritableUnknown {
			v.because("whether the server can write %s cannot be seen; if it can, ACL SAVE while the node serves writes the user with its commands: from then on it starts unfenced", safetext.Escape(filepath.Dir(aclFile)))
		} else {
			v.because("the server can write %s: ACL SAVE while the node serves writes the user with its commands, and from then on it starts unfenced", safetext.Escape(filepath.Dir(aclFile)))
		}
	case FormUserLine:
		v.Boot = Fragile
		if d.source == inMain {
			v.because("CONFIG REWRITE while the node serves writes the user with its commands: from then on it starts unfenced")
		} else {
			v.because("CONFIG REWRITE writes the same user into %s: from then on the server does not start, since a user may be declared once", nameOf(main))
		}
	}
	v.do("put the user into an ACL file that the server cannot write, in a directory that it cannot write")
}
