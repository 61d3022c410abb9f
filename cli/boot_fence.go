package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/restartguard/boot"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// bootFenceJSON is the document of node boot-fence.
type bootFenceJSON struct {
	Node       safetext.Text  `json:"node"`
	Method     string         `json:"method"`
	ConfigFile *safetext.Text `json:"config_file,omitempty"`
	boot.How

	// With --verify.
	Boot    string          `json:"boot,omitempty"` // fenced, fragile, unfenced, unknown
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
		Short: "Make a master start fenced, and check that it will",
		Long: `Prints what starts a server fenced: it then refuses to vote from the first moment
of its process on, until a guard lets it rejoin. Two forms survive any number of
CONFIG REWRITE: options on the command line, ready to paste with the real
ExecStart if it is known, and anchors: the same lines in the server's file before an
include that comes last. Nothing is changed.

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
		Args:              flags.SeveralNames("node"),
		ValidArgsFunction: a.completeNodes,
		RunE: a.run(func(ctx context.Context, args []string) error {
			args, err := flags.Names(args, a.In)
			if err != nil {
				return err
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			switch {
			case file != "" && !verify:
				return exit.Usagef("--file goes with --verify")
			case file != "" && len(args) > 1:
				return exit.Usagef("--file is the file of one node, not of %d", len(args))
			}
			looks := make([]app.BootLook, len(args))
			for i, name := range args {
				l := &looks[i]
				if l.Node, l.Method, err = app.NodeOf(cfg, name); err != nil {
					return err
				}
				if word != "" {
					if l.Method, err = l.Method.Instead(word); err != nil {
						return exit.Usagef("--method %w", err)
					}
				}
			}
			done := a.Progress("looking at " + strings.Join(args, ", "))
			app.LookAtBoots(ctx, cfg, looks, file)
			done()
			return a.printBootLooks(looks, verify)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&word, "method", "", flags.Either(fences.FencingWords())+", instead of the configured one")
	f.BoolVar(&verify, "verify", false, "say whether a restart would start fenced")
	f.StringVar(&file, "file", "", "with --verify: judge by this file, the server's configuration or its unit, or a copy of one")
	_ = cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(fences.FencingWords(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
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
			a.Note("%s %s", safetext.Escape(l.Node.Name()), safetext.Printable(err.Error()))
			failed = exit.Silently(err)
			docs.Nodes = append(docs.Nodes, bootFenceJSON{Node: safetext.New(l.Node.Name()), Method: l.Method.Kind.String(), Boot: l.Check.Boot.String(), Error: safetext.OptionalError(err)})
			continue
		}
		if verify && l.Check.Boot != boot.Fenced {
			failed = exit.Silently(fmt.Errorf("%s would not start fenced for sure", l.Node.Name()))
		}
		doc := bootDoc(l, verify)
		docs.Nodes = append(docs.Nodes, doc)
		switch {
		case a.Output == "json":
		case verify:
			printBootCheck(a.Out, l)
		default:
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			printBootFence(a.Out, l)
		}
	}
	if a.Output != "json" {
		return failed
	}
	if len(looks) == 1 {
		return errors.Join(a.JSON("boot fence", docs.Nodes[0]), failed)
	}
	return errors.Join(a.JSON("boot fences", docs), failed)
}

func bootDoc(l app.BootLook, verify bool) bootFenceJSON {
	doc := bootFenceJSON{Node: safetext.New(l.Node.Name()), Method: l.Method.Kind.String(), ConfigFile: safetext.Optional(l.Check.File)}
	if verify {
		doc.Boot, doc.Form = l.Check.Boot.String(), l.Check.Form.String()
		doc.Because, doc.Do = safetext.Texts(l.Check.Because), safetext.Texts(l.Check.Do)
		return doc
	}
	doc.How = boot.HowToStart(l.Method, l.Check)
	return doc
}

func printBootCheck(w io.Writer, l app.BootLook) {
	verdict := map[boot.State]string{
		boot.Fenced:   "starts fenced",
		boot.Fragile:  "starts fenced, but not for long",
		boot.Unfenced: "STARTS UNFENCED",
		boot.Unknown:  "cannot be verified from here",
	}[l.Check.Boot]
	form := "form: " + l.Check.Form.String()
	if l.Check.Form == boot.FormUnknown {
		form = "form not seen"
	}
	fmt.Fprintf(w, "%s: %s (%s)\n", safetext.Escape(l.Node.Name()), verdict, form)
	for _, b := range l.Check.Because {
		fmt.Fprintf(w, "  %s\n", safetext.Printable(b))
	}
	for _, d := range l.Check.Do {
		fmt.Fprintf(w, "  do: %s\n", safetext.Printable(d))
	}
	if len(l.Check.Do) > 0 && l.Check.Boot != boot.Fenced {
		fmt.Fprintf(w, "  redlockctl node boot-fence %s prints the lines\n", safetext.Escape(l.Node.Name()))
	}
}

func printBootFence(w io.Writer, l app.BootLook) {
	how := boot.HowToStart(l.Method, l.Check)
	fmt.Fprintf(w, "%s (%s), method %s\n\n%s", safetext.Escape(l.Node.Name()), safetext.Escape(l.Node.Addr()), l.Method.Kind, how.Text)
	if how.Lines != nil {
		fmt.Fprintf(w, "Then: redlockctl node boot-fence %s --verify\n", safetext.Escape(l.Node.Name()))
	}
}
