package action

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// mostAnswers bounds the remembered answers.
const mostAnswers = 1000

// Answered is the answer to who holds a lock.
type Answered struct {
	by     Actions // of the cluster of the lock
	key    string
	name   string // safe to show
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
	m.told, m.unanswered, m.watching, m.watchingKey, m.watchingFrom = nil, nil, name, key, m.Now()
	return func() tea.Msg {
		a, err := by.Who(ctx, key, known)
		return Answered{by, key, name, a, err}
	}
}

// whoNote is what the screen says of an answer until it is closed.
type whoNote struct {
	key   string // of the lock
	tone  view.Tone
	texts []string // each begins on a line of its own; safe to show
	at    time.Time
	// answer is about who holds it; nil: the texts are about something else.
	answer *who.Answer
}

// noteTime is how long an answer is shown at most: it is on the lock's page too.
const noteTime = time.Minute

// WhoLines says in lines of at most w cells which lock is being watched, and who holds the
// one that was; whole, in most lines at most.
func (m *Desk) WhoLines(w, most int) (lines []string) {
	st := m.St
	add := func(p styles.Paint, text string) {
		for _, l := range styles.Wrap(text, w-2, 2) {
			lines = append(lines, " "+p.Of(l))
		}
	}
	if note := m.told; note != nil {
		texts := note.texts
		if ended := m.endedSince(note.answer); ended != nil {
			texts = []string{st.Escape(note.key, 40) + ": it has ended since: " + view.WhoHeadline(ended)}
		}
		for i, text := range texts {
			if p := (styles.Paint{}); i == 0 {
				add(st.Paint(note.tone), text)
			} else {
				add(p, text)
			}
		}
		if len(lines) > most {
			lines = append(lines[:max(0, most-1)], " "+st.Dim.Of(st.Ellipsis+" the rest is on the lock's page: o"))
		}
		if last := len(lines) - 1; view.Width(lines[last])+len("  esc: close") < w {
			lines[last] += st.Dim.Of("  esc: close")
		} else {
			add(st.Dim, "esc: close")
		}
	}
	if m.watching != "" {
		add(st.Info, m.watchText(m.watching))
	}
	return lines
}

// endedSince is an answer whose lock has ended since; nil: it has not, as far as is known.
func (m *Desk) endedSince(a *who.Answer) *who.Answer {
	if a == nil {
		return nil
	}
	if is := view.WhoAsOf(a, m.Latest); is.Token == a.Token && !is.Ended {
		return nil
	}
	ended := *a
	ended.Ended = true
	return &ended
}

func (m *Desk) watchText(name string) string {
	return "watching " + name + " for up to a minute: who holds it" + m.St.Ellipsis + " " + view.Age(m.Now().Sub(m.watchingFrom))
}

// CloseWho closes the answer, and reports whether there was one.
func (m *Desk) CloseWho() bool {
	was := m.told != nil
	m.told = nil
	return was
}

// TakeAnswer shows who holds a lock, and remembers it as long as the token is the same.
func (m *Desk) TakeAnswer(a Answered) {
	m.watching = ""
	tell := func(tone view.Tone, texts ...string) {
		m.told = &whoNote{key: a.key, tone: tone, texts: texts, at: m.Now()}
	}
	fails := func(text string) { tell(view.Bad, text); m.unanswered = m.told }
	switch {
	case a.by != m.Actions: // the screen shows another cluster now
	case errors.Is(a.err, who.ErrTooMany):
		fails(m.St.Whole(a.err.Error()) + ". On the command line: redlockctl who --force")
	case a.err != nil:
		fails(a.name + ": " + m.St.Whole(a.err.Error()))
	case view.WhoRefused(a.answer) != "":
		fails(a.name + ": who holds it is not known: " + view.WhoRefused(a.answer))
	case a.answer.Held == 0:
		now := view.WhoAsOf(a.answer, m.Latest)
		if now.Since.Before(a.answer.At.Add(-time.Second)) { // the answer would have seen its copies
			tell(view.Warn, a.name+": nobody holds it any more")
			if !a.answer.LastHeld.IsZero() {
				m.told.texts = append(m.told.texts, view.WhoHad(a.answer), view.WhoHeadline(a.answer))
			}
			return
		}
		tell(view.Warn, a.name+": "+view.WhoHeadline(now))
		if before := view.WhoBefore(now); before != "" {
			m.told.texts = append(m.told.texts, before)
		}
	default:
		if m.Answers == nil || len(m.Answers) >= mostAnswers {
			m.Answers = map[string]*who.Answer{}
		}
		m.Answers[a.answer.Token.Raw()] = a.answer
		tone, there := view.Good, ""
		l := m.LatestLock(a.answer.Key)
		if l != nil && l.Holder != a.answer.Token {
			l = nil
		}
		if is := view.WhoThere(m.latest(), l, a.answer); is != "" && is != string(who.Alive) {
			tone, there = view.Warn, is+"; "
		}
		tell(tone, a.name+": "+there+view.WhoHeadline(a.answer))
		m.told.answer = a.answer
		if hint := view.WhoHint(a.answer); hint != "" {
			m.told.texts = append(m.told.texts, hint)
		}
	}
}

// whoText says that a lock's holder was not looked for, is being looked for, or was not found.
func (m *Desk) whoText(key string) string {
	switch no := m.unanswered; {
	case m.watching != "" && m.watchingKey == key:
		return m.watchText("it")
	case no != nil && no.key == key:
		return "asked " + view.Age(m.Now().Sub(no.at)) + " ago: " + no.texts[0]
	}
	return "not asked: esc, then w says whether its holder is alive, silent or gone"
}
