package restartguard

import (
	"errors"
	"testing"
)

func TestWhatTheEndOfAWaitSays(t *testing.T) {
	master := func(p Params) Observation { return Observation{Role: "master", Params: p} }
	cut := errors.New("i/o timeout")
	for name, c := range map[string]struct {
		before string
		o      Observation
		err    error
		over   bool
		want   string
	}{
		"a look that the end cut short says less": {"an operator has cordoned it", Observation{}, cut, true, "an operator has cordoned it"},
		"unless there was none before":            {"", Observation{}, cut, true, "i/o timeout"},
		"one that failed by itself counts":        {"it is fenced", Observation{}, cut, false, "i/o timeout"},
		"one that came in time counts":            {"it is fenced", master(Params{FenceCordon, 10}), nil, true, "an operator has cordoned it"},
		"closed":                                  {"", master(Params{FenceUp, 10}), nil, false, "it is fenced"},
		"a replica":                               {"", Observation{Role: "slave"}, nil, false, "its role is slave"},
		"not to be read":                          {"", Observation{Role: "master", Blind: true, Err: "NOPERM"}, nil, false, "its fence cannot be read: NOPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := whyWaiting(c.before, c.o, c.err, c.over); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
