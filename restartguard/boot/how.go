package boot

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
)

// How is how to start a server fenced.
type How struct {
	Lines   []string `json:"lines,omitempty"`   // of its files, which stand before the include, too; nil: nothing starts it fenced
	Include string   `json:"include,omitempty"` // the file with these lines
	Args    []string `json:"args,omitempty"`    // of its command line
	// Unit is the systemd unit of the server, and DropIn and ExecStart its drop-in; empty if they
	// cannot be seen, or not be shown without passwords.
	Unit      string `json:"unit,omitempty"`
	DropIn    string `json:"drop_in,omitempty"`
	ExecStart string `json:"exec_start,omitempty"`
	Text      string `json:"-"` // all of it for people, safe to print
}

// HowToStart returns how to start a server fenced by its method, with the paths that a check found.
func HowToStart(m fences.Method, c Check) How {
	switch m.Kind {
	case fences.ACL:
		return howByUser(c, m.User)
	case fences.None:
		return How{Text: "Its fence is \"none\": nothing starts it fenced. See --method, and\n`redlockctl node wait NAME --before-start`, which delays its start.\n"}
	}
	return howByParams(c)
}

// Paths that are shown if the server does not tell its own.
const (
	anyConfigFile = "/etc/redis/redis.conf"
	fenceFile     = "redlockctl-fence.conf"
	anyUnit       = "redis-server.service"
	fixedACLFile  = "/etc/redis-acl/users.acl"
)

// dropIn returns the path for a drop-in of a unit.
func dropIn(unit string) string {
	return filepath.Join("/etc/systemd/system", unit+".d", fenceFile)
}

// secretOption matches an option of a server that has a secret, with its values.
var secretOption = regexp.MustCompile(`(?i)(--(?:requirepass|masterauth|primaryauth|user|tls-key-file-pass|tls-client-key-file-pass)\s+)(.*?)(\s--|$)`)

// canShow reports whether a command line can be shown without its passwords. Within quotes the end
// of one is not certain.
func canShow(line string) bool {
	return line != "" && !(secretOption.MatchString(line) && strings.ContainsAny(line, `"'\\`))
}

const hiddenSecret = "(SECRET)"

// withoutSecrets returns a command line with its passwords hidden.
func withoutSecrets(line string) string {
	return secretOption.ReplaceAllString(line, "${1}"+hiddenSecret+"${3}")
}

// wordsWithoutSecrets does the same for a command line whose words are known, and quotes each for a
// shell.
func wordsWithoutSecrets(words []string) string {
	shown, option := make([]string, len(words)), ""
	for i, word := range words {
		secret := option != "" && secretOption.MatchString(option+" x")
		switch {
		case strings.HasPrefix(word, "--") && secretOption.MatchString(word): // with its value
			option, shown[i] = "", strings.Fields(word)[0]+" "+hiddenSecret
		case strings.HasPrefix(word, "--"):
			option, shown[i] = word, safetext.New(word).Word()
		case secret:
			shown[i] = hiddenSecret
		default:
			shown[i] = safetext.New(word).Word()
		}
	}
	return strings.Join(shown, " ")
}

func howByParams(c Check) How {
	path := cmp.Or(c.File, anyConfigFile)
	how := How{Lines: minreplicas.FenceLines, Args: minreplicas.FenceArgs, Include: filepath.Join(filepath.Dir(path), fenceFile)}
	if start := c.Process.ExecStart; canShow(start) {
		if !c.Process.Fences() {
			start += " " + strings.Join(minreplicas.FenceArgs, " ")
		}
		how.Unit, how.DropIn, how.ExecStart = c.Process.Unit, dropIn(c.Process.Unit), withoutSecrets(start)
	}
	args, lines := strings.Join(minreplicas.FenceArgs, " "), strings.Join(minreplicas.FenceLines, "\n    ")
	file, include := safetext.Escape(path), safetext.Escape(how.Include)
	how.Text = "Two forms survive any number of CONFIG REWRITE. One is enough.\n\n" +
		"1. The command line: the best, since no file of the server changes it. " + how.commandLine(c, file, args) +
		fmt.Sprintf("\nFor a container, or another start of your own, add to the server's arguments:\n\n    %s\n\n", args) +
		fmt.Sprintf("2. Anchors. Make the file %s with these lines:\n\n    %s\n\n", include, lines) +
		fmt.Sprintf("and let %s end with the same lines, and the include last:\n\n    %s\n    include %s\n\n", file, lines, include) +
		"CONFIG REWRITE changes the two lines where they stand, and the include overrules\nthem. Never the include alone: CONFIG REWRITE would add a line behind it, and the\nnode would start unfenced.\n\n"
	return how
}

// commandLine returns the form that fences by options of the server, as close as possible to how
// the server is started now.
func (how How) commandLine(c Check, file, args string) string {
	const unit = "For systemd,\nmake the file %s:\n\n    [Service]\n    ExecStart=\n    ExecStart=%s\n\n"
	program, p := cmp.Or(c.Program, "/usr/bin/redis-server"), c.Process
	switch {
	case how.ExecStart != "":
		text := fmt.Sprintf(unit, safetext.Escape(how.DropIn), safetext.Escape(how.ExecStart)) + "and run: systemctl daemon-reload\n"
		if strings.Contains(how.ExecStart, hiddenSecret) {
			text += fmt.Sprintf("For %s put what `systemctl cat` shows there.\n", hiddenSecret)
		}
		return text
	case c.Local && p.ArgsKnown && p.Unit == "":
		words := append([]string{program}, p.Args...)
		if !p.Fences() {
			words = append(words, minreplicas.FenceArgs...)
		}
		return fmt.Sprintf("The present\none, with the two options:\n\n    %s\n", wordsWithoutSecrets(words))
	}
	start := fmt.Sprintf("%s %s --supervised systemd --daemonize no %s", safetext.Escape(program), file, args)
	return fmt.Sprintf(unit, dropIn(anyUnit), start) + "where all before the two options is what your unit has (systemctl cat redis-server),\nand run: systemctl daemon-reload\n"
}

func howByUser(c Check, user string) How {
	how := How{Lines: []string{"user " + user + " on >PASSWORD ~* &* -@all +@read +@connection +@transaction +@scripting +@pubsub -@write", "user default off"}}
	how.Text = fmt.Sprintf("1. Make an ACL file that the server can read and not write, in a directory that it\ncannot write either, so that ACL SAVE fails:\n\n    install -d -o root -g root -m 755 %s\n    install -o root -g redis -m 640 users.acl %s\n\n", filepath.Dir(fixedACLFile), fixedACLFile) +
		fmt.Sprintf("In it the user of the lock clients starts without the commands that write; its\nkeys and its password as they are at present:\n\n    %s\n\n", how.Lines[0]) +
		fmt.Sprintf("2. Let nobody else write. A user that is not fenced gets by the fence, the\ndefault user too:\n\n    %s\n\n", how.Lines[1]) +
		"All other users stand in the same file; `redlockctl config acl` prints those of this\nprogram.\n\n" +
		fmt.Sprintf("3. In %s, which must have no user lines then:\n\n    aclfile %s\n\n", safetext.Escape(cmp.Or(c.File, anyConfigFile)), fixedACLFile) +
		fmt.Sprintf("4. In the configuration of redlockctl, for this node:\n\n    fence = \"acl\"\n    fence_user = %q\n\n", user) +
		"In a file that the server can write, ACL SAVE (with an ACL file) and CONFIG REWRITE\n(with user lines in the configuration) write the user with its commands while the\nnode serves: the next start is unfenced. Never send them there.\n\n"
	return how
}
