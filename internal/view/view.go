// Package view makes rows and facts out of what is known of a cluster: what the
// console draws and the command line prints. It does no I/O and knows no style but a
// [Tone]. Units, signs and the escaping of text are decided here, once.
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
