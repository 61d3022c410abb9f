package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Find is the path of the configuration to use, and where it was named:
// "--config", "REDLOCKCTL_CONFIG" or "default". What was named must be there.
// Otherwise the first of ./config.toml, $XDG_CONFIG_HOME/redlockctl/config.toml
// (or ~/.config/redlockctl/config.toml) and /etc/redlockctl/config.toml that
// exists is taken; the error, [ErrNotFound], lists the places.
func Find(flag string, getenv func(string) string) (path, source string, err error) {
	for _, named := range []struct{ path, source string }{
		{flag, "--config"},
		{getenv("REDLOCKCTL_CONFIG"), "REDLOCKCTL_CONFIG"},
	} {
		if named.path == "" {
			continue
		}
		if _, err := os.Stat(named.path); err != nil {
			return "", named.source, fmt.Errorf("%w: %s names %q: %w", ErrNotFound, named.source, named.path, cause(err))
		}
		return named.path, named.source, nil
	}
	places := []string{"config.toml"}
	if dir := userDir(getenv, "XDG_CONFIG_HOME", ".config"); dir != "" {
		places = append(places, filepath.Join(dir, "redlockctl", "config.toml"))
	}
	places = append(places, "/etc/redlockctl/config.toml")
	for _, place := range places {
		// One that is there and cannot be read must not be passed over in silence
		// for another cluster's.
		_, err := os.Stat(place)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return place, "default", nil
		}
	}
	places[0] = "./config.toml"
	return "", "default", fmt.Errorf("%w: there is none at %s. Name one with --config or REDLOCKCTL_CONFIG, "+
		"try the console without any by `redlockctl demo`, or start five local masters by `redlockctl lab up`",
		ErrNotFound, strings.Join(places, ", "))
}

// userDir is a directory of the XDG base directory specification, which says
// that a relative path in the variable is to be ignored; "" without a home.
func userDir(getenv func(string) string, variable, below string) string {
	if dir := getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, below)
	}
	return ""
}

// cause is an error of the file system without its path, which the caller
// names in quotes.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
