package view

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"redlockctl/server/safetext"
)

// CSV writes rows as comma-separated values: for each column the fields of the JSON
// document with the same content, with their names as headings. doc makes the document of
// a row. Text is escaped as in a table, and its first character too if a spreadsheet would
// take it for a formula.
func CSV[T any](to io.Writer, columns []Column[T], rows []T, doc func(T) any) error {
	w := NewCSV(to, columns, doc)
	for _, r := range rows {
		w.Add(r)
	}
	return w.Flush()
}

// CSVWriter writes [CSV] row by row.
type CSVWriter[T any] struct {
	w              *csv.Writer
	fields, record []string
	known          fieldPlaces
	doc            func(T) any
}

// NewCSV writes the headings.
func NewCSV[T any](to io.Writer, columns []Column[T], doc func(T) any) *CSVWriter[T] {
	c := &CSVWriter[T]{w: csv.NewWriter(to), known: fieldPlaces{}, doc: doc}
	for _, col := range columns {
		c.fields = append(c.fields, col.Fields...)
	}
	c.record = make([]string, len(c.fields))
	_ = c.w.Write(c.fields) // Flush returns the error
	return c
}

// Add adds a row.
func (c *CSVWriter[T]) Add(row T) {
	v := reflect.ValueOf(c.doc(row))
	for i, f := range c.fields {
		c.record[i] = c.known.field(v, f)
	}
	_ = c.w.Write(c.record) // Flush returns the error
}

// Flush writes what was added, and returns the first error.
func (c *CSVWriter[T]) Flush() error {
	c.w.Flush()
	return c.w.Error()
}

// fieldPlaces caches where structs have the fields with these JSON names.
type fieldPlaces map[fieldPlace][]int

type fieldPlace struct {
	of   reflect.Type
	name string
}

// field returns a field of a document by its JSON path, such as "nodes.0.state"; empty if
// it is left out or missing.
func (p fieldPlaces) field(v reflect.Value, path string) string {
	for path != "" && v.IsValid() {
		var name string
		name, path, _ = strings.Cut(path, ".")
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.Struct:
			v = v.FieldByIndex(p.index(v.Type(), name))
		case reflect.Slice:
			i, err := strconv.Atoi(name)
			if err != nil || i >= v.Len() {
				return ""
			}
			v = v.Index(i)
		default:
			return ""
		}
	}
	return scalarText(v)
}

// index returns where a struct has a field. A missing field is an error in the declaration
// of a column, which tests find.
func (p fieldPlaces) index(t reflect.Type, name string) []int {
	if i, ok := p[fieldPlace{t, name}]; ok {
		return i
	}
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			p[fieldPlace{t, name}] = f.Index
			return f.Index
		}
	}
	panic("view: no field " + name + " in " + t.String())
}

func scalarText(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return ""
	}
	switch x := v.Interface().(type) {
	case safetext.Text:
		return spreadsheet(x.Raw())
	case string:
		return spreadsheet(x)
	case time.Time:
		if x.IsZero() {
			return ""
		}
		return x.Format(time.RFC3339Nano)
	}
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	var parts []string
	for i := range v.Len() {
		parts = append(parts, scalarText(v.Index(i)))
	}
	return strings.Join(parts, " ")
}

// spreadsheet renders text so that no spreadsheet takes it for a formula.
func spreadsheet(raw string) string {
	s := safetext.Escape(raw)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return `\x` + strconv.FormatInt(int64(s[0]), 16) + s[1:]
	}
	return s
}
