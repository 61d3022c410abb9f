package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/internal/config"
	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/boot"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// BootLook is how one node starts, as far as it can be seen.
type BootLook struct {
	Node   *redlock.Node
	Method fences.Method
	Check  boot.Check
	Err    error
}

// LookAtBoots looks at several nodes at the same time, and at the files of those of this
// host, or at one file instead.
func LookAtBoots(ctx context.Context, cfg *config.Config, looks []BootLook, file string) {
	memory, err := Remembered(cfg)
	lookAtBoots(ctx, memory, err, looks, file)
}

func lookAtBoots(ctx context.Context, memory map[string]restartguard.Fact, memoryErr error, looks []BootLook, file string) {
	var all sync.WaitGroup
	for i := range looks {
		l := &looks[i]
		all.Go(crash.Safe(func() {
			if file != "" {
				l.Check, l.Err = boot.CheckFile(ctx, l.Node, l.Method, file)
				return
			}
			var known *restartguard.Fact
			if m, ok := memory[l.Node.Name()]; ok && m.Addr == l.Node.Addr() {
				known = &m
			}
			l.Check, l.Err = boot.CheckNode(ctx, l.Node, l.Method, known)
			if memoryErr != nil {
				l.Check.Because = append(l.Check.Because, safetext.Printable(memoryErr.Error()))
			}
		}))
	}
	all.Wait()
}

// boots is how the nodes start, as last seen.
type boots struct {
	sights map[string]finding.BootSight // by node
	files  map[string][]string          // of this host that were read, by node
	missed []string                     // nodes that did not answer
}

// bootSights returns how the nodes start: by the files of those on this host, by [SeenFile] in the
// folder of the configuration for others, and by what a guard on this host remembers. Of a node that
// does not answer it keeps what was seen before: no answer shows no change.
func bootSights(ctx context.Context, s Spec, before boots) boots {
	looks := make([]BootLook, len(s.Nodes))
	for i, n := range s.Nodes {
		looks[i] = BootLook{Node: n, Method: s.Guard.Methods[n.Name()]}
		if looks[i].Method.Kind == fences.None {
			looks[i].Method = fences.Method{} // only its data matter
		}
	}
	memory, err := remembered(s.Memory)
	lookAtBoots(ctx, memory, err, looks, "")
	now := boots{sights: make(map[string]finding.BootSight, len(looks)), files: make(map[string][]string, len(looks))}
	for i, l := range looks {
		name := l.Node.Name()
		now.files[name] = l.Check.Files
		if errors.Is(l.Err, restartguard.ErrUnreachable) {
			now.missed = append(now.missed, name)
			if sight, ok := before.sights[name]; ok {
				now.sights[name], now.files[name] = sight, before.files[name]
				continue
			}
		}
		m, ok := memory[name]
		ok = ok && m.Addr == l.Node.Addr()
		sight := finding.BootSight{Guarded: ok, RunID: m.RunID, DataKnown: l.Check.Data.Known, DataWeak: l.Check.Data.Weak}
		switch {
		case ok && m.Known && m.Verified:
			sight.Started = announce.BootFenced
		case ok && m.Known:
			sight.Started = announce.BootUnfenced
		}
		if method := s.Guard.Methods[name]; method.Kind != fences.None {
			looks[i].form(&sight, s.Folder, method)
		}
		now.sights[name] = sight
	}
	return now
}

// form sets how the node starts: firm only if the files or the command line show it.
func (l *BootLook) form(s *finding.BootSight, folder string, method fences.Method) {
	v := l.Check.Verdict
	if seen, ok := ReadSeen(folder, l.Node.Name(), method); ok && (l.Err != nil || v.Boot == boot.Unknown || v.Form == boot.FormUnknown) {
		v, l.Err, l.Check.ByMemory = seen, nil, false
	}
	switch {
	case l.Err != nil || v.Form == boot.FormUnknown:
	case v.Boot == boot.Fenced:
		s.Form, s.ByMemory = finding.BootFirm, l.Check.ByMemory
	case v.Boot == boot.Fragile:
		s.Form = finding.BootFragile
	case v.Boot == boot.Unfenced:
		s.Form = finding.BootUnfenced
	}
	if s.Form == finding.BootFragile || s.Form == finding.BootUnfenced {
		s.Evidence = strings.Join(v.Because, "; ")
		if len(v.Do) > 0 {
			do := strings.Join(v.Do, "; ")
			s.Remedy = strings.ToUpper(do[:1]) + do[1:] + ". redlockctl node boot-fence " + safetext.Escape(l.Node.Name()) + " prints the lines."
		}
	}
}

