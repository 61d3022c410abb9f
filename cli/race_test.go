//go:build race

package cli

// concurrentScripts are the scripts that the race detector runs: those of commands that
// stay. It makes each start of the program several times as slow, and the scripts start it
// hundreds of times; without it, all of them run.
var concurrentScripts = []string{"guard_daemon", "guard_two", "history", "keep", "run", "watch", "who"}
