package app

import (
	"context"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/config"
	"redlockctl/internal/crash"
	"redlockctl/internal/safetext"
	"redlockctl/internal/sleep"
	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// BootLook is how one node starts, as far as it can be seen.
type BootLook struct {
	Node   *redlock.Node
	Method restartguard.Method
	Check  restartguard.BootCheck
	Err    error
}

// LookAtBoots looks at several nodes at the same time, and at the files of those of this
// host, or at one file instead.
func LookAtBoots(ctx context.Context, cfg *config.Config, looks []BootLook, file string) {
	memory, memoryErr := Remembered(cfg)
	var all sync.WaitGroup
	for i := range looks {
		l := &looks[i]
		all.Go(crash.Safe(func() {
			if file != "" {
				l.Check, l.Err = restartguard.CheckBootFile(ctx, l.Node, l.Method, file)
				return
			}
			var known *restartguard.Remembered
			if m, ok := memory[l.Node.Name()]; ok && m.Addr == l.Node.Addr() {
				known = &m
			}
			l.Check, l.Err = restartguard.CheckBoot(ctx, l.Node, l.Method, known)
			if memoryErr != nil {
				l.Check.Because = append(l.Check.Because, safetext.Printable(memoryErr.Error()))
			}
		}))
	}
	all.Wait()
}

// BootSights are what findings need to know of how the nodes start. It looks at
// them, and at the files of those of this host.
func BootSights(ctx context.Context, cfg *config.Config) map[string]finding.BootSight {
	var looks []BootLook
	for _, name := range NodeNames(cfg) {
		if n, method, err := NodeOf(cfg, name); err == nil && method.Kind != restartguard.MethodNone {
			looks = append(looks, BootLook{Node: n, Method: method})
		}
	}
	LookAtBoots(ctx, cfg, looks, "")
	memory, _ := Remembered(cfg)
	sights := make(map[string]finding.BootSight, len(looks))
	for _, l := range looks {
		m, ok := memory[l.Node.Name()]
		s := finding.BootSight{Guarded: ok && m.Addr == l.Node.Addr(), StartedUnfenced: l.Check.StartedUnfenced}
		// Firm is only what the files or the command line show.
		switch {
		case l.Err != nil:
		case l.Check.Boot == restartguard.BootFenced && l.Check.Form != restartguard.FormUnknown:
			s.Form = finding.BootFirm
		case l.Check.Boot == restartguard.BootFragile:
			s.Form = finding.BootFragile
		case l.Check.Boot == restartguard.BootUnfenced && l.Check.Form != restartguard.FormUnknown:
			s.Form = finding.BootUnfenced
		}
		if s.Form == finding.BootFragile || s.Form == finding.BootUnfenced {
			s.Evidence = strings.Join(l.Check.Because, "; ")
			if len(l.Check.Do) > 0 {
				do := strings.Join(l.Check.Do, "; ")
				s.Remedy = strings.ToUpper(do[:1]) + do[1:] + ". redlockctl node boot-fence " + safetext.Escape(l.Node.Name()) + " prints the lines."
			}
		}
		sights[l.Node.Name()] = s
	}
	return sights
}

// Examine watches the cluster for this long, and for as long as the first view
// takes beyond it, if that is not bounded.
func Examine(ctx context.Context, cfg *config.Config, span time.Duration, of Aim) (s *monitor.Snapshot, err error) {
	err = Watch(ctx, cfg, of, func(mon *observe.Monitor) error {
		mon.Booted(BootSights(ctx, cfg))
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
