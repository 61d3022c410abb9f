package record

import (
	"fmt"
	"os"
	"time"
)

// staleAfter is how old the last write may be while a recorder runs: it writes once a
// second, and tries again half a minute after an error.
const staleAfter = 45 * time.Second

// Condition returns why a recorder of another process fails to record a cluster into the
// file at path; nil if it records, as far as the file shows.
func Condition(path, cluster string, now time.Time) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link", path)
	}
	r, err := OpenReader(path, cluster)
	if err != nil {
		return err
	}
	defer r.Close()
	if now.Sub(r.Cluster.Last) > staleAfter {
		return fmt.Errorf("nothing was written to %s since %s", path, r.Cluster.Last.UTC().Format(time.RFC3339))
	}
	return nil
}
