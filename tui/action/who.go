package action

import (
	"errors"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/tui/page"
)

// mostAnswers bounds the remembered answers.
const mostAnswers = 1000

// Answered is the answer to who holds a lock.
type Answered struct {
	by     Actions // of the cluster of the lock
	name   string  // safe to show
	answer *who.Answer
	err    error
}

// WhyNoWho says why the holder of the lock under the cursor cannot be looked for. It
// changes nothing, so it is possible in read-only mode.
func (m *Desk) WhyNoWho() string {
	switch on := m.On(); {
	case m.Actions == nil:
		return "there is nothing here to ask with"
	case on.Mode&page.ModeOnLock == 0:
		return "go to the locks first: tab, or 2"
	case on.Lock == nil || m.one(nil) == nil:
		return "no lock under the cursor"
	case m.watching != "":
		return "still watching " + m.watching
	}
	return ""
}

// AskWho looks for the holder of the lock under the cursor in the background. Only then
// does the console read lists of connections.
func (m *Desk) AskWho() tea.Cmd {
	l, ctx, by := m.one(nil), m.Ctx, m.Actions
	key, known := l.Key.Raw(), m.Answers[l.Holder.Raw()]
	name := m.St.Escape(key, 40)
	m.watching = name
	return func() tea.Msg {
		a, err := by.Who(ctx, key, known)
		return Answered{by, name, a, err}
	}
}

// Watching names the lock whose holder is being looked for; empty if none.
func (m *Desk) Watching() string {
	if m.watching == "" {
		return ""
	}
	return "watching " + m.watching + " for up to a minute: who holds it" + m.St.Ellipsis
}

// TakeAnswer remembers who holds a lock as long as the token is the same.
func (m *Desk) TakeAnswer(a Answered) {
	m.watching = ""
	switch {
	case a.by != m.Actions: // the screen shows another cluster now
	case errors.Is(a.err, who.ErrTooMany):
		m.Say(m.St.Bad, m.St.Whole(a.err.Error())+". On the command line: redlockctl who --force")
	case a.err != nil:
		m.Say(m.St.Bad, a.name+": "+m.St.Whole(a.err.Error()))
	case view.WhoRefused(a.answer) != "":
		m.Say(m.St.Bad, a.name+": who holds it is not known: "+view.WhoRefused(a.answer))
	case a.answer.Held == 0:
		m.Say(m.St.Warn, a.name+": nobody holds it any more")
	default:
		if m.Answers == nil || len(m.Answers) >= mostAnswers {
			m.Answers = map[string]*who.Answer{}
		}
		m.Answers[a.answer.Token.Raw()] = a.answer
		p, there := m.St.Good, ""
		if a.answer.Liveness != who.Alive {
			if there = view.WhoThere(a.answer); there != "" {
				p, there = m.St.Warn, there+"; "
			}
		}
		m.Say(p, a.name+": "+there+view.WhoHeadline(a.answer))
	}
}
