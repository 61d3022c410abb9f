package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestKeysStandOnTheirLines(t *testing.T) {
	const text = `# [no] = "table"
top = """
a = 1
b = "\""" # still inside
""""
"quoted key" = 'it"s'
dotted . key = [ # comment with = and ]
  "x=1", # [y]
  { in = 1, line = 2 },
]

[ cluster ] # comment
name = 'C:\'

[[nodes]]
name = "n1"
[nodes.tls]
ca = "x"

[[nodes]]
name = '''
two
'''
addr = "a#b"
`
	if err := toml.Unmarshal([]byte(text), new(map[string]any)); err != nil {
		t.Fatal(err)
	}
	got := scanLines(text)
	want := lines{
		"top": 2, "quoted key": 6, "dotted": 7, "dotted.key": 7, "dotted.key[0]": 8, "dotted.key[1]": 9,
		"dotted.key[1].in": 9, "dotted.key[1].line": 9,
		"cluster": 12, "cluster.name": 13,
		"nodes": 15, "nodes[0]": 15, "nodes[0].name": 16, "nodes[0].tls": 17, "nodes[0].tls.ca": 18,
		"nodes[1]": 20, "nodes[1].name": 21, "nodes[1].addr": 24,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for path, line := range map[string]int{"nodes[1].db": 20, "nodes[7].db": 15, "cluster.max_ttl": 12, "guard.poll": 0, "": 0} {
		if n := got.at(path); n != line {
			t.Errorf("at(%q) = %d; want %d", path, n, line)
		}
	}
}

func TestDeepTextsCostLittle(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", mostBytes), "a=" + strings.Repeat("[", mostBytes), "a=" + strings.Repeat("{b=", mostBytes/3),
		strings.Repeat("a.", mostBytes/2), "[" + strings.Repeat("a.", mostBytes/2),
	} {
		total := 0
		for path := range scanLines(text) {
			total += len(path)
		}
		if total > 4*mostBytes {
			t.Errorf("%.8s…: %d bytes of paths", text, total)
		}
	}
}

// The scanner finds the same keys as the library in every text that the library accepts;
// on others it only has to terminate.
func FuzzLines(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.toml", shipped} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Add("a = [[1, [2]], {b.c = 3}]\n[a1.\"b c\"]\nd=\"\"\"\"\"\"\"\"\n[[x]]\n[[x.y]]\nz=1")
	f.Fuzz(func(t *testing.T, text string) {
		got := scanLines(text)
		values := map[string]any{}
		if toml.Unmarshal([]byte(text), &values) != nil {
			return
		}
		for key := range values {
			if bare(key) == key && got[key] == 0 {
				t.Errorf("key %q has no line", key)
			}
		}
	})
}
