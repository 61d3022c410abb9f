package operator

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/restartguard"
)

// A guard never waits for the audit log, neither for one that hangs nor for one that
// fails. Its actions are written later, in order, with the loss as their reason.
func TestRecorder(t *testing.T) {
	closed := restartguard.Event{Node: "n1", Kind: "fenced", Text: "fenced"}
	t.Run("a log that fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var written []audit.Record
			var told []string
			var full atomic.Bool
			full.Store(true)
			r := recordGuard(func(rec audit.Record) error {
				if full.Load() {
					return errors.New("no space left")
				}
				written = append(written, rec)
				return nil
			}, func(err error) { told = append(told, fmt.Sprint(err)) })
			r.Take("shop", restartguard.Event{Node: "n1", Kind: "restart", Text: "restarted"})
			r.Take("shop", closed)
			r.Take("shop", restartguard.Event{Node: "n2", Kind: "reachable", Text: "answers again"})
			r.Take("shop", restartguard.Event{Node: "n1", Kind: "rejoined", Text: "rejoined"})
			time.Sleep(10 * recordAgain)
			synctest.Wait()
			full.Store(false)
			time.Sleep(2 * recordAgain)
			synctest.Wait()
			r.Take("shop", restartguard.Event{Node: "n1", Kind: "cordoned", Text: "cordoned"})
			r.Close()
			var lines []string
			for _, w := range written {
				if !strings.HasPrefix(w.Actor, "guard@") || w.Cluster != "shop" || w.Phase != audit.Done || w.ID == "" {
					t.Errorf("%+v", w)
				}
				lines = append(lines, w.Act+" "+w.Target+": "+w.Reason+": "+w.Detail)
			}
			want := "node fenced n1: restarted: fenced; node rejoined n1: restarted: rejoined; node cordoned n1: : cordoned"
			if got := strings.Join(lines, "; "); got != want {
				t.Errorf("written: %s", got)
			}
			if got := strings.Join(told, "; "); got != "no space left; <nil>" {
				t.Errorf("told: %s", got)
			}
		})
	})
	t.Run("a log that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang, told := make(chan struct{}), ""
			r := recordGuard(func(audit.Record) error { <-hang; return nil }, func(err error) { told = fmt.Sprint(err) })
			began := time.Now()
			for range 2 * mostUnwritten {
				r.Take("shop", closed)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("the guard waited for %s", took)
			}
			r.Close()
			if took := time.Since(began); took > recordEnd {
				t.Errorf("the end took %s", took)
			}
			if want := fmt.Sprint(2 * mostUnwritten); !strings.Contains(told, want) {
				t.Errorf("told: %s", told)
			}
			close(hang)
		})
	})
}
