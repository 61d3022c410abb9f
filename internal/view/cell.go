package view

// Tone is how urgent a text is. It is shown as a colour where there are colours,
// and never says what the text does not.
type Tone uint8

const (
	None Tone = iota
	Good
	Info
	Warn
	Bad
	Dim
	Strong
)

// Cell is a part of a row that is safe to print.
type Cell struct {
	Sign string // a glyph before the text, where there is room for glyphs
	Text string
	Tone Tone
}

// Fact is a line of a page. One without a label goes on with the fact before.
type Fact struct {
	Label, Text string
	Tone        Tone
}
