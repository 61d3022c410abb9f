package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/safetext"
)

// Bounds of an answer of /status that is read.
const (
	readTime  = 5 * time.Second
	mostRead  = 1 << 20 // bytes
	mostNodes = 1024
)

// ErrURL is the cause of an address that cannot be one of a guard.
var ErrURL = errors.New("it is no address of a guard: write http://HOST:PORT")

// Told is what a guard elsewhere tells at /status. All texts are as they came.
type Told struct {
	ID      string
	Delay   time.Duration
	Cluster string
	Sick    string
	Nodes   []ToldNode
}

// ToldNode is one node of a guard elsewhere.
type ToldNode struct {
	Name string
	Boot string // fenced, unfenced or unknown
	// Wait is how long it stays fenced; below 0: it is not known to wait.
	Wait time.Duration
}

// ReadStatus asks the guard that listens at an address, http://HOST:PORT, for what
// it knows of a cluster. What answers is not trusted: the answer is bounded in time and size, and
// refused unless all of it can be meant.
func ReadStatus(ctx context.Context, addr, cluster string) (Told, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return Told{}, ErrURL
	}
	switch strings.TrimSuffix(u.Path, "/") {
	case "", "/status":
		u.Path = "/status"
	default:
		return Told{}, ErrURL
	}
	u.RawQuery = url.Values{"cluster": {cluster}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Told{}, ErrURL
	}
	client := http.Client{
		// No proxy, and nobody is followed elsewhere.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(req)
	if err != nil {
		return Told{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return Told{}, fmt.Errorf("answered with status %d", answer.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, mostRead+1))
	switch {
	case err != nil:
		return Told{}, err
	case len(raw) > mostRead:
		return Told{}, fmt.Errorf("the answer is longer than %d bytes", mostRead)
	}
	return decodeStatus(raw)
}

func decodeStatus(raw []byte) (t Told, err error) {
	var doc struct {
		Cluster string `json:"cluster"`
		Guard   *struct {
			ID      string `json:"id"`
			DelayMs int64  `json:"delay_ms"`
			Sick    string `json:"sick"`
		} `json:"guard"`
		Nodes []struct {
			Name      string `json:"name"`
			BootFence string `json:"boot_fence"`
			RejoinMs  *int64 `json:"rejoin_ms"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return t, fmt.Errorf("the answer is not that of a guard: %w", err)
	}
	most := announce.MostDelay.Milliseconds()
	switch {
	case doc.Guard == nil:
		return t, errors.New("the program that listens there runs no guard")
	case doc.Guard.DelayMs <= 0 || doc.Guard.DelayMs > most || doc.Guard.ID == "" || len(doc.Guard.ID) > 64:
		return t, errors.New("the answer is not that of a guard: its id or delay is none")
	case len(doc.Nodes) > mostNodes:
		return t, fmt.Errorf("the answer is not that of a guard: it has %d nodes", len(doc.Nodes))
	}
	t = Told{ID: doc.Guard.ID, Delay: time.Duration(doc.Guard.DelayMs) * time.Millisecond, Cluster: doc.Cluster, Sick: doc.Guard.Sick}
	for _, n := range doc.Nodes {
		one := ToldNode{Name: n.Name, Boot: n.BootFence, Wait: -1}
		switch n.BootFence {
		case announce.BootFenced.String(), announce.BootUnfenced.String(), announce.BootUnknown.String():
		default:
			return t, fmt.Errorf("the answer is not that of a guard: the boot fence of %s is %s", safetext.New(n.Name).Word(), safetext.New(n.BootFence).Word())
		}
		if ms := n.RejoinMs; ms != nil {
			if *ms < 0 || *ms > most {
				return t, fmt.Errorf("the answer is not that of a guard: %s would rejoin in %d ms", safetext.New(n.Name).Word(), *ms)
			}
			one.Wait = time.Duration(*ms) * time.Millisecond
		}
		t.Nodes = append(t.Nodes, one)
	}
	return t, nil
}
