package config

import (
	"context"
	"strings"
	"testing"
)

// A node takes missing keys from [defaults], but never a second source of its password.
func TestDefaultsHoldForNodesThatLackThem(t *testing.T) {
	c, err := loadText(t, `
[cluster]
max_ttl = "30s"
[defaults]
username = "ops"
password_env = "REDIS_PASSWORD"
db = 1
[defaults.tls]
[[nodes]]
name = "n1"
addr = "a.example.com:6379"
[[nodes]]
name = "n2"
addr = "rediss://b.example.com/2"
password_command = "echo other"
[[nodes]]
name = "n3"
addr = "rediss://app@c.example.com:6380"
`, env())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		addr, user, password string
		db                   int
	}{
		{"a.example.com:6379", "ops", secret, 1},
		{"b.example.com:6379", "ops", "other", 2},
		{"c.example.com:6380", "app", secret, 1},
	} {
		o := optionsOf(&c.Nodes[i])
		if o.Addr != want.addr || o.Username != want.user || o.Password != want.password || o.DB != want.db || o.TLSConfig == nil || !c.Nodes[i].TLS {
			t.Errorf("%s: %s as %q, db %d, TLS %v, right password %v", c.Nodes[i].Name, o.Addr, o.Username, o.DB, o.TLSConfig != nil, o.Password == want.password)
		}
	}
	seen := map[string]int{}
	for _, s := range c.Settings {
		if seen[s.Key]++; seen[s.Key] > 1 {
			t.Errorf("%s is listed twice", s.Key)
		}
		if strings.Contains(s.Value, secret) || strings.Contains(s.Value, "other") {
			t.Errorf("%s shows a secret", s.Key)
		}
	}
}

// Without a max TTL, the nodes of the command line can be watched but not guarded.
func TestFlags(t *testing.T) {
	flags := Flags{Nodes: []string{"127.0.0.1:7001", "rediss://127.0.0.1:7002", "/run/redis.sock"}, Username: "ops", Cluster: "orders"}
	set, err := FromFlags(context.Background(), flags, env(PasswordVariable, secret), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := set.Clusters[0]
	if c.Cluster.Name != "orders" || c.Guardable() == nil || len(c.Nodes) != 3 || c.Nodes[0].TLS || !c.Nodes[1].TLS {
		t.Errorf("%+v", c)
	}
	for _, n := range c.Nodes {
		if o := optionsOf(&n); o.Username != "ops" || o.Password != secret {
			t.Errorf("%s: user %q", n.Name, o.Username)
		}
	}
	for _, c := range []*Config{nil, {}, c} {
		if env := c.ChildEnv([]string{PasswordVariable + "=" + secret, URLPasswordVariable + "=" + secret, "A=b"}); len(env) != 1 || env[0] != "A=b" {
			t.Errorf("a child gets %q", env)
		}
	}
	flags.MaxTTL = "30s"
	if set, err = FromFlags(context.Background(), flags, env(PasswordVariable, secret), Options{}); err != nil || set.Clusters[0].Guardable() != nil {
		t.Errorf("with a max TTL: %v", err)
	}
}
