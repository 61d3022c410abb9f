package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

func percentile[T cmp.Ordered](v []T, p int) T {
	slices.Sort(v)
	return v[min(len(v)-1, len(v)*p/100)]
}

// ratios compare what is measured in rounds with a base that is measured before and
// after it in each.
type ratios struct{ ratio, value, base []float64 }

func (r *ratios) round(base func() (float64, error), measure func() (float64, error)) error {
	before, err := base()
	if err != nil {
		return err
	}
	value, err := measure()
	if err != nil {
		return err
	}
	after, err := base()
	mean := (before + after) / 2
	r.ratio, r.value, r.base = append(r.ratio, value/mean), append(r.value, value), append(r.base, mean)
	return err
}

func (r *ratios) String() string {
	var out []string
	for _, x := range r.ratio {
		out = append(out, fmt.Sprintf("%.2f", x))
	}
	return strings.Join(out, " ")
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// grouped writes n with a comma every three digits.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
