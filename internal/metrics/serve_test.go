package metrics

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// anywhere is a listener that claims to listen on all addresses.
type anywhere struct{ net.Listener }

func (anywhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 9622} }

// The warning about unprotected metrics depends on the contents of the web configuration,
// not on its existence.
func TestUnprotectedMetricsAreTold(t *testing.T) {
	const user = "basic_auth_users: {ops: '$2a$04$ARHzoyGjHQuGb59mlmkWjO61ubEImrGDtVErxBlyP4/aBR0hFsAHa'}"
	for name, tt := range map[string]struct {
		web             string
		loopback, warns bool
	}{
		"none":              {warns: true},
		"none, on loopback": {loopback: true},
		"a password":        {web: user},
		"an empty one":      {web: "# nothing yet\n", warns: true},
		"of HTTP alone":     {web: "http_server_config: {http2: false}", warns: true},
		"no user in it":     {web: "basic_auth_users: {}", warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			file := ""
			if tt.web != "" {
				file = filepath.Join(t.TempDir(), "web.yml")
				if err := os.WriteFile(file, []byte(tt.web), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m, err := Open("127.0.0.1:0", file, Build{})
			if err != nil {
				t.Fatal(err)
			}
			if !tt.loopback {
				m.at = anywhere{m.at}
			}
			var log bytes.Buffer
			ctx, end := context.WithCancel(t.Context())
			wait := m.Start(ctx, slog.New(slog.NewTextHandler(&log, nil)))
			end()
			wait()
			if warned := strings.Contains(log.String(), "no TLS and no password"); warned != tt.warns {
				t.Errorf("warned: %v\n%s", warned, &log)
			}
		})
	}
}

// TestHostIsChecked: a web page whose name was bound to our address gets nothing.
func TestHostIsChecked(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host string
		want int
	}{
		{"127.0.0.1:9622", 200},
		{"10.1.2.3", 200},
		{"[::1]:9622", 200},
		{"[fe80::1]", 200},
		{"localhost:9622", 200},
		{"LocalHost.", 200},
		{"guard.example:9622", 200},
		{name, 200},
		{"evil.example", 421},
		{"guard.example.evil.example:9622", 421},
		{"127.0.0.1.evil.example", 421},
		{"localhost@evil.example", 421},
	} {
		m := full()
		m.host = "guard.example"
		get := func(h http.Handler, path string) int {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
			r.Host = tt.host
			h.ServeHTTP(w, r)
			return w.Code
		}
		loopback, elsewhere := m.forOwnHosts(m.Handler(), true), m.forOwnHosts(m.Handler(), false)
		if got := get(loopback, "/status"); got != tt.want {
			t.Errorf("%s: /status on loopback: %d", tt.host, got)
		}
		if got := get(elsewhere, "/status"); got != tt.want {
			t.Errorf("%s: /status: %d", tt.host, got)
		}
		if got := get(loopback, "/metrics"); got != tt.want {
			t.Errorf("%s: /metrics on loopback: %d", tt.host, got)
		}
		if got := get(elsewhere, "/metrics"); got != 200 {
			t.Errorf("%s: /metrics, which Prometheus may know by any name: %d", tt.host, got)
		}
		if m.protected = true; get(m.forOwnHosts(m.Handler(), true), "/status") != 200 {
			t.Errorf("%s: with TLS or a password", tt.host)
		}
	}
	// The server uses it.
	m, err := Open("127.0.0.1:0", "", Build{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	wait := m.Start(ctx, slog.New(slog.DiscardHandler))
	defer wait()
	defer end()
	for host, want := range map[string]int{"": 200, "evil.example": 421} {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+m.at.Addr().String()+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%q: %d", host, answer.StatusCode)
		}
	}
}
