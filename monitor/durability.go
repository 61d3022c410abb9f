package monitor

// Data describes the append-only file of a server, besides the settings.
type Data struct {
	NoFsyncOnRewrite string // as CONFIG says; empty: unknown
	WriteFails       bool   // its last write to the file failed
	Rewriting        bool   // a rewrite is in progress or scheduled
	RewriteFailed    bool   // the last one failed
	// NothingSet: no parameter was set since the server's start, according to its command
	// counters.
	NothingSet bool
	// Loaded: this incarnation started with the settings that make it durable. Settled:
	// it was seen with them and without a rewrite, so its file is complete.
	Loaded, Settled bool
	// NextKnown: its command line and files can be read. NextWeak says why its next start
	// would not load every write; empty: it would.
	NextKnown bool
	NextWeak  string
}

// readInfo reads the fields of INFO; listed: they include the command counters.
func (d *Data) readInfo(info map[string]string, listed bool) {
	if _, ok := info["aof_enabled"]; ok {
		d.WriteFails = info["aof_last_write_status"] == "err"
		d.Rewriting = info["aof_rewrite_in_progress"] == "1" || info["aof_rewrite_scheduled"] == "1"
		d.RewriteFailed = info["aof_last_bgrewrite_status"] == "err"
	}
	if !listed {
		return
	}
	d.NothingSet = true
	for _, field := range []string{"cmdstat_config|set", "cmdstat_config|resetstat", "cmdstat_config"} { // the last one: before Redis 7
		if _, ok := info[field]; ok {
			d.NothingSet = false
		}
	}
}

// alwaysOnDisk reports whether, with the current settings, every write is on disk before
// it is answered.
func (f *Facts) alwaysOnDisk() bool {
	return f.AppendOnly == "yes" && f.AppendFsync == "always" && f.Data.NoFsyncOnRewrite == "no" && !f.Data.WriteFails
}

// NoteData records the result of a probe that read the command counters, and CONFIG no
// later.
func (f *Facts) NoteData() {
	d := &f.Data
	if !f.alwaysOnDisk() {
		d.Loaded, d.Settled = false, false
		return
	}
	d.Loaded = d.Loaded || d.NothingSet
	d.Settled = d.Settled || d.Loaded || !d.Rewriting && !d.RewriteFailed
}

// Durable reports whether every write is on disk before it is answered, and the next
// start of the server is known to load it. doubt says why that is uncertain although the
// current settings suggest it.
func (f *Facts) Durable() (durable bool, doubt string) {
	switch d := &f.Data; {
	case f.AppendOnly != "yes" || f.AppendFsync != "always":
		return false, ""
	case d.NoFsyncOnRewrite != "no":
		return false, "no-appendfsync-on-rewrite is " + orUnknown(d.NoFsyncOnRewrite)
	case d.WriteFails:
		return false, "its last write to the append-only file failed (aof_last_write_status:err)"
	case d.NextWeak != "":
		return false, d.NextWeak
	case !d.NextKnown && !d.Loaded:
		return false, "whether its next start loads it is not known: parameters were set since its start, and its command line and files cannot be read from here"
	case !d.Settled && d.RewriteFailed:
		return false, "the first rewrite of its append-only file failed"
	case !d.Settled:
		return false, "the first rewrite of its append-only file has not finished"
	}
	return true, ""
}

func orUnknown(s string) string {
	if s == "" {
		return "not known"
	}
	return s
}
