package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSeveralClustersInOneFile(t *testing.T) {
	_, path := place(t, "testdata/good/clusters.toml")
	set, err := LoadAll([]string{path}, env())
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Names(); !slices.Equal(got, []string{"test", "prod"}) || set.Default != "prod" {
		t.Fatalf("clusters %q, default %q", got, set.Default)
	}
	small, prod := set.Clusters[0], set.Clusters[1]
	if small.Cluster.ReadOnly || !prod.Cluster.ReadOnly {
		t.Error("read_only is not each cluster's own")
	}
	if small.Redlock.Retries != 3 || prod.Redlock.Retries != 5 {
		t.Error("[redlock] is not each cluster's own")
	}
	if prod.Guard.Delay != time.Minute*101/100+100*time.Millisecond || small.Guard.Delay != 10*time.Second*101/100+50*time.Millisecond {
		t.Errorf("delays %s and %s", prod.Guard.Delay, small.Guard.Delay)
	}
	if small.Guard.StateDir != "/home/ops/.local/state/redlockctl/guard/test" || prod.Guard.StateDir != "/home/ops/.local/state/redlockctl/guard/prod" {
		t.Errorf("state directories %q and %q", small.Guard.StateDir, prod.Guard.StateDir)
	}
	if small.TUI.FPS != 20 || prod.TUI.FPS != 20 || small.Audit != prod.Audit {
		t.Error("[tui] and [audit] are not common")
	}
	if len(prod.Nodes) != 3 || len(small.Nodes) != 1 || optionsOf(&prod.Nodes[0]).Password != secret || !prod.Nodes[0].TLS {
		t.Errorf("nodes %v and %v", small.Nodes, prod.Nodes)
	}
	if masters, err := prod.Masters(); err != nil || len(masters) != 3 {
		t.Errorf("Masters = %v, %v", masters, err)
	}
}

func TestChoose(t *testing.T) {
	set := &Set{}
	for _, name := range []string{"test", "prod"} {
		set.Clusters = append(set.Clusters, &Config{Cluster: Cluster{Name: name}})
	}
	if c, err := set.Choose("test"); err != nil || c.Cluster.Name != "test" {
		t.Errorf("by name: %v, %v", c, err)
	}
	if _, err := set.Choose(""); !errors.Is(err, ErrNoCluster) || !strings.Contains(err.Error(), "test, prod") {
		t.Errorf("none named: %v; want all names", err)
	}
	if _, err := set.Choose("prdo"); !errors.Is(err, ErrNoCluster) || !strings.Contains(err.Error(), "did you mean prod?") {
		t.Errorf("misspelt: %v", err)
	}
	set.Default = "prod"
	if c, err := set.Choose(""); err != nil || c.Cluster.Name != "prod" {
		t.Errorf("the default: %v, %v", c, err)
	}
	only := &Set{Clusters: set.Clusters[:1]}
	if c, err := only.Choose(""); err != nil || c.Cluster.Name != "test" {
		t.Errorf("the only one: %v, %v", c, err)
	}
	if _, err := only.Choose("prod"); !errors.Is(err, ErrNoCluster) {
		t.Errorf("another name than the only one's: %v", err)
	}
}

