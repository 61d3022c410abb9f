package monitor_test

import (
	"testing"

	"redlockctl/monitor"
	"redlockctl/monitor/wire"
)

func TestFactsOfInfo(t *testing.T) {
	fields := map[string]string{}
	wire.ParseInfo("# Server\r\nprocess_id:77\r\ntcp_port:6379\r\n# Memory\r\nmaxmemory:100\r\n# Stats\r\nevicted_keys:5\r\n"+
		"# Persistence\r\naof_enabled:1\r\nrdb_last_bgsave_status:ok\r\naof_last_write_status:err\r\n"+
		"# Commandstats\r\ncmdstat_info:calls=1,usec=2\r\ncmdstat_save:calls=3,usec=4,rejected_calls=0\r\ncmdstat_config|rewrite:calls=99999999999999999999,usec=1\r\n"+
		"cmdstat_bgsave:usec=1\r\n", fields)
	f := monitor.UnknownFacts()
	f.ReadInfo(fields)
	if f.PID != 77 || f.Port != 6379 || f.MaxMemory != 100 || f.Evicted != 5 || f.AppendOnly != "yes" || f.DiskFails != "aof_last_write_status:err" ||
		f.Saves != 3 || f.ConfigRewrites <= 0 || f.BackgroundSaves != -1 || f.Rewrites != 0 {
		t.Errorf("%+v", f)
	}
	// A refused INFO changes nothing that was known.
	was := f
	f.ReadInfo(map[string]string{})
	if f != was {
		t.Errorf("%+v", f)
	}
	f.ReadConfig(map[string]string{"save": "3600 1", "appendonly": "yes", "appendfsync": "always", "min-replicas-max-lag": "0"})
	if f.Save != "3600 1" || !f.SaveKnown || f.AppendFsync != "always" || f.MaxLag != 0 {
		t.Errorf("%+v", f)
	}
}
