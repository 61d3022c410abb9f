package record

import (
	"slices"
	"strings"
	"time"
)

// minutes counts ended grants by minute and by the pattern of their locks' names.
type minutes struct {
	at int64 // the minute, in ms
	by map[string]*minute
}

// minute is one pattern in one minute. The counts are those not written yet; the samples
// cover the whole minute.
type minute struct {
	total, lost, orphaned int
	held, wait            []time.Duration
}

const (
	// mostPatterns and mostSamples limit the size of a minute.
	mostPatterns = 200
	mostSamples  = 1024
	// otherPattern counts the rest.
	otherPattern = "(others)"
)

// pattern returns a name without its variable parts: each part with a digit becomes a *.
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

// quantile returns a quantile of the samples in ms; 0 without samples.
func quantile(samples []time.Duration, q float64) int64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(samples))
	return s[int(q*float64(len(s)-1)+0.5)].Milliseconds()
}
