package announce

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// StepPrefix is the beginning of an announcement about the clock of its node. [Pattern] matches it too.
const StepPrefix = Prefix + "step:"

// Step is the last step of the clock of the node with the announcement, that a guard saw.
type Step struct {
	By time.Duration // ahead, in whole milliseconds
	At time.Time     // when it was seen, by the node's clock since
}

// Channel returns the announcement.
func (s Step) Channel() string {
	f := url.Values{"by": {strconv.FormatInt(s.By.Milliseconds(), 10)}, "at": {strconv.FormatInt(s.At.UnixMilli(), 10)}}
	return StepPrefix + version + ":" + f.Encode()
}

// mostStep bounds what is taken for a step.
const mostStep = 100 * 365 * 24 * time.Hour

// DecodeStep returns the latest step that is announced among the names of channels; nil: there is none.
func DecodeStep(channels []string) (last *Step) {
	for _, c := range channels {
		rest, ok := strings.CutPrefix(c, StepPrefix+version+":")
		if !ok || len(c) > mostChannel {
			continue
		}
		f, err := url.ParseQuery(rest)
		if err != nil {
			continue
		}
		by, err := strconv.ParseInt(f.Get("by"), 10, 64)
		if err != nil || by == 0 || by > mostStep.Milliseconds() || by < -mostStep.Milliseconds() {
			continue
		}
		at, err := strconv.ParseInt(f.Get("at"), 10, 64)
		if err != nil || at <= 0 || at > 1<<53 {
			continue
		}
		if s := (Step{time.Duration(by) * time.Millisecond, time.UnixMilli(at)}); last == nil || s.At.After(last.At) {
			last = &s
		}
	}
	return last
}
