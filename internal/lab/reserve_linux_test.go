package lab

import (
	"net"
	"testing"
)

// TestAPortIsReserved: a crashed server finds its port again, whoever looks for one
// meanwhile.
func TestAPortIsReserved(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			t.Fatalf("a server cannot listen on its own port: %v", err)
		}
		if reserve(port) == nil {
			t.Error("given away while a server listens")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if reserve(port) == nil {
			t.Error("given away while its server is down")
		}
	}
}
