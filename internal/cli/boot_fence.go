package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/safetext"
	"redlockctl/restartguard"
)

// bootFenceJSON is the document of node boot-fence.
type bootFenceJSON struct {
	Node       safetext.Text  `json:"node"`
	Method     string         `json:"method"`
	ConfigFile *safetext.Text `json:"config_file,omitempty"`

	// What to write; Lines stand before the include, too.
	Lines     []string       `json:"lines,omitempty"`
	Include   *safetext.Text `json:"include,omitempty"`
	Args      []string       `json:"args,omitempty"`
	Unit      *safetext.Text `json:"unit,omitempty"` // the systemd unit that it runs in
	DropIn    *safetext.Text `json:"drop_in,omitempty"`
	ExecStart *safetext.Text `json:"exec_start,omitempty"`

	// With --verify.
	Boot    string          `json:"boot,omitempty"` // closed, fragile, open, unknown
	Form    string          `json:"form,omitempty"`
	Because []safetext.Text `json:"because,omitempty"`
	Do      []safetext.Text `json:"do,omitempty"`
	Error   *safetext.Text  `json:"error,omitempty"`
}

// bootFencesJSON is that of several nodes.
type bootFencesJSON struct {
	Nodes []bootFenceJSON `json:"nodes"`
}

func (a *commandLine) bootFenceCommand() *cobra.Command {
	var word, file string
	var verify bool
	cmd := &cobra.Command{
		Use:   "boot-fence NAME...",
		Short: "How to start a master fenced, and whether it would start so",
		Long: `Prints what starts a server fenced: it then refuses to vote from the first moment
of its process on, until a guard lets it rejoin. Two forms survive any number of
CONFIG REWRITE: options on the command line, ready to paste with the real
ExecStart where it can be seen, and anchors, the same lines in the server's file
before an include that comes last. Nothing is changed.

--verify says whether a restart would start fenced, in which form, and what to do
if not. The server's settings cannot tell, since they are those of the present;
what can is its command line and its files, where it runs on this host, and how
its present process started. Run it on the server's own host, or give a copy of
the server's file, or of the output of systemctl cat, by --file; copies of the
files that it includes lie beside it.

Exit code 0 if it would start fenced, whatever CONFIG REWRITE and ACL SAVE write;
1 if it would not, if the server may undo the fence by itself (an include without
anchors, for one), or if it cannot be verified from here.`,
		Example:           "redlockctl node boot-fence n2\nredlockctl node boot-fence n1 n2 n3 --verify\nredlockctl node boot-fence n2 --verify --file ./copy-of-redis.conf",
		Args:              severalNames("node"),
		ValidArgsFunction: a.completeSeveralNodes,
		RunE: a.run(func(ctx context.Context, args []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			switch {
			case file != "" && !verify:
				return usageError{errors.New("--file goes with --verify")}
			case file != "" && len(args) > 1:
				return usageError{fmt.Errorf("--file is the file of one node, not of %d", len(args))}
			}
			looks := make([]app.BootLook, len(args))
			for i, name := range args {
				l := &looks[i]
				if l.Node, l.Method, err = app.NodeOf(cfg, name); err != nil {
					return err
				}
				if word != "" {
					if l.Method, err = methodOf(word, l.Method); err != nil {
						return usageError{err}
					}
				}
			}
			done := a.progress("looking at " + strings.Join(args, ", "))
			app.LookAtBoots(ctx, cfg, looks, file)
			done()
			return a.printBootLooks(looks, verify)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&word, "method", "", either(fenceWords())+", instead of the configured one")
	f.BoolVar(&verify, "verify", false, "say whether a restart would start fenced")
	f.StringVar(&file, "file", "", "with --verify: judge by this file, the server's configuration or its unit, or a copy of one")
	_ = cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(fenceWords(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// fenceWords are the methods that fence.
func fenceWords() []string {
	return slices.DeleteFunc(restartguard.MethodWords(), func(word string) bool { return word == restartguard.MethodNone.String() })
}

// methodOf is the method of a word, with the user of the configured one.
func methodOf(word string, configured restartguard.Method) (restartguard.Method, error) {
	kind, ok := restartguard.MethodOf(word)
	m := restartguard.Method{Kind: kind}
	switch {
	case !ok || kind == restartguard.MethodNone:
		return m, fmt.Errorf("--method %q: it is %s", word, either(fenceWords()))
	case kind == configured.Kind:
		return configured, nil
	case kind == restartguard.MethodACL:
		m.User = "locks"
	}
	return m, nil
}

// printBootLooks prints what to do with each node, or the verdict of each.
func (a *commandLine) printBootLooks(looks []app.BootLook, verify bool) error {
	var failed error
	var docs bootFencesJSON
	for i, l := range looks {
		if verify && l.Err != nil {
			err := fmt.Errorf("cannot be verified from here: %w", l.Err)
			if len(looks) == 1 {
				return err
			}
			fmt.Fprintf(a.errOut, "redlockctl: %s %s\n", safetext.Escape(l.Node.Name()), safetext.Printable(err.Error()))
			failed = silent{err}
			docs.Nodes = append(docs.Nodes, bootFenceJSON{Node: safetext.New(l.Node.Name()), Method: l.Method.Kind.String(), Boot: l.Check.Boot.String(), Error: safetext.OptionalError(err)})
			continue
		}
		if verify && l.Check.Boot != restartguard.BootFenced {
			failed = silent{fmt.Errorf("%s would not start fenced for sure", l.Node.Name())}
		}
		doc := bootDoc(l, verify)
		docs.Nodes = append(docs.Nodes, doc)
		switch {
		case a.output == "json":
		case verify:
			printBootCheck(a.out, l)
		default:
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			printBootFence(a.out, l, doc)
		}
	}
	if a.output != "json" {
		return failed
	}
	if len(looks) == 1 {
		return errors.Join(printJSON(a.out, document{"boot fence", docs.Nodes[0]}), failed)
	}
	return errors.Join(printJSON(a.out, document{"boot fences", docs}), failed)
}

// Paths that are shown where the server does not tell its own.
const (
	anyConfigFile = "/etc/redis/redis.conf"
	fenceFile     = "redlockctl-fence.conf"
	anyUnit       = "redis-server.service"
	fixedACLFile  = "/etc/redis-acl/users.acl"
)

// bootDoc is the document of one node.
func bootDoc(l app.BootLook, verify bool) bootFenceJSON {
	doc := bootFenceJSON{Node: safetext.New(l.Node.Name()), Method: l.Method.Kind.String(), ConfigFile: safetext.Optional(l.Check.File)}
	if verify {
		doc.Boot, doc.Form = l.Check.Boot.String(), l.Check.Form.String()
		doc.Because, doc.Do = safetext.Texts(l.Check.Because), safetext.Texts(l.Check.Do)
		return doc
	}
	doc.Lines = l.Method.StartLines()
	if l.Method.Kind == restartguard.MethodMinReplicas {
		doc.Args = restartguard.FenceArgs
		doc.Include = safetext.Optional(filepath.Join(filepath.Dir(cmp.Or(l.Check.File, anyConfigFile)), fenceFile))
		if start := l.Check.Process.ExecStart; canShow(start) {
			if !l.Check.Process.Fences() {
				start += " " + strings.Join(restartguard.FenceArgs, " ")
			}
			doc.Unit, doc.DropIn, doc.ExecStart = safetext.Optional(l.Check.Process.Unit), safetext.Optional(dropIn(l.Check.Process.Unit)), safetext.Optional(withoutSecrets(start))
		}
	}
	return doc
}

// dropIn is where a drop-in of a unit belongs.
func dropIn(unit string) string {
	return filepath.Join("/etc/systemd/system", unit+".d", fenceFile)
}

// secretOption is an option of a server with its values.
var secretOption = regexp.MustCompile(`(?i)(--(?:requirepass|masterauth|primaryauth|user|tls-key-file-pass|tls-client-key-file-pass)\s+)(.*?)(\s--|$)`)

// canShow reports whether a command line can be shown without its passwords. One
// in quotes may look as if it ended before it does.
func canShow(line string) bool {
	return line != "" && !(secretOption.MatchString(line) && strings.ContainsAny(line, `"'\\`))
}

const hiddenSecret = "(SECRET)"

// withoutSecrets is a command line whose passwords are not told.
func withoutSecrets(line string) string {
	return secretOption.ReplaceAllString(line, "${1}"+hiddenSecret+"${3}")
}

func printBootCheck(w io.Writer, l app.BootLook) {
	verdict := map[restartguard.Boot]string{
		restartguard.BootFenced:   "starts fenced",
		restartguard.BootFragile:  "starts fenced, but not for long",
		restartguard.BootUnfenced: "STARTS UNFENCED",
		restartguard.BootUnknown:  "cannot be verified from here",
	}[l.Check.Boot]
	form := "form: " + l.Check.Form.String()
	if l.Check.Form == restartguard.FormUnknown {
		form = "form not seen"
	}
	fmt.Fprintf(w, "%s: %s (%s)\n", safetext.Escape(l.Node.Name()), verdict, form)
	for _, b := range l.Check.Because {
		fmt.Fprintf(w, "  %s\n", safetext.Printable(b))
	}
	for _, d := range l.Check.Do {
		fmt.Fprintf(w, "  do: %s\n", safetext.Printable(d))
	}
	if len(l.Check.Do) > 0 && l.Check.Boot != restartguard.BootFenced {
		fmt.Fprintf(w, "  redlockctl node boot-fence %s prints the lines\n", safetext.Escape(l.Node.Name()))
	}
}

// printBootFence prints how to start a node fenced.
func printBootFence(w io.Writer, l app.BootLook, doc bootFenceJSON) {
	fmt.Fprintf(w, "%s (%s), method %s\n\n", safetext.Escape(l.Node.Name()), safetext.Escape(l.Node.Addr()), doc.Method)
	switch l.Method.Kind {
	case restartguard.MethodMinReplicas:
		printParamFence(w, l, doc)
	case restartguard.MethodACL:
		printUserFence(w, l, doc)
	default:
		fmt.Fprintf(w, "Its fence is \"none\": nothing starts it fenced. See --method, `redlockctl supervise`,\nand `redlockctl node wait --before-start`.\n")
		return
	}
	fmt.Fprintf(w, "Then: redlockctl node boot-fence %s --verify\n", safetext.Escape(l.Node.Name()))
}

// printParamFence prints the two forms of a fence by min-replicas-to-write.
func printParamFence(w io.Writer, l app.BootLook, doc bootFenceJSON) {
	args := strings.Join(doc.Args, " ")
	lines := strings.Join(doc.Lines, "\n    ")
	file, program := safetext.Escape(cmp.Or(l.Check.File, anyConfigFile)), cmp.Or(l.Check.Program, "/usr/bin/redis-server")
	fmt.Fprint(w, "Two forms survive any number of CONFIG REWRITE. One is enough.\n\n")
	fmt.Fprint(w, "1. The command line: the best, since no file of the server changes it. ")
	p := l.Check.Process
	switch {
	case doc.ExecStart != nil:
		start := doc.ExecStart.String()
		fmt.Fprintf(w, "For systemd,\nmake the file %s:\n\n    [Service]\n    ExecStart=\n    ExecStart=%s\n\nand run: systemctl daemon-reload\n", safetext.Escape(doc.DropIn.Raw()), start)
		if strings.Contains(start, hiddenSecret) {
			fmt.Fprintf(w, "For %s put what `systemctl cat` shows there.\n", hiddenSecret)
		}
	case l.Check.Local && p.ArgsKnown && p.Unit == "":
		words := append([]string{program}, p.Args...)
		if !p.Fences() {
			words = append(words, doc.Args...)
		}
		option := ""
		for i, word := range words {
			secret := option != "" && secretOption.MatchString(option+" x")
			switch {
			case strings.HasPrefix(word, "--") && secretOption.MatchString(word): // with its value
				option, words[i] = "", strings.Fields(word)[0]+" "+hiddenSecret
			case strings.HasPrefix(word, "--"):
				option, words[i] = word, safetext.New(word).Word()
			case secret:
				words[i] = hiddenSecret
			default:
				words[i] = safetext.New(word).Word()
			}
		}
		fmt.Fprintf(w, "The present\none, with the two options:\n\n    %s\n", strings.Join(words, " "))
	default:
		fmt.Fprintf(w, "For systemd,\nmake the file %s:\n\n    [Service]\n    ExecStart=\n    ExecStart=%s %s --supervised systemd --daemonize no %s\n\n", dropIn(anyUnit), safetext.Escape(program), file, args)
		fmt.Fprintf(w, "where all before the two options is what your unit has (systemctl cat redis-server),\nand run: systemctl daemon-reload\n")
	}
	fmt.Fprintf(w, "\nFor a container, or another start of your own, add to the server's arguments:\n\n    %s\n\n", args)
	include := safetext.Escape(doc.Include.Raw())
	fmt.Fprintf(w, "2. Anchors. Make the file %s with these lines:\n\n    %s\n\n", include, lines)
	fmt.Fprintf(w, "and let %s end with the same lines, and the include last:\n\n    %s\n    include %s\n\n", file, lines, include)
	fmt.Fprintf(w, "CONFIG REWRITE changes the two lines where they stand, and the include overrules\nthem. Never the include alone: CONFIG REWRITE would add a line behind it, and the\nnode would start unfenced.\n\n")
}

// printUserFence prints the form of a fence by the lock clients' user.
func printUserFence(w io.Writer, l app.BootLook, doc bootFenceJSON) {
	file := safetext.Escape(cmp.Or(l.Check.File, anyConfigFile))
	dir := filepath.Dir(fixedACLFile)
	fmt.Fprintf(w, "1. Make an ACL file that the server can read and not write, in a directory that it\ncannot write either, so that ACL SAVE fails:\n\n    install -d -o root -g root -m 755 %s\n    install -o root -g redis -m 640 users.acl %s\n\n", dir, fixedACLFile)
	fmt.Fprintf(w, "In it the user of the lock clients starts without the commands that write; its\nkeys and its password as they are at present:\n\n    %s\n\n", doc.Lines[0])
	fmt.Fprintf(w, "2. Let nobody else write. A user that is not fenced gets by the fence, the\ndefault user too:\n\n    %s\n\n", doc.Lines[1])
	fmt.Fprintf(w, "All other users stand in the same file; `redlockctl config acl` prints those of this\nprogram.\n\n")
	fmt.Fprintf(w, "3. In %s, which must have no user lines then:\n\n    aclfile %s\n\n", file, fixedACLFile)
	fmt.Fprintf(w, "4. In the configuration of redlockctl, for this node:\n\n    fence = \"acl\"\n    fence_user = %q\n\n", l.Method.User)
	fmt.Fprint(w, "In a file that the server can write, ACL SAVE (with an ACL file) and CONFIG REWRITE\n(with user lines in the configuration) write the user with its commands while the\nnode serves: the next start is unfenced. Never send them there.\n\n")
}
