package printer

import (
	"bytes"
	"encoding/json"
	"io"

	"redlockctl/internal/view"
)

// Schema names the form of the JSON documents: see [view.Schema].
const Schema = view.Schema

// Document prints a document in the format of --output; printed is false for a table.
// kind names the document; "schema" and "kind" come first in each.
func (p *Printer) Document(kind string, body any) (printed bool, err error) {
	switch p.Output {
	case "json":
		return true, p.JSON(kind, body)
	case "jsonl":
		return true, p.Line(kind, body)
	}
	return false, nil
}

// JSON writes one document.
func (p *Printer) JSON(kind string, body any) error { return JSON(p.Out, kind, body) }

// JSON writes one document.
func JSON(w io.Writer, kind string, body any) error {
	line, err := Encoded(kind, body)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, line, "", "  "); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// Line writes one document on one line.
func (p *Printer) Line(kind string, body any) error { return Line(p.Out, kind, body) }

// Line writes one document on one line.
func Line(w io.Writer, kind string, body any) error {
	line, err := Encoded(kind, body)
	if err != nil {
		return err
	}
	_, err = w.Write(line)
	return err
}

// Encoded returns a document as one line with a line end: see [view.Envelope].
func Encoded(kind string, body any) ([]byte, error) { return view.Envelope(kind, body) }
