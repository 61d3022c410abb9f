package wire

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// The reason why a node cannot be reached is in plain words.
func TestSentence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, err = net.Dial("tcp", addr)
	if got := Sentence(err); got != "connection refused at "+addr {
		t.Errorf("refused: %q", got)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Nanosecond)
	defer end()
	<-ctx.Done()
	_, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if got := Sentence(err); !strings.HasPrefix(got, "no answer in time") {
		t.Errorf("late: %q", got)
	}
}
