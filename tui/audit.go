package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/page"
)

const (
	auditPace = time.Second // the time between two looks at the audit log, at least
	auditDuty = 10          // and so many times what one took
)

// auditMsg is the audit log as it was read.
type auditMsg struct {
	turn int
	log  *view.AuditLog
	next tea.Cmd
}

func (m *model) openAudit(string) tea.Cmd { return m.open(page.Place{Kind: page.Audit}) }

func (m *model) hasAudit() bool { return m.opt.Audit != nil }

// lookAtAudit reads the audit log while its page is shown.
func (m *model) lookAtAudit() tea.Cmd {
	m.auditTurn++
	if m.viewed() != page.Audit {
		return nil
	}
	read, turn, wait := m.opt.Audit, m.auditTurn, feed{ctx: m.Ctx}
	pause := time.Duration(0)
	var next tea.Cmd
	next = func() tea.Msg {
		if !wait.sleep(pause) {
			return nil
		}
		began := time.Now()
		log := read()
		pause = max(auditPace, auditDuty*time.Since(began))
		return auditMsg{turn, log, next}
	}
	return next
}

// takeAudit takes in the audit log, and waits for more of it.
func (m *model) takeAudit(msg auditMsg) tea.Cmd {
	if msg.turn != m.auditTurn {
		return nil
	}
	if !m.Frozen.On() {
		m.Set.Audit.Take(msg.log)
	}
	return msg.next
}
