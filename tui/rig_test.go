package tui

import (
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"redlockctl/base/race"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/action"
	"redlockctl/tui/source"
)

// rig is a model on a screen, with a clock that the test moves.
type rig struct {
	t     *testing.T
	m     *model
	src   *fakeSource
	acts  *fakeActions
	lab   fakeLab
	clock time.Time
	ended bool
	// pending are actions that were started; settle runs them.
	pending []tea.Cmd
}

// newRig returns a rig. One goroutine drives it, and what it starts: the race detector has
// nothing to find, unless something is done to a lab.
func newRig(t *testing.T, s *monitor.Snapshot, w, h int, with ...func(*Options)) *rig {
	t.Helper()
	race.Skip(t)
	return newLabRig(t, s, w, h, with...)
}

// newLabRig returns a rig that may start goroutines.
func newLabRig(t *testing.T, s *monitor.Snapshot, w, h int, with ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, clock: monitortest.Epoch, src: newFakeSource(s), acts: &fakeActions{}, lab: fakeLab{make(chan string, 9)}}
	opt := Options{Cluster: Cluster{Source: r.src, Guard: fakeGuardStatus(monitortest.Epoch), Actions: r.acts, Delay: 30350 * time.Millisecond}, Lab: r.lab}
	for _, f := range with {
		f(&opt)
	}
	if g, ok := opt.Guard.(fakeGuard); ok { // as a monitor beside it would
		s.Guard = &monitor.GuardView{Nodes: map[string]monitor.GuardedNode{}, Delay: opt.Delay}
		for _, n := range g {
			s.Guard.Nodes[n.Node] = monitor.GuardedNode{Known: n.Known, Verified: n.Verified}
		}
	}
	r.m = newModel(t.Context(), opt, func() time.Time { return r.clock })
	r.m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	r.m.View()
	return r
}

var specialKeys = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace,
	"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd, "left": tea.KeyLeft, "right": tea.KeyRight,
}

// borders are the characters around panes and boxes.
var borders = regexp.MustCompile("[╭╮╰╯─│┏┓┗┛━┃]")

func keyPress(k string) tea.KeyPressMsg {
	switch code, ok := specialKeys[k]; {
	case ok:
		return tea.KeyPressMsg{Code: code}
	case k == "space":
		return tea.KeyPressMsg{Code: ' ', Text: " "}
	case strings.HasPrefix(k, "ctrl+"):
		return tea.KeyPressMsg{Code: rune(k[5]), Mod: tea.ModCtrl}
	default:
		return tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
	}
}

// press presses keys one by one; a frame is drawn after each.
func (r *rig) press(keys ...string) {
	r.t.Helper()
	for _, k := range keys {
		_, cmd := r.m.Update(keyPress(k))
		if cmd != nil {
			switch k {
			case "enter", "w":
				r.pending = append(r.pending, cmd)
			default:
				if _, ok := cmd().(tea.QuitMsg); ok {
					r.ended = true
				}
			}
		}
		r.m.View()
	}
}

// typed types a text, letter by letter.
func (r *rig) typed(s string) {
	r.t.Helper()
	for _, c := range s {
		r.press(string(c))
	}
}

// wait lets time pass, with a tick every second.
func (r *rig) wait(d time.Duration) {
	for d > 0 {
		step := min(d, time.Second)
		r.clock = r.clock.Add(step)
		d -= step
		if step == time.Second {
			r.m.Update(source.TickMsg{Guard: r.m.feed.Status()})
		}
		r.m.View()
	}
}

// settle waits until a dialog accepts input.
func (r *rig) settle() { r.wait(action.SettleTime) }

// run runs the actions that were started.
func (r *rig) run() {
	for _, cmd := range r.pending {
		r.m.Update(cmd())
	}
	r.pending = nil
	r.m.View()
}

func (r *rig) push(s *monitor.Snapshot) {
	r.src.push(s)
	r.m.Update(source.SnapshotMsg{Snap: r.src.Snapshot(), Guard: r.m.feed.Status()})
	r.m.View()
}

