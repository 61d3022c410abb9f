package record

import (
	"slices"
	"strings"
	"time"
)

// minutes counts the grants that ended, by minute and by the pattern of their locks' names.
type minutes struct {
	at int64 // the minute, in ms
	by map[string]*minute
}

// minute is one pattern in one minute. The counts are those that are not written yet; the
// samples are of the whole minute.
type minute struct {
	grants, lost, orphaned int
	held, wait             []time.Duration
}

const (
	// mostPatterns and mostSamples bound what a minute may take.
	mostPatterns = 200
	mostSamples  = 1024
	// otherPattern is where the rest is counted.
	otherPattern = "(others)"
)

// pattern is a name with what varies between locks of a kind left out: each part that has
// a digit becomes a *.
func pattern(name string) string {
	var b strings.Builder
	part := 0
	flush := func(end int) {
		if p := name[part:end]; strings.ContainsAny(p, "0123456789") {
			b.WriteByte('*')
		} else {
			b.WriteString(p)
		}
	}
	for i := range len(name) {
		if strings.IndexByte(":/.-_#|", name[i]) >= 0 {
			flush(i)
			b.WriteByte(name[i])
			part = i + 1
		}
	}
	flush(len(name))
	return b.String()
}

func (m *minutes) of(lock string) *minute {
	if m.by == nil {
		m.by = map[string]*minute{}
	}
	p := pattern(lock)
	if m.by[p] == nil && len(m.by) >= mostPatterns {
		p = otherPattern
	}
	if m.by[p] == nil {
		m.by[p] = &minute{}
	}
	return m.by[p]
}

func (m *minutes) orphaned(lock string) { m.of(lock).orphaned++ }

func (m *minutes) ended(one *grant) {
	c := m.of(one.lock)
	c.grants++
	if one.how == "lost majority" {
		c.lost++
	}
	if len(c.held) < mostSamples && !one.partly {
		c.held = append(c.held, one.ended.Sub(one.began))
	}
	if one.wait > 0 && len(c.wait) < mostSamples {
		c.wait = append(c.wait, one.wait)
	}
}

// quantile is that of samples in ms; 0 without any.
func quantile(samples []time.Duration, q float64) int64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(samples))
	return s[int(q*float64(len(s)-1)+0.5)].Milliseconds()
}

func (b *batch) writeMinutes() {
	m := &b.minutes
	if at := b.now.Truncate(time.Minute).UnixMilli(); at != m.at {
		for p, c := range m.by {
			if c.held, c.wait = nil, nil; c.grants+c.lost+c.orphaned == 0 {
				delete(m.by, p)
			}
		}
		m.at = at
	}
	for p, c := range m.by {
		if c.grants+c.lost+c.orphaned == 0 {
			continue
		}
		b.exec(`INSERT INTO minutes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (cluster, minute_ms, pattern) DO UPDATE SET
			grants = grants + excluded.grants, lost = lost + excluded.lost, orphaned = orphaned + excluded.orphaned,
			held_p50_ms = excluded.held_p50_ms, held_p99_ms = excluded.held_p99_ms, wait_p50_ms = excluded.wait_p50_ms`,
			b.cluster, m.at, p, c.grants, c.lost, c.orphaned, quantile(c.held, 0.5), quantile(c.held, 0.99), quantile(c.wait, 0.5))
		c.grants, c.lost, c.orphaned = 0, 0, 0
	}
}
