package watch_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/restartguard"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/fences"
)

func TestHand(t *testing.T) {
	t.Run("hold closes with the value that stands for it, and open opens", func(t *testing.T) {
		s := labtest.Servers(t, 1, "--min-replicas-max-lag", "0")[0]
		if err := oneshot.Cordon(t.Context(), s.Node(), fences.Method{}); err != nil {
			t.Fatal(err)
		}
		if writes(t, s) {
			t.Fatal("a held node accepts writes")
		}
		if got := fmt.Sprint(do(t, s, "CONFIG", "GET", "min-replicas-to-write")); !strings.Contains(got, "2147483646") {
			t.Fatalf("min-replicas-to-write is %s", got)
		}
		if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); err != nil {
			t.Fatal(err)
		}
		if !writes(t, s) {
			t.Fatal("an opened node refuses writes")
		}
		if n := do(t, s, "DBSIZE"); n != int64(1) && n != int64(2) { // k, and a canary for 1 ms
			t.Fatalf("%v keys", n)
		}
	})
	t.Run("it is closed as a replica too", func(t *testing.T) {
		ss := labtest.Servers(t, 2, "--replica-read-only", "no")
		if err := oneshot.Cordon(t.Context(), ss[0].Node(), fences.Method{}); err != nil {
			t.Fatal(err)
		}
		host, port, _ := net.SplitHostPort(ss[1].Addr())
		do(t, ss[0], "REPLICAOF", host, port)
		if v, err := ss[0].Do(t.Context(), "SET", "k", "v", "PX", 1000); err == nil {
			t.Fatalf("a cordoned node accepts writes as a replica: %v", v)
		}
	})
	t.Run("open opens what a boot fence closed", func(t *testing.T) {
		s := labtest.Servers(t, 1, lab.BootFence...)[0]
		if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); err != nil || !writes(t, s) {
			t.Fatalf("open: %v", err)
		}
	})
	t.Run("a node that is down is not reached", func(t *testing.T) {
		s := labtest.Servers(t, 1)[0]
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := oneshot.Cordon(t.Context(), s.Node(), fences.Method{}); !errors.Is(err, restartguard.ErrUnreachable) {
			t.Fatalf("hold: %v", err)
		}
		if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); !errors.Is(err, restartguard.ErrUnreachable) {
			t.Fatalf("open: %v", err)
		}
	})
	for name, args := range map[string][]string{
		"without CONFIG":     aclUser("-config"),
		"without CONFIG SET": aclUser("-config|set"),
		"without CONFIG GET": aclUser("-config|get"),
	} {
		t.Run(name+" it is denied", func(t *testing.T) {
			s := labtest.Servers(t, 1, args...)[0]
			node := named(t, redis.Options{Addr: s.Addr(), Username: "guard", Password: "secret"})
			if err := oneshot.Cordon(t.Context(), node, fences.Method{}); !errors.Is(err, restartguard.ErrDenied) {
				t.Fatalf("hold: %v", err)
			}
			if err := oneshot.RejoinNow(t.Context(), node, fences.Method{}); !errors.Is(err, restartguard.ErrDenied) {
				t.Fatalf("open: %v", err)
			}
			if !writes(t, s) {
				t.Fatal("closed all the same")
			}
		})
	}
	t.Run("with a wrong password it is denied, and the password is not told", func(t *testing.T) {
		s := labtest.Servers(t, 1, "--requirepass", "right")[0]
		node := named(t, redis.Options{Addr: s.Addr(), Password: "hunter2"})
		for _, err := range []error{oneshot.Cordon(t.Context(), node, fences.Method{}), oneshot.RejoinNow(t.Context(), node, fences.Method{})} {
			if !errors.Is(err, restartguard.ErrDenied) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("error %v", err)
			}
		}
	})
	t.Run("where CONFIG has another name it is denied", func(t *testing.T) {
		s := labtest.Servers(t, 1, "--rename-command", "CONFIG", "SETTINGS")[0]
		if err := oneshot.Cordon(t.Context(), s.Node(), fences.Method{}); !errors.Is(err, restartguard.ErrDenied) {
			t.Fatalf("hold: %v", err)
		}
	})
	t.Run("a hold stands where the canary may not be written", func(t *testing.T) {
		s := labtest.Servers(t, 1, aclUser("-set")...)[0]
		node := named(t, redis.Options{Addr: s.Addr(), Username: "guard", Password: "secret"})
		if err := oneshot.Cordon(t.Context(), node, fences.Method{}); err != nil || writes(t, s) {
			t.Fatalf("hold: %v", err)
		}
		if err := oneshot.RejoinNow(t.Context(), node, fences.Method{}); err != nil || !writes(t, s) {
			t.Fatalf("open: %v", err)
		}
	})
	t.Run("a node that refuses writes for another reason is not open", func(t *testing.T) {
		s := labtest.Servers(t, 1, "--maxmemory", "1")[0]
		if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); !errors.Is(err, oneshot.ErrNotServing) {
			t.Fatalf("open: %v", err)
		}
	})
	t.Run("a replica that does not exist is asked for no more after open", func(t *testing.T) {
		s := labtest.Servers(t, 1, "--min-replicas-to-write", "1")[0]
		if err := oneshot.RejoinNow(t.Context(), s.Node(), fences.Method{}); err != nil || !writes(t, s) {
			t.Fatalf("open: %v", err)
		}
	})
}
