package lockform

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// noon is the time of the handwritten fixtures.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fixture is a key as a library makes it. proof/samples makes those of real libraries; the
// others name their source.
type fixture struct {
	Library string    `json:"library"`
	Form    string    `json:"form"`
	At      time.Time `json:"at"`
	Key     string    `json:"key"`
	Type    string    `json:"type"`
	Value   []byte    `json:"value"`
	Length  int64     `json:"length"` // of what is no string

	// Expected details, for handwritten fixtures.
	Owner     string    `json:"owner"`
	Created   time.Time `json:"created"`
	Deadline  time.Time `json:"deadline"`
	Group     string    `json:"group"`
	Companion bool      `json:"companion"`
	Refused   bool      `json:"refused"`
}

func fixtures(t testing.TB, file string) []fixture {
	t.Helper()
	doc, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all []fixture
	if err := json.Unmarshal(doc, &all); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for i, f := range all {
		if f.Type == "string" {
			all[i].Length = int64(len(f.Value))
		}
	}
	return all
}

func (f fixture) recognize() *Form {
	return Recognize(f.Key, f.Type, string(f.Value), f.Length, f.At)
}

func TestWhatLibrariesMadeIsRecognised(t *testing.T) {
	for _, f := range fixtures(t, "made.json") {
		got := f.recognize()
		if got == nil || got.Library != f.Form {
			t.Errorf("%s: %q → %q is recognised as %+v, not as %q", f.Library, f.Key, f.Value, got, f.Form)
			continue
		}
		switch f.Library {
		case "redis-py":
			if d := f.At.Sub(got.Created); d < -5*time.Second || d > 5*time.Second {
				t.Errorf("redis-py: created %s, made %s", got.Created, f.At)
			}
		case "rueidislock":
			if got.Group.Raw() != "rueidislock:job" {
				t.Errorf("rueidislock: group %q", got.Group.Raw())
			}
		case "node-redlock 5":
			if !got.SharedToken {
				t.Error("node-redlock: its keys are not told to share a token")
			}
		}
	}
}

func TestWhatIsWrittenAfterLibrariesIsRecognised(t *testing.T) {
	for _, f := range fixtures(t, "written.json") {
		got := f.recognize()
		if got == nil || got.Library != f.Form {
			t.Errorf("%s: %q → %q is recognised as %+v, not as %q", f.Library, f.Key, f.Value, got, f.Form)
			continue
		}
		if got.Owner.Raw() != f.Owner || got.Group.Raw() != f.Group || got.Companion != f.Companion ||
			(got.Refused != "") != f.Refused || !got.Created.Equal(f.Created) || !got.Deadline.Equal(f.Deadline) {
			t.Errorf("%s: %q tells %+v, not %+v", f.Library, f.Key, *got, f)
		}
	}
}

// TestEachRowHasAFixture: no row of the table is dead, because an earlier row matches first
// or nothing tests it.
func TestEachRowHasAFixture(t *testing.T) {
	used := map[*row]bool{}
	all := append(fixtures(t, "made.json"), fixtures(t, "written.json")...)
	// Some tokens could be from either library: they have a form of their own.
	all = append(all, fixture{Key: "job", Type: "string", Value: []byte("k3JvQ0aZr8MxT1yLb5NcWw"), Length: 22, At: noon})
	for _, f := range all {
		s := sight{key: f.Key, value: string(f.Value), length: f.Length, now: f.At}
		s.whole = int64(len(f.Value)) == f.Length
		for i := range forms {
			row := &forms[i]
			if !row.fits(f.Type, s) {
				continue
			}
			if _, ok := row.match(s); ok {
				used[row] = true
				break
			}
		}
	}
	for i := range forms {
		if !used[&forms[i]] {
			t.Errorf("row %d, %q: no fixture is recognised by it", i, forms[i].Library)
		}
	}
}

