package view

import (
	"slices"
	"strings"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/monitor/filter"
	"redlockctl/server/safetext"
)

// EventLanguage has the fields of a filter of events.
var EventLanguage = filter.Language[*monitor.Event]{
	Text: textOfEvents,
	Texts: func(e *monitor.Event, such func(safetext.Text) bool) bool {
		return such(e.Text) || such(e.Key) || such(safetext.New(e.Kind)) || such(safetext.New(e.Node))
	},
	Fields: slices.Insert(eventFields(
		func(e *monitor.Event) string { return e.Kind }, func(e *monitor.Event) string { return e.Node },
		func(e *monitor.Event) safetext.Text { return e.Key }, func(e *monitor.Event) time.Time { return e.At },
	), 3, filter.Field[*monitor.Event]{
		Name: "level", Example: "level:alarm", Help: "of this level: info, notice, alarm",
		Is: func(e *monitor.Event) string { return e.Level.String() }, Words: []string{monitor.LevelInfo.String(), monitor.LevelNotice.String(), monitor.LevelAlarm.String()},
	}),
}

// PastEventLanguage has the fields of a filter of recorded events.
var PastEventLanguage = filter.Language[*PastEventDoc]{
	Text: textOfEvents,
	Texts: func(e *PastEventDoc, such func(safetext.Text) bool) bool {
		return such(e.Text) || e.Lock != nil && such(*e.Lock) || such(safetext.New(e.Kind)) || e.Node != nil && such(*e.Node)
	},
	Fields: eventFields(
		func(e *PastEventDoc) string { return e.Kind }, func(e *PastEventDoc) string { return rawOf(e.Node) },
		func(e *PastEventDoc) safetext.Text { return safetext.New(rawOf(e.Lock)) }, func(e *PastEventDoc) time.Time { return e.At },
	),
}

// textOfEvents names the texts in which a term without a field is searched.
const textOfEvents = "all texts of an event"

func eventFields[T any](kind, node func(T) string, lock func(T) safetext.Text, at func(T) time.Time) []filter.Field[T] {
	return []filter.Field[T]{{
		Name: "kind", Example: "kind:restart", Help: "whose kind contains this",
		Has: func(e T, text string) bool { return filter.HasFold(safetext.New(kind(e)), text) },
	}, {
		Name: "node", Example: "node:n2", Help: "about this node",
		Has: func(e T, text string) bool { return strings.EqualFold(node(e), text) },
	}, {
		Name: "lock", Example: "lock:orders", Help: "about a lock whose name contains this",
		Has: func(e T, text string) bool { l := lock(e); return !l.Empty() && filter.HasFold(l, text) },
	}, {
		Name: "age", Example: "age<5m", Help: "not older, or older",
		Span: func(e T, now time.Time) (time.Duration, bool) { return now.Sub(at(e)), true },
	}}
}

// mostValues bounds the offered values of a field.
const mostValues = 500

// AuditLanguage has the fields of a filter of the audit log.
var AuditLanguage = filter.Language[*audit.Entry]{
	Text: "all texts of an entry",
	Texts: func(e *audit.Entry, such func(safetext.Text) bool) bool {
		return slices.ContainsFunc([]string{e.Actor, e.Act, e.Target, e.Reason, e.Detail, e.Phase, e.Cluster},
			func(s string) bool { return such(safetext.New(s)) })
	},
	Fields: []filter.Field[*audit.Entry]{
		auditField("actor", "actor:alice", "whose actor contains this", func(e *audit.Entry) string { return e.Actor }),
		auditField("act", "act:revoke|force-release", "whose action contains this", func(e *audit.Entry) string { return e.Act }),
		auditField("target", "target:orders", "whose lock or node contains this", func(e *audit.Entry) string { return e.Target }),
		{
			Name: "phase", Example: "phase:failed", Help: "with this outcome: done, failed, or intent if none is logged",
			Is: func(e *audit.Entry) string { return e.Phase }, Words: []string{audit.Intent, audit.Done, audit.Failed},
		},
		auditField("reason", "reason:deploy", "whose reason contains this", func(e *audit.Entry) string { return e.Reason }),
		auditField("cluster", "cluster:prod", "whose cluster contains this", func(e *audit.Entry) string { return e.Cluster }),
		{
			Name: "age", Example: "age<1h", Help: "not older, or older",
			Span: func(e *audit.Entry, now time.Time) (time.Duration, bool) { return now.Sub(e.Time), true },
		},
	},
}

func auditField(name, example, help string, of func(*audit.Entry) string) filter.Field[*audit.Entry] {
	return filter.Field[*audit.Entry]{Name: name, Example: example, Help: help,
		Has: func(e *audit.Entry, text string) bool { return filter.HasFold(safetext.New(of(e)), text) }}
}

// valuesOf returns a function with the values that rows have in some fields of a filter.
func valuesOf[T any](rows []T, fields map[string]func(*T) string) func(field string) []string {
	return func(field string) []string {
		values, of := filter.NewValues(mostValues), fields[field]
		for i := range rows {
			if of != nil {
				values.Add(of(&rows[i]))
			}
		}
		return values.Sorted()
	}
}

// EventValues returns the values that the fields of a filter have in these events.
func EventValues(events []monitor.Event, nodes []monitor.Node) func(field string) []string {
	kinds := valuesOf(events, map[string]func(*monitor.Event) string{"kind": func(e *monitor.Event) string { return e.Kind }})
	names := valuesOf(nodes, map[string]func(*monitor.Node) string{"node": func(n *monitor.Node) string { return n.Name }})
	return func(field string) []string { return append(kinds(field), names(field)...) }
}

// PastEventValues returns the values that the fields of a filter have in these recorded events.
func PastEventValues(events []PastEventDoc) func(field string) []string {
	return valuesOf(events, map[string]func(*PastEventDoc) string{
		"kind": func(e *PastEventDoc) string { return e.Kind },
		"node": func(e *PastEventDoc) string { return rawOf(e.Node) },
		"lock": func(e *PastEventDoc) string { return rawOf(e.Lock) },
	})
}

// AuditValues returns the values that the fields of a filter have in these entries.
func AuditValues(entries []audit.Entry) func(field string) []string {
	return valuesOf(entries, map[string]func(*audit.Entry) string{
		"actor":   func(e *audit.Entry) string { return e.Actor },
		"act":     func(e *audit.Entry) string { return e.Act },
		"target":  func(e *audit.Entry) string { return e.Target },
		"cluster": func(e *audit.Entry) string { return e.Cluster },
	})
}
