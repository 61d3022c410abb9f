package adopt

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is the guards' machine, with a systemctl that only notes what it is asked for.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t, t.TempDir()}
	m.program("bin/systemctl", "#!/bin/sh\necho \"$*\" >>\""+m.root+"/asked\"\n")
	m.program("bin/redlockctl", "#!/bin/sh\n[ ! -e \""+m.root+"/needed\" ] || { echo 'n1 is fenced' >&2; exit 1; }\n# version 1\n")
	return m
}

func (m *machine) program(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

// folder is what init writes for a cluster with these masters.
func (m *machine) folder(cluster string, addrs ...string) string {
	m.t.Helper()
	a := someAnswers()
	a.Cluster, a.CA = cluster, "PEM"
	facts := &Facts{}
	for _, addr := range addrs {
		s := someServer("n1")
		s.Addr = addr
		facts.Servers = append(facts.Servers, s)
	}
	plan, err := Plan(facts, a, someSecrets)
	if err != nil {
		m.t.Fatal(err)
	}
	folder := Folder{Path: filepath.Join(m.t.TempDir(), "folder")}
	if err := folder.Write(plan); err != nil {
		m.t.Fatal(err)
	}
	return folder.Path
}

// guard runs guard.sh, and returns what it prints, and what systemctl was asked for.
func (m *machine) guard(folder string, args ...string) (out, asked string, failed bool) {
	m.t.Helper()
	_ = os.Remove(filepath.Join(m.root, "asked"))
	cmd := exec.Command("sh", append([]string{filepath.Join(folder, "guard.sh")}, args...)...)
	cmd.Env = append(os.Environ(), "DESTDIR="+m.root, "PATH="+filepath.Join(m.root, "bin")+":"+os.Getenv("PATH"))
	b, err := cmd.CombinedOutput()
	text, _ := os.ReadFile(filepath.Join(m.root, "asked"))
	return string(b), string(text), err != nil
}

// files lists what guard.sh has installed.
func (m *machine) files() []string {
	m.t.Helper()
	var all []string
	for _, dir := range []string{"etc", "usr"} {
		_ = filepath.WalkDir(filepath.Join(m.root, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				all = append(all, strings.TrimPrefix(path, m.root))
			}
			return nil
		})
	}
	return all
}

// Two clusters on one machine have a guard each, with a port each; undone in any order,
// the other goes on, and the last takes program and unit along.
func TestTwoGuardsOnOneMachine(t *testing.T) {
	for _, order := range [][]string{{"orders", "billing"}, {"billing", "orders"}} {
		m := newMachine(t)
		folders := map[string]string{"orders": m.folder("orders", "10.0.0.1:6379"), "billing": m.folder("billing", "10.0.1.1:6379")}
		for _, name := range []string{"orders", "billing"} {
			out, asked, failed := m.guard(folders[name])
			if failed || !strings.Contains(asked, "restart redlockctl-guard@"+name+"\n") || !strings.Contains(out, "the guard of "+name+" runs") {
				t.Fatalf("%s: %s\n%s", name, out, asked)
			}
		}
		for name, port := range map[string]string{"orders": "9622", "billing": "9623"} {
			etc := filepath.Join(m.root, "etc/redlockctl", name)
			if !strings.Contains(read(t, filepath.Join(etc, "config.toml")), `name = "`+name+`"`) || !strings.Contains(read(t, filepath.Join(etc, "options.env")), ":"+port+" ") {
				t.Errorf("%s has %v", name, m.files())
			}
		}
		if out, asked, _ := m.guard(folders["orders"]); strings.Contains(asked, "restart") || !strings.Contains(out, "nothing to change") {
			t.Errorf("the second time it changes something: %s%s", out, asked)
		}
		_, asked, failed := m.guard(folders[order[0]], "undo")
		if failed || !strings.Contains(asked, "disable --now redlockctl-guard@"+order[0]+"\n") || strings.Contains(asked, order[1]) {
			t.Errorf("undo of %s: %s", order[0], asked)
		}
		if left := m.files(); !slices.Contains(left, "/etc/redlockctl/"+order[1]+"/guard.env") || !slices.Contains(left, "/usr/local/bin/redlockctl") ||
			slices.Contains(left, "/etc/redlockctl/"+order[0]+"/guard.env") {
			t.Errorf("after the undo of %s there is %v", order[0], left)
		}
		if _, _, failed := m.guard(folders[order[1]], "undo"); failed || len(m.files()) > 0 {
			t.Errorf("the last undo leaves %v", m.files())
		}
		if out, _, failed := m.guard(folders[order[1]], "undo"); failed || !strings.Contains(out, "there is no guard of "+order[1]) {
			t.Errorf("undo twice: %s", out)
		}
	}
}

