package adopt

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"redlockctl/base/private"
	"redlockctl/server/safetext"
)

// Folder is where a plan is written, and nothing beside it.
type Folder struct{ Path string }

// Secrets are the passwords that the folder has; those that are missing are drawn.
func (f Folder) Secrets() (Secrets, error) {
	all := Secrets{}
	for _, u := range users {
		b, err := os.ReadFile(filepath.Join(f.Path, passwordFile(u.name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			all[u.name] = rand.Text()
		case err != nil:
			return nil, err
		default:
			all[u.name] = strings.TrimPrefix(strings.TrimSpace(string(b)), PasswordVariable+"=")
			if all[u.name] == "" {
				return nil, fmt.Errorf("%s has no password in it: delete it, and a new one is drawn", filepath.Join(f.Path, passwordFile(u.name)))
			}
		}
	}
	return all, nil
}

// How a file of the folder compares with the plan.
const (
	New     = "new"
	Changed = "changed"
	Same    = "same"
)

// hashes are the passwords of users, as rules have them.
var hashes = regexp.MustCompile(`#[0-9a-f]{64}`)

// Change is how one file compares with the plan.
type Change struct {
	Path string `json:"path"`
	Kind string `json:"change"`
	// Diff is what changes, as a unified diff; empty of a file with secrets.
	Diff string `json:"-"`
}

// ErrForeign is returned for a folder that has files, and none that say that init made it.
var ErrForeign = errors.New("the folder is not empty, and was not written by init: name another one by --out")

// own reports whether init wrote the folder; also one that is not there, or empty, is its own.
func (f Folder) own() (bool, error) {
	entries, err := os.ReadDir(f.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return true, nil
	} else if err != nil {
		return false, err
	}
	_, err = os.Lstat(filepath.Join(f.Path, madeByInit))
	return err == nil, nil
}

// Changes compares a plan with what the folder has. It fails with [ErrForeign] for a folder
// of somebody else, whose files would be overwritten.
func (f Folder) Changes(plan []File) ([]Change, error) {
	if own, err := f.own(); err != nil {
		return nil, err
	} else if !own {
		return nil, fmt.Errorf("%s: %w", safetext.Escape(f.Path), ErrForeign)
	}
	var all []Change
	for _, file := range plan {
		c := Change{Path: file.Path, Kind: Same}
		old, err := os.ReadFile(filepath.Join(f.Path, file.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.Kind = New
		case err != nil:
			return nil, err
		case !bytes.Equal(old, []byte(file.Text)):
			c.Kind = Changed
		}
		if c.Kind != Same && !file.Secret {
			c.Diff = hashes.ReplaceAllString(string(diff.Diff(file.Path, old, file.Path, []byte(file.Text))), "#…")
		}
		all = append(all, c)
	}
	return all, nil
}

// Write writes what differs. A folder that is there must belong to this user.
func (f Folder) Write(plan []File) error {
	if err := private.Dir(f.Path, private.Nobody); err != nil {
		return err
	}
	for _, file := range plan {
		path := filepath.Join(f.Path, file.Path)
		if old, err := os.ReadFile(path); err == nil && string(old) == file.Text {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := private.Replace(path, []byte(file.Text)); err != nil {
			return err
		}
		if err := os.Chmod(path, file.Mode); err != nil {
			return err
		}
	}
	return nil
}
