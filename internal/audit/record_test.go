package audit

import "testing"

// A removal found nothing if a node answered so, and none had a copy: of nodes that all failed nothing is known.
func TestFoundNothing(t *testing.T) {
	for detail, want := range map[string]bool{
		"n1 absent, n2 absent, n3 absent":              true,
		"n1 absent, n2 failed: connection refused":     true,
		"n1 absent, n2 ok, n3 absent":                  false,
		"n1 absent, n2 held":                           false,
		"n1 failed: timeout, n2 failed: timeout":       false,
		"its holder may rely on it until 12:00; n1 ok": false,
		"": false,
	} {
		if got := (Record{Detail: detail}).FoundNothing(); got != want {
			t.Errorf("%q: %v", detail, got)
		}
	}
}
