package record

import "testing"

// Clients choose their tokens: many take "1".
func TestATokenIsHiddenAndSpoilsNoText(t *testing.T) {
	for _, c := range []struct{ text, token, want string }{
		{"held by s3cret-token until 12:01", "s3cret-token", "held by HASH until 12:01"},
		{"(s3cret-token), s3cret-token", "s3cret-token", "(HASH), HASH"},
		{"revoked on 1 of 5 nodes: held until 12:01:11", "1", "revoked on 1 of 5 nodes: held until 12:01:11"},
		{"lost its majority: cannot be extended", "a", "lost its majority: cannot be extended"},
		{"its majorityship", "majority", "its majorityship"},
	} {
		if got := withoutToken(c.text, c.token, "HASH"); got != c.want {
			t.Errorf("%q without %q: %q", c.text, c.token, got)
		}
	}
}
