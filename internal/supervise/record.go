package supervise

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"redlockctl/internal/private"
)

// ErrState is returned when the state directory cannot be used.
var ErrState = errors.New("state directory")

// store is the state directory of a supervisor.
type store struct {
	dir, node string
}

// openStore makes the directory, with mode 0700, where it is missing. One that
// others may write to is refused: they could let a server start too early.
func openStore(dir, node string) (store, error) {
	if err := private.Dir(dir, private.Nobody); err != nil {
		return store{}, fmt.Errorf("%w: %w", ErrState, err)
	}
	return store{dir: dir, node: node}, nil
}

func (s store) path(ext string) string { return filepath.Join(s.dir, s.node+ext) }

// load reads the record. The file is a line of JSON and a line with its
// SHA-256: what cannot be read, or was changed by a failing disk, is damaged.
func (s store) load() Memory {
	b, err := os.ReadFile(s.path(".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Memory{}
	}
	if err != nil {
		return Memory{Damaged: err.Error()}
	}
	return parseRecord(b)
}

func parseRecord(b []byte) Memory {
	text, sum, ok := bytes.Cut(b, []byte("\n"))
	if !ok || string(bytes.TrimRight(sum, "\n")) != digest(text) {
		return Memory{Damaged: "its checksum is wrong"}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var r Record
	if err := d.Decode(&r); err != nil {
		return Memory{Damaged: "it is not of this version"}
	}
	return Memory{Record: &r}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// save replaces the record; when it returns without an error, a crash of the
// host does not bring the old one back.
func (s store) save(r Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := private.Replace(s.path(".json"), fmt.Appendf(nil, "%s\n%s\n", text, digest(text))); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}

func (s store) erase() error {
	err := os.Remove(s.path(".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = private.SyncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}

// lock takes the lock on a file, which the kernel keeps until the last process
// that has inherited it has ended, or fails at once with [private.ErrLocked].
func (s store) lock(ext string) (*os.File, error) {
	f, err := private.Open(s.path(ext), os.O_RDWR|os.O_CREATE, 0o600, private.Nobody)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if err = private.TryLock(f, false); err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, private.ErrLocked) {
		return nil, err
	}
	return nil, fmt.Errorf("%w: lock %s: %w", ErrState, s.path(ext), err)
}
