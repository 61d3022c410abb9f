#!/bin/sh
# Runs install.sh of each master as root on its host, and stores in seen.conf what the
# server's files have then. No server is restarted, and nothing that runs is changed.
#
#   sh servers.sh                 does it; again: changes nothing
#   sh servers.sh undo            takes it back
#   sh servers.sh undo --force    also while a master is fenced or down
#
# $SSH replaces ssh (such as "ssh -l admin"), and $SUDO replaces sudo. Over ssh, sudo
# must not ask for a password.
set -eu
cd "$(dirname "$0")"
mode=${1-}
: "${SSH=ssh}" "${SUDO=sudo}"
umask 077
{{- if not .WithoutGuard}}

if [ "$mode" = undo ] && [ "${2-}" != --force ]; then
	redlockctl init --check --before-undo servers --out .
fi
{{- end}}
{{range .Hosts}}
{{- if .Manual}}
echo {{printf "%s: left out: %s" .Name .Manual | sh}} >&2
{{- else if .SSH}}
$SSH {{sh .SSH}} $SUDO sh -s -- $mode <{{sh .Name}}/install.sh >{{sh .Name}}/seen.conf
grep '^# {{.Name}}: ' {{sh .Name}}/seen.conf
{{- else}}
$SUDO sh {{sh .Name}}/install.sh $mode >{{sh .Name}}/seen.conf
grep '^# {{.Name}}: ' {{sh .Name}}/seen.conf
{{- end}}
{{- end}}
