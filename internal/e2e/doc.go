// Package e2e holds only tests: the real program in a real terminal (tmux), on
// real redis-servers.
package e2e
