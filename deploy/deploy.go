// Package deploy holds what is installed beside the program.
package deploy

import "embed"

// GuardUnit is the systemd unit of the guard.
//
//go:embed systemd/redlockctl-guard.service
var GuardUnit string

// Guards is a base of kustomize: two guards in Kubernetes, and what watches them.
//
//go:embed kubernetes/guard/*.yaml
var Guards embed.FS
