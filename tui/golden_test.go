package tui

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/rogpeppe/go-internal/txtar"

	"redlockctl/base/race"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
	"redlockctl/tui/action"
	"redlockctl/tui/styles"
)

// way is a look of the screen, and the keys that lead to it.
type way struct {
	name string
	keys []string
	then func(*rig)
	rest time.Duration // time to pass after the keys
	with func(*Options)
	of   func(time.Time) *monitor.Snapshot // default: picture
	many bool                              // of many nodes: only two sizes
}

// ways lists the looks of the screen: every page in every state.
var ways = append([]way{
	{name: "overview"},
	{name: "overview-nodes", keys: []string{"tab", "down"}},
	{name: "overview-detail", keys: []string{"down", "enter"}},
	{name: "overview-node-detail", keys: []string{"tab", "down", "down", "down", "enter"}},
	{name: "overview-event-detail", keys: []string{"tab", "tab", "down", "enter"}},
	{name: "overview-unavailable", of: func(now time.Time) *monitor.Snapshot {
		s := monitortest.Degraded(now)
		s.Cluster.Verdict, s.Cluster.Serving, s.Cluster.CanLose = monitor.VerdictUnavailable, 2, -1
		s.Nodes[0].State, s.Nodes[0].Since = monitor.NodeDown, now.Add(-5*time.Second)
		return s
	}, with: func(o *Options) {
		g := fakeGuardStatus(monitortest.Epoch)
		g[0].Phase, g[0].Out = 5, monitortest.Epoch.Add(-5*time.Second) // unreachable
		g[1].Out, g[3].Out = monitortest.Epoch.Add(-12*time.Second), monitortest.Epoch.Add(-19*time.Second)
		o.Guard = g
	}},
	{name: "overview-safe", of: monitortest.Safe, with: func(o *Options) { o.Guard = safeGuard() }},
	{name: "locks-crashed", keys: []string{"2"}, of: monitortest.Crashed, with: func(o *Options) { o.Guard = safeGuard() }},
	{name: "lock-lost-majority", keys: []string{"2", "o"}, of: monitortest.Crashed, with: func(o *Options) { o.Guard = safeGuard() }},
	{name: "overview-reading", of: monitortest.Loading, with: func(o *Options) { o.Guard = safeGuard() }},
	{name: "locks-reading", keys: []string{"2"}, of: monitortest.Loading},
	{name: "locks-reading-a-node", keys: []string{"2"}, of: func(now time.Time) *monitor.Snapshot {
		s := monitortest.Safe(now)
		s.Settled, s.Complete, s.Nodes[1].Read = now.Add(-time.Hour), false, 0.43
		return s
	}},
	{name: "locks", keys: []string{"2", "m", "down"}},
	{name: "locks-wide", keys: []string{"2", "W"}},
	{name: "locks-filtered", keys: []string{"2", "/", "s", "t", "a", "t", "e", ":", "o", "r"}},
	{name: "locks-bad-filter", keys: []string{"2", "/", "t", "t", "l", "<", "5"}},
	{name: "lock", keys: []string{"2", "down", "o"}},
	{name: "nodes", keys: []string{"3", "down"}},
	{name: "node", keys: []string{"3", "down", "o"}, rest: 5 * time.Second, of: func(now time.Time) *monitor.Snapshot {
		s := monitortest.Degraded(now)
		s.Nodes[1].Minutes = anHour(now)
		return s
	}},
	{name: "events", keys: []string{"4"}},
	{name: "events-detail", keys: []string{"4", "/", "l", "e", "v", "e", "l", ":", "a", "enter", "enter"}},
	{name: "findings", keys: []string{"5", "down"}},
	{name: "guard", keys: []string{"6"}, rest: 3 * time.Second},
	{name: "guard-elsewhere", keys: []string{"6"}, of: guardElsewhere, with: withoutGuard},
	{name: "nodes-guard-elsewhere", keys: []string{"3"}, of: guardElsewhere, with: withoutGuard},
	{name: "overview-guard-elsewhere", of: guardElsewhere, with: withoutGuard},
	{name: "quit-only-guard", keys: []string{"q"}, with: func(o *Options) { o.Lab = nil }},
	{name: "lab", keys: []string{"7", "down"}},
	{name: "help", keys: []string{"?"}},
	{name: "command", keys: []string{":", "f", "o"}},
	{name: "command-filter", keys: []string{":", "f", "i", "l", "t", "e", "r", " ", "s", "t", "a", "t", "e", ":"}},
	{name: "frozen", keys: []string{"space"}, rest: 3 * time.Second},
	{name: "acquire", keys: []string{"a"}},
	{name: "force-release", keys: []string{"/", "4", "2", "enter", "X"}, rest: action.SettleTime},
	{name: "refused", keys: []string{"/", "c", "a", "c", "h", "e", "enter", "R"}, rest: action.SettleTime},
	{name: "fence", keys: []string{"tab", "C"}},
	{name: "open", keys: []string{"tab", "down", "J"}},
	{name: "crash", keys: []string{"tab", "c"}},
	{name: "skew", keys: []string{"7", "t"}},
	{name: "hostile", of: monitortest.Hostile},
	{name: "clusters", keys: []string{":", "c", "l", "u", "s", "t", "e", "r", "s", "enter"}, with: severalClusters, then: (*rig).run},
	{name: "audit", keys: []string{":", "a", "u", "d", "i", "t", "enter"}, with: withAudit, then: func(r *rig) { r.run(); r.press("down", "enter") }},
}, waysOfMany()...)

