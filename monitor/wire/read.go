package wire

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/monitor"
	"redlockctl/monitor/table"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// readScript reads type, PTTL, length and the first bytes of each key atomically, so that
// token and TTL belong together. It writes nothing and never fetches a whole large value:
// it reads the field names of a hash, and the members of a sorted set, only if they are
// few and small. Optional commands use pcall, so that a server that refuses them can
// still be read.
//
// Most keys are short strings and get a short reply: PTTL and value, then the length if
// the value may have been cut. For any other key, the type comes first, then PTTL, length
// and field names. A missing key is only -2.
//
// GETRANGE shows that a key is a string without TYPE, but makes the server count an error
// for another type. So with an argument, and from the first such key on, the script calls
// TYPE first.
const readScript = `
local call, measures = redis.call, {hash = 'HLEN', list = 'LLEN', set = 'SCARD', zset = 'ZCARD', stream = 'XLEN'}
local out, n, mixed = {}, 0, ARGV[1]
for i = 1, #KEYS do
  local key = KEYS[i]
  local pttl, kind, text = call('PTTL', key), 'string'
  if pttl ~= -2 then
    if not mixed then text = redis.pcall('GETRANGE', key, '0', '127') end
    if type(text) ~= 'string' then
      kind = call('TYPE', key)
      if type(kind) == 'table' then kind = kind['ok'] end
      if kind == 'string' then text = call('GETRANGE', key, '0', '127') else mixed = true end
    end
  end
  if pttl == -2 then
    out[n + 1] = pttl
    n = n + 1
  elseif kind == 'string' then
    out[n + 1], out[n + 2] = pttl, text
    n = n + 2
    if #text == 128 then
      n = n + 1
      out[n] = call('STRLEN', key)
    end
  else
    local size, names = 0, ''
    if measures[kind] then
      local k = redis.pcall(measures[kind], key)
      if type(k) == 'number' then size = k end
      if (kind == 'hash' or kind == 'zset') and size <= 8 then
        local weight = redis.pcall('MEMORY', 'USAGE', key, 'SAMPLES', '0')
        if type(weight) == 'number' and weight <= 4096 then
          local fields
          if kind == 'hash' then fields = redis.pcall('HKEYS', key) else fields = redis.pcall('ZRANGE', key, '0', '-1') end
          if not fields['err'] then names = table.concat(fields, '\n') end
        end
      end
    end
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = kind, pttl, size, names
    n = n + 4
  end
end
return out`

// Reader reads locks on one connection, by the best method that the server allows.
type Reader struct {
	*Session
	wire  *wire // nil until the connection is set up
	mode  readMode
	noSHA bool          // the script is sent as text each time
	sha   string        // of the script
	mixed bool          // its argument: some keys are not strings
	Note  monitor.Limit // what is missing in this mode
	spent spent         // by all reads
	rows  []table.Row   // of the last sweep; the next one overwrites them
	Load  load          // of other clients
	// Patient: the load of other clients matters.
	Patient bool
	// Trip is a round trip on this connection, with little work of the server.
	Trip time.Duration
}

func NewReader(s *Session) *Reader {
	return &Reader{Session: s, sha: redis.NewScript(readScript).Hash()}
}

const adviceScripts = "Use a server that runs scripts (EVAL)."

type readMode uint8

const (
	readByEvalRO readMode = iota // a script that cannot write; Redis 7
	readByEval                   // the same script, on older servers
	readByMulti                  // a transaction, if scripts are denied
)

// RunID returns the run_id of the server on this connection; empty if INFO is denied.
func (r *Reader) RunID(ctx context.Context) (_ string, err error) {
	defer resp.Contain(&err, "INFO")
	ctx, cancel := context.WithTimeout(ctx, r.Patience.Setup())
	defer cancel()
	// The first command sets the connection up.
	if err := r.Conn.Ping(ctx).Err(); err != nil && !Refused(err) {
		return "", err
	}
	begun := time.Now()
	text, err := r.Conn.Info(ctx, "server").Result()
	r.Trip = time.Since(begun)
	if err != nil && !Says(err, "NOPERM") {
		return "", err
	}
	r.wire = newWire(r.raw, r.Patience)
	return safetext.Escape(serverinfo.Field(text, "run_id")), nil
}

