package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/internal/who"
	"redlockctl/server/safetext"
)

// The connections of a named client to one node are one row, which leads to the one that sent
// a change of the lock. Those without a name, from another host, or closed, stay apart.
func TestConnectionsOfOneClientAreOneRow(t *testing.T) {
	conn := func(node, addr, name string, idle int) who.NodeConn {
		return who.NodeConn{Node: node, Conn: who.Conn{Addr: safetext.New(addr), Name: safetext.New(name), Idle: idle, Age: 60}, Find: "find " + addr}
	}
	sent, closed := conn("n1", "10.0.0.1:3", "app", 9), conn("n1", "10.0.0.1:5", "app", 0)
	sent.Sent, closed.Gone = true, 5*time.Second
	w := &who.Answer{Conns: []who.NodeConn{
		conn("n1", "10.0.0.1:1", "app", 7), conn("n1", "10.0.0.1:2", "app", 2), sent, conn("n1", "10.0.0.1:4", "app", 0), closed,
		conn("n1", "10.0.0.2:1", "app", 0), conn("n2", "10.0.0.1:1", "app", 7), conn("n2", "10.0.0.1:2", "app", 2),
		conn("n2", "10.0.0.1:6", "", 0), conn("n2", "10.0.0.1:7", "", 0),
	}}
	var got []string
	for row := range WhoConns(w).Rows() {
		got = append(got, strings.Join([]string{row[0].Text, row[1].Text, row[5].Text, row[6].Text}, ", "))
	}
	want := []string{
		"n1, 10.0.0.1:3 and 3 more, 1m00s, find 10.0.0.1:3", "n1, 10.0.0.1:5, closed 5s ago, ", "n1, 10.0.0.2:1, 1m00s, find 10.0.0.2:1",
		"n2, 10.0.0.1:2 and 1 more, 1m00s, find 10.0.0.1:2", "n2, 10.0.0.1:6, 1m00s, find 10.0.0.1:6", "n2, 10.0.0.1:7, 1m00s, find 10.0.0.1:7",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The answer for a revoked lock names no holder: there is none.
func TestNobodyHoldsATombstone(t *testing.T) {
	w := &who.Answer{N: 3, Held: 2, Revoked: true, Method: who.Unknown, Uncounted: []string{"n1"}}
	if text, hint, life := WhoHeadline(w), WhoHint(w), WhoLiveness(w); text != revokedText || hint != "" || life != "" {
		t.Errorf("%q, %q, %q", text, hint, life)
	}
}
