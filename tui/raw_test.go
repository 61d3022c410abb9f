package tui

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"redlockctl/base/race"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/restartguard"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
	"redlockctl/tui/action"
	"redlockctl/tui/styles"
)

// sequences are those of the renderer itself: cursor, erasing, scrolling and its margins,
// repetition, colours, modes, keyboard reports, and text for the clipboard. No title,
// link, query or bell.
var sequences = regexp.MustCompile("\x1b(\\[[0-9;]*[ABCDEFGHdf`ae@JKXPLMSTbrm]|\\[\\?[0-9;]*([hlu]|\\$p)|\\[[>=<][0-9;]*[mu]|[78M]|\\]52;c;[A-Za-z0-9+/=]*\a)")

// oddBytes returns the first part of b, the program's output, that is neither text nor a
// sequence of the renderer.
func oddBytes(b []byte) []byte {
	rest := sequences.ReplaceAll(b, nil)
	for i := 0; i < len(rest); {
		r, n := utf8.DecodeRune(rest[i:])
		if !shows(r) && r != '\r' && r != '\n' && r != '\b' {
			return bytes.Clone(rest[max(0, i-20):min(len(rest), i+20)])
		}
		i += n
	}
	return nil
}

// shows reports whether a terminal shows r instead of obeying it.
func shows(r rune) bool {
	return r != utf8.RuneError && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs, unicode.Variation_Selector)
}

// watchedFrames is the program's model; it records what no style of the program has put
// into a frame.
type watchedFrames struct {
	*model
	own    *strings.Replacer
	odd    string
	mutant func(frame string) string // a deliberate fault
}

func watchFrames(m *model) *watchedFrames {
	var own []string
	st := m.St
	for _, p := range []styles.Paint{st.Strong, st.Dim, st.Good, st.Warn, st.Bad, st.Info, st.Title, st.Label, st.Cursor, st.Banner, st.Row} {
		for _, code := range []string{p.Open, p.Close} {
			if code != "" {
				own = append(own, code, "")
			}
		}
	}
	return &watchedFrames{model: m, own: strings.NewReplacer(own...)}
}

// mixed matches our colours and attributes as a box over the page combines them: no text
// of a server can contain that, since its first byte is escaped.
var mixed = regexp.MustCompile("\x1b\\[(?:[0-9]|22|27|3[0-79]|9[0-7])?(?:;(?:[0-9]|22|27|3[0-79]|9[0-7]))*m")

func (f *watchedFrames) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := f.model.Update(msg)
	return f, cmd
}

func (f *watchedFrames) View() tea.View {
	v := f.model.View()
	if f.mutant != nil {
		v.Content = f.mutant(v.Content)
	}
	if f.odd == "" {
		rest := v.Content
		if f.model.Dialog != nil || f.model.Result != nil {
			rest = mixed.ReplaceAllString(rest, "")
		}
		rest = f.own.Replace(rest)
		for i, r := range rest {
			if !shows(r) && r != '\n' {
				f.odd = rest[max(0, i-20):min(len(rest), i+20)]
				break
			}
		}
	}
	return v
}

var textType = reflect.TypeFor[safetext.Text]()

// poison puts s into every text of v, however deep, including those that a later version
// of the monitor adds.
func poison(v reflect.Value, s string) {
	switch {
	case v.Type() == textType && v.CanSet():
		v.Set(reflect.ValueOf(safetext.New(s)))
	case v.Kind() == reflect.String && v.CanSet():
		v.SetString(s)
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			poison(field, s)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), s)
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		poison(v.Elem(), s)
	}
}

// poisoned is a snapshot in which s is everything that a server, or somebody who can
// write to it, can choose.
func poisoned(now time.Time, s string) *monitor.Snapshot {
	pic := monitortest.Degraded(now)
	for i := range pic.Nodes {
		n := &pic.Nodes[i]
		n.State = monitor.NodeState(1 + i%8)
		n.Notes = []string{"", ""}
		poison(reflect.ValueOf(n), s)
		n.Name = s + strconv.Itoa(i)
	}
	locks := monitortest.List(pic.Locks)
	if len(s) > 1<<16 {
		locks = locks[:1]
	}
	for i := range locks {
		l := &locks[i]
		l.Form = &lockform.Form{}
		*l = l.WithKeys(safetext.New(s), safetext.New(s))
		poison(reflect.ValueOf(l), s)
		l.Key = safetext.New(s + strconv.Itoa(i))
	}
	pic.Locks = monitor.NewLocks(locks...)
	poison(reflect.ValueOf(&pic.Cluster), s)
	for i := range pic.Findings {
		poison(reflect.ValueOf(&pic.Findings[i]), s)
		pic.Findings[i].ID += strconv.Itoa(i)
	}
	for i := range pic.Events {
		poison(reflect.ValueOf(&pic.Events[i]), s)
	}
	return pic
}

// everywhere has keys that visit all pages, a filter, a command, dialogs and the
// clipboard.
var everywhere = []string{"enter", "tab", "enter", "2", "W", "o", "y", "3", "o", "4", "enter", "5", "y", "6", "7", "n", "esc", "1", "/", "esc", ":", "tab", "esc", "tab", "X", "esc", "space", "?"}

