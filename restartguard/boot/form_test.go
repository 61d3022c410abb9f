package boot

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

const fenceText = "min-replicas-to-write 2147483647\nmin-replicas-max-lag 10\n"

// filesOf reads from texts by their paths.
func filesOf(texts map[string]string) func(string) ([]File, error) {
	return func(pattern string) ([]File, error) {
		text, ok := texts[pattern]
		if !ok {
			return nil, errors.New(pattern + ": no such file")
		}
		return []File{{pattern, text}}, nil
	}
}

func TestAssessBoot(t *testing.T) {
	acl := fences.Method{Kind: fences.ACL, User: "locks"}
	const locks = "user locks on >hunter2 ~* +@all -@write\n"
	fixed := func(string) Writable { return WritableNo }
	for name, c := range map[string]struct {
		main   string
		more   map[string]string
		args   string // "?": not known
		method fences.Method
		writes func(string) Writable
		boot   State
		form   Form
	}{
		"options of the command line":                    {args: "/m --min-replicas-to-write 2147483647 --min-replicas-max-lag 10", boot: Fenced, form: FormCommandLine},
		"they overrule the file":                         {main: "min-replicas-to-write 0\nmin-replicas-max-lag 0\n", args: "/m --min-replicas-to-write 2147483647 --min-replicas-max-lag 10", boot: Fenced, form: FormCommandLine},
		"the last of them holds":                         {args: "/m --min-replicas-to-write 2147483647 --min-replicas-max-lag 10 --min-slaves-to-write 0", boot: Unfenced, form: FormCommandLine},
		"one of them, and a lag of the file":             {main: "min-replicas-max-lag 0\n", args: "/m --min-replicas-to-write 2147483647", boot: Unfenced, form: FormCommandLine},
		"a value is no option":                           {args: "/m --logfile --min-replicas-to-write 2147483647", boot: Unfenced, form: FormNone},
		"but save may have none":                         {args: "/m --save --min-replicas-to-write 2147483647", boot: Fenced, form: FormCommandLine},
		"an option and its value in one word":            {args: "/m|--min-replicas-to-write 2147483647", boot: Fenced, form: FormCommandLine},
		"anchors":                                        {main: fenceText + "include /f\n", args: "?", boot: Fenced, form: FormAnchors},
		"anchors after a rewrite":                        {main: "min-replicas-to-write 0\nmin-replicas-max-lag 10\ninclude /f\nport 1\n", args: "?", boot: Fenced, form: FormAnchors},
		"an anchor by its older name":                    {main: "min-slaves-to-write 0\ninclude /f\n", args: "?", boot: Fenced, form: FormAnchors},
		"anchors behind the include":                     {main: "include /f\n" + fenceText, args: "?", boot: Fragile, form: FormInclude},
		"an include without anchors":                     {main: "include /f\n", args: "?", boot: Fragile, form: FormInclude},
		"the same after a rewrite while it was fenced":   {main: "include /f\nmin-replicas-to-write 2147483647\n", args: "?", boot: Fragile, form: FormInclude},
		"the same after a rewrite while it served":       {main: "include /f\nmin-replicas-to-write 0\n", args: "?", boot: Unfenced, form: FormInclude},
		"the main file":                                  {main: fenceText, args: "?", boot: Fragile, form: FormMainFile},
		"an anchor, and a line behind the include":       {main: fenceText + "include /f\nmin-replicas-to-write 2147483647\n", args: "?", boot: Fenced, form: FormAnchors},
		"includes in each other":                         {main: fenceText + "include /g\n", more: map[string]string{"/g": "include /f\n"}, args: "?", boot: Fenced, form: FormAnchors},
		"an include in quotes":                           {main: fenceText + "INCLUDE \"/\\x66\"\n", args: "?", boot: Fenced, form: FormAnchors},
		"an include by a relative path, after dir":       {main: fenceText + "dir /\ninclude f\n", args: "?", boot: Fenced, form: FormAnchors},
		"an include that is not there":                   {main: fenceText + "include /none\n", args: "?", boot: Unknown},
		"an include in itself":                           {main: "include /m\n", args: "?", boot: Unknown},
		"a line in a comment":                            {main: "#" + fenceText, args: "/m", boot: Unfenced, form: FormNone},
		"a number that the server does not take":         {main: "min-replicas-to-write 02147483647\n", args: "?", boot: Unknown},
		"quotes that are not balanced":                   {main: "requirepass hunter2's\n" + fenceText, args: "?", boot: Unknown},
		"no configuration file":                          {main: "-", args: "--min-replicas-to-write 2147483647", boot: Fenced, form: FormCommandLine},
		"an operator's value":                            {main: "min-replicas-to-write 2147483646\ninclude /h\n", more: map[string]string{"/h": "min-replicas-to-write 2147483646\n"}, args: "?", boot: Fenced, form: FormAnchors},
		"a user in an ACL file that is fixed":            {main: "aclfile /u\n", more: map[string]string{"/u": locks}, args: "?", method: acl, writes: fixed, boot: Fenced, form: FormFixedACL},
		"a password with a quote in an ACL file":         {main: "aclfile /u\n", more: map[string]string{"/u": "user a on >it's\n" + locks}, args: "?", method: acl, writes: fixed, boot: Fenced, form: FormFixedACL},
		"a user in an ACL file":                          {main: "aclfile /u\n", more: map[string]string{"/u": locks}, args: "?", method: acl, boot: Fragile, form: FormACLFile},
		"the same after ACL SAVE while it served":        {main: "aclfile /u\n", more: map[string]string{"/u": "user locks on >hunter2 ~* +@all\n"}, args: "?", method: acl, boot: Unfenced, form: FormACLFile},
		"a user line":                                    {main: locks, args: "?", method: acl, boot: Fragile, form: FormUserLine},
		"a user line in an included file":                {main: "include /u\n", more: map[string]string{"/u": locks}, args: "?", method: acl, boot: Fragile, form: FormUserLine},
		"a user of the command line, without a file":     {main: "-", args: "--user locks on >hunter2 ~* +@all -@write", method: acl, boot: Fenced, form: FormCommandLine},
		"users in both, with which no server starts":     {main: "aclfile /u\n" + locks, more: map[string]string{"/u": locks}, args: "?", method: acl, boot: Unknown},
		"a user with a selector":                         {main: "user locks on (+set ~*)\n", args: "?", method: acl, boot: Unfenced},
		"an include of a server that needs no fence":     {args: "/m", method: fences.Method{Kind: fences.None}, boot: Unfenced, form: FormNone},
		"an ACL file is not looked into by min-replicas": {main: fenceText + "aclfile /none\ninclude /f\n", args: "?", boot: Fenced, form: FormAnchors},
	} {
		t.Run(name, func(t *testing.T) {
			texts := map[string]string{"/m": c.main, "/f": fenceText}
			maps.Copy(texts, c.more)
			b := Text{Main: "/m", Dir: "/", Read: filesOf(texts), Write: []string{"set", "del"}, Writes: c.writes}
			if c.args != "?" {
				b.ArgsKnown = true
				if strings.Contains(c.args, "|") {
					b.Args = strings.Split(c.args, "|")
				} else {
					b.Args = strings.Fields(c.args)
				}
			}
			if c.main == "-" {
				b.Main = ""
			}
			v := Assess(b, c.method)
			if v.Boot != c.boot || v.Form != c.form {
				t.Errorf("%s, %s, want %s, %s: %q", v.Boot, v.Form, c.boot, c.form, v.Because)
			}
			if len(v.Because) == 0 || v.Boot == Fragile && len(v.Do) == 0 {
				t.Errorf("because %q, do %q", v.Because, v.Do)
			}
			if all := strings.Join(append(v.Because, v.Do...), " "); strings.Contains(all, "hunter2") {
				t.Errorf("tells a password: %s", all)
			}
		})
	}
}

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		`a  b	c`:                  {"a", "b", "c"},
		`a "b c" 'd e'`:           {"a", "b c", "d e"},
		`a "\x41\n\"" '\'"'`:      {"a", "A\n\"", `'"`},
		`a ""`:                    {"a", ""},
		`save`:                    {"save"},
		`a b"c"`:                  {"a", "bc"},
		`a "b"c`:                  nil,
		`a "b`:                    nil,
		`a it's`:                  nil,
		`a "\xg1"`:                {"a", "xg1"},
		`dir "/var/lib/\xc3\xa9"`: {"dir", "/var/lib/é"},
	} {
		got, ok := splitWords(line)
		if ok != (want != nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v; want %q", line, got, ok, want)
		}
	}
}