func (r *rig) screen() string { return ansi.Strip(r.m.View().Content) }

// sees fails unless all texts are on the screen.
func (r *rig) sees(texts ...string) {
	r.t.Helper()
	s := flat(r.screen()) + " " + r.box()
	for _, text := range texts {
		if !strings.Contains(s, flat(text)) {
			r.t.Errorf("the screen does not say %q:\n%s", text, r.screen())
		}
	}
}

func (r *rig) seesNot(texts ...string) {
	r.t.Helper()
	s := flat(r.screen()) + " " + r.box()
	for _, text := range texts {
		if strings.Contains(s, flat(text)) {
			r.t.Errorf("the screen says %q:\n%s", text, r.screen())
		}
	}
}

// refused fails unless a dialog refuses an action and says all these texts. It closes it.
func (r *rig) refused(texts ...string) {
	r.t.Helper()
	if d := r.m.Dialog; d == nil || !d.Refusal {
		r.t.Fatalf("no dialog refuses it:\n%s", r.screen())
	}
	r.sees(texts...)
	r.press("esc")
	if r.m.Dialog != nil {
		r.t.Error("esc does not close the refusal")
	}
}

// box returns the text in the box over the page, without what is beside it.
func (r *rig) box() string {
	for _, d := range []*action.Dialog{r.m.Dialog, r.m.Result} {
		if d != nil {
			return flat(ansi.Strip(strings.Join(d.Box(r.m.St, r.m.boxWidth(), r.m.H-1-r.m.hits.base, r.clock), "\n")))
		}
	}
	return ""
}

// flat makes a text independent of line breaks and panes.
func flat(s string) string {
	return strings.Join(strings.Fields(borders.ReplaceAllString(s, " ")), " ")
}

// under puts the cursor on a lock.
func (r *rig) under(key string) {
	r.t.Helper()
	if !r.m.Locks.Jump(key) {
		r.t.Fatalf("no lock %q is listed", key)
	}
	r.m.dirty = true
	r.m.View()
}

func (r *rig) cursor() string {
	if l := r.m.Locks.Selected(); l != nil {
		return l.Key.Raw()
	}
	return "none"
}

// withoutSGR returns a line of a frame without colours and attributes, the only escape
// sequences that it may contain.
func withoutSGR(s string) string {
	var b strings.Builder
	for {
		text, rest, found := strings.Cut(s, "\x1b[")
		b.WriteString(text)
		end := strings.IndexFunc(rest, func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
		if !found {
			return b.String()
		}
		if end < 0 || rest[end] != 'm' {
			b.WriteByte(0x1b) // so that the test finds it
			end = -1
		}
		s = rest[end+1:]
	}
}

// checkFrame checks what is true for every frame.
func checkFrame(t *testing.T, frame string, w, h int, ascii bool) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > h {
		t.Errorf("%d lines on a screen of %d", len(lines), h)
	}
	for i, l := range lines {
		n, ours := 0, true
		text := withoutSGR(l)
		for _, c := range text {
			n++
			ours = ours && (c >= ' ' && c < 0x7f || view.OneCell(c))
		}
		if !ours { // each of our own characters takes one cell
			if n = ansi.StringWidth(l); ansi.StringWidthWc(l) != n {
				t.Errorf("line %d is %d cells wide by wcwidth, and %d by its clusters: %q", i, ansi.StringWidthWc(l), n, l)
			}
		}
		if n > w {
			t.Errorf("line %d is %d cells wide, the screen %d: %q", i, n, w, l)
		}
		for _, c := range text {
			switch {
			case c < ' ', c >= 0x7f && c < 0xa0, c >= 0x200b && c <= 0x200f, c >= 0x202a && c <= 0x202e, c >= 0x2060 && c <= 0x206f, c == 0xfeff, c == 0xfffd:
				t.Errorf("line %d holds %U: %q", i, c, l)
			case ascii && c > 0x7e:
				t.Errorf("line %d holds %U on an ASCII screen: %q", i, c, l)
			}
		}
	}
}
