package main

import (
	"flag"
	"os"
	"runtime/pprof"
)

// wanted is what a benchmark is asked for by flags.
type wanted struct {
	quick          bool
	only           string // a scenario or part; empty: all
	server         string // the path of redis-server
	json, markdown string // files to write too
	profile        string // a file for a CPU profile
}

// flags are those that all benchmarks of servers have; quick says what it means.
func (w *wanted) flags(name, quick string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ExitOnError)
	fs.BoolVar(&w.quick, "quick", false, quick)
	fs.StringVar(&w.server, "redis-server", "redis-server", "path of redis-server")
	fs.StringVar(&w.json, "json", "", "write the figures as JSON to this file too")
	fs.StringVar(&w.markdown, "markdown", "", "write the table as Markdown to this file too")
	return fs
}

// partFlags are those of a benchmark of several parts.
func (w *wanted) partFlags(fs *flag.FlagSet, only, profile string) {
	fs.StringVar(&w.only, "only", "", only)
	fs.StringVar(&w.profile, "cpuprofile", "", profile)
}

// startProfile begins the CPU profile, if one is wanted.
func (w *wanted) startProfile() (stop func(), err error) {
	if w.profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(w.profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}