const (
	// bootsEvery is how often the nodes are asked again how they start; filesEvery is how often
	// their files on this host are looked at for a change.
	bootsEvery = 30 * time.Second
	filesEvery = 2 * time.Second
)

// followBoots tells a monitor how the nodes start, again and again until ctx ends: soon after one of the
// files on this host that were read has changed, and after a node that did not answer does.
func followBoots(ctx context.Context, s Spec, mon *observe.Monitor, seen boots) {
	was, looked := seen.changes(), time.Now()
	for sleep.For(ctx, filesEvery) == nil {
		if time.Since(looked) < bootsEvery && was == seen.changes() && !seen.back(mon.Snapshot()) {
			continue
		}
		seen = bootSights(ctx, s, seen)
		mon.Booted(seen.sights)
		was, looked = seen.changes(), time.Now()
	}
}

// back reports whether a node answers that did not.
func (b boots) back(s *monitor.Snapshot) bool {
	return slices.ContainsFunc(b.missed, func(name string) bool {
		n := s.Node(name)
		return n != nil && n.State.Answers()
	})
}

// changes is a text that changes with the files.
func (b boots) changes() string {
	var text strings.Builder
	for _, node := range slices.Sorted(maps.Keys(b.files)) {
		for _, f := range b.files[node] {
			if is, err := os.Stat(f); err == nil {
				fmt.Fprintln(&text, f, is.Size(), is.ModTime().UnixNano())
			}
		}
	}
	return text.String()
}

// SeenFile is, in a folder for each node beside a configuration that init has written, what
// install.sh has read in the server's files.
const SeenFile = "seen.conf"

// ReadSeen is how a node starts by its [SeenFile]; false: there is none.
func ReadSeen(folder, node string, method fences.Method) (boot.Verdict, bool) {
	if folder == "" || filepath.Base(node) != node {
		return boot.Verdict{}, false
	}
	seen, err := os.ReadFile(filepath.Join(folder, node, SeenFile))
	if err != nil {
		return boot.Verdict{}, false
	}
	return AssessSeen(string(seen), method), true
}

// Examine watches the cluster for this long, and for as long as the first view
// takes beyond it, if that is not bounded.
func Examine(ctx context.Context, cfg *config.Config, span time.Duration, of Aim) (s *monitor.Snapshot, err error) {
	err = Watch(ctx, cfg, of, func(mon *observe.Monitor) error {
		began := time.Now()
		if _, err := Decided(ctx, mon, of); err != nil {
			return err
		}
		_ = sleep.For(ctx, span-time.Since(began))
		s = mon.Snapshot()
		return ctx.Err()
	})
	return s, err
}

// AssessSeen is how a node starts by the text of a [SeenFile].
func AssessSeen(seen string, method fences.Method) boot.Verdict {
	var names []string
	texts := map[string]string{}
	for line := range strings.Lines(seen) {
		line = strings.TrimRight(line, "\r\n")
		if name, ok := strings.CutPrefix(line, "# file: "); ok {
			names = append(names, name)
			texts[name] = ""
		} else if len(names) > 0 {
			texts[names[len(names)-1]] += line + "\n"
		}
	}
	if len(names) == 0 {
		return boot.Verdict{Because: []string{"install.sh has read no file"}}
	}
	read := func(pattern string) (files []boot.File, err error) {
		for _, name := range names {
			if ok, _ := path.Match(pattern, name); ok || name == pattern {
				files = append(files, boot.File{Path: name, Text: texts[name]})
			}
		}
		if len(files) == 0 && !strings.ContainsAny(pattern, "*?[") {
			err = errors.New("install.sh has not read " + safetext.Escape(pattern))
		}
		return files, err
	}
	return boot.Assess(boot.Text{Main: names[0], Dir: path.Dir(names[0]), Read: read}, method)
}
