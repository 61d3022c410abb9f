package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"redlockctl/server/safetext"
)

// YAML is the form of a YAML document with the fields of JSON in their order. Several are
// separated by "---".
func YAML(w io.Writer, doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	y := &yamlWriter{from: d}
	y.b.WriteString("---")
	if err := y.value(0, false); err != nil {
		return err
	}
	_, err := y.b.WriteTo(w)
	return err
}

type yamlWriter struct {
	from *json.Decoder
	b    bytes.Buffer
}

// value writes the next value, after "key:", "-" or "---". inItem: in the line of an item, where
// the first field of a map goes on in the same line.
func (y *yamlWriter) value(indent int, inItem bool) error {
	t, err := y.from.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		end := map[json.Delim]string{'{': "{}", '[': "[]"}[t]
		if !y.from.More() {
			y.b.WriteString(" " + end + "\n")
			_, err = y.from.Token()
			return err
		}
		for first := true; y.from.More(); first = false {
			switch {
			case first && inItem:
				y.b.WriteByte(' ')
			case first:
				y.b.WriteByte('\n')
				fallthrough
			default:
				y.b.WriteString(strings.Repeat("  ", indent))
			}
			if t == '{' {
				key, err := y.from.Token()
				if err != nil {
					return err
				}
				y.b.WriteString(yamlString(key.(string)) + ":")
				if err := y.value(indent+1, false); err != nil {
					return err
				}
				continue
			}
			y.b.WriteByte('-')
			if err := y.value(indent+1, true); err != nil {
				return err
			}
		}
		_, err = y.from.Token()
		return err
	case string:
		y.b.WriteString(" " + yamlString(t) + "\n")
	case nil:
		y.b.WriteString(" null\n")
	default:
		fmt.Fprintf(&y.b, " %v\n", t)
	}
	return nil
}

// yamlPlain matches texts that YAML reads as texts without quotes.
var yamlPlain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./:@%+*$~=-]*( [A-Za-z0-9_./@%+*$~=(),;'-]+)*$`)

// yamlWords are read as something else by some version of YAML.
var yamlWords = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}

// yamlString returns a text without quotes if that is unambiguous. In quotes, all that a terminal
// must not get is escaped.
func yamlString(s string) string {
	if yamlPlain.MatchString(s) && !strings.HasSuffix(s, ":") && !strings.Contains(s, ": ") && !slices.Contains(yamlWords, strings.ToLower(s)) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == ' ' || r != '\u2028' && r != '\u2029' && r != '\ufeff' && safetext.New(string(r)).Clean():
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String() + `"`
}
