package main

import (
	"flag"
	"os"
	"runtime/pprof"
)

// wanted is what a benchmark is asked for by flags.
type wanted struct {
	quick   bool
	only    string // a scenario or part; empty: all
	server  string // the path of redis-server
	json    string // a file for what is measured
	profile string // a file for a CPU profile
}

// flags are those that all benchmarks of locks have; parts are what can be measured alone.
func (w *wanted) flags(name, parts string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ExitOnError)
	fs.BoolVar(&w.quick, "quick", false, "few short rounds, of few locks: under two minutes")
	fs.StringVar(&w.server, "redis-server", "redis-server", "path of redis-server")
	fs.StringVar(&w.json, "json", "", "write what is measured as JSON to this file too")
	fs.StringVar(&w.only, "only", "", "one part: "+parts)
	fs.StringVar(&w.profile, "cpuprofile", "", "write a CPU profile of this process to this file; of lock, of redlockctl alone")
	return fs
}

// rounds is how many rounds there are.
func (w *wanted) rounds(quick, whole int) int {
	if w.quick {
		return quick
	}
	return whole
}

// wants reports whether a part is measured.
func (w *wanted) wants(part string) bool { return w.only == "" || w.only == part }

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
