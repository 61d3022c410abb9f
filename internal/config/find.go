package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Find returns the paths of the configuration, usually one, and their source: "--config",
// "REDLOCKCTL_CONFIG" or "default". The variable may contain several, separated by ":".
// Files that were named must exist. Otherwise, it takes the first that exists of
// ./config.toml, $XDG_CONFIG_HOME/redlockctl/config.toml (or
// ~/.config/redlockctl/config.toml) and /etc/redlockctl/config.toml; the error,
// [ErrNotFound], lists them.
func Find(flags []string, getenv func(string) string) (paths []string, source string, err error) {
	for _, named := range []struct {
		paths  []string
		source string
	}{
		{flags, "--config"},
		{fromVariable(getenv("REDLOCKCTL_CONFIG")), "REDLOCKCTL_CONFIG"},
	} {
		for _, path := range named.paths {
			if _, err := os.Stat(path); err != nil {
				return nil, named.source, fmt.Errorf("%w: %s names %q: %w", ErrNotFound, named.source, path, cause(err))
			}
			if !slices.Contains(paths, path) { // naming one twice changes nothing
				paths = append(paths, path)
			}
		}
		if len(paths) > 0 {
			return paths, named.source, nil
		}
	}
	places := []string{"config.toml"}
	if dir := userDir(getenv, "XDG_CONFIG_HOME", ".config"); dir != "" {
		places = append(places, filepath.Join(dir, "redlockctl", "config.toml"))
	}
	places = append(places, "/etc/redlockctl/config.toml")
	for _, place := range places {
		// A file that exists but cannot be read must not be skipped for another
		// cluster's.
		_, err := os.Stat(place)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return []string{place}, "default", nil
		}
	}
	places[0] = "./config.toml"
	return nil, "default", fmt.Errorf("%w: there is none at %s. Name one with --config or REDLOCKCTL_CONFIG, "+
		"make one for your masters by `redlockctl init --nodes HOST:PORT,…`, or try the console without any by `redlockctl demo`",
		ErrNotFound, strings.Join(places, ", "))
}

// fromVariable returns the paths in a variable. A path that contains the separator is
// taken whole if it exists.
func fromVariable(value string) []string {
	if value == "" {
		return nil
	}
	if _, err := os.Stat(value); err == nil {
		return []string{value}
	}
	var paths []string
	for _, path := range filepath.SplitList(value) {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// userDir returns a directory of the XDG base directory specification, which ignores a
// relative path in the variable; "" without a home.
func userDir(getenv func(string) string, variable, below string) string {
	if dir := getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, below)
	}
	return ""
}

// StateDir returns the directory for what the runs of one user remember:
// $XDG_STATE_HOME/redlockctl/name…, or ~/.local/state/redlockctl/name…; empty if neither
// is known.
func StateDir(getenv func(string) string, name ...string) string {
	dir := userDir(getenv, "XDG_STATE_HOME", ".local/state")
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir, "redlockctl"}, name...)...)
}

// cause returns a file system error without its path, which the caller names in quotes.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
