package wire

import (
	"redlockctl/server/serverinfo"
)

// CallsOf returns how often commands were executed in this incarnation, by INFO commandstats. DEBUG
// counts as a wipe, because its RELOAD has no counter of its own. Before 7.0 the counter of CONFIG
// does not distinguish SET from GET, and is taken for GET.
func CallsOf(info string, commands ...string) (calls int64, err error) {
	for _, command := range commands {
		n, err := serverinfo.Calls(info, command)
		if err != nil {
			return 0, err
		}
		calls += n
	}
	return calls, nil
}
