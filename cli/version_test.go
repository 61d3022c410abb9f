package cli

import (
	"runtime/debug"
	"testing"
)

// What go install stamps in a checkout has the form of a release's version.
func TestVersionStamped(t *testing.T) {
	stamped := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "redlockctl", Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0b49921a21be"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, tc := range []struct {
		name, release, want string
		info                *debug.BuildInfo
		modified            bool
	}{
		{name: "a tag", info: stamped("v1.2.3", revision), want: "1.2.3"},
		{name: "a tag, with changes", info: stamped("v1.2.3+dirty", revision, modified), want: "1.2.3+dirty", modified: true},
		{name: "no tag", info: stamped("v0.0.0-20261127180009-0b49921a21be", revision), want: "0.0.0-20261127180009-0b49921a21be"},
		{name: "no git", info: stamped("(devel)"), want: "(devel)"},
		{name: "a test", info: stamped(""), want: "(devel)"},
		{name: "a release", info: stamped("(devel)", revision), release: "1.2.4", want: "1.2.4"},
		{name: "a release without a stamp", release: "1.2.4", want: "1.2.4"},
		{name: "nothing", want: "(devel)"},
	} {
		doc := buildOf(tc.info, tc.release)
		if doc.Version != tc.want || doc.Modified != tc.modified || (len(doc.Revision) > 0) != (tc.info != nil && len(tc.info.Settings) > 0) {
			t.Errorf("%s: %+v, want version %s", tc.name, doc, tc.want)
		}
	}
}
