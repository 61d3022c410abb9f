package minreplicas

import "testing"

func TestScriptsMeetTheFenceSince(t *testing.T) {
	for version, want := range map[string]bool{
		"5.0.14": false, "6.0.16": false, "6.0.17": true, "6.0.20": true, "6.2.0": false, "6.2.6": false, "6.2.7": true,
		"6.3.4": true, "7.0.15": true, "8.0.2": true, "9.0.0": true, "": true, "unknown": true,
	} {
		if got := StopsScripts(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}