// waysOfMany returns the looks of clusters of many nodes.
func waysOfMany() (ways []way) {
	for _, n := range []int{9, 21, 50} {
		of := func(now time.Time) *monitor.Snapshot { return monitortest.Many(now, n) }
		for _, w := range []way{
			{name: "overview"},
			{name: "overview-scrolled", keys: []string{"tab", "end"}},
			{name: "overview-detail", keys: []string{"enter"}},
			{name: "lock", keys: []string{"2", "o"}},
			{name: "nodes", keys: []string{"3", "down"}},
			{name: "guard", keys: []string{"6"}},
		} {
			w.name, w.of, w.with, w.many = fmt.Sprintf("%s-of-%d", w.name, n), of, withoutGuard, true
			ways = append(ways, w)
		}
	}
	return ways
}

// at returns a screen of this size after the keys of a way.
func (way way) at(t *testing.T, w, h int, with ...func(*Options)) *rig {
	t.Helper()
	of := way.of
	if of == nil {
		of = monitortest.Degraded
	}
	if way.with != nil {
		with = append(with, way.with)
	}
	r := newRig(t, of(monitortest.Epoch), w, h, with...)
	r.press(way.keys...)
	if way.then != nil {
		way.then(r)
	}
	r.wait(way.rest)
	return r
}

// guardElsewhere is a cluster watched by a guard on another host.
func guardElsewhere(now time.Time) *monitor.Snapshot {
	s := monitortest.Degraded(now)
	for i, boot := range []announce.Boot{announce.BootFenced, announce.BootFenced, announce.BootUnfenced, 0, announce.BootUnknown} {
		if n := &s.Nodes[i]; n.State != monitor.NodeDown {
			n.GuardsKnown = true
			n.Guards = []announce.Guard{{ID: "e1e2e3e4", Delay: 30350 * time.Millisecond, Host: safetext.New("ops1"), Boot: boot}}
			if n.State == monitor.NodeFenced {
				n.RejoinsAfter = n.StartedAfter.Add(n.Guards[0].Delay)
			}
		}
	}
	return s
}

func withoutGuard(o *Options) { o.Guard, o.Delay = nil, 1060*time.Millisecond }

func severalClusters(o *Options) {
	o.Clusters = &fakeClusters{next: Cluster{Source: newFakeSource(monitortest.Safe(monitortest.Epoch)), Actions: &fakeActions{}}}
}

func withASCII(o *Options)   { o.ASCII, o.NoColor = true, true }
func withNoColor(o *Options) { o.NoColor = true }
func withLight(o *Options)   { o.Theme, o.Profile = styles.ThemeLight, colorprofile.ANSI256 }

var updateScreens = flag.Bool("update", false, "write the golden screens anew")

// looks are the sizes and kinds of screens in the golden files of each way.
var looks = []struct {
	name    string
	w, h    int
	colours bool // the golden file has the escape codes too, with ␛ for the first character
	with    []func(*Options)
}{
	{name: "60x15", w: 60, h: 15},
	{name: "80x24", w: 80, h: 24},
	{name: "100x30", w: 100, h: 30},
	{name: "120x40", w: 120, h: 40},
	{name: "160x50", w: 160, h: 50},
	{name: "200x60", w: 200, h: 60},
	{name: "80x24 ascii", w: 80, h: 24, with: []func(*Options){withASCII}},
	{name: "80x24 dark", w: 80, h: 24, colours: true},
	{name: "80x24 light", w: 80, h: 24, colours: true, with: []func(*Options){withLight}},
	{name: "80x24 none", w: 80, h: 24, colours: true, with: []func(*Options){withNoColor}},
}

// coloured are the ways whose golden files have colours: the others use the same.
var coloured = map[string]bool{"overview": true, "findings": true, "guard": true, "lock": true}

var framesDir = flag.String("frames", "", "write every look in every theme into this directory, as a terminal gets it; for scripts/contact-sheet")

