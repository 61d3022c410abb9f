package app

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/config"
	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
)

// How a node lost copies that only a guard saw to be lost is told from the record, if it is there.
func TestLossesByTheRecord(t *testing.T) {
	cfg := &config.Config{}
	cfg.Cluster.MaxTTL = time.Hour
	cfg.Record.Path = filepath.Join(t.TempDir(), "record.db")
	unknown := "Copies were lost, as a guard saw" + finding.HowUnknown + ". Their holders"
	tell := func() string {
		s := monitortest.Safe(time.Now().Add(time.Second))
		l := monitortest.LockOf(s.At, "job:1", monitor.LockLostMajority, monitortest.TokenA, "9 - 9 9 9")
		monitortest.Change(&l, func(c *monitor.Copy) {
			*c = monitor.Copy{State: monitor.CopyLost, Type: "string", Token: l.Holder, Len: 22, Expires: s.At.Add(9 * time.Second), Cause: monitor.LostUnseen}
		}, 1)
		s.Locks = monitor.NewLocks(l)
		f := &monitor.Finding{Consequence: unknown}
		found := []*monitor.Finding{f}
		TellLosses(cfg, s, found)
		if f.Consequence != unknown {
			t.Error("the snapshot was changed")
		}
		return found[0].Consequence
	}
	if got := tell(); got != unknown {
		t.Errorf("without a record: %q", got)
	}
	from := &aPast{state: monitor.NodeServing}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		record.New(record.Options{Path: cfg.Record.Path, By: "test"}).Run(ctx, from)
	}()
	defer func() { stop(); <-done }()
	from.mu.Lock() // a restart that is no cause
	from.events = []monitor.Event{{Seq: 1, At: time.Now(), Kind: "restart", Node: "n2", Level: monitor.LevelAlarm, Text: safetext.New("n2 restarted: " + monitor.NoLoss)}}
	from.mu.Unlock()
	from.becomes(monitor.NodeServing, "restart")
	got := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got = tell(); got != unknown {
			break
		}
	}
	if strings.Count(got, "n2 restart at ") != 1 || !strings.HasPrefix(got, "Copies were lost, as a guard saw; by the record here: n2 restart at ") || !strings.HasSuffix(got, ". Their holders") {
		t.Errorf("%q", got)
	}
}
