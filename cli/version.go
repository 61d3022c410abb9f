package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/cli/flags"
)

// version is the version of a release, set by the linker.
var version string

// versionJSON is the document of version.
type versionJSON struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Revision string `json:"revision,omitempty"`
	Date     string `json:"date,omitempty"`     // of the revision
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes
}

func (a *commandLine) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "The version of this program",
		Args:  flags.NoArgs,
		RunE: a.run(func(context.Context, []string) error {
			doc := build()
			if a.Output == "json" {
				return a.JSON("version", doc)
			}
			fmt.Fprintln(a.Out, doc.line())
			return nil
		}),
	}
}

func (v versionJSON) line() string {
	line := fmt.Sprintf("redlockctl %s, %s", v.Version, v.Go)
	if v.Revision != "" {
		line += ", revision " + v.Revision
		if v.Date != "" {
			line += " of " + v.Date
		}
		if v.Modified {
			line += " with changes"
		}
	}
	return line
}

func build() versionJSON {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info, version)
}

// buildOf is the version of a build: that of a release, or else what the go command stamps. It
// puts a v before the version of a tag, which releases do not have.
func buildOf(info *debug.BuildInfo, release string) versionJSON {
	doc := versionJSON{Version: "(devel)", Go: runtime.Version()}
	if info == nil {
		doc.Version = cmp.Or(release, doc.Version)
		return doc
	}
	doc.Version = cmp.Or(release, strings.TrimPrefix(info.Main.Version, "v"), doc.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			doc.Revision = s.Value
		case "vcs.time":
			doc.Date = s.Value
		case "vcs.modified":
			doc.Modified = s.Value == "true"
		}
	}
	return doc
}
