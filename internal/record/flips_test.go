package record

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/base/race"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
)

// Of single bits that a disk has flipped, few change an answer and are found by no check: a letter
// of a text, a token. Without the checksum of grants in their index it was one in four.
func TestFlippedBits(t *testing.T) {
	race.Skip(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "record.db")
	whole, want := recordOfAnHour(t, path)
	dice := rand.New(rand.NewPCG(1, 2))
	const flips = 60 // of 200, 127 were found and 16 changed an answer in silence
	var found, wrong, silent int
	var examples []string
	var damaged []byte
	for range flips {
		flipped := bytes.Clone(whole)
		flipped[dice.IntN(len(flipped))] ^= 1 << dice.IntN(8)
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		damage := checkFile(t.Context(), path)
		if damage != nil {
			found++
			damaged = flipped
		}
		got, err := contents(path)
		if err != nil || got == want {
			continue // an error, or no difference
		}
		if wrong++; damage == nil {
			silent++
			examples = append(examples, differing(want, got))
		}
	}
	t.Logf("of %d flipped bits %d were found; %d changed an answer, %d of them in silence", flips, found, wrong, silent)
	if silent > flips/8 || found < flips/2 {
		t.Errorf("%s", strings.Join(examples, "\n"))
	}

	// Such a file is kept unchanged, beside a new one.
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	r, told := recording(t, path)
	waitFor(t, "it records", func() bool { return told("it is kept as record.db.damaged-") && recorded(path) && r.Err() == nil })
	kept, _ := filepath.Glob(path + ".damaged-*Z")
	if len(kept) != 1 {
		t.Fatal(kept)
	}
	if is, err := os.ReadFile(kept[0]); err != nil || len(is) != len(damaged) {
		t.Errorf("%d bytes of %d were kept: %v", len(is), len(damaged), err)
	}
}

// recordOfAnHour writes a record, and returns its bytes and its contents.
func recordOfAnHour(t *testing.T, path string) (file []byte, said string) {
	t.Helper()
	now := monitortest.Epoch
	from := &told{s: *monitortest.Safe(now)}
	w := begin(t, path, from, now)
	w.follows = true
	for i := range 3000 {
		key, token, at := fmt.Sprintf("job:%d", i%200), fmt.Sprint("token ", i), now.Add(time.Duration(i)*time.Second)
		from.tell("acquired", key, token, at, at.Add(10*time.Second))
		from.tell("released", key, token, at.Add(900*time.Millisecond), time.Time{})
		if i%10 == 0 {
			from.events = append(from.events, monitor.Event{Seq: uint64(len(from.events) + 1), At: at, Kind: "restart", Level: monitor.LevelAlarm, Node: "n2", Text: safetext.New("n2 restarted: 12 locks lost a copy")})
		}
		if i%50 == 49 {
			write(t, w, from, at.Add(time.Second))
		}
	}
	if err := w.db.Close(); err != nil { // with a checkpoint
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil { // this process has it locked
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if said, err = contents(path); err != nil {
		t.Fatal(err)
	}
	return file, said
}

// contents returns all rows of a record.
func contents(path string) (string, error) {
	db, err := sql.Open("sqlite", source(path, url.Values{"mode": {"ro"}}))
	if err != nil {
		return "", err
	}
	defer db.Close()
	var out strings.Builder
	for _, table := range []string{"clusters", "nodes", "runs", "locks", "owners", "grants", "ends", "lock_states", "events", "states", "findings", "minutes"} {
		rows, err := db.Query("SELECT * FROM " + table)
		if err != nil {
			return "", err
		}
		columns, err := rows.Columns()
		for err == nil && rows.Next() {
			row := make([]any, len(columns))
			for i := range row {
				row[i] = new(any)
			}
			if err = rows.Scan(row...); err != nil {
				break
			}
			fmt.Fprint(&out, table)
			for i := range row {
				fmt.Fprint(&out, " ", *row[i].(*any))
			}
			fmt.Fprintln(&out)
		}
		if err == nil {
			err = rows.Err()
		}
		_ = rows.Close()
		if err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func differing(a, b string) string {
	is := strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(is) || line != is[i] {
			return line + "\n  " + is[min(i, len(is)-1)]
		}
	}
	return "more lines"
}
