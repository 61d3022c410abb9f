package filter

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/server/safetext"
)

// task is a row with a field of each kind.
type task struct {
	name, state, owner string
	tries              int
	began              time.Time
}

var tasks = Language[*task]{Text: "the name",
	Texts: func(t *task, such func(safetext.Text) bool) bool { return such(safetext.New(t.name)) },
	Fields: []Field[*task]{
		{Name: "state", Is: func(t *task) string { return t.state }, Words: []string{"done", "not done", "no TTL"}},
		{Name: "owner", Also: "who", Has: func(t *task, text string) bool { return HasFold(safetext.New(t.owner), text) }},
		{Name: "tries", Number: func(t *task) (int, bool) { return t.tries, t.tries >= 0 }},
		{Name: "age", Span: func(t *task, now time.Time) (time.Duration, bool) { return now.Sub(t.began), !t.began.IsZero() }},
	}}

func TestMatch(t *testing.T) {
	now := time.Unix(1700000000, 0)
	rows := []*task{
		{"a", "done", "web-1", 0, now.Add(-time.Minute)}, {"a b", "not done", "Web 2", 12, now.Add(-time.Hour)}, {"job:9", "no TTL", "", -1, time.Time{}},
	}
	for said, want := range map[string]string{
		"": "a|a b|job:9", "A": "a|a b", `"a b"`: "a b", "a*b": "a b", "~^.$": "a", "job:": "job:9", "!a": "job:9",
		"state:not-done|done": "a|a b", `state:"NO ttl"`: "job:9", "state:no": "a b|job:9", "who:web": "a|a b", `owner:"web 2"`: "a b",
		"tries:0": "a", "tries>9": "a b", "tries<2": "a", "tries:0|12": "a|a b", "state:no TTL": "job:9", "state:No  ttl|done": "a|job:9", "state:done|not done": "a|a b", "state:no 9": "job:9", `state:no "TTL"`: "", "state:not done b": "a b", "!state:no TTL": "a|a b", "state:no T": "",
		"age<=1m": "a", "age>1m": "a b", "!age>1m": "a|job:9",
	} {
		f := tasks.Parse(said)
		var got []string
		for _, r := range rows {
			if f.Match(r, now) {
				got = append(got, r.name)
			}
		}
		if err := f.Check(nil); strings.Join(got, "|") != want || err != nil {
			t.Errorf("%q chooses %q, not %q: %v", said, got, want, err)
		}
	}
}

// An error in a filter says what would be right.
func TestBadTermsAreTold(t *testing.T) {
	owners := func(field string) []string {
		if field == "owner" {
			return []string{"web-1", "web-2"}
		}
		return nil
	}
	for said, want := range map[string]string{
		"state:x": "bad filter: state:x: no state begins so (have: done, not done, no TTL)", "owner:x": "owner:x: there is no such owner (have: web-1, web-2)",
		"owner:web-1|x": "owner:x: there is no such owner", "tries:x": "a number is wanted", "age:5s": "age is compared: age<5s", "age<5": "a number with a unit",
		"~(": "no regular expression: missing closing )", "~" + strings.Repeat("a", 300): "more than 200 characters", "state<5": "state takes a colon", "owner:": "what follows the colon?",
	} {
		f := tasks.Parse(said)
		if err := f.Check(owners); !errors.Is(err, Err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", said, err, want)
		}
	}
	for said, want := range map[string]string{
		"a stat:done": "\"stat\" is not a field: searched as text in the name (fields: state, owner, tries, age)", "agee<5s": "\"agee\" is not a field: searched as text in the name (fields: state, owner, tries, age)",
		"no TTL": `"no TTL" is searched as text in the name: state:no-TTL chooses by state`, "a not-done": `"not done" is searched as text in the name: state:not-done chooses by state`, "no a TTL": "", `"no TTL"`: "", "no": "",
		"a": "", `"stat:done"`: "", "job:*": "", "~a:b": "", "state:done": "", "2026:1": "",
	} {
		if f := tasks.Parse(said); f.Hint() != want {
			t.Errorf("%q: the hint is %q", said, f.Hint())
		}
	}
}

func TestOffers(t *testing.T) {
	there := func(field string) []string {
		return map[string][]string{"owner": {"orders web", "web-1", "web-2", "x|y", "\x1b[2J", `q"`}}[field]
	}
	for said, want := range map[string]string{
		"": "state:/owner:/tries:/age</age>", "s": "state:", "!S": "!state:", "a t": "a tries:", "tries": "tries:/tries</tries>", "age": "age</age>", "x": "", "a ": "a state:/a owner:/a tries:/a age</a age>",
		"state:": "state:done/state:not-done/state:no-TTL", "state:no": "state:not-done/state:no-TTL", "state:NOT_D": "state:not-done", "state:no-t": "state:no-TTL", "state:nodone": "", "state:nottl": "state:no-TTL", "state:done|": "state:done|not-done/state:done|no-TTL",
		`state:"`: `state:"done"/state:"not done"/state:"no TTL"`, `state:"no `: `state:"no TTL"`, `state:done|"no t`: `state:done|"no TTL"`, `state:"no TTL"`: "", "state:no TTL": "", "state:no TTL ": "state:no TTL state:/state:no TTL owner:/state:no TTL tries:/state:no TTL age</state:no TTL age>", `state:"no TTL"|d`: `state:"no TTL"|done`,
		"a !state:d": "a !state:done", "owner:web": `owner:web-1/owner:web-2/owner:"orders web"`, "who:web-1|": `who:web-1|"orders web"/who:web-1|web-2`, "owner:zzz": "",
		`"state:`: "", "~state:": "", "age<": "", "tries:": "", "name:d": "",
	} {
		if got := strings.Join(tasks.Offers(said, there), "/"); got != want {
			t.Errorf("%q may become %q, not %q", said, got, want)
		}
	}
	if got := tasks.Offers("owner:w", nil); got != nil {
		t.Errorf("of what is not known %q is offered", got)
	}
	for _, c := range [][3]string{{"a state:done|n", "a state:done|not-done", "not-done"}, {"a state:d", "a state:done", "done"}, {"a st", "a state:", "state:"}, {"!", "!state:", "state:"}} {
		if got := Line(c[0], c[1]); got != c[2] {
			t.Errorf("%q is shown as %q behind %q", c[1], got, c[0])
		}
	}
}

// Whatever is typed, each offer is a filter without an open quote, and begins with what
// was typed before the last term.
func FuzzOffers(f *testing.F) {
	for _, s := range []string{"", "state:", "state:no TTL", "state:not done|no", `state:"no`, "a !owner:x|", `"a`, "~(", "tries", "!", `who:"a b"|"`, "a  \t"} {
		f.Add(s)
	}
	there := func(string) []string { return []string{"a b", "c"} }
	f.Fuzz(func(t *testing.T, said string) {
		if len(said) > 1<<10 {
			t.Skip("more of the same")
		}
		before := tasks.Parse(said)
		for _, o := range tasks.Offers(said, there) {
			after := tasks.Parse(o)
			if i := strings.LastIndexAny(said, ` "|:!`); !strings.HasPrefix(o, said[:i+1]) {
				t.Fatalf("%q becomes %q", said, o)
			}
			if after.Unclosed() || len(after.terms)+len(after.problems) < len(before.terms)+len(before.problems)-1 {
				t.Fatalf("%q becomes %q", said, o)
			}
			if slices.Contains(tasks.Offers(o, there), o) && strings.HasSuffix(o, ":") {
				t.Fatalf("%q is offered again", o)
			}
		}
	})
}
