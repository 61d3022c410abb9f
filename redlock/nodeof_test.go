package redlock_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// TestNodeOf: the node of a client logs in and encrypts as the client does, and has
// neither its retries nor its timeouts.
func TestNodeOf(t *testing.T) {
	cert, key := certificate(t, t.TempDir())
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	server := labtest.Servers(t, 1, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")[0]
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "locks", "on", ">secret", "~*", "&*", "+@all"); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "default", "off"); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	existing := redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort("127.0.0.1", port), Username: "locks", Password: "secret", DB: 3,
		TLSConfig: &tls.Config{RootCAs: roots}, MaxRetries: 7, ReadTimeout: time.Hour, PoolSize: 50,
	})
	defer existing.Close()
	node, err := redlock.NodeOf("n1", existing)
	if err != nil {
		t.Fatal(err)
	}
	own := redlock.Connect(node, 2, 1234*time.Millisecond)
	defer own.Close()
	switch opt := own.Options(); {
	case opt.MaxRetries != 0, opt.ReadTimeout != 1234*time.Millisecond, opt.WriteTimeout != opt.ReadTimeout, opt.DialTimeout != opt.ReadTimeout, opt.PoolSize != 2:
		t.Errorf("retries and timeouts of the other client: %+v", opt)
	}
	if opt := existing.Options(); opt.MaxRetries != 7 || opt.ReadTimeout != time.Hour {
		t.Errorf("the client was changed: %+v", opt)
	}
	c, err := redlock.New([]*redlock.Node{node}, redlock.Options{NodeTimeout: 5 * time.Second, ConnectTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Acquire(t.Context(), "job", 2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := existing.Get(t.Context(), "job").Result(); err != nil || got != l.Token() {
		t.Errorf("in database 3 there is %q, %v", got, err)
	}
	if _, err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNodeOfRefuses(t *testing.T) {
	if _, err := redlock.NodeOf("n1", nil); err == nil {
		t.Error("no client")
	}
	sentinel := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	defer sentinel.Close()
	if _, err := redlock.NodeOf("n1", sentinel); err == nil {
		t.Error("a client of Sentinel")
	}
	nameless := redis.NewClient(&redis.Options{})
	defer nameless.Close()
	if _, err := redlock.NodeOf("", nameless); err == nil {
		t.Error("no name")
	}
}
