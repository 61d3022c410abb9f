package view

import (
	"strings"
	"testing"
)

// A chart of many copies shows their proportions, and no kind is left out.
func TestProportions(t *testing.T) {
	kinds := []string{"#", "+", "o", "."}
	for many, want := range map[string]string{
		strings.Repeat("#", 50):                            "############",
		strings.Repeat(".", 49) + "o":                      "o...........",
		strings.Repeat("#o", 20) + strings.Repeat(".", 10): "#####ooooo..",
		strings.Repeat("#", 97) + "+o.":                    "#########+o.",
	} {
		if got := strings.Join(proportions(strings.Split(many, ""), kinds, 12), ""); got != want {
			t.Errorf("%s: %s, want %s", many, got, want)
		}
	}
}
