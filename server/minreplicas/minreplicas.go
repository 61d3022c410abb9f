// Package minreplicas reports whether a master refuses writes. The guard, the monitor and
// node wait all use it.
package minreplicas

// Accepts reports whether a master accepts writes, from its min-replicas-to-write, its
// min-replicas-max-lag and the number of good replicas. With fewer than required it answers
// NOREPLICAS, whether the setting is meant as a fence or for replicas.
func Accepts(minReplicas, maxLag, good int64) bool {
	return minReplicas <= 0 || maxLag <= 0 || good >= minReplicas
}