// TestFrames writes what scripts/contact-sheet draws.
func TestFrames(t *testing.T) {
	if *framesDir == "" {
		t.Skip("only for scripts/contact-sheet")
	}
	themes := map[string]func(*Options){"ansi": func(o *Options) { o.Profile = colorprofile.ANSI256 }, "ascii": withASCII, "none": withNoColor, "sixteen": func(o *Options) { o.Profile = colorprofile.ANSI }}
	for _, name := range styles.Themes()[1:] {
		if name != styles.ThemeNone {
			themes[string(name)] = func(o *Options) { o.Theme, o.Profile = name, colorprofile.ANSI256 }
		}
	}
	for _, way := range ways {
		for _, look := range looks[:6] {
			for theme, with := range themes {
				name := fmt.Sprintf("%s.%s.%s", way.name, look.name, theme)
				if err := os.WriteFile(filepath.Join(*framesDir, name), []byte(way.at(t, look.w, look.h, with).m.View().Content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// The screens are as they were when they were last reviewed.
func TestGolden(t *testing.T) {
	race.Skip(t)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			var got txtar.Archive
			for _, look := range looks {
				if look.colours && !coloured[way.name] || way.many && look.name != "80x24" && look.name != "120x40" {
					continue
				}
				r := way.at(t, look.w, look.h, look.with...)
				checkFrame(t, r.m.View().Content, look.w, look.h, strings.Contains(look.name, "ascii"))
				text := r.screen()
				if look.colours {
					text = strings.ReplaceAll(r.m.View().Content, "\x1b", "␛")
				}
				lines := strings.Split(text, "\n")
				for i, l := range lines {
					if !look.colours {
						lines[i] = strings.TrimRight(l, " ")
					}
				}
				got.Files = append(got.Files, txtar.File{Name: look.name, Data: []byte(strings.Join(lines, "\n") + "\n")})
			}
			path := filepath.Join("testdata", "screens", way.name+".txtar")
			if *updateScreens {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, txtar.Format(&got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(want.Files) != len(got.Files) {
				t.Fatalf("%d screens are kept, there are %d", len(want.Files), len(got.Files))
			}
			for i, f := range want.Files {
				if f.Name != got.Files[i].Name || !bytes.Equal(f.Data, got.Files[i].Data) {
					t.Errorf("%s is not as it was (go test ./tui -run TestGolden -update, and read the difference):\n%s", f.Name, firstDifference(f.Data, got.Files[i].Data))
				}
			}
		})
	}
}

// Every way fits every size from the smallest up, in every theme and in ASCII: no line
// is wider than the screen, and there are exactly as many lines as it has, so that
// nothing of the previous frame remains. All looks and themes together cover all widths,
// and heights in steps of seven.
func TestSweep(t *testing.T) {
	race.Skip(t)
	themes := []struct {
		name  string
		ascii bool
		with  func(*Options)
	}{
		{"the terminal's", false, func(*Options) {}}, {"light", false, withLight}, {"no colour", false, withNoColor}, {"ascii", true, withASCII},
	}
	const step = 7
	seen := map[[2]int]bool{}
	for i, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			for j, theme := range themes {
				r := way.at(t, 120, 40, theme.with)
				for k := j % 2; minWidth+k*step <= 200; k += 2 {
					w, h := minWidth+k*step, minHeight+(i+j+k)%7*7
					r.m.Update(tea.WindowSizeMsg{Width: w, Height: h})
					frame := r.m.View().Content
					seen[[2]int{w, h}] = true
					if n := strings.Count(frame, "\n") + 1; n != h {
						t.Errorf("%s, %d×%d: %d lines", theme.name, w, h, n)
					}
					checkFrame(t, frame, w, h, theme.ascii)
					for _, l := range r.m.body() { // before lines that are too long are cut
						if n := view.Width(l); n > w {
							t.Errorf("%s, %d×%d: a part drew %d cells: %q", theme.name, w, h, n, l)
						}
					}
					if coloured := foreground.MatchString(frame); theme.name == "no colour" && coloured || theme.ascii && coloured {
						t.Errorf("%s, %d×%d: a colour is drawn", theme.name, w, h)
					}
					if t.Failed() {
						t.Fatalf("%s, %d×%d:\n%s", theme.name, w, h, r.screen())
					}
				}
			}
		})
	}
	if want := 7 * 21; len(seen) != want && !t.Failed() {
		t.Errorf("%d sizes were drawn, not %d", len(seen), want)
	}
}

// foreground is a sequence that sets a colour.
var foreground = regexp.MustCompile("\x1b\\[[0-9;]*[34][0-8][0-9;]*m")

func firstDifference(want, got []byte) string {
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range max(len(a), len(b)) {
		x, y := "(no line)", "(no line)"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d\nwant %q\ngot  %q", i+1, x, y)
		}
	}
	return ""
}
