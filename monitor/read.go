package monitor

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"redlockctl/internal/safetext"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// readScript reads type, PTTL, length and the first bytes of each key, in one
// go, so that token and TTL belong together. It writes nothing, and never
// fetches a whole value: of a hash the names of its fields, of a sorted set its members, if they are few and
// all of it is small. What is not essential is asked for by pcall: a server that
// refuses it is read all the same.
//
// Most keys are short strings, and are told in as few words as do: PTTL and
// value, and the length behind a value that may have been cut. Of any other the
// type comes first, then PTTL, length and the names of fields. A key that is not
// there is -2 alone.
const readScript = `
local call, measures = redis.call, {hash = 'HLEN', list = 'LLEN', set = 'SCARD', zset = 'ZCARD', stream = 'XLEN'}
local out, n = {}, 0
for i = 1, #KEYS do
  local key = KEYS[i]
  local pttl, kind = call('PTTL', key)
  if pttl ~= -2 then
    kind = call('TYPE', key)
    if type(kind) == 'table' then kind = kind['ok'] end
  end
  if pttl == -2 then
    out[n + 1] = pttl
    n = n + 1
  elseif kind == 'string' then
    local text = call('GETRANGE', key, 0, 127)
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
          if kind == 'hash' then fields = redis.pcall('HKEYS', key) else fields = redis.pcall('ZRANGE', key, 0, -1) end
          if not fields['err'] then names = table.concat(fields, '\n') end
        end
      end
    end
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = kind, pttl, size, names
    n = n + 4
  end
end
return out`

// reader reads locks on one connection, in the best way that the server
// allows.
type reader struct {
	*session
	wire  *wire // nil until the connection is set up
	mode  readMode
	noSHA bool   // the script is sent each time
	sha   string // of the script
	note  limit  // what is missing in this mode
	spent spent  // by all reads
	load  load   // by others
	// patient: it matters what others do.
	patient bool
}

func newReader(s *session) *reader {
	sum := sha1.Sum([]byte(readScript))
	return &reader{session: s, sha: hex.EncodeToString(sum[:])}
}

const adviceScripts = "Use a server that runs scripts (EVAL)."

type readMode uint8

const (
	readByEvalRO readMode = iota // a script that cannot write; Redis 7
	readByEval                   // the same script on older servers
	readByMulti                  // a transaction, where scripts are denied
)

// runID is the run_id of the server behind the connection; empty where INFO is
// denied.
func (r *reader) runID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	text, err := r.conn.Info(ctx, "server").Result()
	if err != nil && !says(err, "NOPERM") {
		return "", err
	}
	fields := map[string]string{}
	parseInfo(text, fields)
	r.wire = newWire(r.raw, r.timeout)
	return fields["run_id"], nil
}

// sweep reads the rows of some keys and the next page of SCAN, in one round trip.
// It is to be used while fast says so. refused is the answer of a server that
// does not run the script as it was sent: the keys are to be read by read, which
// finds out why. Now and then the server is asked how many commands it has processed.
func (r *reader) sweep(ctx context.Context, keys []string, cursor uint64, pattern string, count int64) (p swept, err error) {
	evalsha, w := "EVALSHA_RO", r.wire
	if r.mode == readByEval {
		evalsha = "EVALSHA"
	}
	batches := slices.Collect(slices.Chunk(keys, batchKeys))
	for _, batch := range batches {
		w.head(3 + len(batch))
		w.arg(evalsha)
		w.arg(r.sha)
		w.arg(strconv.Itoa(len(batch)))
		for _, key := range batch {
			w.arg(key)
		}
	}
	w.put("SCAN", strconv.FormatUint(cursor, 10), "MATCH", pattern, "COUNT", strconv.FormatInt(count, 10))
	p.sent = time.Now()
	counted := r.patient && r.load.due(p.sent)
	if counted {
		w.put("INFO", "stats")
	}
	if err := w.send(ctx); err != nil {
		return p, err
	}
	p.rows = make([]row, 0, len(keys))
	for _, batch := range batches {
		rows, err := w.rows(p.rows, batch)
		switch {
		case err == nil:
			r.spent.script(rows[len(p.rows):])
			p.rows = rows
		case isAnswer(err):
			r.spent.command(1)
			p.refused = err
		default:
			return p, err
		}
	}
	p.page, err = w.page()
	p.received = time.Now()
	r.spent.command(1)
	if counted && err == nil {
		var info value
		info, err = w.next(longestInfo)
		r.load.saw(commandsOf(info.text), r.spent, p.received)
		r.spent.command(1)
	}
	return p, err
}