// guard.sh refuses to replace the guard of a cluster of the same name with other masters; a
// cluster of which one master was replaced is the same.
func TestGuardOfAnotherClusterIsNotReplaced(t *testing.T) {
	m := newMachine(t)
	m.guard(m.folder("redlock", "10.0.0.1:6379", "10.0.0.2:6379"))
	out, asked, failed := m.guard(m.folder("redlock", "10.0.1.1:6379", "10.0.1.2:6379"))
	if !failed || asked != "" || !strings.Contains(out, "run init again with another --cluster") {
		t.Errorf("failed: %v: %s%s", failed, out, asked)
	}
	if out, _, failed := m.guard(m.folder("redlock", "10.0.0.1:6379", "10.0.0.9:6379")); failed {
		t.Error(out)
	}
}

// A guard that is still needed is not stopped.
func TestGuardThatIsNeededStays(t *testing.T) {
	m := newMachine(t)
	folder := m.folder("orders", "10.0.0.1:6379")
	m.guard(folder)
	put(t, filepath.Join(m.root, "needed"), "")
	before := m.files()
	if out, asked, failed := m.guard(folder, "undo"); !failed || asked != "" || !strings.Contains(out, "n1 is fenced") || !slices.Equal(m.files(), before) {
		t.Errorf("failed: %v: %s%s", failed, out, asked)
	}
	if _, _, failed := m.guard(folder, "undo", "--force"); failed || len(m.files()) > 0 {
		t.Errorf("--force leaves %v", m.files())
	}
}

// A newer program reaches all guards that guard.sh has installed; a program that was there
// before is not touched, and stays.
func TestGuardsAreUpgraded(t *testing.T) {
	m := newMachine(t)
	orders, billing := m.folder("orders", "10.0.0.1:6379"), m.folder("billing", "10.0.1.1:6379")
	m.guard(orders)
	m.guard(billing)
	m.program("bin/redlockctl", "#!/bin/sh\n# version 2\n")
	_, asked, _ := m.guard(orders)
	if !strings.Contains(asked, "try-restart redlockctl-guard@*.service") || !strings.Contains(read(t, filepath.Join(m.root, "usr/local/bin/redlockctl")), "version 2") {
		t.Errorf("the new program is not everywhere: %s", asked)
	}

	m = newMachine(t)
	m.program("usr/local/bin/redlockctl", "#!/bin/sh\n# their own\n")
	m.guard(orders)
	if _, _, failed := m.guard(orders, "undo"); failed || !slices.Equal(m.files(), []string{"/usr/local/bin/redlockctl"}) || !strings.Contains(read(t, filepath.Join(m.root, "usr/local/bin/redlockctl")), "their own") {
		t.Errorf("undo leaves %v", m.files())
	}
}

// Where the package is installed, its program and its unit are used; also by a guard that
// was there before.
func TestGuardUsesThePackage(t *testing.T) {
	m := newMachine(t)
	folder := m.folder("orders", "10.0.0.1:6379")
	m.guard(folder)
	m.program("usr/bin/redlockctl", "#!/bin/sh\n")
	m.program("usr/lib/systemd/system/redlockctl-guard@.service", "")
	_, asked, _ := m.guard(folder)
	want := []string{"/etc/redlockctl/orders/ca.pem", "/etc/redlockctl/orders/config.toml", "/etc/redlockctl/orders/guard.env", "/etc/redlockctl/orders/options.env",
		"/usr/bin/redlockctl", "/usr/lib/systemd/system/redlockctl-guard@.service"}
	if !slices.Equal(m.files(), want) || !strings.Contains(asked, "restart redlockctl-guard@orders\n") {
		t.Errorf("there is %v after %s", m.files(), asked)
	}
	if _, _, failed := m.guard(folder, "undo"); failed || !slices.Equal(m.files(), want[4:]) {
		t.Errorf("undo leaves %v", m.files())
	}
}
