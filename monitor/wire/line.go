package wire

import (
	"slices"
	"time"
)

// arrival is how the replies to one write came in.
type arrival struct {
	first, last time.Time // of their bytes
	head        int       // bytes that came at first
	bytes       int       // all of them
}

// came records bytes that came in.
func (a *arrival) came(n int, now time.Time) {
	if n <= 0 {
		return
	}
	if a.first.IsZero() {
		a.first, a.head = now, n
	}
	a.last = now
	a.bytes += n
}

const (
	// lineThin is below how many bytes per second a line is thin: above it, a read is
	// bounded by the server and by us.
	lineThin = 4 << 20
	// lineLeast is how many bytes tell how wide a line is.
	lineLeast = 1 << 10
	// lineAtOnce is how many bytes that come at once tell that a line is not thin.
	lineAtOnce = 8 << 10
	// lineKept is the number of samples, and lineTaken which of them counts, the fastest
	// first: jitter, loss and other traffic only make a line look thinner than it is.
	lineKept, lineTaken = 16, 3
)

// line measures how many bytes per second the line to a server carries: by how long the
// rest of a reply takes to come after its beginning. How far the server is, and how long
// it works, does not matter to that: a server writes its replies to one request at once.
type line struct {
	rates []float64 // the latest
	next  int
}

// saw records how replies came in.
func (l *line) saw(a arrival) {
	rest := a.bytes - a.head
	rate := float64(2 * lineThin)
	switch {
	case rest >= lineLeast:
		rate = float64(rest) / max(a.last.Sub(a.first), time.Microsecond).Seconds()
	case a.head < lineAtOnce:
		return
	}
	if len(l.rates) < lineKept {
		l.rates = append(l.rates, rate)
		return
	}
	l.rates[l.next] = rate
	l.next = (l.next + 1) % lineKept
}

// takes returns how long the line takes for so many bytes; zero if it is not thin, as far
// as is known.
func (l *line) takes(bytes int) time.Duration {
	if len(l.rates) == 0 {
		return 0
	}
	rates := slices.Clone(l.rates)
	slices.Sort(rates)
	rate := rates[max(0, len(rates)-lineTaken)]
	if rate >= lineThin {
		return 0
	}
	return time.Duration(float64(bytes) / rate * float64(time.Second))
}
