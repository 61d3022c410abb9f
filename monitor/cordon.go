package monitor

import (
	"strings"
	"time"

	"redlockctl/monitor/words"
)

// Cordon is how an operator cordoned a node, as the audit log of this machine has it.
type Cordon struct {
	Action // At is when it began
	// Restart are the nodes that a planned restart had still to restart, this one first; nil: it was cordoned
	// for none.
	Restart []string
	// Stopped: that restart is known to have stopped here, by an interrupt or a failure.
	Stopped bool
}

// Told says when it was cordoned, by whom and why, and for which restart; not escaped: "at 12:03:10 by
// ops@host: disk".
func (c *Cordon) Told(now time.Time) string {
	text := words.At(c.At.Local(), now) + c.By()
	switch {
	case c.Restart == nil:
		return text
	case c.Stopped:
		return text + "; in a restart of " + strings.Join(c.Restart, ", ") + " that was interrupted"
	}
	return text + "; in a restart of " + strings.Join(c.Restart, ", ") + " that goes on or was interrupted"
}

// GoOn says how to go on with the restart that it was cordoned for; empty: there was none.
func (c *Cordon) GoOn() string {
	if c.Restart == nil {
		return ""
	}
	how := "redlockctl restart " + strings.Join(c.Restart, " ") + " --resume -- COMMAND"
	if c.Stopped {
		return "To go on with the restart: " + how
	}
	return "If the restart was interrupted, to go on: " + how
}
