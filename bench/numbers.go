package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// number has four digits that count, and no exponent.
func number(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// between does something between two measures of what it is compared with.
func between(base func() (float64, error), do func() error) (both []float64, err error) {
	before, err := base()
	if err == nil {
		err = do()
	}
	if err != nil {
		return nil, err
	}
	after, err := base()
	return []float64{before, after}, err
}

func mean(both []float64) float64 { return (both[0] + both[1]) / 2 }

func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, len(d)*p/100)]
}

func list(v []float64) string {
	var out []string
	for _, x := range v {
		out = append(out, fmt.Sprintf("%.2f", x))
	}
	return strings.Join(out, " ")
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// grouped writes n with a comma every three digits.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
