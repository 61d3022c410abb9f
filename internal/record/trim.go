package record

import (
	"fmt"
	"os"
	"time"
)

// trimEvery is how often old data is trimmed.
const trimEvery = 30 * time.Second

// trim deletes what is older than opt.Keep, and the oldest data beyond opt.MaxSize.
func (w *writer) trim(opt Options, now time.Time) error {
	if now.Sub(w.trimmed) < trimEvery {
		return nil
	}
	w.trimmed = now
	if err := w.deleteBefore(now.Add(-opt.Keep)); err != nil {
		return err
	}
	if _, err := w.db.Exec(`DELETE FROM minutes WHERE minute_ms < ?`, millis(now.Add(-opt.Keep-SummariesKept))); err != nil {
		return err
	}
	if size, err := w.size(); err != nil {
		return err
	} else if size > opt.MaxSize {
		if _, err := w.db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
			return err
		}
	}
	for range 20 { // a twentieth of the span each time
		size, err := w.size()
		if err != nil || size <= opt.MaxSize {
			return err
		}
		var first int64
		// Rows are in the order in which they were written.
		err = w.db.QueryRow(`SELECT coalesce(min(t), 0) FROM (SELECT * FROM (SELECT began_ms AS t FROM grants ORDER BY id LIMIT 1) UNION ALL SELECT * FROM (SELECT at_ms FROM events ORDER BY id LIMIT 1))`).Scan(&first)
		if err != nil {
			return err
		}
		span := max(now.Sub(time.UnixMilli(first)), time.Second)
		if err := w.deleteBefore(time.UnixMilli(first).Add(span/20 + time.Second)); err != nil {
			return err
		}
	}
	return nil
}

// size returns the bytes that are in use: of the file, and of the log beside it.
func (w *writer) size() (int64, error) {
	var pages, free, page int64
	err := w.db.QueryRow(`SELECT page_count, freelist_count, page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`).Scan(&pages, &free, &page)
	log := int64(0)
	if info, err := os.Stat(w.path + "-wal"); err == nil {
		log = info.Size()
	}
	return (pages-free)*page + log, err
}

// deleteBefore deletes what ended before a time, in small steps.
func (w *writer) deleteBefore(t time.Time) error {
	ms, deleted := millis(t), int64(0)
	queries := []string{`DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at_ms < ? LIMIT 10000)`,
		`DELETE FROM findings WHERE cleared_ms < ?`,
		// The last state of each node before that time was still valid then.
		`DELETE FROM states WHERE at_ms < ?1 AND at_ms < (SELECT max(at_ms) FROM states AS later WHERE later.cluster = states.cluster AND later.node = states.node AND later.at_ms < ?1)`,
		`DELETE FROM runs WHERE seen_ms < ?`,
		// So is the last end of a grant.
		`DELETE FROM ends WHERE at_ms < ?1 AND at_ms < (SELECT max(at_ms) FROM ends AS later WHERE later.grant_id = ends.grant_id AND later.at_ms < ?1)`,
	}
	for class := range len(lengths) + 1 { // except what has not ended
		for _, table := range []string{"grants", "lock_states"} {
			queries = append(queries, fmt.Sprintf(`DELETE FROM %[1]s WHERE id IN (SELECT id FROM %[1]s WHERE %[2]s = %[3]d AND began_ms < ?1 AND ended_ms < ?1 LIMIT 10000)`, table, lengthClass, class))
		}
	}
	for _, query := range queries {
		for {
			done, err := w.db.Exec(query, ms)
			if err != nil {
				return err
			}
			n, err := done.RowsAffected()
			if err != nil {
				return err
			}
			if deleted += n; n < 10000 {
				break
			}
		}
	}
	// What is left of a longer run is what is recorded.
	if _, err := w.db.Exec(`UPDATE runs SET began_ms = max(began_ms, ?1), locks_ms = max(locks_ms, ?1) WHERE began_ms < ?1`, ms); err != nil {
		return err
	}
	if deleted == 0 {
		return nil
	}
	clear(w.grants.locks)
	if _, err := w.db.Exec(`DELETE FROM ends WHERE NOT EXISTS (SELECT 1 FROM grants WHERE id = grant_id)`); err != nil {
		return err
	}
	if _, err := w.db.Exec(`DELETE FROM locks WHERE NOT EXISTS (SELECT 1 FROM grants WHERE lock = locks.id) AND NOT EXISTS (SELECT 1 FROM events WHERE lock = locks.id)
		AND NOT EXISTS (SELECT 1 FROM lock_states WHERE lock = locks.id)`); err != nil {
		return err
	}
	_, err := w.db.Exec(`PRAGMA incremental_vacuum`)
	return err
}
