package cli

import (
	"slices"
	"testing"

	"redlockctl/internal/config"
	"redlockctl/tui"
	"redlockctl/tui/styles"
)

// The configuration, which knows nothing of the screen, names its themes and reads its
// colours as the screen does.
func TestThemesOfTheConfigurationAreThoseOfTheScreen(t *testing.T) {
	var names []string
	for _, theme := range styles.Themes() {
		names = append(names, string(theme))
	}
	if !slices.Equal(names, config.Themes()) {
		t.Errorf("the screen has the themes %q, the configuration %q", names, config.Themes())
	}
	colors := map[string]string{}
	for _, meaning := range config.Meanings() {
		colors[meaning] = "#112233"
	}
	opt := themed(tui.Options{}, config.TUI{Theme: "light", Colors: colors})
	if c := opt.Colors; opt.Theme != styles.ThemeLight || c.Good == nil || c.Info == nil || c.Warn == nil || c.Bad == nil {
		t.Errorf("%+v", opt.Colors)
	}
}
