package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/prefs"
	"redlockctl/tui/styles"
)

func themeWords(string) (words []string) {
	for _, t := range styles.Themes() {
		words = append(words, string(t))
	}
	return words
}

func (m *model) themeBy(word string) tea.Cmd {
	t := styles.Theme(word)
	switch {
	case !slices.Contains(styles.Themes(), t):
		m.say(m.St.Bad, "a theme is one of "+strings.Join(themeWords(""), ", "))
		return nil
	case m.noColor && t != styles.ThemeNone:
		m.say(m.St.Warn, "no colours here: NO_COLOR or the configuration says so")
		return nil
	}
	look := m.St.Look
	look.Theme = t
	m.restyle(look)
	if m.theme != "" {
		m.say(m.St.Info, "until you quit: the configuration names the theme "+string(m.theme))
	}
	return m.prefs.Keep(func(p *prefs.Preferences) { p.Theme = t })
}

func (m *model) toggleASCII(string) tea.Cmd {
	look := m.St.Look
	look.ASCII = !look.ASCII
	m.restyle(look)
	return nil
}

func (m *model) toggleMouse(string) tea.Cmd {
	on := !m.prefs.Mouse
	m.mouseOn = on
	if on {
		m.say(m.St.Info, "the mouse is taken: shift selects text")
	} else {
		m.say(m.St.Info, "the mouse is the terminal's own")
	}
	return m.prefs.Keep(func(p *prefs.Preferences) { p.Mouse = on })
}

// restyle redraws everything with other colours or characters.
func (m *model) restyle(look styles.Look) {
	*m.St = styles.New(look)
	m.LockView.Restyle()
}
