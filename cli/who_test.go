package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"redlockctl/cli/printer"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/who"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// reader is an output that calls then when it contains want.
type reader struct {
	strings.Builder
	want string
	then func()
}

func (r *reader) Write(b []byte) (int, error) {
	n, err := r.Builder.Write(b)
	if strings.Contains(r.String(), r.want) {
		r.then()
	}
	return n, err
}

// On servers that do not count the commands of connections, who says at once that often
// nobody can be named, and which command names the holder; a person need not wait for the
// end. The answer does not say it again.
func TestWhoSaysAtOnceWhatItLacks(t *testing.T) {
	servers := labtest.Servers(t, 3)
	list, err := servers[0].Do(t.Context(), "CLIENT", "LIST")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := list.(string); strings.Contains(text, "tot-cmds=") {
		t.Skip("these servers count commands")
	}
	var addrs []string
	for _, s := range servers {
		get(t, s, "SET", "job:1", "token", "PX", 3_600_000)
		addrs = append(addrs, s.Addr())
	}
	const hint = "n1 n2 n3 do not count the commands of each connection (Valkey does since 8.1), so often nobody can be named; " +
		"for certain, and in seconds: redlockctl who job:1 --monitor --node n1 --reason TEXT"
	for _, limit := range []string{"1h", "1s"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		said := &reader{want: "--monitor --node", then: func() {
			if limit == "1h" {
				cancel()
			}
		}}
		var out strings.Builder
		dir := t.TempDir()
		a := newCommandLine(&printer.Printer{
			In: strings.NewReader(""), Out: &out, Err: said,
			Getenv: func(k string) string { return map[string]string{"HOME": dir, "XDG_STATE_HOME": dir}[k] },
		})
		a.main(ctx, []string{"--nodes", strings.Join(addrs, ","), "who", "job:1", "--for", limit})
		cancel()
		if text := said.String(); strings.Count(text, hint) != 1 || strings.Contains(out.String(), "--monitor") || (out.Len() > 0) != (limit == "1s") {
			t.Errorf("--for %s: %q\n%s", limit, text, out.String())
		}
	}
}

// The answer is of the moment of the look that follows it: it names no holder who has lost the lock since,
// and says nothing of no copies beside a holder. The document agrees with the table.
func TestWhoAnswersOfOneMoment(t *testing.T) {
	servers := labtest.Servers(t, 3)
	dir := t.TempDir()
	at := time.Now()
	had := who.Answer{At: at, Key: "job:1", Held: 3, N: 3, Token: safetext.New("first"), LastHeld: at, Method: who.Told, Owner: safetext.New("web-7"), Events: 1}
	ended := had
	ended.Held, ended.Ended = 0, true
	traffic := had
	traffic.N, traffic.Held, traffic.MonitorOn, traffic.LastHeld = 1, 1, "n1", time.Time{}
	nothing := who.Answer{At: at, Key: "job:1", N: 3, Method: who.Unknown}
	const now = "job:1: held now by token second, first seen "
	before := "\n  before that, token first, last seen to hold it at " + at.Format("15:04:05") + ": was held by web-7  (told by its token)\n"
	for name, c := range map[string]struct {
		answer who.Answer
		copies string // the tokens of the copies at the look; - is none
		has    []string
		lacks  string
		copied int
		before string
		err    error
	}{
		"the next client has it":                          {had, "second second second", []string{now, "it has 3 of 3 copies, a majority; ends in ", before}, "no copy", 3, "first", nil},
		"nobody had it, and the next client has it":       {ended, "second second second", []string{now, "it has 3 of 3 copies, a majority; ends in ", before}, "no copy", 3, "first", nil},
		"nobody was seen, and a client has it":            {nothing, "- second second", []string{now, "it has 2 of 3 copies, a majority; ends in "}, "no copy", 2, "", nil},
		"another has it than the one seen in the traffic": {traffic, "first second second", []string{now, "copies of token first are there too: its copies were made by web-7"}, "before that", 2, "first", nil},
		"it has ended since":                              {had, "- - -", []string{"job:1: was held by web-7  (told by its token)\n  token first was last seen to hold it at ", "; it has ended since\n"}, "majority", 0, "", nil},
		"it had ended":                                    {ended, "- - -", []string{"job:1: was held by web-7  (told by its token)\n  token first was last seen to hold it at ", "; it has ended since\n"}, "majority", 0, "", redlock.ErrNotHeld},
		"a copy is left":                                  {had, "first - -", []string{"job:1: its copies were made by web-7", "it has 1 of 3 copies: "}, "a majority", 1, "", nil},
		"he has it still":                                 {had, "first first first", []string{"job:1: held by web-7", "it has 3 of 3 copies, a majority; ends in "}, "since", 3, "", nil},
	} {
		for i, token := range strings.Fields(c.copies) {
			if token == "-" {
				get(t, servers[i], "DEL", "job:1")
			} else {
				get(t, servers[i], "SET", "job:1", token, "PX", "20000")
			}
		}
		said := map[string]string{}
		for _, form := range []string{"table", "json"} {
			var out strings.Builder
			a := newCommandLine(&printer.Printer{
				In: strings.NewReader(""), Out: &out, Err: io.Discard, Output: form,
				Getenv: func(k string) string { return map[string]string{"HOME": dir, "XDG_STATE_HOME": dir}[k] },
			})
			var addrs []string
			for _, s := range servers {
				addrs = append(addrs, s.Addr())
			}
			a.named.Nodes = addrs
			cfg, err := a.load()
			if err != nil {
				t.Fatal(err)
			}
			w := c.answer
			if err := a.printWho(t.Context(), cfg, &w, ""); !errors.Is(err, c.err) {
				t.Errorf("%s: %v", name, err)
			}
			said[form] = out.String()
		}
		for _, text := range c.has {
			if !strings.Contains(said["table"], text) || strings.Contains(said["table"], c.lacks) {
				t.Errorf("%s: it lacks %q, or says %q:\n%s", name, text, c.lacks, said["table"])
			}
		}
		var doc struct {
			Copies    int
			Majority  bool
			Ended     bool
			HeldUntil *time.Time `json:"held_until"`
			Since     time.Time
			Before    struct{ Token string }
		}
		if err := json.Unmarshal([]byte(said["json"]), &doc); err != nil {
			t.Fatal(err)
		}
		gone := strings.Contains(name, "ended")
		if doc.Copies != c.copied || doc.Majority != (c.copied > 1) || doc.Ended != gone || (doc.HeldUntil != nil) != (c.copied > 0) ||
			doc.Since.IsZero() == strings.Contains(said["table"], now) || doc.Before.Token != c.before {
			t.Errorf("%s: %s", name, said["json"])
		}
	}
}
