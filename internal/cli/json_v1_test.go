package cli

import (
	"strings"
	"testing"

	"redlockctl/internal/cli/exit"
	"redlockctl/internal/lab/labtest"
)

// --json-schema is about JSON: csv and tables stay as they are.
func TestSchemaV1IsOfJSONAlone(t *testing.T) {
	servers := labtest.Servers(t, 3)
	if code, _, said := person(t, servers, "", "node", "cordon", "n2", "--reason", "r", "--yes"); code != exit.Done {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	for output, want := range map[string]string{
		"json": `"state": "held"`, "jsonl": `"state":"held"`, "csv": "\nn2,cordoned,", "table": "n2    cordoned\n",
	} {
		code, out, said := person(t, servers, "", "nodes", "--columns", "node,state", "-o", output, "--json-schema", "v1")
		if code != exit.Done || !strings.Contains(out, want) {
			t.Errorf("-o %s: exit code %d, no %q in\n%s%s", output, code, want, out, said)
		}
	}
}
