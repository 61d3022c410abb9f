package redlock

import (
	"bufio"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestReadReply(t *testing.T) {
	for in, want := range map[string]reply{
		"+OK\r\n":                       {kind: '+', text: "OK"},
		"+QUEUED\r\n":                   {kind: '+', text: "QUEUED"},
		"-NOREPLICAS Not enough\r\n":    {kind: '-', text: "NOREPLICAS Not enough"},
		":-2\r\n":                       {kind: ':', n: -2},
		"$-1\r\n":                       {kind: '_'},
		"*-1\r\n":                       {kind: '_'},
		"$0\r\n\r\n":                    {kind: '$'},
		"$4\r\na\r\nb\r\n":              {kind: '$', text: "a\r\nb"},
		"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n": {kind: '*', items: []reply{{kind: ':', n: 1}, {kind: '*', items: []reply{{kind: '$', text: "x"}}}}},
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(in)), 0)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}

// What is no reply, or longer than any reply to a lock command, is refused
// before it is read: a server that is none must not fill the memory.
func TestReadReplyRefuses(t *testing.T) {
	for _, in := range []string{
		"HTTP/1.1 400 Bad Request\r\n", "+OK\n", ":x\r\n", "$9999999999\r\n", "$70000\r\n", "*65\r\n", "$-2\r\n",
		"$1\r\nxyz", strings.Repeat("*1\r\n", 6), "+" + strings.Repeat("x", 8192),
	} {
		_, err := readReply(bufio.NewReader(strings.NewReader(in)), 0)
		if !errors.Is(err, ErrBadReply) {
			t.Errorf("%.20q: %v", in, err)
		}
	}
	for _, in := range []string{"", "+OK", "$3\r\nab", "*2\r\n:1\r\n"} {
		if _, err := readReply(bufio.NewReader(strings.NewReader(in)), 0); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut off after %q: %v", in, err)
		}
	}
}

// A command is read by a server as it was meant, whatever its arguments hold.
func FuzzCommand(f *testing.F) {
	f.Add("SET", "a\r\n$1\r\nx")
	f.Add("", "\xff\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > maxBulk || len(b) > maxBulk {
			t.Skip()
		}
		r := bufio.NewReader(strings.NewReader(string(appendCommand(nil, a, b))))
		got, err := readReply(r, 0) // a command has the form of a reply
		if err != nil || len(got.items) != 2 || got.items[0].text != a || got.items[1].text != b || r.Buffered() > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func FuzzReadReply(f *testing.F) {
	f.Add("*2\r\n:1\r\n*1\r\n$1\r\nx\r\n")
	f.Add("$4\r\na\r\nb\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		_, _ = readReply(bufio.NewReader(strings.NewReader(in)), 0)
	})
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]Status{
		"NOPERM this user has no permissions to run the 'set' command":                                             StatusDenied,
		"NOPERM ACL failure in script: User u has no permissions to run the 'del' command script: 3c, on @user":    StatusDenied,
		"ERR The user executing the script can't run this command or subcommand script: 3c, on @user_script:1.":    StatusDenied,
		"ERR Error running script (call to f_3c): @user_script:5: -NOPERM The user executing the script can't run": StatusDenied,
		"NOAUTH Authentication required.":               StatusDenied,
		"NOREPLICAS Not enough good replicas to write.": StatusFenced,
		"ERR Error running script (call to f_3c): @user_script:5: -NOREPLICAS Not enough good replicas to write.": StatusFenced,
		"READONLY You can't write against a read only replica.":                                                   StatusProtocol,
		"ERR unknown command 'NOPERM'": StatusProtocol,
	} {
		if got := (&call{op: opRelease, key: "a"}).refusal(text); got.Status != want || !strings.Contains(got.Err.Error(), text) {
			t.Errorf("%s: %s, %v", text, got.Status, got.Err)
		}
	}
}
