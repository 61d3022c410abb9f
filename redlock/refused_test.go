package redlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/server/resp"
)

// A server that has as many clients as it may have is named as such: it says so in
// one line and closes, which looks like a connection that was reset.
func TestServerWithoutPlacesIsNamed(t *testing.T) {
	server := labtest.Servers(t, 1)[0]
	if _, err := server.Do(t.Context(), "CONFIG", "SET", "maxclients", "1"); err != nil {
		t.Fatal(err)
	}
	place, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	if _, err := place.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := place.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	for range 20 { // each way in which the two ends of the connection can race
		node, err := redlock.NewNode("n1", &redis.Options{Addr: server.Addr()})
		if err != nil {
			t.Fatal(err)
		}
		c := redlock.Connect(node, 1, time.Second)
		err = c.Ping(t.Context()).Err()
		c.Close()
		if !errors.Is(err, resp.ErrFull) {
			t.Fatalf("error %v", err)
		}
	}
}

// A server that wants a client certificate is named as such, with each version of
// TLS: with 1.3 it refuses after the handshake, by a connection that was reset.
func TestMissingClientCertificateIsNamed(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	labtest.Servers(t, 1, "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for range 20 {
			node, err := redlock.NewNode("n1", &redis.Options{
				Addr:      net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
				TLSConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version},
			})
			if err != nil {
				t.Fatal(err)
			}
			c := redlock.Connect(node, 2, 2*time.Second) // with one the library goes on dialling after a failure
			err = c.Ping(t.Context()).Err()
			c.Close()
			if !errors.Is(err, redlock.ErrNoCertificate) {
				t.Fatalf("%s: error %v", tls.VersionName(version), err)
			}
			if !strings.Contains(err.Error(), "none is configured") {
				t.Fatalf("%s: it says %q", tls.VersionName(version), err)
			}
		}
	}
}

// certificate writes a self-signed certificate and its key.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// recorder keeps what the client library would write to stderr.
type recorder struct{ lines chan string }

func (r recorder) Printf(_ context.Context, format string, v ...any) {
	r.lines <- fmt.Sprintf(format, v...)
}

// The client library writes to stderr what goes wrong, and that can be switched off
// only for the whole program that embeds this package. So it must not come to that.
func TestNothingIsPrinted(t *testing.T) {
	said := recorder{make(chan string, 10_000)}
	redis.SetLogger(said)
	defer logging.Disable() // as TestMain has it
	servers := labtest.Servers(t, 3)
	c := open(t, servers, redlock.Options{Retries: -1})
	acquire(t, c, "a", time.Minute)
	for _, s := range servers[:2] {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // and there is somebody who waits
		_, _ = c.AcquireWith(t.Context(), "a", redlock.AcquireOptions{TTL: time.Minute, Retries: 1})
	}
	other := redlock.Connect(servers[0].Node(), 1, time.Second)
	defer other.Close()
	for range 3 { // more than there are connections
		if err := other.Ping(t.Context()).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("of a server that is down: %v", err)
		}
	}
	select {
	case line := <-said.lines:
		t.Error(line)
	default:
	}
}
