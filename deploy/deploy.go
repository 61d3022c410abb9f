// Package deploy embeds the files that are installed beside the program.
package deploy

import "embed"

// GuardUnit is the systemd unit of guards, a template: one instance for each cluster.
//
//go:embed systemd/redlockctl-guard@.service
var GuardUnit string

// Guards is a kustomize base: two guards on Kubernetes, with their monitoring.
//
//go:embed kubernetes/guard/*.yaml
var Guards embed.FS
