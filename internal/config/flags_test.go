package config

import (
	"fmt"
	"testing"
)

// A TLS default, such as one --tls-ca for all, does not apply to an address without TLS.
func TestOneAuthorityForAMixedCluster(t *testing.T) {
	flags := Flags{Nodes: []string{"redis://10.0.0.1:6379", "rediss://10.0.0.2:6379", "/run/redis.sock", "10.0.0.3:6379"}, ServerName: "redis"}
	set, err := FromFlags(t.Context(), flags, env("HOME", "/"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for _, n := range set.Clusters[0].Nodes {
		got = append(got, n.TLS)
	}
	if fmt.Sprint(got) != "[false true false true]" {
		t.Errorf("TLS: %v", got)
	}
}
