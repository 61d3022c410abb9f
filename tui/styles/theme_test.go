package styles

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
)

// light is a colour in linear light: red, green, blue, each from 0 to 1.
type light [3]float64

func lightOf(c color.Color) (l light) {
	r, g, b, _ := c.RGBA()
	for i, v := range []uint32{r, g, b} {
		s := float64(v) / 0xffff
		if l[i] = s / 12.92; s > 0.04045 {
			l[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return l
}

// sight is a kind of colour vision: the model of Viénot, Brettel and Mollon (1999) on
// linear light.
type sight struct {
	name string
	is   [3]light
}

var (
	normal  = sight{"normal sight", [3]light{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}
	protan  = sight{"protanopia", [3]light{{0.11238, 0.88762, 0}, {0.11238, 0.88762, 0}, {0.00401, -0.00401, 1}}}
	deutan  = sight{"deuteranopia", [3]light{{0.29275, 0.70725, 0}, {0.29275, 0.70725, 0}, {-0.02234, 0.02234, 1}}}
	trichro = []sight{normal}
	anybody = []sight{normal, protan, deutan}
)

func (s sight) see(l light) (out light) {
	for i, row := range s.is {
		out[i] = min(1, max(0, row[0]*l[0]+row[1]*l[1]+row[2]*l[2]))
	}
	return out
}

func (l light) luminance() float64 { return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2] }

// contrast is the ratio of WCAG 2, from 1 to 21.
func contrast(a, b light) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// lab returns CIE L*a*b* under D65, in which a distance of 2 is just visible.
func (l light) lab() [3]float64 {
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16.0/116
	}
	x := f((0.4124*l[0] + 0.3576*l[1] + 0.1805*l[2]) / 0.95047)
	y := f(l.luminance())
	z := f((0.0193*l[0] + 0.1192*l[1] + 0.9505*l[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func distance(a, b light) float64 {
	p, q := a.lab(), b.lab()
	return math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2])
}

// problems lists what is wrong with a palette for some kinds of vision on some
// backgrounds.
func problems(p Palette, eyes []sight, backgrounds []string, leastContrast, leastDistance float64) (wrong []string) {
	names := []string{"good", "info", "warn", "bad"}
	colors := []color.Color{p.Good, p.Info, p.Warn, p.Bad}
	for _, eye := range eyes {
		for i, c := range colors {
			seen := eye.see(lightOf(c))
			for _, b := range backgrounds {
				if r := contrast(seen, eye.see(lightOf(lipgloss.Color(b)))); r < leastContrast {
					wrong = append(wrong, fmt.Sprintf("%s: %s on %s: contrast %.2f", eye.name, names[i], b, r))
				}
			}
			for j := range i {
				if d := distance(seen, eye.see(lightOf(colors[j]))); d < leastDistance {
					wrong = append(wrong, fmt.Sprintf("%s: %s and %s: %.1f apart", eye.name, names[j], names[i], d))
				}
			}
		}
	}
	return wrong
}

// The colours of each theme are readable on its backgrounds and distinct; those for the
// colour-blind are so also without one kind of cones.
func TestColorsAreTold(t *testing.T) {
	dark, bright := []string{"#000000", "#1e1e2e", "#282c34"}, []string{"#ffffff", "#fdf6e3"}
	for _, c := range []struct {
		theme         Theme
		on            []string
		eyes          []sight
		contrast, far float64
	}{
		{ThemeDark, dark, trichro, 4.5, 35},
		{ThemeLight, bright, trichro, 4.5, 35},
		{ThemeHighContrast, dark[:1], trichro, 7, 40},
		{ThemeHighContrastLight, bright[:1], trichro, 7, 40},
		{ThemeColorBlind, dark, anybody, 4.5, 45},
		{ThemeColorBlindLight, bright, anybody, 4.5, 30},
	} {
		for _, wrong := range problems(c.theme.find().colors, c.eyes, c.on, c.contrast, c.far) {
			t.Errorf("%s: %s", c.theme, wrong)
		}
	}
	// The test can fail: this green and red are not distinct for everybody.
	if len(problems(ThemeDark.find().colors, anybody, dark, 4.5, 35)) == 0 {
		t.Error("the simulation finds nothing wrong with green beside red")
	}
}

// Colour-blind users of a terminal with sixteen colours can distinguish them too, if they
// are xterm's.
func TestSixteenForTheColorBlind(t *testing.T) {
	for _, theme := range []Theme{ThemeColorBlind, ThemeColorBlindLight} {
		for _, wrong := range problems(theme.find().sixteen, anybody, nil, 0, 25) {
			t.Errorf("%s: %s", theme, wrong)
		}
	}
}

func TestLooks(t *testing.T) {
	for _, theme := range Themes() {
		for _, sixteen := range []bool{false, true} {
			st := New(Look{Theme: theme, Sixteen: sixteen})
			colored := strings.Contains(st.Bad.Open, "3") || strings.Contains(st.Bad.Open, "9")
			if colored == (theme == ThemeNone) {
				t.Errorf("%s: bad is %q", theme, st.Bad.Open)
			}
			if sixteen && strings.Contains(st.Bad.Open, "38;") {
				t.Errorf("%s: more than sixteen colours: %q", theme, st.Bad.Open)
			}
		}
	}
	own, err := Color("#0a0B0c")
	if err != nil {
		t.Fatal(err)
	}
	if st := New(Look{Theme: ThemeDark, Own: Palette{Warn: own}}); !strings.Contains(st.Warn.Open, "38;2;10;11;12") || strings.Contains(st.Bad.Open, "38;2") {
		t.Errorf("one colour of one's own: %q, %q", st.Warn.Open, st.Bad.Open)
	}
	if st := New(Look{Theme: ThemeNone, Own: Palette{Warn: own}}); strings.Contains(st.Warn.Open, "38;") {
		t.Errorf("without colours: %q", st.Warn.Open)
	}
}

func TestColor(t *testing.T) {
	for _, word := range []string{"#87d787", "0", "255"} {
		if c, err := Color(word); err != nil || c == nil {
			t.Errorf("%s: %v, %v", word, c, err)
		}
	}
	for _, word := range []string{"256", "-1", "red", "#fff", "#gggggg", "87d787", "#"} {
		if _, err := Color(word); err == nil {
			t.Errorf("%s is taken", word)
		}
	}
}

// A flag and a name with hyphens are not broken across lines, and each line has its
// colour.
func TestWrap(t *testing.T) {
	st := New(Look{Theme: ThemeDark})
	said := st.Warn.Of("redlockctl node boot-fence NAME prints both, and with --verify says what it has")
	lines := Wrap("Label      "+said, 40, FactIndent)
	for i, l := range lines {
		if i > 0 && !strings.Contains(l, st.Warn.Open) {
			t.Errorf("line %d has lost its colour: %q", i+1, l)
		}
	}
	for _, whole := range []string{"boot-fence", "--verify"} {
		if !strings.Contains(strings.Join(lines, "\n"), whole) {
			t.Errorf("%s is broken: %q", whole, lines)
		}
	}
	if lines := Wrap("a-word-that-is-longer-than-a-line", 10, 0); len(lines) != 4 {
		t.Errorf("%q", lines)
	}
}

// The selected row keeps the colours of its cells: each is readable on its background.
func TestSelectedRowKeepsColors(t *testing.T) {
	for _, theme := range Themes() {
		st := New(Look{Theme: theme})
		row := st.Row.Under("a " + st.Bad.Of("b") + " c")
		if theme != ThemeNone && !strings.Contains(row, st.Bad.Open+"b") {
			t.Errorf("%s: %q", theme, row)
		}
		if st.Row.Open == "" || strings.Count(row, st.Row.Open) != 2 {
			t.Errorf("%s: the background ends in the middle: %q", theme, row)
		}
		tint := fmt.Sprintf("48;5;%d", tintDark)
		if theme.find().light {
			tint = fmt.Sprintf("48;5;%d", tintLight)
		}
		if theme != ThemeNone && !theme.find().strong && !strings.Contains(st.Row.Open, tint) {
			t.Errorf("%s: %q", theme, st.Row.Open)
		}
		// Bars and glyphs could not be read on a row of solid blocks: only its beginning is one.
		for _, st := range []Styles{st, New(Look{Theme: theme, Sixteen: true})} {
			if strings.Contains(st.Row.Open, "48;") == (st.rowHead == st.Cursor) || st.Row == st.Cursor {
				t.Errorf("%s: a row is %q, and its beginning %q", theme, st.Row.Open, st.rowHead.Open)
			}
		}
	}
	for _, theme := range themes[2:] {
		on := of256(tintDark)
		if theme.light {
			on = of256(tintLight)
		}
		if theme.name == ThemeNone || theme.strong {
			continue // no background: the contrast of the theme
		}
		for i, c := range []color.Color{theme.colors.Good, theme.colors.Info, theme.colors.Warn, theme.colors.Bad} {
			if r := contrast(lightOf(c), lightOf(on)); r < 3.5 {
				t.Errorf("%s: colour %d on a selected row: contrast %.2f", theme.name, i, r)
			}
		}
	}
}
