package schedule

import (
	"math/bits"
	"time"
)

// dice is a small and fast source of random numbers (splitmix64): the same seed
// gives the same numbers on every machine and with every version of Go.
type dice struct{ state uint64 }

func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n is uniform in [0, n).
func (d *dice) n(n int) int {
	hi, _ := bits.Mul64(d.next(), uint64(n))
	return int(hi)
}

// oneIn is true once in k times.
func (d *dice) oneIn(k int) bool { return d.n(k) == 0 }

// within is uniform in [from, to).
func (d *dice) within(from, to time.Duration) time.Duration {
	return from + time.Duration(d.n(int(to-from)))
}
