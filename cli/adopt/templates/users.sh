#!/bin/sh
# Makes the users{{range .Users}} {{.}}{{end}} on the masters that run, by ACL SETUSER. No
# other user is touched. servers.sh puts the same users into the servers' files.
#
#   sh users.sh                 makes them; again: changes nothing
#   sh users.sh undo            deletes them
#   sh users.sh undo --force    also while a guard or a fenced master needs them
{{- if .AnyPass}}
#
# It needs the password that you gave to init: from $REDLOCKCTL_PASSWORD, or it asks for it.
{{- end}}
set -eu
cd "$(dirname "$0")"
change=make
if [ "${1-}" = undo ]; then
	change=delete
	[ "${2-}" = --force ] || redlockctl init --check --before-undo users --out .
fi
{{- if .AnyPass}}
ask=
[ -n "${REDLOCKCTL_PASSWORD-}" ] || ask=--ask-password
{{- end}}
exec redlockctl init --users "$change" --out . --cluster {{sh .Cluster}}{{if .AnyPass}} $ask{{end}}{{range .Hosts}} \
	--nodes {{sh .URL}}{{end}}
{{- if .TLS}}{{if .CA}} \
	--tls-ca ca.pem{{end}}{{if .Cert}} \
	--tls-cert {{sh .Cert}} --tls-key {{sh .Key}}{{end}}{{if .ServerName}} \
	--tls-server-name {{sh .ServerName}}{{end}}{{end}}
