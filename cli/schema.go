package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/exit"
	"redlockctl/cli/printer"
	"redlockctl/internal/view"
	"redlockctl/server/safetext"
)

// document is a kind of document that commands print with -o json.
type document struct {
	kind string
	body any
}

// documents has every kind of document, in the order of docs/json.md.
func documents() []document {
	return []document{
		{"status", statusJSON{}}, {"clusters", clustersJSON{}}, {"nodes", nodesJSON{}}, {"node", nodePageJSON{}},
		{"locks", locksJSON{}}, {"lock line", lockLineJSON{}}, {"locks end", locksEndJSON{}}, {"lock", lockPageJSON{}},
		{"who", whoJSON{}}, {"guard", guardPageJSON{}}, {"guard forget", guardForgetJSON{}}, {"doctor", doctorJSON{}},
		{"grant", grantJSON{}}, {"kept", keptJSON{}}, {"release", releaseJSON{}}, {"acts", actsJSON{}}, {"plan", planJSON{}}, {"failure", failureJSON{}},
		{"node act", nodeActJSON{}}, {"new cluster", newClusterJSON{}}, {"boot fence", bootFenceJSON{}}, {"boot fences", bootFencesJSON{}},
		{"init", initJSON{}}, {"init check", initCheckJSON{}}, {"lab", labJSON{}},
		{"history", historyJSON{}}, {"recorded grant", view.GrantDoc{}}, {"recorded event", view.PastEventDoc{}}, {"replay", replayJSON{}},
		{"notice", view.NoticeDoc{}}, {"audit", auditJSON{}}, {"audit line", view.AuditDoc{}}, {"audit verify", verifyJSON{}},
		{"config", configJSON{}}, {"config", badConfigJSON{}}, {"acl", aclJSON{}}, {"info", infoJSON{}}, {"version", versionJSON{}},
	}
}

func (a *commandLine) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "The fields of the JSON documents",
		Long: `Prints the fields of each kind of JSON document, or of one kind, with their types.
With -o json it prints a JSON Schema.`,
		Example: `redlockctl schema lock
redlockctl schema -o json >redlockctl.schema.json`,
		ValidArgsFunction: func(*cobra.Command, []string, string) (kinds []cobra.Completion, _ cobra.ShellCompDirective) {
			for _, d := range documents() {
				kinds = append(kinds, d.kind)
			}
			return kinds, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.run(func(_ context.Context, args []string) error {
			kind := strings.Join(args, " ") // "lock line" needs no quotes
			var shown []document
			for _, d := range documents() {
				if kind == "" || kind == d.kind {
					shown = append(shown, d)
				}
			}
			if len(shown) == 0 {
				return exit.Usagef("no document of kind %q: redlockctl schema lists all", kind)
			}
			if a.Output == "json" {
				return a.printSchema(shown)
			}
			for _, d := range shown {
				fmt.Fprintln(a.Out, d.kind)
				for _, f := range formOf(reflect.TypeOf(d.body)).fields {
					printForm(a.Printer, "  ", f)
				}
			}
			return nil
		}),
	}
}

// form is the form of a value in a document: its JSON type and what it consists of.
type form struct {
	json   string // a type of JSON Schema
	format string // of a string
	items  *form  // of an array, and of the values of an object with any names
	fields []field
}

type field struct {
	name     string
	optional bool // it may be left out
	form
}

// formOf returns the form in which encoding/json writes a type.
func formOf(t reflect.Type) form {
	switch t {
	case reflect.TypeFor[safetext.Text]():
		return form{json: "string"}
	case reflect.TypeFor[time.Time]():
		return form{json: "string", format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return form{json: "object"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return formOf(t.Elem())
	case reflect.Bool:
		return form{json: "boolean"}
	case reflect.String:
		return form{json: "string"}
	case reflect.Float32, reflect.Float64:
		return form{json: "number"}
	case reflect.Slice, reflect.Map:
		items := formOf(t.Elem())
		if t.Kind() == reflect.Map {
			return form{json: "object", items: &items}
		}
		return form{json: "array", items: &items}
	case reflect.Struct:
		return form{json: "object", fields: fieldsOf(t)}
	}
	return form{json: "integer"}
}

// fieldsOf returns the fields of a struct, those of embedded structs in their place.
func fieldsOf(t reflect.Type) (fields []field) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Type == reflect.SliceOf(t): // documents of the same kind
			fields = append(fields, field{name, strings.Contains(options, "omit"), form{json: "array", items: &form{json: "object"}}})
		case name == "" && f.Anonymous:
			fields = append(fields, formOf(f.Type).fields...)
		case name != "":
			fields = append(fields, field{name, strings.Contains(options, "omit"), formOf(f.Type)})
		}
	}
	return fields
}

// printForm prints a line for a field and for each field in it.
func printForm(p *printer.Printer, indent string, f field) {
	what, in := f.json, f.form
	for in.items != nil {
		in = *in.items
		what += " of " + in.json
	}
	if in.format != "" {
		what += " (" + in.format + ")"
	}
	if f.optional {
		what += ", optional"
	}
	fmt.Fprintf(p.Out, "%s%s: %s\n", indent, f.name, what)
	for _, sub := range in.fields {
		printForm(p, indent+"  ", sub)
	}
}

// printSchema prints a JSON Schema of documents: one of them is what a command prints.
func (a *commandLine) printSchema(shown []document) error {
	var kinds []map[string]any
	for _, d := range shown {
		schema := schemaOf(formOf(reflect.TypeOf(d.body)))
		properties := schema["properties"].(map[string]any)
		properties["schema"] = map[string]any{"const": printer.Schema}
		properties["kind"] = map[string]any{"const": d.kind}
		required, _ := schema["required"].([]string)
		schema["required"] = append([]string{"schema", "kind"}, required...)
		kinds = append(kinds, schema)
	}
	body, err := json.MarshalIndent(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": printer.Schema, "anyOf": kinds}, "", "  ")
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(body, '\n'))
	return err
}

// schemaOf returns the JSON Schema of a form.
func schemaOf(f form) map[string]any {
	schema := map[string]any{"type": f.json}
	switch {
	case f.format != "":
		schema["format"] = f.format
	case f.json == "array":
		schema["items"] = schemaOf(*f.items)
	case f.items != nil:
		schema["additionalProperties"] = schemaOf(*f.items)
	case f.json == "object":
		properties := map[string]any{}
		var required []string
		for _, field := range f.fields {
			properties[field.name] = schemaOf(field.form)
			if !field.optional {
				required = append(required, field.name)
			}
		}
		schema["properties"] = properties
		if required != nil {
			schema["required"] = required
		}
	}
	return schema
}
