// Package e2e has only tests: the real program in a real terminal (tmux), on real
// redis-servers.
package e2e
