package record

import (
	"database/sql"
	"time"
)

// millis converts a time for a column.
func millis(t time.Time) int64 { return t.UnixMilli() }

// nothing returns a text for a column, NULL if empty; null does so for a time.
func nothing(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func null(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return millis(t)
}

func collect[T any](db *sql.DB, scan func(*sql.Rows, *T) error, query string, args ...any) (out []T, err error) {
	rows, err := db.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, rows.Err()
}

// ms reads a time from a column in milliseconds; NULL is the zero time.
type ms time.Time

func (t *ms) Scan(column any) error {
	var n sql.NullInt64
	if err := n.Scan(column); err != nil || !n.Valid {
		return err
	}
	*t = ms(time.UnixMilli(n.Int64))
	return nil
}

// msLong reads a duration from a column in milliseconds.
type msLong time.Duration

func (d *msLong) Scan(column any) error {
	var n sql.NullInt64
	err := n.Scan(column)
	*d = msLong(time.Duration(n.Int64) * time.Millisecond)
	return err
}

// TokenName is how a token is shown if a record has only the start of its SHA-256.
func TokenName(sha string) string { return "sha256:" + sha }
