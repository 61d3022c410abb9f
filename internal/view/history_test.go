package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
)

// Of a token that still holds the lock, or that events name, the holders and the events have
// the same short form as the list of locks: its hash looks like another token.
func TestAHolderHasOneName(t *testing.T) {
	s := monitortest.Safe(epoch)
	var l *monitor.Lock
	for l = range s.Locks.All() {
		break
	}
	ctx := &Context{Glyphs: &Unicode, Snap: s, Now: epoch}
	g := GrantDoc{Lock: l.Key, TokenSHA: tokenSHA(l.Holder)[:16], Began: epoch.Add(-time.Minute)}
	if got, want := ctx.who(&g), ctx.Token(l.Holder); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	const ended = "f0d5a4112233445566778899aabb75e8"
	e := monitor.LockEvent(epoch, monitor.LevelInfo, "released", g.Lock.Raw(), "released (%s)", safetext.Short(ended))
	e.Token = safetext.New(ended)
	g.TokenSHA = tokenSHA(e.Token)[:16]
	if got := ctx.who(&g); got != "sha256:"+g.TokenSHA[:6] {
		t.Error(got)
	}
	l.Earlier = &monitor.Reliance{Token: e.Token}
	s.Locks = monitor.NewLocks(*l)
	if got := ctx.who(&g); got != ended {
		t.Errorf("the token of a client that may rely on the lock too is %s", got)
	}
	s.Locks = monitor.Locks{}
	ctx.Short, ctx.Tokens = true, TokensOf([]monitor.Event{e, {}})
	if got := ctx.who(&g); got != "f0d5a4…75e8" {
		t.Error(got)
	}
	if got := ctx.Token(safetext.New("sha256:" + g.TokenSHA)); got != "sha256:"+g.TokenSHA[:4] {
		t.Errorf("the token of a record is %s", got)
	}
	if got := EventText(ctx.Glyphs, &e, false).Text; got != "released (f0d5a4…75e8)" {
		t.Error(got)
	}
}

// A band shows each holder for as long as it held, with its name if there is room, when
// the lock was free, and where two holders overlap.
func TestBandOfHolders(t *testing.T) {
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	grants := []GrantDoc{
		{TokenSHA: "0123456789abcdef", Owner: safetext.Optional("web-7"), Began: at(-100), Ended: at(10), How: "released"},
		{TokenSHA: "a123456789abcdef", Owner: safetext.Optional("web-3\x1b"), Began: at(30), Ended: at(60), How: "expired"},
		{TokenSHA: "b123456789abcdef", Began: at(50), Overlaps: true},
	}
	band := Band{From: at(0), To: at(100), Grants: grants}
	for glyphs, want := range map[*Glyphs]string{
		&Unicode: "▏web-7    free                ▏web-3\\x1b 30s                ▏!sha256:b12345 50s",
		&ASCII:   "|web-7    free                |web-3\\x1b 30s                |!sha256:b12345 50s",
	} {
		ctx := &Context{Glyphs: glyphs, Now: at(100)}
		var text strings.Builder
		for _, p := range band.Line(ctx, 100) {
			text.WriteString(p.Text)
		}
		if got := text.String(); !strings.HasPrefix(got, want) || Width(got) != 100 {
			t.Errorf("%d cells:\n%q, want\n%q", Width(got), got, want)
		}
		for w := range 60 {
			n := 0
			for _, p := range band.Line(ctx, w) {
				n += Width(p.Text)
			}
			if n != 0 && n != w {
				t.Errorf("%d cells in place of %d", n, w)
			}
		}
	}
	lines := band.Lines(&Context{Glyphs: &Unicode, Now: at(100)}, 2)
	if len(lines) != 2 || lines[0].Label != "Holders" || !strings.Contains(lines[0].Text, "still, OVERLAP") || !strings.Contains(lines[1].Text, "web-3\\x1b, 30s, expired") {
		t.Errorf("%+v", lines)
	}
	gaps := []SpanDoc{{Since: at(-50), Until: at(20)}, {Since: at(24), Until: at(25)}}
	late := Band{From: at(0), To: at(100), Gaps: gaps, Grants: grants[1:]}
	if parts := late.Line(&Context{Glyphs: &Unicode, Now: at(100)}, 100); parts[0].Text != "not recorded        " || parts[1].Text != "    " || parts[2].Text != "?" || parts[3].Text != "     " {
		t.Errorf("what is not recorded was not free: %q", parts)
	}
	if lines := late.Lines(&Context{Glyphs: &Unicode, Now: at(100)}, 3); len(lines) != 3 || !strings.HasSuffix(lines[2].Text, "  not recorded, 1s") {
		t.Errorf("%+v", lines)
	}
	if got := BandLength(grants, at(-1000), at(100)); got != 5*time.Minute {
		t.Errorf("the band is %s long", got)
	}
}

