package oneshot

import (
	"errors"
	"testing"

	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
)

func TestWhatTheEndOfAWaitSays(t *testing.T) {
	master := func(p minreplicas.Params) restartguard.Observation {
		return restartguard.Observation{Role: "master", Params: p}
	}
	cut := errors.New("i/o timeout")
	for name, c := range map[string]struct {
		before string
		o      restartguard.Observation
		err    error
		over   bool
		want   string
	}{
		"a look that the end cut short says less": {"an operator has cordoned it", restartguard.Observation{}, cut, true, "an operator has cordoned it"},
		"unless there was none before":            {"", restartguard.Observation{}, cut, true, "i/o timeout"},
		"one that failed by itself counts":        {"it is fenced", restartguard.Observation{}, cut, false, "i/o timeout"},
		"one that came in time counts":            {"it is fenced", master(minreplicas.Params{MinReplicas: minreplicas.FenceCordon, MaxLag: 10}), nil, true, "an operator has cordoned it"},
		"closed":                                  {"", master(minreplicas.Params{MinReplicas: minreplicas.FenceUp, MaxLag: 10}), nil, false, "it is fenced"},
		"a replica":                               {"", restartguard.Observation{Role: "slave"}, nil, false, "its role is slave"},
		"not to be read":                          {"", restartguard.Observation{Role: "master", Blind: true, Err: "NOPERM"}, nil, false, "its fence cannot be read: NOPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := whyWaiting(c.before, c.o, c.err, c.over); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