// Ping asks for any answer, to find out whether the connection still works.
func (r *Reader) Ping(ctx context.Context) error {
	r.wire.put("PING")
	if err := r.wire.send(ctx); err != nil {
		return err
	}
	_, err := r.wire.next(longestLine)
	return err
}

// Sweep reads the rows of some keys and the next page of SCAN, in one round trip. Use it
// only while Fast is true; the rows are valid until the next call. If the server refuses
// the script as sent, p.Refused is its answer: use Read for these keys, which finds out
// why. Now and then it also reads the server's command counter.
func (r *Reader) Sweep(ctx context.Context, keys []string, cursor uint64, pattern string, count int64) (p swept, err error) {
	defer resp.Contain(&err, "SCAN")
	w, mixed := r.wire, r.mixed
	batches := slices.Collect(slices.Chunk(keys, BatchKeys))
	for _, batch := range batches {
		r.putScript(batch)
	}
	w.put("SCAN", strconv.FormatUint(cursor, 10), "MATCH", pattern, "COUNT", strconv.FormatInt(count, 10))
	p.Sent = time.Now()
	counted := r.Patient && r.Load.due(p.Sent) && !r.IsThin() // it would take a part of the line
	if counted {
		w.put("INFO", "stats")
	}
	if err := w.send(ctx); err != nil {
		return p, err
	}
	p.Rows = slices.Grow(r.rows[:0], len(keys))
	defer func() { r.rows = p.Rows }()
	for _, batch := range batches {
		rows, err := r.takeRows(p.Rows, batch, mixed)
		switch {
		case err == nil:
			p.Rows = rows
		case IsAnswer(err):
			p.Refused = err
		default:
			return p, err
		}
	}
	p.Page, err = w.page()
	p.Received = time.Now()
	r.spent.sent(1)
	if counted && err == nil {
		var info value
		info, err = w.next(longestInfo)
		r.Load.saw(commandsOf(info.text), r.spent, p.Received)
		r.spent.sent(1)
	}
	return p, err
}

// longestInfo is the largest accepted section of INFO, in bytes.
const longestInfo = 32 << 10

// swept is the result of a sweep.
type swept struct {
	Page
	Rows           []table.Row
	Refused        error
	Sent, Received time.Time
}

// Thin returns how long the line took for the latest replies; zero if it is not thin.
func (r *Reader) Thin() time.Duration {
	if r.wire == nil {
		return 0
	}
	line := r.wire.line
	line.rates = slices.Clone(line.rates)
	line.saw(r.wire.arrival) // the next request records it
	return line.takes(r.wire.arrival.bytes)
}

// IsThin reports whether the line to the server is thin, as far as is known.
func (r *Reader) IsThin() bool { return r.Thin() > 0 }

// Fast reports whether the server runs the script by its hash, as far as is known.
func (r *Reader) Fast() bool { return r.wire != nil && r.mode != readByMulti && !r.noSHA }

// Read reads some keys. If the server refuses a method, it uses a lesser one from then
// on.
func (r *Reader) Read(ctx context.Context, keys []string) (rows []table.Row, sent, received time.Time, err error) {
	defer resp.Contain(&err, "a read of keys")
	for {
		sent = time.Now()
		switch r.mode {
		case readByMulti:
			rows, err = r.readMulti(ctx, keys)
		default:
			rows, err = r.readScript(ctx, keys)
		}
		received = time.Now()
		// A script that fails for a reason of its own ("ERR …") does not work on this
		// server; a busy or loading server is different.
		switch {
		case err == nil, r.mode == readByMulti:
			return rows, sent, received, err
		case !r.noSHA && Says(err, "NOSCRIPT"):
			// Sent once, the server knows it.
			r.noSHA = true
			rows, sent, received, err = r.Read(ctx, keys)
			r.noSHA = err != nil
			return rows, sent, received, err
		case !Says(err, "NOPERM", "ERR"):
			return rows, sent, received, err
		case !r.noSHA:
			r.noSHA = true // perhaps only the short form is refused
			continue
		}
		r.mode++
		r.noSHA = false
		r.Note = monitor.Limit{Text: "EVAL_RO refused: reading by EVAL"} // which reads as much
		if r.mode == readByMulti {
			r.Note = monitor.Limit{Text: "scripts denied: reading by MULTI, locks in hashes are not seen", Do: adviceScripts}
			if Says(err, "NOPERM") {
				r.Note.Do = monitor.AdviceRights
			}
		}
	}
}

