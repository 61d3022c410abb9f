package input

// Prompt is a line with completion and a history of earlier lines.
type Prompt struct {
	Line
	Completion
	history []string
	at      int    // index in the history; len(history): the line being typed
	draft   string // the line being typed, while an older one is shown
}

// NewPrompt returns an empty prompt; history has the latest line last.
func NewPrompt(history []string) *Prompt {
	return &Prompt{Line: New(""), history: history, at: len(history), Completion: Completion{At: -1}}
}

// Recall shows the line d further in the history.
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