// longestInfo is how many bytes a section of INFO may have.
const longestInfo = 32 << 10

// swept is what a sweep brought.
type swept struct {
	page
	rows           []row
	refused        error
	sent, received time.Time
}

// fast reports whether the server runs the script by its name, as far as is known.
func (r *reader) fast() bool { return r.wire != nil && r.mode != readByMulti && !r.noSHA }

// read reads some keys, and falls back to a lesser way for good when the
// server refuses the better one.
func (r *reader) read(ctx context.Context, keys []string) (rows []row, sent, received time.Time, err error) {
	for {
		sent = time.Now()
		switch r.mode {
		case readByMulti:
			rows, err = r.readMulti(ctx, keys)
		default:
			rows, err = r.readScript(ctx, keys)
		}
		received = time.Now()
		// A script that fails for any reason of its own ("ERR …") is one that this
		// server does not run; being busy or loading is not.
		switch {
		case err == nil, r.mode == readByMulti:
			return rows, sent, received, err
		case !r.noSHA && says(err, "NOSCRIPT"):
			// Sent once, it is known there for all.
			r.noSHA = true
			rows, sent, received, err = r.read(ctx, keys)
			r.noSHA = err != nil
			return rows, sent, received, err
		case !says(err, "NOPERM", "ERR"):
			return rows, sent, received, err
		case !r.noSHA:
			r.noSHA = true // only the short form may be refused
			continue
		}
		r.mode++
		r.noSHA = false
		r.note = limit{text: "EVAL_RO refused: reading by EVAL"} // which sees as much
		if r.mode == readByMulti {
			r.note = limit{"scripts denied: reading by MULTI, locks in hashes are not seen", adviceScripts}
			if says(err, "NOPERM") {
				r.note.do = adviceRights
			}
		}
	}
}

func (r *reader) readScript(ctx context.Context, keys []string) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var cmd *redis.Cmd
	switch {
	case r.mode == readByEvalRO && r.noSHA:
		cmd = r.conn.EvalRO(ctx, readScript, keys)
	case r.mode == readByEvalRO:
		cmd = r.conn.EvalShaRO(ctx, r.sha, keys)
	case r.noSHA:
		cmd = r.conn.Eval(ctx, readScript, keys)
	default:
		cmd = r.conn.EvalSha(ctx, r.sha, keys)
	}
	values, err := cmd.Slice()
	if err != nil {
		r.spent.command(1)
		return nil, err
	}
	rows, err := parseRows(keys, values)
	r.spent.script(rows)
	return rows, err
}

// readMulti reads within a transaction. The length of what is no string is
// asked for afterwards: it is for show only.
func (r *reader) readMulti(ctx context.Context, keys []string) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	types := make([]*redis.StatusCmd, len(keys))
	pttls := make([]*redis.Cmd, len(keys))
	lengths := make([]*redis.IntCmd, len(keys))
	prefixes := make([]*redis.StringCmd, len(keys))
	_, err := r.conn.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			types[i] = p.Type(ctx, key)
			pttls[i] = p.Do(ctx, "pttl", key)
			lengths[i] = p.StrLen(ctx, key)
			prefixes[i] = p.GetRange(ctx, key, 0, prefixLen-1)
		}
		return nil
	})
	r.spent.command(2 + 4*int64(len(keys)))
	// STRLEN of a list is an error of its own; the rest of the answers counts.
	if err != nil && !says(err, "WRONGTYPE") {
		return nil, err
	}
	rows := make([]row, len(keys))
	others := map[int]*redis.IntCmd{}
	for i, key := range keys {
		pttl, err := pttls[i].Int64()
		if err = errors.Join(err, types[i].Err()); err != nil {
			return nil, err
		}
		rows[i] = makeRow(key, types[i].Val(), pttl, lengths[i].Val(), prefixes[i].Val())
		if typ := rows[i].typ; typ != "string" && typ != "none" {
			rows[i].length, rows[i].prefix = 0, ""
			others[i] = nil
		}
	}
	if len(others) == 0 {
		return rows, nil
	}
	r.spent.command(int64(len(others)))
	_, err = r.conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range others {
			switch key := keys[i]; rows[i].typ {
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
	if err != nil && !isAnswer(err) {
		return nil, err
	}
	for i, cmd := range others {
		if cmd != nil {
			rows[i].length = cmd.Val()
		}
	}
	return rows, nil
}

// parseInfo adds the fields of an INFO answer to fields, made safe to show.
func parseInfo(text string, fields map[string]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			fields[name] = safetext.Escape(value)
		}
	}
}