// The record follows what is seen a moment later: of a lock that another client has by now, no line says
// that the one before has it still, and the one that has it is there.
func TestABandIsOfTheLockAsItIsSeen(t *testing.T) {
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	lock := func(token string) *monitor.Lock {
		l := monitortest.LockOf(at(100), "job:1", monitor.LockHeld, token, "9 9 9 9 9").Timed(at(90), at(109))
		return &l
	}
	before := GrantDoc{Lock: safetext.New("job:1"), TokenSHA: tokenSHA(safetext.New("aaaa")), Began: at(70), Until: at(120)}
	band := Band{From: at(0), To: at(100), Grants: []GrantDoc{before}}
	ctx := &Context{Glyphs: &Unicode, Now: at(100)}
	said := func(b Band) (text string) {
		for _, f := range b.Lines(ctx, 8) {
			text += f.Text + "\n"
		}
		return text
	}
	name := func(token string) string { return hashName(tokenSHA(safetext.New(token))) }
	now := Clock(at(90)) + "  " + name("bbbb") + ", first seen then, still; not recorded yet\n"
	ended := Clock(at(70)) + "  " + name("aaaa") + ", at most 20s, no longer the holder; its end is not recorded yet\n"
	still := Clock(at(70)) + "  " + name("aaaa") + ", 30s, still\n"
	split, nobody := *lock("bbbb"), *lock("bbbb")
	split.Earlier, nobody.Nobody = &monitor.Reliance{Token: safetext.New("aaaa"), Until: at(120)}, true
	for what, c := range map[string]struct {
		l    *monitor.Lock
		want string
	}{
		"it is the holder":              {lock("aaaa"), still},
		"another is":                    {lock("bbbb"), now + ended},
		"another is, and it relies too": {&split, still},
		"nobody is":                     {&nobody, still},
		"a guard told part of a token":  {lock("bb…"), still},
		"it is not seen":                {nil, still},
	} {
		if got := said(band.AsSeen(c.l)); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", what, got, c.want)
		}
	}
	seen := band.AsSeen(lock("bbbb"))
	if parts := seen.Line(ctx, 100); len(parts) != 3 || Width(parts[1].Text) != 20 || Width(parts[2].Text) != 10 || !strings.HasPrefix(parts[2].Text, "▏") {
		t.Errorf("%q", parts)
	}
	if band.Grants[0] != before {
		t.Error("the record's grants were changed")
	}
}

// The holder of a lock without TTL that was removed may rely on it without end: its note says so,
// and the band shows it until the next one.
func TestAHolderWithoutTTLMayWorkOn(t *testing.T) {
	grants := []GrantDoc{
		{TokenSHA: "0123456789abcdef", Began: epoch.Add(-time.Minute), Ended: epoch, How: "force-released"},
		{TokenSHA: "a123456789abcdef", Began: epoch.Add(30 * time.Second), Until: epoch.Add(time.Hour)},
	}
	ctx := &Context{Glyphs: &Unicode, Now: epoch.Add(time.Minute)}
	columns := GrantColumns(true)
	note := columns[len(columns)-1].Cell
	if got := note(ctx, &grants[0]).Text; got != "may rely on it without end: it had no TTL" {
		t.Error(got)
	}
	if got := note(ctx, &grants[1]).Text; got != "" {
		t.Error(got)
	}
	band := Band{From: epoch.Add(-time.Minute), To: ctx.Now, Grants: grants}
	if parts := band.Line(ctx, 100); len(parts) != 3 || !strings.HasPrefix(parts[1].Text, "may work") {
		t.Errorf("%q", parts)
	}
	if lines := band.Lines(ctx, 2); !strings.Contains(lines[1].Text, "force-released, may rely on it without end") {
		t.Errorf("%+v", lines)
	}
}

// A grant that lost its majority, on which its holder still relies, has not ended: it lasts until now,
// its note says until when, and the band shows who got in.
func TestALostMajorityHasNotEnded(t *testing.T) {
	grants := []GrantDoc{
		{TokenSHA: "0123456789abcdef", Began: epoch, Until: epoch.Add(90 * time.Second), How: lostMajority},
		{TokenSHA: "a123456789abcdef", Began: epoch.Add(30 * time.Second), Until: epoch.Add(time.Hour), Overlaps: true},
	}
	ctx := &Context{Glyphs: &Unicode, Now: epoch.Add(time.Minute)}
	var row []string
	for _, c := range GrantColumns(true) {
		if c.Name == "ENDED" || c.Name == "HELD" || c.Name == "HOW" || c.Name == "NOTE" {
			row = append(row, c.Cell(ctx, &grants[0]).Text)
		}
	}
	if got, want := strings.Join(row, "; "), "–; 1m; lost majority; may rely on it until "+grants[0].Until.UTC().Format(time.TimeOnly); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	band := Band{From: epoch, To: ctx.Now, Grants: grants}
	if parts := band.Line(ctx, 60); len(parts) != 2 || !strings.HasPrefix(parts[1].Text, "▏!sha256:a12345") {
		t.Errorf("%q", parts)
	}
}
