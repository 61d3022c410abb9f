package exit

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"redlockctl/internal/adopt"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
)

// Report writes what went wrong, a line for each problem.
func Report(to io.Writer, err error) {
	if err == nil || IsSilent(err) {
		return
	}
	if problems := (adopt.Problems)(nil); errors.As(err, &problems) {
		for _, one := range problems {
			fmt.Fprintf(to, "redlockctl: %s\n", safetext.Printable(one.Error()))
		}
		return
	}
	var several *config.Error
	if !errors.As(err, &several) {
		fmt.Fprintf(to, "redlockctl: %s\n", safetext.Printable(err.Error()))
		return
	}
	for _, one := range several.Problems {
		// The advice of a problem may have an example of several lines.
		for i, line := range strings.Split(one.String(), "\n") {
			if i == 0 {
				fmt.Fprintf(to, "redlockctl: %s\n", safetext.Printable(line))
			} else {
				fmt.Fprintf(to, "    %s\n", safetext.Printable(strings.TrimLeft(line, "\t")))
			}
		}
	}
}
