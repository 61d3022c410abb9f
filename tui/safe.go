package tui

import (
	"reflect"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/crash"
)

// safeModel wraps the model: if a command, which Bubble Tea runs in its own goroutine,
// panics, it restores the terminal first.
type safeModel struct{ tea.Model }

func (m safeModel) Init() tea.Cmd { return safe(m.Model.Init()) }

func (m safeModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	next, cmd := m.Model.Update(msg)
	return safeModel{next}, safe(cmd)
}

// safe wraps a command, and all commands of a batch or sequence that it returns.
func safe(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		crash.Safe(func() { msg = cmd() })()
		// Bubble Tea does not export the type of a sequence.
		if all := reflect.ValueOf(msg); all.Kind() == reflect.Slice && all.Type().Elem() == reflect.TypeFor[tea.Cmd]() {
			for i := range all.Len() {
				all.Index(i).Set(reflect.ValueOf(safe(all.Index(i).Interface().(tea.Cmd))))
			}
		}
		return msg
	}
}
