package serverinfo

import (
	"maps"
	"testing"
)

const info = "# Server\r\nrun_id:abc\r\nconfig_file:/etc/a:b.conf\r\n\r\n# Stats\r\ntotal:12\r\nempty:\r\nno field\r\n" +
	"cmdstat_set:calls=3,usec=1\r\ncmdstat_get:calls=x,usec=1\r\ncmdstat_del:calls=-1,usec=1\r\nrun_id:second\r\n"

func TestFieldsOfInfo(t *testing.T) {
	for name, want := range map[string]string{"run_id": "abc", "config_file": "/etc/a:b.conf", "empty": "", "none": "", "no field": ""} {
		if got := Field(info, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if n, ok := Number(info, "total"); n != 12 || !ok {
		t.Errorf("the number is %d, %v", n, ok)
	}
	for _, name := range []string{"run_id", "empty", "none"} {
		if _, ok := Number(info, name); ok {
			t.Errorf("%s is taken for a number", name)
		}
	}
}

func TestCallsOfACommand(t *testing.T) {
	for command, want := range map[string]int64{"set": 3, "never": 0} {
		if n, err := Calls(info, command); n != want || err != nil {
			t.Errorf("%s: %d, %v", command, n, err)
		}
	}
	for _, command := range []string{"get", "del"} {
		if _, err := Calls(info, command); err == nil {
			t.Errorf("%s: no count, and no error", command)
		}
	}
}

func TestClients(t *testing.T) {
	var got []map[string]string
	for c := range Clients("id=3 addr=127.0.0.1:5 name= cmd=set\nid=4 name=a=b flags\n") {
		got = append(got, maps.Collect(c))
	}
	if len(got) != 2 || got[0]["id"] != "3" || got[0]["name"] != "" || got[0]["cmd"] != "set" || got[1]["name"] != "a=b" {
		t.Errorf("%v", got)
	}
}
