package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"redlockctl/base/private"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

const (
	// delaysFile has the D of other guards. It is separate, because the file with the nodes is
	// removed if it cannot be written.
	delaysFile = "delays"
	// forgetFile has the ids of guards that an operator wants forgotten, one a line.
	forgetFile = "forget"
)

// KnownDelay is the D of another guard, in a guard's state directory.
type KnownDelay struct {
	ID    string        `json:"id"`
	Delay time.Duration `json:"delay_ns"`
	Host  string        `json:"host,omitempty"`
	Seen  time.Time     `json:"seen"` // for people: by the clock of the wall, when it was heard first with this D
}

// Name returns the guard for people.
func (k KnownDelay) Name() string {
	return announce.Guard{ID: k.ID, Host: safetext.New(k.Host)}.Name()
}

// ReadDelays reads the D of other guards from a state directory, the greatest first. A directory
// without the file has none.
func ReadDelays(dir string) ([]KnownDelay, error) {
	path := filepath.Join(dir, delaysFile)
	raw, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	head, body, _ := bytes.Cut(raw, []byte("\n"))
	var all []KnownDelay
	if string(head) != memoryHead+sumOf(body) {
		err = errors.New("it does not have the sum that it names")
	} else {
		err = json.Unmarshal(body, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return all, nil
}

// Is reports whether a name that an operator gives means this guard: its id, the beginning of its
// id, or its host.
func (k KnownDelay) Is(name string) bool {
	return name != "" && (k.Host == name || len(name) >= 4 && strings.HasPrefix(k.ID, name))
}

// ForgetDelay has the guard of a state directory forget the D of other guards by a name
// ([KnownDelay.Is]): the running guard within a second, or else the next one. It returns the
// guards; none if the name matches none.
func ForgetDelay(dir, name string) ([]KnownDelay, error) {
	all, err := ReadDelays(dir)
	if err != nil {
		return nil, err
	}
	gone := slices.DeleteFunc(all, func(k KnownDelay) bool { return !k.Is(name) })
	if len(gone) == 0 {
		return nil, nil
	}
	wanted, err := readOwn(filepath.Join(dir, forgetFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, k := range gone {
		wanted = append(wanted, k.ID+"\n"...)
	}
	return gone, private.Replace(filepath.Join(dir, forgetFile), wanted)
}

// TakeForgotten returns the ids of guards that an operator wants forgotten.
func (m *Store) TakeForgotten() []string {
	path := filepath.Join(m.dir, forgetFile)
	raw, err := readOwn(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(raw))
}

// PutDelays writes the D of other guards.
func (m *Store) PutDelays(p *restartguard.Peers, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lock == nil {
		return errors.New("the state directory is not ours")
	}
	peers := p.All()
	all := make([]KnownDelay, len(peers))
	for i, o := range peers {
		all[i] = KnownDelay{ID: o.ID, Delay: o.Delay, Host: o.Host.Raw(), Seen: now.UTC().Truncate(time.Second)}
		if k := slices.IndexFunc(m.delays, func(k KnownDelay) bool { return k.ID == o.ID && k.Delay == o.Delay }); k >= 0 {
			all[i].Seen = m.delays[k].Seen
		}
	}
	slices.SortStableFunc(all, func(a, b KnownDelay) int { return int(max(-1, min(1, b.Delay-a.Delay))) })
	body, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	if err := private.Replace(filepath.Join(m.dir, delaysFile), append([]byte(memoryHead+sumOf(body)+"\n"), body...)); err != nil {
		return fmt.Errorf("the D of other guards cannot be written down: %w", err)
	}
	m.delays = all
	if err := os.Remove(filepath.Join(m.dir, forgetFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RecallPeers returns the guards whose D was written.
func (m *Store) RecallPeers() restartguard.Peers {
	var all []announce.Guard
	for _, k := range m.delays {
		g := announce.Guard{ID: k.ID, Delay: min(k.Delay, announce.MostDelay), Host: safetext.New(k.Host)}
		if g.Delay > 0 && serverinfo.IsWord(k.ID) {
			all = append(all, g)
		}
	}
	return restartguard.RecalledPeers(all)
}