func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, []byte(text), 0o644)
		return path
	}
	named := func(name string) string {
		return strings.Replace(least, "[cluster]", "[cluster]\nname = \""+name+"\"", 1)
	}
	a, b := file("a.toml", named("a")), file("b.toml", "default_cluster = \"b\"\n"+named("b"))

	set, err := LoadAll([]string{a, b}, env())
	if err != nil || !slices.Equal(set.Names(), []string{"a", "b"}) || set.Default != "b" || set.Clusters[1].Path != b {
		t.Fatalf("two files: %+v, %v", set, err)
	}
	if w := strings.Join(set.Clusters[1].Warnings, "\n"); !strings.Contains(w, `state_dir is by default that of the cluster "a"`) {
		t.Errorf("the directory in common is not warned of: %q", w)
	}
	_, err = LoadAll([]string{a, file("c.toml", named("a"))}, env())
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "c.toml:2:") || !strings.Contains(err.Error(), "a.toml:2") {
		t.Errorf("one name twice: %v; want both places", err)
	}
	_, err = LoadAll([]string{file("d.toml", "max_ttl = 1\n"), file("e.toml", "[cluster\n")}, env())
	var e *Error
	if !errors.As(err, &e) || e.Problems[0].File != filepath.Join(dir, "d.toml") || !strings.Contains(err.Error(), "e.toml:2") {
		t.Errorf("two bad files: %v; want the problems of both", err)
	}
	if _, err := LoadAll([]string{a, filepath.Join(dir, "none.toml")}, env()); !errors.Is(err, ErrNotFound) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := LoadAll(nil, env()); !errors.Is(err, ErrNotFound) {
		t.Errorf("no file: %v", err)
	}
}

func TestSettingsSayFromWhere(t *testing.T) {
	_, path := place(t, "testdata/good/clusters.toml")
	set, err := LoadAll([]string{path}, env("REDLOCKCTL_READ_ONLY", "1", "NO_COLOR", "1"))
	if err != nil {
		t.Fatal(err)
	}
	find := func(c *Config, key string) Setting {
		t.Helper()
		i := slices.IndexFunc(c.Settings, func(s Setting) bool { return s.Key == key })
		if i < 0 {
			t.Fatalf("no setting %s", key)
		}
		s := c.Settings[i]
		s.File = ""
		return s
	}
	small, prod := set.Clusters[0], set.Clusters[1]
	for _, tt := range []struct {
		of   *Config
		want Setting
	}{
		{prod, Setting{Key: "[clusters.prod] max_ttl", Value: "1m0s", Source: FromFile, Line: 10}},
		{prod, Setting{Key: "[clusters.prod.redlock] retries", Value: "5", Source: FromFile, Line: 15}},
		{small, Setting{Key: "[clusters.test.redlock] retries", Value: "3", Source: FromDefault}},
		{small, Setting{Key: "[clusters.test.guard] delay", Value: "10.15s", Source: FromDefault}},
		{prod, Setting{Key: "[clusters.prod.guard] delay_margin", Value: "100ms", Source: FromFile, Line: 18}},
		{prod, Setting{Key: "[clusters.prod.guard] delay", Value: "1m0.7s", Source: FromDefault}},
		{small, Setting{Key: "[clusters.test.guard] state_dir", Value: small.Guard.StateDir, Source: FromDefault}},
		{small, Setting{Key: "[clusters.test] read_only", Value: "true", Source: "REDLOCKCTL_READ_ONLY"}},
		{small, Setting{Key: "[tui] color", Value: "never", Source: "NO_COLOR"}},
		{small, Setting{Key: "[tui] fps", Value: "20", Source: FromFile, Line: 36}},
		{prod, Setting{Key: `[[clusters.prod.nodes]] "n1" password_env`, Value: "$REDIS_PASSWORD", Source: FromFile, Line: 24}},
		{prod, Setting{Key: "[audit] path", Value: prod.Audit.Path, Source: FromDefault}},
	} {
		if got := find(tt.of, tt.want.Key); got != tt.want {
			t.Errorf("got  %+v\nwant %+v", got, tt.want)
		}
	}
	for _, c := range set.Clusters {
		for _, s := range c.Settings {
			if strings.Contains(s.Value, secret) {
				t.Errorf("%s shows the secret", s.Key)
			}
			if other := map[*Config]string{small: "[clusters.prod", prod: "[clusters.test"}[c]; strings.Contains(s.Key, other) {
				t.Errorf("%s has a setting of the other one: %s", c.Cluster.Name, s.Key)
			}
		}
	}
}
