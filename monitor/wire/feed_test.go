package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
)

func any1([]byte) bool { return true }

func TestPushesAreReadWithinBounds(t *testing.T) {
	long := strings.Repeat("k", LongestKey+1)
	text := "+PONG\r\n" +
		">2\r\n$10\r\ninvalidate\r\n*3\r\n$3\r\nj:1\r\n$5\r\nother\r\n$2\r\n\r\n\r\n" +
		">2\r\n$10\r\ninvalidate\r\n_\r\n" +
		">3\r\n$7\r\nmessage\r\n$1\r\na\r\n*2\r\n:1\r\n%1\r\n+a\r\n#t\r\n" +
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$" + fmt.Sprint(len(long)) + "\r\n" + long + "\r\n" +
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nj:2\r\n"
	for _, size := range []int{16, 64, 32 << 10} {
		in := bufio.NewReaderSize(strings.NewReader(text), size)
		ours := func(key []byte) bool { return strings.HasPrefix(string(key), "j:") }
		var got []push
		for {
			p, err := readPush(in, ours)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p)
		}
		if len(got) != 6 || !got[0].pong || !slices.Equal(got[1].keys, []string{"j:1"}) || got[1].other != 2 || !got[2].all ||
			got[3].pong || got[3].all || got[3].keys != nil || got[4].other != 1 || got[4].bytes != len(long) || !slices.Equal(got[5].keys, []string{"j:2"}) {
			t.Errorf("%+v", got)
		}
	}
}

func TestWhatIsNoPushIsRefused(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 400 Bad Request\r\n\r\n", "$3\r\nabc\r\n", ":1\r\n", ">0\r\n", ">x\r\n", ">2\n", "-ERR no\r\n",
		">2\r\n:1\r\n_\r\n", ">2\r\n$10\r\ninvalidate\r\n:1\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n:1\r\n",
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$2\r\nabc\r\n", ">2\r\n$10\r\ninvalidate\r\n*99999999999\r\n",
		">2\r\n$1\r\na\r\n" + strings.Repeat("*1\r\n", 100), strings.Repeat("+", 100_000),
	} {
		if p, err := readPush(bufio.NewReader(strings.NewReader(text)), any1); !errors.Is(err, ErrBadPush) {
			t.Errorf("%.40q: %+v %v", text, p, err)
		}
	}
	// Half a message ends the connection, whatever part of it arrived.
	whole := ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
	for n := range len(whole) {
		if _, err := readPush(bufio.NewReader(strings.NewReader(whole[:n])), any1); err == nil || errors.Is(err, ErrBadPush) {
			t.Errorf("%q: %v", whole[:n], err)
		}
	}
}

func FuzzPushes(f *testing.F) {
	f.Add([]byte("+PONG\r\n>2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"))
	f.Add([]byte(">2\r\n$10\r\ninvalidate\r\n_\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n*1\r\n%1\r\n+a\r\n,1.5\r\n"))
	f.Add([]byte(">2\r\n+invalidate\r\n*-1\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReaderSize(strings.NewReader(string(data)), 64)
		for {
			p, err := readPush(in, func(k []byte) bool { return len(k)%2 == 0 })
			if err != nil {
				return
			}
			total := p.bytes
			for _, k := range p.keys {
				total += len(k)
			}
			if total > len(data) || len(p.keys)+p.other > len(data) {
				t.Errorf("%d bytes of keys in %d", total, len(data))
			}
		}
	})
}

// An answer proves the changes before the previous PING was sent.
func TestWhatASignOfLifeVouchesFor(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	go func() { _, _ = io.Copy(io.Discard, b) }()
	f := &Feed{Session: &Session{Patience: NewPatience(time.Second)}, conn: a}
	t0 := time.Now()
	for i, want := range []time.Time{{}, t0, t0.Add(time.Millisecond)} {
		if err := f.Ping(t0.Add(time.Duration(i) * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		// No second PING is sent while one is in flight.
		if err := f.Ping(t0.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if f.Silent(t0.Add(500*time.Millisecond)) || !f.Silent(t0.Add(1100*time.Millisecond)) {
			t.Error("the patience is another")
		}
		if got := f.ponged(); !got.Equal(want) {
			t.Errorf("%d: %v", i, got.Sub(t0))
		}
	}
}

// Servers that refuse to report changes, and servers that are not ready.
func TestWhyThereIsNoFeed(t *testing.T) {
	for name, c := range map[string]struct {
		hello, tracking string
		none            bool
		says            string
	}{
		"old":            {"-ERR unknown command 'HELLO'\r\n", "+OK\r\n", true, "the server does not know RESP3"},
		"RESP2 alone":    {"-NOPROTO unsupported protocol version\r\n", "+OK\r\n", true, "the server does not know RESP3"},
		"no map":         {"*2\r\n+a\r\n+b\r\n", "+OK\r\n", true, "the server does not know RESP3"},
		"denied":         {"%1\r\n+proto\r\n:3\r\n", "-NOPERM no permissions\r\n", true, "its user may not use CLIENT TRACKING"},
		"without":        {"%1\r\n+proto\r\n:3\r\n", "-ERR unknown subcommand\r\n", true, "the server does not know CLIENT TRACKING"},
		"loading":        {"-LOADING not yet\r\n", "+OK\r\n", false, "LOADING"},
		"cut off":        {"%1\r\n+pro", "", false, "EOF"},
		"none of theirs": {"HTTP/1.1 400\r\n", "", false, "not a message"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go serveFeed(l, c.hello, c.tracking)
			n, err := redlock.NewNode("n1", &redis.Options{Addr: l.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			f, err := OpenFeed(t.Context(), n, []string{"job:"}, NewPatience(5*time.Second))
			if err == nil {
				f.Close()
				t.Fatal("a feed")
			}
			var none ErrNoFeed
			if errors.As(err, &none) != c.none || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%T %v", err, err)
			}
		})
	}
}

// serveFeed is a server that answers PING, and the other commands as given.
func serveFeed(l net.Listener, hello, tracking string) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	in := bufio.NewScanner(c)
	pinged := false
	for in.Scan() {
		switch word := strings.ToUpper(in.Text()); {
		case word == "PING":
			pinged = true
			_, _ = io.WriteString(c, "+PONG\r\n")
		case word == "HELLO" && !pinged: // of the client library
			_, _ = io.WriteString(c, "-ERR unknown command\r\n")
		case word == "HELLO":
			_, _ = io.WriteString(c, hello)
			if !strings.HasSuffix(hello, "\r\n") {
				return
			}
		case word == "TRACKING":
			_, _ = io.WriteString(c, tracking)
		}
	}
}
