//go:build !race

package cli

var concurrentScripts []string // all
