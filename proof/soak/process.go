//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// process is one that is watched from outside, by /proc.
type process struct {
	name       string
	dir        string // in /proc
	goroutines func() (float64, error)
}

// sample is what the process uses.
func (p *process) sample() (usage, error) {
	var u usage
	status, err := os.ReadFile(p.dir + "/status")
	if err != nil {
		return u, fmt.Errorf("%s has ended: %w", p.name, err)
	}
	// Pages of the program's file are not counted: the system takes them as it
	// likes.
	_, rest, ok := bytes.Cut(status, []byte("\nRssAnon:"))
	if !ok { // a zombie has no memory
		return u, fmt.Errorf("%s has ended", p.name)
	}
	kb, err := strconv.ParseFloat(strings.Fields(string(rest))[0], 64)
	if err != nil {
		return u, err
	}
	u[memory] = kb / 1024
	files, err := os.ReadDir(p.dir + "/fd")
	if err != nil {
		return u, fmt.Errorf("%s: %w", p.name, err)
	}
	u[descriptors] = float64(len(files))
	if u[goroutines], err = p.goroutines(); err != nil {
		return u, fmt.Errorf("%s: goroutines: %w", p.name, err)
	}
	return u, nil
}

// metricGoroutines is the number that the process tells at addr.
func metricGoroutines(addr string) func() (float64, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return func() (float64, error) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+"/metrics", nil)
		if err != nil {
			return 0, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if n, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
				return strconv.ParseFloat(n, 64)
			}
		}
		return 0, errors.Join(lines.Err(), errors.New("no go_goroutines"))
	}
}

// mostGoroutines is the most that the process had at once so far, of one that
// tells nothing by itself: Go's runtime never shortens its list of them.
func (p *process) mostGoroutines() (float64, error) {
	exe, err := elf.Open(p.dir + "/exe")
	if err != nil {
		return 0, err
	}
	defer exe.Close()
	symbols, err := exe.Symbols()
	if err != nil {
		return 0, err
	}
	if exe.Type != elf.ET_EXEC {
		return 0, errors.New("a program that is not at a fixed place in memory")
	}
	for _, s := range symbols {
		if s.Name != "runtime.allglen" {
			continue
		}
		at := int64(s.Value)
		p.goroutines = func() (float64, error) {
			mem, err := os.Open(p.dir + "/mem")
			if err != nil {
				return 0, err
			}
			defer mem.Close()
			var b [8]byte
			if _, err := mem.ReadAt(b[:], at); err != nil {
				return 0, err
			}
			return float64(binary.NativeEndian.Uint64(b[:])), nil
		}
		return p.goroutines()
	}
	return 0, errors.New("runtime.allglen is not among its symbols")
}