func (r *Reader) readScript(ctx context.Context, keys []string) ([]table.Row, error) {
	mixed := r.mixed
	r.putScript(keys)
	if err := r.wire.send(ctx); err != nil {
		return nil, err
	}
	return r.takeRows(make([]table.Row, 0, len(keys)), keys, mixed)
}

// putScript queues the script for some keys.
func (r *Reader) putScript(keys []string) {
	name, script, args := "EVALSHA", r.sha, 3+len(keys)
	if r.noSHA {
		name, script = "EVAL", readScript
	}
	if r.mode == readByEvalRO {
		name += "_RO"
	}
	if r.mixed {
		args++
	}
	out := resp.AppendLen(r.wire.out, args)
	for _, arg := range []string{name, script, strconv.Itoa(len(keys))} {
		out = resp.AppendArg(out, arg)
	}
	for _, key := range keys {
		out = resp.AppendArg(out, key)
	}
	if r.mixed {
		out = resp.AppendArg(out, "mixed")
	}
	r.wire.out = out
}

// takeRows adds the script's rows of some keys to rows; mixed: the script was told that
// some keys are not strings.
func (r *Reader) takeRows(rows []table.Row, keys []string, mixed bool) ([]table.Row, error) {
	all, err := r.wire.rows(rows, keys)
	if err != nil {
		r.spent.sent(1)
		return nil, err
	}
	r.mixed = r.spent.script(all[len(rows):], mixed) || r.mixed
	return all, nil
}

// readMulti reads in a transaction. The length of other types is read afterwards: it is
// only shown.
func (r *Reader) readMulti(ctx context.Context, keys []string) ([]table.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Patience.Setup())
	defer cancel()
	types := make([]*redis.StatusCmd, len(keys))
	pttls := make([]*redis.Cmd, len(keys))
	lengths := make([]*redis.IntCmd, len(keys))
	prefixes := make([]*redis.StringCmd, len(keys))
	_, err := r.Conn.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			types[i] = p.Type(ctx, key)
			pttls[i] = p.Do(ctx, "pttl", key)
			lengths[i] = p.StrLen(ctx, key)
			prefixes[i] = p.GetRange(ctx, key, 0, table.PrefixLen-1)
		}
		return nil
	})
	r.spent.sent(2 + 4*int64(len(keys)))
	// STRLEN of a list fails alone; the other answers count.
	if err != nil && !Says(err, "WRONGTYPE") {
		return nil, err
	}
	rows := make([]table.Row, len(keys))
	others := map[int]*redis.IntCmd{}
	for i, key := range keys {
		pttl, err := pttls[i].Int64()
		if err = errors.Join(err, types[i].Err()); err != nil {
			return nil, err
		}
		rows[i] = table.NewRow(key, types[i].Val(), pttl, lengths[i].Val(), prefixes[i].Val())
		if typ := rows[i].Type; typ != "string" && typ != "none" {
			rows[i].Len, rows[i].Prefix = 0, ""
			others[i] = nil
		}
	}
	if len(others) == 0 {
		return rows, nil
	}
	r.spent.sent(int64(len(others)))
	_, err = r.Conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range others {
			switch key := keys[i]; rows[i].Type {
			case "hash":
				others[i] = p.HLen(ctx, key)
			case "list":
				others[i] = p.LLen(ctx, key)
			case "set":
				others[i] = p.SCard(ctx, key)
			case "zset":
				others[i] = p.ZCard(ctx, key)
			case "stream":
				others[i] = p.XLen(ctx, key)
			}
		}
		return nil
	})
	if err != nil && !IsAnswer(err) {
		return nil, err
	}
	for i, cmd := range others {
		if cmd != nil {
			rows[i].Len = cmd.Val()
		}
	}
	return rows, nil
}

// ParseInfo adds the fields of an INFO reply to fields, made safe to show.
func ParseInfo(text string, fields map[string]string) {
	for name, value := range serverinfo.Fields(text) {
		fields[name] = safetext.Escape(value)
	}
}
