package wire

import (
	"redlockctl/server/serverinfo"
)

// callsOf is how often commands were carried out in this incarnation, by INFO
// commandstats. DEBUG counts as a wipe, since its RELOAD is not counted apart. Before
// 7.0 the counter of CONFIG does not tell SET from GET, so there it is taken to
// be a GET.
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
