package input

// Prompt is a line that completes itself, and those that were typed before.
type Prompt struct {
	Line
	Completion
	history []string
	at      int    // in the history; len(history): the line that was typed
	draft   string // that line, while another is recalled
}

// NewPrompt is an empty line after these, the latest last.
func NewPrompt(history []string) *Prompt {
	return &Prompt{Line: New(""), history: history, at: len(history), Completion: Completion{At: -1}}
}

// Recall goes d lines along the history.
func (p *Prompt) Recall(d int) {
	to := max(0, min(len(p.history), p.at+d))
	if to == p.at {
		return
	}
	if p.at == len(p.history) {
		p.draft = p.String()
	}
	p.at = to
	text := p.draft
	if to < len(p.history) {
		text = p.history[to]
	}
	p.Set(text)
	p.Typed()
}