func TestFormsAreShared(t *testing.T) {
	a := Recognize("a", "string", "aFgzVGx2ODc1czJOcmZEaw==", 24, noon)
	b := Recognize("b", "string", "czIxU0JKNXRSYTVtZmJPaQ==", 24, noon)
	if a == nil || a != b {
		t.Errorf("two forms of the same looks: %p %p", a, b)
	}
	if n := testing.AllocsPerRun(100, func() { Recognize("a", "string", "aFgzVGx2ODc1czJOcmZEaw==", 24, noon) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { Recognize("session:17", "string", `{"user":17}`, 11, noon) }); n != 0 {
		t.Errorf("%v allocations for what is no lock", n)
	}
}

// TestRandomTokens draws tokens as each library does and checks that they are recognised.
// Where alphabets overlap, a few are not recognised or are taken for another library; each
// case says how many may be.
func TestRandomTokens(t *testing.T) {
	const n = 10_000
	chacha := rand.NewChaCha8([32]byte{1})
	rnd := rand.New(chacha)
	bytesOf := func(n int) string {
		b := make([]byte, n)
		_, _ = chacha.Read(b)
		return string(b)
	}
	from := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		return string(b)
	}
	uuidV4 := func() string {
		b := []byte(bytesOf(16))
		b[6], b[8] = b[6]&15|0x40, b[8]&63|0x80
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	const alnum = decimal + lower + upper
	tests := []struct {
		name  string
		key   string
		draw  func() string
		forms []string // forms that it may be recognised as
		miss  int      // how many of n may be missed or taken for another form
	}{
		{"redlockctl", "job", func() string { return base64.RawURLEncoding.EncodeToString(append([]byte(bytesOf(18)), 1, 255)) }, []string{"redlockctl"}, 0},
		{"redsync", "job", func() string { return base64.StdEncoding.EncodeToString([]byte(bytesOf(16))) }, []string{"redsync"}, 0},
		{"node-redlock", "job", func() string { return hex.EncodeToString([]byte(bytesOf(16))) }, []string{"node-redlock or redlock-universal"}, 3},
		{"redis-py", "job", func() string {
			// Any time since 2020, any node and sequence.
			ticks := uint64(noon.Add(-time.Duration(rnd.Int64N(int64(6*year)))).UnixNano()/100) + 122_192_928_000_000_000
			return fmt.Sprintf("%08x%04x1%03x%04x%s", ticks&0xffffffff, ticks>>32&0xffff, ticks>>48, 0x8000|rnd.IntN(1<<14), hex.EncodeToString([]byte(bytesOf(6))))
		}, []string{"redis-py"}, 0},
		{"bsm/redislock", "job", func() string { return base64.RawURLEncoding.EncodeToString([]byte(bytesOf(16))) }, []string{"bsm/redislock", "bsm/redislock, redlock-py or @redis-kit/lock"}, 3},
		{"bsm/redislock with metadata", "job", func() string {
			return base64.RawURLEncoding.EncodeToString([]byte(bytesOf(16))) + " host " + from(lower, rnd.IntN(200))
		}, []string{"bsm/redislock"}, 3},
		{"redlock-py", "job", func() string { return from(alnum, 22) }, []string{"redlock-py or @redis-kit/lock", "bsm/redislock, redlock-py or @redis-kit/lock"}, 3},
		{"redis-plus-plus", "job", func() string { return from(alnum, 20) }, []string{"redis-plus-plus"}, 3},
		{"redlock-cpp", "job", func() string { return strings.ToUpper(hex.EncodeToString([]byte(bytesOf(20)))) }, []string{"redlock-cpp"}, 0},
		{"Redis::DistLock", "job", func() string { return base64.StdEncoding.EncodeToString([]byte(bytesOf(24))) }, []string{"Redis::DistLock"}, 1},
		{"python-redis-lock", "lock:job", func() string { return base64.StdEncoding.EncodeToString([]byte(bytesOf(18))) }, []string{"python-redis-lock"}, 2},
		{"rueidislock", "rueidislock:1:job", func() string { return bytesOf(24) }, []string{"rueidislock"}, 0},
		{"rueidislock with another prefix", "locks:1:job", func() string { return bytesOf(24) }, []string{"rueidislock"}, 0},
		{"redlock-cs", "job", func() string {
			b := []byte(bytesOf(16))
			b[7], b[8] = b[7]&15|0x40, b[8]&63|0x80
			return string(b)
		}, []string{"redlock-cs"}, 5},
		{"redlock-rs", "job", func() string { return bytesOf(20) }, []string{"redlock-rs or rslock"}, 2},
		{"RedLock.net", "redlock:job:1", uuidV4, []string{"RedLock.net or pottery"}, 0},
		{"redlock-rb", "job", uuidV4, []string{"redlock-rb, aioredlock or @microfleet/ioredis-lock"}, 0},
		{"Spring Integration", "registry:job", uuidV4, []string{"redlock-rb, aioredlock, @microfleet/ioredis-lock or Spring Integration"}, 0},
		{"redlock-php", "job", func() string {
			at := noon.Add(-time.Duration(rnd.Int64N(int64(10 * year)))).UnixMicro()
			return fmt.Sprintf("%08x%05x", at/1e6, at%1e6)
		}, []string{"redlock-php"}, 0},
		{"php-lock", "php-malkusch-lock:job", func() string { return hex.EncodeToString([]byte(bytesOf(32))) }, []string{"php-lock"}, 0},
		{"DistributedLock", "job", func() string {
			return fmt.Sprintf("%s_%d_%s", from(alnum+"_-", 1+rnd.IntN(60)), 1+rnd.IntN(4<<20), hex.EncodeToString([]byte(bytesOf(16))))
		}, []string{"DistributedLock (.NET)"}, 0},
		{"ShedLock", "job-lock:default:job", func() string {
			at := noon.Add(-time.Duration(rnd.Int64N(int64(year)))).Format("2006-01-02T15:04:05.000Z")
			return "ADDED:" + at + "@" + from(lower+"-.", 1+rnd.IntN(40)) + ":" + uuidV4()
		}, []string{"ShedLock"}, 0},
		{"SETNX in seconds", "lock.job", func() string { return fmt.Sprint(noon.Unix() - rnd.Int64N(400_000_000)) }, []string{"SETNX with a time stamp"}, 0},
		{"SETNX in milliseconds", "job_mutex", func() string { return fmt.Sprint(noon.UnixMilli() - rnd.Int64N(400_000_000_000)) }, []string{"SETNX with a time stamp"}, 0},
	}
	for _, test := range tests {
		missed, example := 0, ""
		for range n {
			v := test.draw()
			if got := Recognize(test.key, "string", v, int64(len(v)), noon); got == nil || !slices.Contains(test.forms, got.Library) {
				missed++
				example = fmt.Sprintf("%q as %+v", v, got)
			}
		}
		if missed > test.miss {
			t.Errorf("%s: %d of %d are not recognised, such as %s", test.name, missed, n, example)
		} else if missed > 0 {
			t.Logf("%s: %d of %d are not recognised, such as %s", test.name, missed, n, example)
		}
	}
}

func TestOrdinaryValuesAreNoLocks(t *testing.T) {
	long := strings.Repeat("x", PrefixLen)
	tests := []struct{ key, typ, value string }{
		{"counter:visits", "string", "0"},
		{"counter:visits", "string", "42"},
		{"nextid:tweet-ids", "string", "1795262400"}, // pottery's, as large as a time
		{"page:views", "string", "1795262400"},
		{"last_seen:17", "string", "1795262400.125"},
		{"user:17:token_expires_at", "string", "1795262400000"},
		{"lock.count", "string", "12"},
		{"lock:level", "string", "9999999999"}, // not within a year
		{"lock:level", "string", "0123456789"}, // a number that is not a time
		{"lock:version", "string", "1795262400.x"},
		{"lock:version", "string", "1795262400."},
		{"lock:1", "string", "1"},
		{"lock:1", "string", ""},
		{"job", "string", ""},
		{"flag", "string", "true"},
		{"name", "string", "Ada Lovelace"},
		{"price", "string", "19.99"},
		{"session:9f8b", "string", `{"user":17,"roles":["admin"]}`},
		{"cache:page", "string", "<html><body>hello</body></html>"},
		{"url", "string", "https://example.com/a/b?c=d"},
		{"mail", "string", "ada.lovelace@example.com"},
		{"jwt", "string", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"},
		{"date", "string", "2026-11-21T12:00:00Z"},
		{"ip", "string", "192.168.100.200:65535"},
		{"path", "string", "/var/lib/redis/dump.rdb"},
		{"semver", "string", "v1.22.3-rc.1+build.5"},
		{"words", "string", "averylongwordoftwentytwo"},
		{"words", "string", "counterrevolutionary"},              // 20 letters
		{"host", "string", "worker-0017-eu-west-1a"},             // 22 characters
		{"constant", "string", "ACCOUNT_STATUS_ENABLED"},         // 22 characters
		{"number", "string", "1234567890123"},                    // 13 digits: a time far away, and a name without lock
		{"number", "string", "12345678901234567890"},             // 20
		{"number", "string", "12345678901234567890123456789012"}, // 32
		{"sha1", "string", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"sha256", "string", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"uuid-v1", "string", "54e2a266-e5a5-1fff-8a4e-02fc00000001"}, // no plausible time
		{"uuid-upper", "string", "6F1C3A52-9D0E-4B7F-8A21-C4D5E6F70819"},
		{"added", "string", "ADDED: two items"},
		{"added", "string", "ADDED:yesterday@noon"},
		{"added", "string", "ADDED:0000-01-01T00:00:00Z@host"},
		{"underscores", "string", "some_1_value"},
		{"big", "string", long + long},
		{"bytes", "string", "\x00\x01\x02"},
		{"gob", "string", "\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00}\x94"},
		{"list", "list", ""},
		{"zset", "zset", ""},
		{"set", "set", ""},
		{"stream", "stream", ""},
		{"module", "ReJSON-RL", ""},
		{"none", "none", ""},
		{"user:17", "hash", "name\nmail"},
		{"user:17", "hash", "mode\nname"},
		{"user:17", "hash", "mode"},
		{"user:17", "hash", ""},
	}
	for _, test := range tests {
		length := int64(len(test.value))
		if test.typ != "string" {
			length = int64(1 + strings.Count(test.value, "\n"))
		}
		if got := Recognize(test.key, test.typ, test.value, length, noon); got != nil {
			t.Errorf("%s %q → %q is taken for %+v", test.typ, test.key, test.value, *got)
		}
	}
}

// TestOnlyABeginning: the beginning of a value proves nothing if the rest is unknown.
func TestOnlyABeginning(t *testing.T) {
	for _, f := range append(fixtures(t, "made.json"), fixtures(t, "written.json")...) {
		if f.Type != "string" || strings.HasPrefix(f.Key, ownPrefix) {
			continue
		}
		if got := Recognize(f.Key, f.Type, string(f.Value), 512<<20, f.At); got != nil {
			t.Errorf("%s: 512 MB that begin with %q are taken for %+v", f.Library, f.Value, *got)
		}
	}
	if got := Recognize("job", "hash", "6f1c3a52-9d0e-4b7f-8a21-c4d5e6f70819:54", 7, noon); got != nil {
		t.Errorf("a hash of 7 fields is taken for %+v", *got)
	}
}

// TestReadersOfOneLock: more readers than the part of the value that is read can hold.
func TestReadersOfOneLock(t *testing.T) {
	const reader = "6f1c3a52-9d0e-4b7f-8a21-c4d5e6f70819:5"
	fields := "mode" + strings.Repeat("\n"+reader, 9)
	got := Recognize("job:rw", "hash", fields[:150], 10, noon)
	if got == nil || got.Refused == "" || !got.Owner.Empty() {
		t.Errorf("%+v", got)
	}
}

func TestSiblings(t *testing.T) {
	const token = "\xbbV\x94\xb0a\xe4r\xbf3c\xcf\xa3\xe5\xba\x9d\xffP\x9a\xf9?t\xe4Mg"
	for _, test := range []struct {
		key, value  string
		first, last string
		n           int
	}{
		{"locks:3:cron:a", token, "locks:0:cron:a", "locks:15:cron:a", 16},
		{"rueidislock:0:job", token, "rueidislock:0:job", "rueidislock:15:job", 16},
		{"locks:3:cron", "aFgzVGx2ODc1czJOcmZEaw==", "locks:3:cron", "locks:3:cron", 1}, // redsync's
		{"locks:cron", token, "locks:cron", "locks:cron", 1},
		{"locks:1:cron", "", "locks:1:cron", "locks:1:cron", 1},
		{"rueidislock:1:job:7", "redlockctl:revoked:x", "rueidislock:0:job:7", "rueidislock:15:job:7", 16},
		{"rueidislock:", "", "rueidislock:", "rueidislock:", 1},
		{"rueidislock:x:job", token, "rueidislock:x:job", "rueidislock:x:job", 1},
		{"rueidislock::job", token, "rueidislock::job", "rueidislock::job", 1},
	} {
		got := Siblings(test.key, test.value)
		if len(got) != test.n || got[0] != test.first || got[len(got)-1] != test.last {
			t.Errorf("%q: %q", test.key, got)
		}
	}
}

func TestDocsNameEachForm(t *testing.T) {
	doc, err := os.ReadFile("../../docs/forms.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range forms {
		if name := forms[i].Library; !strings.Contains(string(doc), "\n| "+name+" |") {
			t.Errorf("docs/forms.md has no row for %q", name)
		}
	}
}

func FuzzRecognize(f *testing.F) {
	for _, x := range append(fixtures(f, "made.json"), fixtures(f, "written.json")...) {
		f.Add(x.Key, x.Type, string(x.Value), x.Length, x.At.Unix())
	}
	f.Add("lock:\xff", "string", strings.Repeat("9", 25), int64(25), int64(1<<62))
	f.Add("lock", "string", ".9999999999", int64(11), int64(1700000000)) // a fraction without digits before the point
	f.Add("{{}:x", "hash", "mode\n\n", int64(-1), int64(-1<<62))
	f.Fuzz(func(t *testing.T, key, typ, value string, length, now int64) {
		form := Recognize(key, typ, value, length, time.Unix(now, 0))
		if form == nil {
			return
		}
		if form.Library == "" || form.Companion && form.Refused == "" || form.Refused != "" && form.TakingAway != "" {
			t.Errorf("%+v", *form)
		}
		for _, shown := range []string{form.Owner.String(), form.Group.String()} {
			if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }) {
				t.Errorf("%q is shown", shown)
			}
		}
		if typ == "string" && !strings.HasPrefix(key, ownPrefix) && length > most {
			t.Errorf("%d bytes are taken for %+v", length, *form)
		}
		for _, at := range []time.Time{form.Created, form.Deadline} {
			if !at.IsZero() && (at.Year() < 1970 || at.Year() > 9999) {
				t.Errorf("%s", at)
			}
		}
		if again := Recognize(key, typ, value, length, time.Unix(now, 0)); *again != *form {
			t.Errorf("%+v, then %+v", *form, *again)
		}
	})
}

