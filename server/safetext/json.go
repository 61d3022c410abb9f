package safetext

import (
	"bytes"
	"encoding/json"
	"regexp"
	"unicode/utf16"
	"unicode/utf8"
)

// Marshal returns the JSON of a document on one line, safe for a terminal and a log. A
// field whose [Text] is not UTF-8 has U+FFFD for the bytes that JSON cannot hold, and a
// second field with the suffix _base64 has its exact bytes. A list of texts has a second
// list with all of its items.
func Marshal(doc any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	line := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if bytes.Contains(line, []byte(`","base64":"`)) {
		line = exactList.ReplaceAllFunc(line, splitList)
		line = exactField.ReplaceAll(line, []byte(`"$1":$2,"${1}_base64":$3`))
	}
	return EscapeJSON(line), nil
}

// MarshalJSON returns the text as a JSON string that is safe for a terminal, or as an
// object of text and base64 if it is not UTF-8: [Marshal] makes two fields of it.
func (t Text) MarshalJSON() ([]byte, error) {
	var doc any = t.raw
	if !utf8.ValidString(t.raw) {
		doc = exact{t.raw, []byte(t.raw)}
	}
	out, err := json.Marshal(doc)
	return EscapeJSON(out), err
}

type exact struct {
	Text   string `json:"text"`
	Base64 []byte `json:"base64"`
}

// A quote within a string of JSON follows a backslash, so no text can imitate a field.
const (
	jsonString = `"(?:[^"\\]|\\.)*"`
	jsonExact  = `\{"text":(` + jsonString + `),"base64":("[^"]*")\}`
	jsonItem   = `(?:` + jsonString + `|\{"text":` + jsonString + `,"base64":"[^"]*"\})`
)

var (
	exactField = regexp.MustCompile(`"([a-z0-9_]+)":` + jsonExact)
	exactList  = regexp.MustCompile(`"([a-z0-9_]+)":\[(` + jsonItem + `(?:,` + jsonItem + `)*)\]`)
)

// splitList returns a list of texts as two lists, if one of them is not UTF-8.
func splitList(list []byte) []byte {
	m := exactList.FindSubmatch(list)
	if !bytes.Contains(m[2], []byte(`","base64":"`)) {
		return list
	}
	var items []json.RawMessage
	if json.Unmarshal(append(append([]byte{'['}, m[2]...), ']'), &items) != nil {
		return list
	}
	texts, raw := make([]string, len(items)), make([][]byte, len(items))
	for i, item := range items {
		var e exact
		if json.Unmarshal(item, &e) != nil {
			_ = json.Unmarshal(item, &e.Text)
			e.Base64 = []byte(e.Text)
		}
		texts[i], raw[i] = e.Text, e.Base64
	}
	t, _ := json.Marshal(texts)
	b, _ := json.Marshal(raw)
	out := append(append([]byte{'"'}, m[1]...), `":`...)
	out = append(append(append(out, t...), `,"`...), m[1]...)
	return append(append(out, `_base64":`...), b...)
}

// EscapeJSON makes a JSON document safe for a terminal and a log: each character that
// [Escape] would escape becomes a JSON escape. Such characters can be in strings only, so
// the meaning of the document stays the same. Line ends between its parts are kept.
func EscapeJSON(doc []byte) []byte {
	if !bytes.ContainsFunc(doc, func(r rune) bool { return r != '\n' && !visible(r) }) {
		return doc
	}
	out := make([]byte, 0, len(doc))
	for _, r := range string(doc) {
		switch {
		case r == '\n' || visible(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = appendU(appendU(out, high), low)
		default:
			out = appendU(out, r)
		}
	}
	return out
}

func appendU(out []byte, r rune) []byte {
	return append(out, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// Optional is a text in a JSON document that is left out where it is empty.
func Optional(raw string) *Text {
	if raw == "" {
		return nil
	}
	return &Text{raw}
}

// OptionalError returns the text of an error for a JSON document; nil for no error.
func OptionalError(err error) *Text {
	if err == nil {
		return nil
	}
	return Optional(err.Error())
}
