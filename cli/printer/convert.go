package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	"redlockctl/server/safetext"
)

// Form writes a JSON document in another form.
type Form func(w io.Writer, doc []byte) error

// Convert makes the documents that a command prints as JSON leave in another form: YAML, or by a
// template.
func (p *Printer) Convert(f Form) {
	p.Output = "json"
	p.Out = &converting{Writer: p.Out, form: f}
}

// Unconvert makes the command print text after all.
func (p *Printer) Unconvert() { p.Output, p.Out = "table", p.unconverted() }

// converting is standard output for documents in another form.
type converting struct {
	io.Writer
	form Form

	doc              []byte
	depth            int
	quoted, escaping bool // inside a string
}

// Write takes a part of one document or of several. Each is written when it is complete.
func (w *converting) Write(p []byte) (int, error) {
	for i, c := range p {
		w.doc = append(w.doc, c)
		switch {
		case w.escaping:
			w.escaping = false
		case w.quoted && c == '\\':
			w.escaping = true
		case c == '"':
			w.quoted = !w.quoted
		case w.quoted:
		case c == '{' || c == '[':
			w.depth++
		case c == '}' || c == ']':
			if w.depth--; w.depth == 0 {
				err := w.form(w.Writer, w.doc)
				w.doc = w.doc[:0]
				if err != nil {
					return i + 1, err
				}
			}
		}
	}
	return len(p), nil
}

// Template returns the form of a template of Go over a document, whose fields are those of JSON.
// Texts are as safe to show as in a table.
func Template(text string) (Form, error) {
	t, err := template.New("template").Funcs(template.FuncMap{
		"json": func(v any) (string, error) {
			line, err := json.Marshal(v)
			return string(safetext.EscapeJSON(line)), err
		},
		"join":  func(between string, list []any) string { return strings.Join(words(list), between) },
		"lower": strings.ToLower,
		"upper": strings.ToUpper,
	}).Parse(text)
	if err != nil {
		return nil, errors.New(safetext.Escape(strings.TrimPrefix(err.Error(), "template: ")))
	}
	return func(w io.Writer, doc []byte) error {
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, shown(v)); err != nil {
			return errors.New(safetext.Escape(err.Error()))
		}
		if b.Len() > 0 && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
			b.WriteByte('\n')
		}
		_, err := b.WriteTo(w)
		return err
	}, nil
}

func words(list []any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = fmt.Sprint(v)
	}
	return out
}

// shown returns a value with texts that are safe to show, and numbers that a template can compare.
func shown(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = shown(v[key])
		}
	case []any:
		for i := range v {
			v[i] = shown(v[i])
		}
	case string:
		return safetext.Escape(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		f, _ := v.Float64()
		return f
	}
	return v
}