func BenchmarkRecognize(b *testing.B) {
	for _, c := range []struct{ name, value string }{
		{"redsync", "aFgzVGx2ODc1czJOcmZEaw=="},
		{"redlockctl", "r-l6vP41LtmNn_p02rImH7Z_PS4"},
		{"number", "42"},
		{"json", `{"user":17,"roles":["admin"]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Recognize("lock:orders:17", "string", c.value, int64(len(c.value)), noon)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "41": true, "18446744073709551615": true, "": false, "-1": false, "4a": false, "1.5": false, "123456789012345678901": false} {
		if got := IsNumber(value, int64(len(value))); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
	if IsNumber("12", 30) {
		t.Error("the beginning of a long value is taken for a number")
	}
	if f := Number(); !f.Companion || f.Refused == "" {
		t.Errorf("%+v", f)
	}
}

// All holders of a shared lock are shown. Metadata after a token is its owner.
func TestHoldersAreNamed(t *testing.T) {
	const a, b = "6f1c3a52-9d0e-4b7f-8a21-c4d5e6f70819", "b0c7ad0e-51c3-4a4f-9d43-7d1c5d3f1e02"
	if got := Recognize("semaphore:job", "zset", a+"\n"+b+"_0", 2, noon); got == nil || !got.Shared || got.Refused == "" || got.Owner.Raw() != a+", "+b+"_0" {
		t.Errorf("semaphore: %+v", got)
	}
	if got := Recognize("job", "string", "aFgzVGx2ODc1czJOcmZEaw web-7", 28, noon); got == nil || got.Owner.Raw() != "web-7" {
		t.Errorf("metadata: %+v", got)
	}
	if got := Recognize("ranking", "zset", "ada\ngrace", 2, noon); got != nil {
		t.Errorf("a ranking is taken for %+v", got)
	}
}

// config acl knows the rights of each library that a form names.
func TestEachLibraryHasItsNeeds(t *testing.T) {
	known := map[string]bool{}
	for _, n := range Libraries() {
		known[n.Library] = true
	}
	for i := range forms {
		for name := range strings.SplitSeq(strings.ReplaceAll(forms[i].Library, " or ", ", "), ", ") {
			name, _, _ = strings.Cut(name, " (semaphore)")
			name, _, _ = strings.Cut(name, " (readers)")
			if !known[name] && name != "a number" {
				t.Errorf("the form %q: config acl knows no library %q", forms[i].Library, name)
			}
		}
	}
}
