package monitor

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	batchKeys  = 200           // keys of one read
	ownPrefix  = "redlockctl:" // of counters and canaries of this program: no locks
	batchBytes = 1 << 20       // of key names in one read
	prefixLen  = 128           // bytes of a value that are read
	fieldsLen  = 1 << 10       // bytes of the names of a small hash's fields
)

// readScript reads type, PTTL, length and the first bytes of each key, in one
// go, so that token and TTL belong together. It writes nothing, and never
// fetches a whole value: of a hash the names of its fields, of a sorted set its members, if they are few and
// all of it is small. What is not essential is asked for by pcall: a server that
// refuses it is read all the same.
const readScript = `
local measures = {hash = 'HLEN', list = 'LLEN', set = 'SCARD', zset = 'ZCARD', stream = 'XLEN'}
local out = {}
for i = 1, #KEYS do
  local key = KEYS[i]
  local kind = redis.call('TYPE', key)
  if type(kind) == 'table' then kind = kind['ok'] end
  local size, prefix = 0, ''
  if kind == 'string' then
    size = redis.call('STRLEN', key)
    prefix = redis.call('GETRANGE', key, 0, 127)
  elseif measures[kind] then
    local n = redis.pcall(measures[kind], key)
    if type(n) == 'number' then size = n end
    if (kind == 'hash' or kind == 'zset') and size <= 8 then
      local weight = redis.pcall('MEMORY', 'USAGE', key, 'SAMPLES', '0')
      if type(weight) == 'number' and weight <= 4096 then
        local fields
        if kind == 'hash' then fields = redis.pcall('HKEYS', key) else fields = redis.pcall('ZRANGE', key, 0, -1) end
        if not fields['err'] then prefix = table.concat(fields, '\n') end
      end
    end
  end
  out[4 * i - 3] = kind
  out[4 * i - 2] = redis.call('PTTL', key)
  out[4 * i - 1] = size
  out[4 * i] = prefix
end
return out`

// reader reads locks on one connection, in the best way that the server
// allows.
type reader struct {
	*session
	mode  readMode
	noSHA bool   // the script is sent each time
	sha   string // of the script
	note  string // what is missing in this mode
}

func newReader(s *session) *reader {
	sum := sha1.Sum([]byte(readScript))
	return &reader{session: s, sha: hex.EncodeToString(sum[:])}
}

type readMode uint8

const (
	readByEvalRO readMode = iota // a script that cannot write; Redis 7
	readByEval                   // the same script on older servers
	readByMulti                  // a transaction, where scripts are denied
)

// runID is the life of the server behind the connection; empty where INFO is
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
	return fields["run_id"], nil
}

func (r *reader) page(ctx context.Context, cursor uint64, pattern string, count int64) ([]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.conn.Scan(ctx, cursor, pattern, count).Result()
}

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
		r.note = "EVAL_RO refused: reading by EVAL"
		if r.mode == readByMulti {
			r.note = "scripts denied: reading by MULTI, locks in hashes are not seen"
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
		return nil, err
	}
	return parseRows(keys, values)
}

// parseRows takes the script's answer apart, trusting nothing.
func parseRows(keys []string, values []any) ([]row, error) {
	if len(values) != 4*len(keys) {
		return nil, fmt.Errorf("a read of %d keys brought %d values", len(keys), len(values))
	}
	rows := make([]row, len(keys))
	for i, key := range keys {
		typ, ok1 := values[4*i].(string)
		pttl, ok2 := values[4*i+1].(int64)
		length, ok3 := values[4*i+2].(int64)
		prefix, ok4 := values[4*i+3].(string)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return nil, fmt.Errorf("a read of %d keys brought values of other types", len(keys))
		}
		rows[i] = makeRow(key, typ, pttl, length, prefix)
	}
	return rows, nil
}

// makeRow keeps within bounds what a server may say: −2 is a key that is not
// there, and a TTL beyond a hundred years would overflow.
func makeRow(key, typ string, pttl, length int64, prefix string) row {
	const longest = 100 * 365 * 24 * int64(time.Hour/time.Millisecond)
	most, r := prefixLen, row{key: key, typ: typ, pttl: -1, length: length}
	if typ == "hash" || typ == "zset" {
		most = fieldsLen
	}
	r.prefix = prefix[:min(len(prefix), most)]
	switch {
	case pttl == -2:
		r.typ = "none"
	case pttl >= 0:
		r.pttl = time.Duration(min(pttl, longest)) * time.Millisecond
	}
	return r
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
