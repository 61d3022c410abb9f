package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// progressAfter is how long a command may take before it says what it does.
const progressAfter = time.Second

// progress says on standard error what is being waited for, from the second
// second on and on a terminal only, and wipes it away when done is called. What
// is told never reaches a pipe.
func (a *app) progress(what string) (done func()) {
	if !a.errTTY || a.getenv("TERM") == "dumb" {
		return func() {}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		start := time.Now()
		wait := time.NewTimer(progressAfter)
		defer wait.Stop()
		shown := false
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(a.errOut, "\r"+ansi.EraseLineRight)
				}
				return
			case <-wait.C:
				shown = true
				fmt.Fprintf(a.errOut, "\r%s, %ds%s", a.clip(printable(what), 60), int(time.Since(start).Seconds()), ansi.EraseLineRight)
				wait.Reset(time.Second)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
}
