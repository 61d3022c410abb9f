package metrics

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// writeCertificate writes a self-signed certificate of 127.0.0.1 and its key.
func writeCertificate(t *testing.T, dir string) (certificate []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	about := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serial.String()}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, dir, "guard.crt", string(certificate))
	write(t, dir, "guard.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return certificate
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWebConfigWantsTLSAndAPassword(t *testing.T) {
	dir := t.TempDir()
	ca := writeCertificate(t, dir)
	hash := func(password string) string {
		b, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		return "tls_server_config: {cert_file: guard.crt, key_file: guard.key}\nbasic_auth_users: {ops: '" + string(b) + "'}\n"
	}
	write(t, dir, "web.yml", hash("right"))
	file := filepath.Join(dir, "web.yml")
	if protects, err := CheckWebConfig(file); err != nil || !protects {
		t.Fatal(protects, err)
	}
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- full().Serve(ctx, l, file, slog.New(slog.DiscardHandler)) }()

	ask := func(user, password string, ca []byte) error {
		// A password takes some time to check, above all with the race detector.
		err := context.DeadlineExceeded
		for tries := 0; tries < 10 && errors.Is(err, context.DeadlineExceeded); tries++ {
			_, err = ReadStatus(t.Context(), "https://"+user+l.Addr().String(), "shop", Access{ca, password})
		}
		return err
	}
	if err := ask("ops@", "right", ca); err != nil {
		t.Errorf("with password and certificate: %v", err)
	}
	for _, who := range []struct{ user, password string }{{"ops@", "wrong"}, {"ops@", ""}, {"root@", "right"}, {"", "right"}} {
		if err := ask(who.user, who.password, ca); !errors.Is(err, ErrAccess) {
			t.Errorf("%v: %v", who, err)
		}
	}
	wrong := writeCertificate(t, t.TempDir())
	var refused *tls.CertificateVerificationError
	if err := ask("ops@", "right", wrong); !errors.As(err, &refused) {
		t.Errorf("somebody else vouches: %v", err)
	}
	if err := ask("ops@", "right", nil); !errors.As(err, &refused) {
		t.Errorf("nobody vouches: %v", err)
	}
	if _, err := ReadStatus(t.Context(), "http://"+l.Addr().String(), "shop", Access{}); err == nil {
		t.Error("it answers without TLS")
	}

	// Another certificate and password apply without a restart.
	next := writeCertificate(t, dir)
	write(t, dir, "web.yml", hash("new"))
	if err := ask("ops@", "new", next); err != nil {
		t.Errorf("the new certificate and password: %v", err)
	}
	if err := ask("ops@", "right", next); !errors.Is(err, ErrAccess) {
		t.Errorf("the old password: %v", err)
	}
	if err := ask("ops@", "new", ca); !errors.As(err, &refused) {
		t.Errorf("the old certificate: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWebConfigIsRefused(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"tls_server_config: {cert_file: none.crt, key_file: none.key}": "none.crt",
		"basic_auth_users: {ops: plain}":                               "hash",
		"users: {}":                                                    "users",
	} {
		write(t, dir, "web.yml", text)
		if _, err := CheckWebConfig(filepath.Join(dir, "web.yml")); !errors.Is(err, ErrWebConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := CheckWebConfig(filepath.Join(dir, "missing.yml")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A password must not be in an argument or sent in clear text.
func TestAccessIsRefused(t *testing.T) {
	for addr, want := range map[string]error{
		"https://ops:secret@127.0.0.1:1": ErrPasswordInURL,
		"http://ops@guard.example.com:1": ErrPlain,
		"http://ops@192.0.2.1:1":         ErrPlain,
	} {
		if _, err := ReadStatus(t.Context(), addr, "shop", Access{Password: "secret"}); !errors.Is(err, want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := ReadStatus(t.Context(), "https://127.0.0.1:1", "shop", Access{CA: []byte("none")}); !errors.Is(err, ErrCA) {
		t.Error(err)
	}
}
