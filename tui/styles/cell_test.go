package styles

import (
	"testing"
	"time"

	"redlockctl/internal/view"
)

func TestSparkline(t *testing.T) {
	ms := time.Millisecond
	if got := unicodeGlyphs.Sparkline([]time.Duration{ms, ms, 8 * ms, ms}, 6); got != "  ▁▁█▁" {
		t.Errorf("%q", got)
	}
	if got := asciiGlyphs.Sparkline([]time.Duration{ms, 2 * ms}, 1); got != "_" {
		t.Errorf("%q", got)
	}
	if got := unicodeGlyphs.Sparkline(nil, 4); view.Width(got) != 4 {
		t.Errorf("%q", got)
	}
	if got := unicodeGlyphs.Sparkline([]time.Duration{300000, 401000, 299000}, 3); got != "▁▁▁" {
		t.Errorf("noise looks like trouble: %q", got)
	}
}
