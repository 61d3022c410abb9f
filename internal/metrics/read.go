package metrics

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// Limits of a reply of /status.
const (
	readTime  = 5 * time.Second
	mostRead  = 1 << 20 // bytes
	mostSaid  = 300     // of an error
	mostNodes = 1024
)

// ErrURL is the cause for an address that cannot be a guard's.
var ErrURL = errors.New("it is no address of a guard: write http://HOST:PORT or https://USER@HOST:PORT")

// Causes for invalid access options.
var (
	ErrPasswordInURL = errors.New("a password does not belong in an argument, which others can read")
	ErrPlain         = errors.New("a password is not sent without TLS to another host: write https://")
	ErrCA            = errors.New("there is no certificate in PEM form in it")
)

// Status is the /status document of another guard. Its texts are not escaped.
type Status struct {
	ID      string
	Delay   time.Duration
	Cluster string
	Sick    string
	Nodes   map[string]restartguard.Fact // by name
	// Phases are what the guard sees the nodes do, by name, in its words.
	Phases map[string]string
}

// Access is what another guard's web configuration requires of its clients.
type Access struct {
	CA       []byte // CA certificate (PEM); nil: the system's
	Password string // of the user in the address
}

// ErrAccess is returned if the guard requires a user and password, or refuses these.
var ErrAccess = errors.New("it refuses this user or password")

// ReadStatus asks the guard at an address, http://HOST:PORT or https://USER@HOST:PORT,
// for what it knows about a cluster. The reply is not trusted: it is limited in time and
// size, and rejected unless every field is valid.
func ReadStatus(ctx context.Context, addr, cluster string, access Access) (Status, error) {
	u, err := parseAddress(addr)
	if err != nil {
		return Status{}, err
	}
	transport := &http.Transport{DisableKeepAlives: true} // no proxy
	if access.CA != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(access.CA) {
			return Status{}, ErrCA
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	user := u.User
	u.User = nil // not shown in an error
	u.RawQuery = url.Values{"cluster": {cluster}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Status{}, ErrURL
	}
	if user != nil {
		if u.Scheme != "https" && access.Password != "" && !onThisHost(u.Hostname()) {
			return Status{}, ErrPlain
		}
		req.SetBasicAuth(user.Username(), access.Password)
	}
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // do not follow redirects
	}
	answer, err := client.Do(req)
	if err != nil {
		return Status{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return Status{}, ErrAccess
	case http.StatusNotFound, http.StatusMisdirectedRequest:
		said, _ := io.ReadAll(io.LimitReader(answer.Body, mostSaid))
		return Status{}, fmt.Errorf("answered with status %d: %s", answer.StatusCode, safetext.Escape(strings.TrimSpace(string(said))))
	default:
		return Status{}, fmt.Errorf("answered with status %d", answer.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, mostRead+1))
	switch {
	case err != nil:
		return Status{}, err
	case len(raw) > mostRead:
		return Status{}, fmt.Errorf("the answer is longer than %d bytes", mostRead)
	}
	return decodeStatus(raw)
}

// CheckAddress reports why an address cannot be a guard's: [ErrURL] or [ErrPasswordInURL].
func CheckAddress(addr string) error {
	_, err := parseAddress(addr)
	return err
}

func parseAddress(addr string) (*url.URL, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, ErrURL
	}
	switch strings.TrimSuffix(u.Path, "/") {
	case "", "/status":
		u.Path = "/status"
	default:
		return nil, ErrURL
	}
	if _, in := u.User.Password(); in {
		return nil, ErrPasswordInURL
	}
	return u, nil
}

// onThisHost reports whether the host of an address is this one.
func onThisHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func decodeStatus(raw []byte) (t Status, err error) {
	var doc struct {
		Cluster string `json:"cluster"`
		Guard   *struct {
			ID      string `json:"id"`
			DelayMs int64  `json:"delay_ms"`
			Sick    string `json:"sick"`
		} `json:"guard"`
		Nodes []struct {
			Name      string `json:"name"`
			Phase     string `json:"phase"`
			Absent    string `json:"absent"`
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
	t = Status{ID: doc.Guard.ID, Delay: time.Duration(doc.Guard.DelayMs) * time.Millisecond, Cluster: doc.Cluster, Sick: doc.Guard.Sick, Nodes: map[string]restartguard.Fact{}, Phases: map[string]string{}}
	for _, n := range doc.Nodes {
		one := restartguard.Fact{Source: restartguard.FromStatus, Wait: -1}
		one.Verified = n.BootFence == announce.BootFenced.String()
		one.Known = one.Verified || n.BootFence == announce.BootUnfenced.String()
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
		t.Nodes[n.Name], t.Phases[n.Name] = one, cmp.Or(n.Absent, n.Phase)
	}
	return t, nil
}
