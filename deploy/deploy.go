// Package deploy holds what is installed beside the program.
package deploy

import _ "embed"

// GuardUnit is the systemd unit of the guard.
//
//go:embed systemd/redlockctl-guard.service
var GuardUnit string
