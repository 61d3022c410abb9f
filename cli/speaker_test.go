package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"redlockctl/cli/printer"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui"
)

// A plain console reports the progress of reading from time to time, and its end. It
// does not mention a read that ends at once.
func TestReadingIsSaid(t *testing.T) {
	var out bytes.Buffer
	a := newCommandLine(&printer.Printer{Out: &out, ASCII: true})
	p := &speaker{commandLine: a, shown: tui.Cluster{}, last: monitortest.Loading(monitortest.Epoch)}
	said := func(after time.Duration, s *monitor.Snapshot) string {
		out.Reset()
		s.At = monitortest.Epoch.Add(after)
		p.last = s
		p.tellReading(2 * time.Second)
		return out.String()
	}
	for _, c := range []struct {
		after time.Duration
		of    func(time.Time) *monitor.Snapshot
		want  string
	}{
		{0, monitortest.Safe, ""},
		{1 * time.Second, monitortest.Loading, ""},
		{2 * time.Second, monitortest.Safe, ""},
		{10 * time.Second, monitortest.Loading, ""},
		{12 * time.Second, monitortest.Loading, "reading 70,000 of ~125,000 keys on 5 nodes: locks may be missing until all are read\n"},
		{13 * time.Second, monitortest.Loading, ""},
		{22 * time.Second, monitortest.Loading, "reading 70,000 of ~125,000 keys on 5 nodes: locks may be missing until all are read\n"},
		{23 * time.Second, monitortest.Safe, "all keys are read: 2 locks\n"},
		{24 * time.Second, monitortest.Safe, ""},
	} {
		if got := said(c.after, c.of(monitortest.Epoch)); (got == "") != (c.want == "") || !strings.HasSuffix(got, c.want) {
			t.Errorf("after %s: %q", c.after, got)
		}
	}
	out.Reset()
	p.last = monitortest.Loading(monitortest.Epoch)
	p.tellNodes()
	if got := out.String(); !strings.Contains(got, "n1: serving, 2 locks so far\n") || !strings.Contains(got, "n4: serving, 2 locks\n") {
		t.Errorf("%q", got)
	}
}
