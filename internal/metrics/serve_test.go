package metrics

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// anywhere is a listener that says that it listens at all addresses.
type anywhere struct{ net.Listener }

func (anywhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 9622} }

// Whether the metrics are for everybody is told by what the web configuration has, not by
// its being there.
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
