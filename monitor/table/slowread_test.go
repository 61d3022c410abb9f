package table

import (
	"testing"
	"time"
)

// A read takes long while this process or the server is stopped. It shortens no lock, and the next read
// is no extension.
func TestASlowReadMovesNoEnd(t *testing.T) {
	const ttl, late = 30 * time.Second, 900 * time.Millisecond
	for name, read := range map[string]time.Duration{"read as it is sent": 0, "read as it is answered": late} {
		r := newRig(5, ttl).first()
		r.pass(time.Hour)
		r.set("k", "a", ttl, 0, 1, 2)
		r.scanAll()
		end := r.lock("k").MajorityEnd()
		check := func(when string) {
			t.Helper()
			l := r.lock("k")
			if l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond || l.Extensions != 0 || r.records["k"].grant.end != r.Moment(l.HeldUntil()) {
				t.Errorf("%s: %s: ends %s later: %+v", name, when, l.HeldUntil().Sub(end), l)
			}
		}
		r.pass(2 * time.Second)
		for i := range 3 {
			sent := r.now
			r.pass(late)
			expires := r.servers[i]["k"].expires
			r.Read(i, sent, r.now, []Row{NewRow("k", "string", expires.Sub(sent.Add(read)).Milliseconds(), 1, "a")})
			r.Refresh(r.now)
			check("a slow read")
		}
		r.scanAll()
		check("the next read")
		// A holder's extension to a shorter TTL, read slowly.
		r.pass(2 * time.Second)
		r.set("k", "a", 10*time.Second, 0, 1, 2)
		short := r.now.Add(10 * time.Second)
		for i := range 3 {
			r.Read(i, r.now.Add(-late), r.now, []Row{NewRow("k", "string", short.Sub(r.now).Milliseconds(), 1, "a")})
		}
		r.Refresh(r.now)
		if l := r.lock("k"); l.HeldUntil().Sub(short) > 10*time.Millisecond {
			t.Errorf("%s: an extension to a shorter TTL is not seen: %+v", name, l)
		}
	}
}

// A lock that was first read slowly seems to end earlier than it does. Later reads tell its end better,
// one node after the other: nobody has extended it.
func TestABetterReadIsNoExtension(t *testing.T) {
	const ttl = 30 * time.Second
	r := newRig(5, 2*ttl).first()
	r.pass(time.Hour)
	r.set("k", "a", ttl, 0, 1, 2)
	end := r.now.Add(ttl)
	read := func(i int, late time.Duration) {
		r.now = r.now.Add(time.Millisecond)
		r.Read(i, r.now.Add(-late), r.now, []Row{NewRow("k", "string", end.Sub(r.now).Milliseconds(), 1, "a")})
		r.Refresh(r.now)
	}
	r.pass(time.Second)
	for i, late := range []time.Duration{900, 500, 300} {
		read(i, late*time.Millisecond)
	}
	for _, i := range []int{2, 0, 1} {
		r.pass(time.Second)
		read(i, 0)
	}
	if l := r.lock("k"); l.Extensions != 0 || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond || r.text("extended") != "" {
		t.Errorf("ends %s later: %+v", l.HeldUntil().Sub(end), l)
	}
	r.pass(time.Second)
	end = end.Add(5 * time.Second)
	for i := range 3 {
		read(i, 700*time.Millisecond)
	}
	if l := r.lock("k"); l.Extensions != 1 || r.text("extended") == "" {
		t.Errorf("an extension is not seen: %+v", l)
	}
	r.pass(time.Second)
	for i := range 3 {
		read(i, 0)
	}
	if l := r.lock("k"); l.Extensions != 1 || l.HeldUntil().Sub(end).Abs() > 10*time.Millisecond {
		t.Errorf("a better read after it: %+v", l)
	}
}
