package config

import "testing"

func TestNearestKey(t *testing.T) {
	known := []string{"name", "addr", "db", "username", "password_env", "retry_delay", "max_ttl"}
	for word, want := range map[string]string{
		"adress": "", "address": "addr", "user": "username", "n": "", "adr": "addr", "nmae": "name", "Name": "name", "maxttl": "max_ttl", "max-ttl": "max_ttl",
		"retrydelay": "retry_delay", "retry_dely": "retry_delay", "user_name": "username", "dbs": "db", "zz": "", "": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q; want %q", word, got, want)
		}
	}
}