// capture runs the real program on a screen full of s, and returns its output and the odd
// parts of its frames.
func capture(t *testing.T, s string, theme styles.Theme, ascii bool, mutant func(string) string) (out []byte, odd string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pic := poisoned(time.Now(), s)
		var guard fakeGuard
		for i := range pic.Nodes {
			guard = append(guard, restartguard.NodeStatus{Node: pic.Nodes[i].Name, Phase: restartguard.Phase(i), Reason: s, Err: s, Until: time.Now().Add(time.Minute)})
		}
		var buf lockedBuffer
		m := newModel(ctx, Options{
			Cluster:   Cluster{Source: newFakeSource(pic), Guard: guard, Actions: &fakeActions{err: errors.New(s)}},
			Lab:       fakeLab{make(chan string, 9)},
			Store:     &fakeStore{err: errors.New(s)},
			Theme:     theme,
			ASCII:     ascii,
			Out:       &buf,
			Clipboard: func(context.Context, string) error { return errors.New(s) },
		}, time.Now)
		frames := watchFrames(m)
		frames.mutant = mutant
		p := tea.NewProgram(frames, tea.WithContext(ctx), tea.WithOutput(&buf), tea.WithInput(nil), tea.WithoutSignals(), tea.WithoutSignalHandler(),
			tea.WithFPS(frameRate), tea.WithWindowSize(120, 40), tea.WithColorProfile(colorprofile.ANSI), tea.WithEnvironment([]string{"TERM=xterm-256color"}))
		done := make(chan error, 1)
		go func() { _, err := p.Run(); done <- err }()
		time.Sleep(time.Second)
		keys := everywhere
		if len(s) > 1<<16 {
			keys = []string{"enter", "2", "o", "y", "3", "o", "4", "enter", "5", "1", "X", "esc"}
		}
		for _, k := range keys {
			p.Send(keyPress(k))
			if k == "/" || k == ":" {
				p.Send(tea.PasteMsg{Content: s})
			}
			time.Sleep(action.SettleTime) // on the fake clock: a dialog accepts input, a frame is drawn
		}
		p.Quit()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
		m.Running.Close(time.Second)
		out, odd = []byte(buf.String()), frames.odd
	})
	return out, odd
}

// hostileTexts are keys that somebody may write to take over a terminal.
var hostileTexts = []string{
	"\x1b[31mred\x1b[2J\x1b[H", "\x1b]0;title\a\x1b]8;;http://example.com\x1b\\link", "\x1bP+q544e\x1b\\\x1b[6n\x1b[21t",
	"c1 \u009b31m \u0090 \x9b31m", "bidi \u202e\u2066drow\u2069\u200f", "zero\u200bwidth\u200d\u2060\ufeff\u00ad", "new\nline\r\ttab\b\x00\x7f\v\f\a",
	"not utf8 \xff\xfe\xc3\xed\xa0\x80", "para\u2028graph\u2029 \U000e0041\ufe0f \ue000 \U0001f469\u200d\U0001f467",
}

// Whatever keys, tokens, owners, names, errors and events contain, no byte of them
// reaches the terminal that a terminal would obey: the whole output is text and the
// renderer's sequences.
func TestNoRawByteLeaves(t *testing.T) {
	race.Skip(t)
	all := strings.Join(hostileTexts, " ")
	for i, s := range []string{strings.Join(hostileTexts[:3], ""), strings.Join(hostileTexts[3:6], ""), strings.Join(hostileTexts[6:], ""), all, strings.Repeat(all, 1<<20/len(all))} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			out, odd := capture(t, s, styles.Themes()[i%3], i == 3, nil)
			if odd != "" {
				t.Errorf("in a frame: %q", odd)
			}
			if b := oddBytes(out); b != nil {
				t.Errorf("raw bytes left the program: %q", b)
			}
			if !bytes.Contains(out, []byte("Locks")) {
				t.Error("nothing was drawn")
			}
			// The name itself goes to the terminal's clipboard as shown, or not at all if
			// it is too long.
			if len(s) > mostCopied {
				if bytes.Contains(out, []byte("\x1b]52;")) {
					t.Error("y sent a name that no clipboard takes")
				}
				return
			}
			if name := base64.StdEncoding.EncodeToString([]byte(safetext.New(s).Word())); !bytes.Contains(out, []byte("\x1b]52;c;"+name[:len(name)/4*3/4*4])) {
				t.Error("y asked the terminal for nothing")
			}
		})
	}
}

// A mutant that shows names unescaped is caught, by its frames and, unless the renderer
// drops them, by its output.
func TestRawTwinIsCaught(t *testing.T) {
	for i, leaves := range map[int]bool{0: false, 3: true, 4: true} {
		s := hostileTexts[i]
		shown := "name: " + safetext.Escape(s)
		out, odd := capture(t, s, styles.ThemeDark, false, func(frame string) string {
			first, rest, _ := strings.Cut(frame, "\n")
			return strings.Replace(shown+first, shown, "name: "+s, 1) + "\n" + rest
		})
		if odd == "" {
			t.Errorf("%q in a frame was not noticed", s)
		}
		if b := oddBytes(out); leaves && b == nil {
			t.Errorf("%q left the program, and nobody noticed", s)
		}
	}
}

// The rule accepts the renderer's sequences, and nothing that a name could use.
func TestOddBytes(t *testing.T) {
	for _, s := range []string{"plain", "\x1b[2J\x1b[1;24r\x1b[m", "\x1b[?1049h\x1b[>4;2m\x1b[=1;1u\x1b[?2026$p", "\x1b]52;c;YQ==\a", "─ 日本 é\r\n\b"} {
		if b := oddBytes([]byte(s)); b != nil {
			t.Errorf("%q: %q is no renderer's", s, b)
		}
	}
	for _, s := range append(hostileTexts[1:], "\x1b]52;c;?\a", "\x1b[6n", "\x1b[c", "\t", "\a", "\x1b[21t", "\x1bc") {
		if oddBytes([]byte(s)) == nil {
			t.Errorf("%q passes for the renderer's", s)
		}
	}
}