func TestHowAProcessIsStarted(t *testing.T) {
	for cmdline, want := range map[string][]string{
		"redis-server *:6379\x00\x00\x00\x00":           nil,
		"/usr/bin/redis-server 127.0.0.1:6379\x00":      nil,
		"redis-server\x00/etc/redis.conf\x00":           {"/etc/redis.conf"},
		"redis-server\x00--save\x00\x00--port\x001\x00": {"--save", "", "--port", "1"},
		"": nil,
	} {
		if got, ok := argsOf(cmdline); ok != (want != nil) || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v", cmdline, got, ok)
		}
	}
	for cgroup, want := range map[string]string{
		"0::/system.slice/redis-server.service\n":                                          "redis-server.service",
		"0::/system.slice/system-redis\\x2dserver.slice/redis-server@locks.service\n":      "redis-server@locks.service",
		"12:cpu:/system.slice/redis.service\n1:name=systemd:/system.slice/redis.service\n": "redis.service",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/redis.service\n":       "",
		"0::/system.slice/docker-0123.scope\n":                                             "",
		"0::/\n":                                                                           "",
		"0::/system.slice/--version.service\n":                                             "",
	} {
		if got := unitOf(cgroup); got != want {
			t.Errorf("%q: %q, want %q", cgroup, got, want)
		}
	}
	const unit = `# /lib/systemd/system/redis-server.service
[Unit]
ExecStart=no
[Service]
Type=notify
ExecStart=/usr/bin/redis-server /etc/redis/redis.conf --supervised systemd --daemonize no
`
	const dropIn = `
# /etc/systemd/system/redis-server.service.d/redlockctl-fence.conf
[Service]
ExecStart=
ExecStart=/usr/bin/redis-server /etc/redis/redis.conf --supervised systemd --daemonize no \
# a comment
  --min-replicas-to-write 2147483647 --min-replicas-max-lag 10
`
	for name, c := range map[string]struct {
		unit string
		want string // of the options; "-": not to be told
	}{
		"without a drop-in":       {unit, "/etc/redis/redis.conf --supervised systemd --daemonize no"},
		"with one":                {unit + dropIn, "/etc/redis/redis.conf --supervised systemd --daemonize no --min-replicas-to-write 2147483647 --min-replicas-max-lag 10"},
		"two commands":            {unit + strings.Replace(dropIn, "ExecStart=\n", "", 1), "-"},
		"no server":               {"[Service]\nExecStart=/bin/sh -c 'exec redis-server'\n", "-"},
		"behind another program":  {"[Service]\nExecStart=numactl -- /usr/bin/redis-server /c --daemonize no\n", "/c --daemonize no"},
		"a variable at the end":   {unit + dropIn[:len(dropIn)-1] + " $MORE\n", "-"},
		"a variable before":       {"[Service]\nExecStart=redis-server $CONF --min-replicas-to-write 1 --min-replicas-max-lag 10\n", "$CONF --min-replicas-to-write 1 --min-replicas-max-lag 10"},
		"a variable and no fence": {"[Service]\nExecStart=redis-server $CONF\n", "-"},
		"nothing":                 {"", "-"},
	} {
		got := serverArgs(execStartOf(c.unit))
		if text := strings.Join(got, " "); got == nil != (c.want == "-") || got != nil && text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

func TestOwnAddresses(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]bool{
		"/run/redis.sock": true, "localhost:1": true, "127.0.0.1:1": true, "[::1]:1": true, host + ":1": true,
		strings.ToUpper(host) + ".:1": true, "192.0.2.1:1": false, "nowhere.invalid:1": false, "no port": false,
	} {
		if got := isOwnAddr(t.Context(), addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestCopiesOfAConfiguration(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "redis.conf")
	for name, text := range map[string]string{"redis.conf": fenceText + "include /etc/redis/fence.conf\n", "fence.conf": fenceText, "x.conf": fenceText} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if v := Assess(Text{Main: main, Read: readCopies(main)}, fences.Method{}); v.Boot != Fenced || v.Form != FormAnchors {
		t.Errorf("%+v", v)
	}
	if err := os.WriteFile(main, []byte("include /etc/redis/*.conf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := Assess(Text{Main: main, Read: readCopies(main)}, fences.Method{}); v.Boot != Unknown {
		t.Errorf("%+v", v)
	}
	if err := os.Remove(filepath.Join(dir, "fence.conf")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(main, []byte(fenceText+"include /etc/redis/fence.conf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := Assess(Text{Main: main, Read: readCopies(main)}, fences.Method{}); v.Boot != Unknown || !strings.Contains(v.Because[0], "put a copy of it beside") {
		t.Errorf("%+v", v)
	}
	if _, err := readFile(dir); err == nil {
		t.Error("a directory is read")
	}
}

// FuzzAssessBoot: no text of files, units and command lines ends the program, takes long, or is
// printed unescaped; and a server that starts fenced with a text does so after a rewrite, too.
func FuzzAssessBoot(f *testing.F) {
	f.Add(fenceText+"include /f\n", fenceText, "--min-replicas-to-write\x002147483647", false)
	f.Add("include /f\nmin-slaves-to-write 0\n", fenceText, "", false)
	f.Add("include /m\ninclude /m\n", "include \"/\\x6d\"\n", "--include\x00/m", false)
	f.Add("aclfile /f\n", "user locks on >hunter2 -@all (+set)\n", "/m\x00--save\x00--port 1", true)
	f.Add("[Service]\nExecStart=\nExecStart=-redis-server /m \\\n--port 1\n", "0::/a.service", "redis-server *:1\x00\x00", true)
	f.Fuzz(func(t *testing.T, main, more, cmdline string, users bool) {
		method := fences.Method{}
		if users {
			method = fences.Method{Kind: fences.ACL, User: "locks"}
		}
		args, known := argsOf(cmdline)
		unitOf(more)
		serverArgs(execStartOf(main))
		b := Text{Args: args, ArgsKnown: known, Main: "/m", Dir: "/", Write: []string{"set"},
			Read: filesOf(map[string]string{"/m": main, "/f": more})}
		v := Assess(b, method)
		for _, s := range append(v.Because, v.Do...) {
			if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("raw: %q", s)
			}
		}
		if v.Boot == Unknown || users || b.argsDecide() {
			return
		}
		lines, _, err := b.readAll()
		if err != nil {
			t.Fatal(err)
		}
		settings, err := settingsOf(lines)
		if err != nil {
			t.Fatal(err)
		}
		for _, now := range []int64{minreplicas.FenceUp, minreplicas.FenceNone} {
			after := rewritten(settings, now)
			switch {
			case v.Boot == Fenced && !outlives(after, 3):
				t.Fatalf("fenced, and not after a rewrite: %+v", after)
			case len(after) > len(settings)+2:
				t.Fatalf("%d settings became %d", len(settings), len(after))
			}
		}
	})
}
