package config

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzConfig: whatever a configuration contains, its problems can be shown, and a valid
// one satisfies the guard's rule.
func FuzzConfig(f *testing.F) {
	const least = "[cluster]\nmax_ttl = \"3s\"\n[[nodes]]\nname = \"n1\"\naddr = \"h:1\"\n"
	for _, text := range []string{
		least, least + "[guard]\ndelay = \"3s\"\nstate_dir = \"/x\"\nclock_step = \"-1s\"\n", least + "fence = \"acl\"\nfence_user = \"a\"\nfence_allow = [\"+@write\"]\n",
		least + "[redlock]\ndrift_factor = 0.5\ndrift_margin = \"2ms\"\nnode_timeout = \"1h\"\nretries = -1\n[monitor]\nscan_count = 1e3\nmax_memory = \"1GiB\"\n",
		"default_cluster = \"a\"\n[clusters.a]\nmax_ttl = \"1s\"\n[[clusters.a.nodes]]\nname = \"n\"\naddr = \"/s\"\n[tui]\nfps = 5\n[audit]\npath = \"~/x\"\n",
		least + "[nodes.tls]\nca = \"\\u001b[2J\"\n", "[cluster]\nmax_tll = \"\\u202e\"\n", "a = [[[", "",
	} {
		f.Add(text)
	}
	env := func(name string) string {
		if name == "HOME" {
			return "/nowhere"
		}
		return ""
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			t.Skip("more of the same")
		}
		file := &configFile{path: "/nowhere/config.toml", Options: Options{Secretless: true}}
		all, _ := file.parse(text, env)
		for _, p := range file.sorted() {
			if s := p.String(); strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
				t.Fatalf("raw: %q", s)
			}
		}
		if len(file.problems) > 0 {
			return
		}
		for _, l := range all {
			switch c := l.Config; {
			case len(c.Nodes) == 0 || c.Cluster.MaxTTL <= 0 || c.Cluster.Name == "":
				t.Fatalf("valid, and not whole: %+v", c)
			case c.Guard.Delay < c.Cluster.MaxTTL+c.Cluster.MaxTTL/100:
				t.Fatalf("D %s is too short for %s", c.Guard.Delay, c.Cluster.MaxTTL)
			}
		}
	})
}
