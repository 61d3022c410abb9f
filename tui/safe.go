package tui

import (
	"reflect"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/crash"
)

// safeModel is the model whose commands, which the toolkit runs in goroutines of its own, give the terminal back
// before they end the process by a panic.
type safeModel struct{ tea.Model }

func (m safeModel) Init() tea.Cmd { return safe(m.Model.Init()) }

func (m safeModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	next, cmd := m.Model.Update(msg)
	return safeModel{next}, safe(cmd)
}

// safe is a command, and all those that it hands out to be run together or one after the other.
func safe(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		crash.Safe(func() { msg = cmd() })()
		// The toolkit's type for those one after the other has no name here.
		if all := reflect.ValueOf(msg); all.Kind() == reflect.Slice && all.Type().Elem() == reflect.TypeFor[tea.Cmd]() {
			for i := range all.Len() {
				all.Index(i).Set(reflect.ValueOf(safe(all.Index(i).Interface().(tea.Cmd))))
			}
		}
		return msg
	}
}
