package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"redlockctl/server/safetext"
)

// Schema names the form of the JSON documents; docs/json.md describes them.
// Within a version fields are added, never renamed, retyped or removed.
// Durations are integer milliseconds with the suffix _ms, times of day RFC 3339;
// a field that does not apply is left out. [safetext.Marshal] writes text from a server.
const Schema = "redlockctl/v1"

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

// Encoded returns a document as one line with a line end, safe for a terminal. If kind is
// empty, the body has the kind.
func Encoded(kind string, body any) ([]byte, error) {
	line, err := safetext.Marshal(body)
	if err != nil {
		return nil, err
	}
	rest := append(line[1:], '\n')
	head := fmt.Appendf(nil, `{"schema":%q`, Schema)
	if kind != "" {
		head = fmt.Appendf(head, `,"kind":%q`, kind)
	}
	if rest[0] != '}' {
		head = append(head, ',')
	}
	return append(head, rest...), nil
}
