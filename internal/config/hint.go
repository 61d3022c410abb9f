package config

import (
	"fmt"
	"slices"
	"strings"
)

func hint(key, label string, known, homes []string) string {
	if slices.Contains(known, "password_env") && strings.Contains(strings.ToLower(key), "pass") {
		return "; did you mean password_env, password_file or password_command?"
	}
	if best := Nearest(key, known); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	if len(homes) > 0 {
		if homes[0] == "" {
			return "; it stands at the top of the file, before any section"
		}
		return "; it belongs in " + homes[0]
	}
	if label == "" {
		return "; the sections are [cluster], [[nodes]], [redlock], [monitor], [guard], [tui], [audit] and [record], or [clusters.NAME] for several clusters"
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(known)))
	sorted = slices.DeleteFunc(sorted, func(k string) bool { return k == "password" })
	return fmt.Sprintf("; %s knows %s", label, strings.Join(sorted, ", "))
}

// Nearest returns the known word that a misspelt one may mean; empty: none.
func Nearest(word string, known []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	best, least := "", 1+max(1, len(word)/4)
	for _, k := range known {
		if d := distance(plain(word), plain(k)); d < least {
			best, least = k, d
		}
		if p, w := plain(k), plain(word); best == "" && len(w) > 1 && (strings.HasPrefix(w, p) || strings.HasPrefix(p, w)) {
			best = k
		}
	}
	return best
}

// distance returns how many letters to insert, remove, replace or swap with a neighbour
// to turn a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
