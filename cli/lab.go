package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/internal/lab"
	"redlockctl/internal/view"
	"redlockctl/server/safetext"
)

// labJSON is the document of lab up and lab down.
type labJSON struct {
	Dir    safetext.Text   `json:"dir"`
	Nodes  []labNodeJSON   `json:"nodes,omitempty"`
	Faults []string        `json:"faults,omitempty"` // of lab up --bad
	Ended  []safetext.Text `json:"ended,omitempty"`
	// Recalled is the state directory of a guard that remembers earlier servers at these
	// addresses.
	Recalled *safetext.Text `json:"guard_remembers,omitempty"`
}

type labNodeJSON struct {
	Name    safetext.Text `json:"name"`
	Addr    safetext.Text `json:"addr"`
	Pid     int           `json:"pid"`
	State   string        `json:"state"` // serving, fenced, or ran before
	Restart safetext.Text `json:"restart"`
}

func (a *commandLine) labDir(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	if dir := config.StateDir(a.Getenv, "lab"); dir != "" {
		return dir, nil
	}
	return "", exit.Usagef("no place for the lab: $XDG_STATE_HOME and $HOME are not set; use --dir")
}

const labDirUsage = "where its files are (default $XDG_STATE_HOME/redlockctl/lab)"

func (a *commandLine) labUpCommand() *cobra.Command {
	var o labOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start real redis-servers on loopback ports and leave them running",
		Long: `Starts redis-servers on 127.0.0.1:7001 and the ports after it, without
persistence and with the boot fence as anchors and an included file, and lets them
serve: a new cluster's first incarnation has no votes to forget. Where the
configuration names servers on loopback with one port after the other, it starts
those. A configuration that names the servers is left in the lab's directory. They run
on in the background until "lab down". The command that starts a node again after a crash is printed; every
such restart starts fenced, until a guard lets it rejoin. So does a node that "lab
up" finds ended and starts again.

With --bad almost everything is wrong with them that can be wrong: wrong
settings, a replica, locks that are stuck. It is for trying out what the console
and "redlockctl doctor" say to that.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.nodes == 0 && cmd.Flags().Changed("nodes") { // 0 stands for the default
				return fmt.Errorf("--nodes 0 is not in 1..%d", lab.MostNodes)
			}
			return flags.NoArgs(cmd, args)
		},
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := a.mayActAnywhere(); err != nil {
				return err
			}
			return a.labUp(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.bad, "bad", false, "with faults of all kinds, to see what they look like")
	f.StringVar(&o.dir, "dir", "", labDirUsage)
	f.IntVar(&o.nodes, "nodes", 0, "how many masters (default as the configuration names them, else 5)")
	f.IntVar(&o.port, "port", 0, "port of the first one (default as the configuration names it, else 7001)")
	f.StringVar(&o.bin, "redis-server", "redis-server", "the server, a path or a name in $PATH")
	return cmd
}

// labOptions are the flags of lab up.
type labOptions struct {
	dir, bin    string
	nodes, port int // 0: as the configuration names them
	bad         bool
}

func (a *commandLine) labUp(ctx context.Context, o labOptions) error {
	cfg, _ := a.load() // nil: none, or one that another command complains of
	nodes, port, bad := o.nodes, o.port, o.bad
	if n, first := app.LocalPorts(cfg); nodes == 0 && port == 0 && n > 0 && n <= lab.MostNodes && (!bad || n >= lab.BadNodes) {
		nodes, port = n, first
	}
	nodes, port = cmp.Or(nodes, 5), cmp.Or(port, 7001)
	switch {
	case nodes < 1 || nodes > lab.MostNodes:
		return exit.Usagef("--nodes %d is not in 1..%d", nodes, lab.MostNodes)
	case port < 1024 || port+nodes-1 > 65535:
		return exit.Usagef("--port %d: the ports of %d nodes are not in 1024..65535", port, nodes)
	case bad && (nodes < lab.BadNodes || port+nodes > 65535):
		return exit.Usagef("--bad needs %d nodes at least, not %d, and a port for a replica after theirs", lab.BadNodes, nodes)
	}
	dir, err := a.labDir(o.dir)
	if err != nil {
		return err
	}
	var started []lab.Started
	var faults []string
	done := a.Progress("starting servers")
	if bad {
		started, faults, err = lab.UpBad(ctx, dir, o.bin, nodes, port)
	} else {
		started, err = lab.Up(ctx, dir, o.bin, nodes, port)
	}
	done()
	if err != nil {
		return err
	}
	if err := lab.WriteConfig(dir, started); err != nil {
		return fmt.Errorf("the configuration for this lab: %w", err)
	}
	return a.printLab(cfg, dir, started, faults)
}

func (a *commandLine) printLab(cfg *config.Config, dir string, started []lab.Started, faults []string) error {
	recalled, delay := app.Recalled(cfg, started)
	if a.Output == "json" {
		doc := labJSON{Dir: safetext.New(dir), Faults: faults, Recalled: safetext.Optional(recalled)}
		for _, s := range started {
			doc.Nodes = append(doc.Nodes, labNodeJSON{safetext.New(s.Name), safetext.New(s.Addr), s.Pid, startedAs(s), safetext.New(s.RestartCmd)})
		}
		return a.JSON("lab", doc)
	}
	t := view.NewTable("NODE", "ADDR", "PID", "STATE", "START IT AGAIN WITH")
	for _, s := range started {
		t.Add(printer.Plain(s.Name), printer.Plain(s.Addr), view.Cell{Text: fmt.Sprint(s.Pid)}, view.Cell{Text: startedAs(s)}, printer.Plain(s.RestartCmd))
	}
	a.Table(t)
	if !app.NamesAll(cfg, started) {
		fmt.Fprintf(a.Out, "\nto use it: redlockctl --config %s\n", safetext.New(lab.ConfigPath(dir)).Word())
	}
	for i, fault := range faults {
		if i == 0 {
			fmt.Fprintln(a.Out, "\nwhat is wrong with it, as redlockctl doctor will say:")
		}
		fmt.Fprintf(a.Out, "  %s\n", fault)
	}
	if recalled != "" {
		fmt.Fprintf(a.Out, "\nThe guard's memory in %s\nis of former servers at these addresses: a guard takes the new ones for restarts of those,\nand fences them all for %s. Where the clients of the former ones have ended too, and no\nguard runs, delete that directory first.\n", safetext.Escape(recalled), delay)
	}
	return nil
}

// startedAs says in a word or two what lab up did with a node.
func startedAs(s lab.Started) string {
	switch {
	case s.Already:
		return "ran before"
	case s.Opened:
		return "serving"
	}
	return "fenced"
}

// labToEnd returns the directory of the lab that lab down ends.
func (a *commandLine) labToEnd(flag string) (string, error) {
	if flag != "" || len(a.configPaths) == 0 && a.cluster == "" {
		return a.labDir(flag)
	}
	cfg, err := a.load()
	if err != nil {
		return "", err
	}
	if len(a.configPaths) == 1 && lab.LeftConfig(a.configPaths[0]) {
		return filepath.Abs(filepath.Dir(a.configPaths[0]))
	}
	dir, err := a.labDir("")
	if err != nil {
		return "", err
	}
	ports, err := lab.Ports(dir)
	if err != nil {
		return "", err
	}
	if n, first := app.LocalPorts(cfg); n > 0 {
		there := 0
		for port := first; port < first+n; port++ {
			if slices.Contains(ports, port) {
				there++
			}
		}
		if there == n {
			return dir, nil
		}
	}
	return "", exit.Usagef("the masters of cluster %s are not those of the lab in %s: name the directory of their lab with --dir", safetext.New(cfg.Cluster.Name).Word(), safetext.Escape(dir))
}

func (a *commandLine) labDownCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the servers that lab up left running",
		Long: `Ends the servers that "lab up" left running, and removes their files. With --config or
--cluster it ends the lab that the configuration is of: the one that left it, or the one
in the default directory if its masters run there. If they do not, nothing is ended.`,
		Args: flags.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := a.mayActAnywhere(); err != nil {
				return err
			}
			dir, err := a.labToEnd(dir)
			if err != nil {
				return err
			}
			done := a.Progress("ending servers")
			ended, err := lab.Down(ctx, dir)
			done()
			if err != nil {
				return err
			}
			if a.Output == "json" {
				return a.JSON("lab", labJSON{Dir: safetext.New(dir), Ended: safetext.Texts(ended)})
			}
			if len(ended) == 0 {
				fmt.Fprintf(a.Out, "nothing runs in %s\n", safetext.Escape(dir))
			}
			for _, name := range ended {
				fmt.Fprintf(a.Out, "ended %s\n", safetext.Escape(name))
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", labDirUsage)
	return cmd
}
