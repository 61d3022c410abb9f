package minreplicas

import "fmt"

// StopsScripts reports whether a server of this version ("6.2.6") refuses writes of scripts
// too. Versions before 6.0.17, and 6.2 before 6.2.7, do not. It returns true if the version
// cannot be parsed.
func StopsScripts(version string) bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return true
	}
	switch {
	case major != 6:
		return major > 6
	case minor == 0:
		return patch >= 17
	case minor == 2:
		return patch >= 7
	}
	return true
}
