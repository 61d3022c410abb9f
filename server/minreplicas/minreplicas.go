// Package minreplicas knows by what a master refuses writes, in the one place that the
// guard, the monitor and whoever waits for a node ask.
package minreplicas

// Accepts reports whether a master accepts writes, by its min-replicas-to-write and
// min-replicas-max-lag, and by how many replicas it finds good: with fewer than it
// wants it answers NOREPLICAS, whatever the number is meant for, a fence or replicas.
func Accepts(minReplicas, maxLag, good int64) bool {
	return minReplicas <= 0 || maxLag <= 0 || good >= minReplicas
}
