#!/bin/sh
# Makes the users{{range .Users}} {{.}}{{end}} on the masters that run, by ACL SETUSER. No
# other user is touched. servers.sh puts the same users into the servers' files.
#
#   sh users.sh                 makes them; again: changes nothing
#   sh users.sh undo            deletes them
#   sh users.sh undo --force    also while a guard or a fenced master needs them
#
# It needs redis-cli or valkey-cli{{if .AnyPass}}, and the password that you gave to init: from
# $REDLOCKCTL_PASSWORD, or it asks for it{{end}}.
set -eu
cd "$(dirname "$0")"
mode=${1-}
cli=$(command -v redis-cli || command -v valkey-cli) || {
	echo "redis-cli or valkey-cli is missing: install the package redis-tools or valkey-tools" >&2
	exit 1
}
if [ "$mode" = undo ] && [ "${2-}" != --force ]; then
	redlockctl init --check --before-undo users --out .
fi
{{- if .AnyPass}}

if [ -z "${REDISCLI_AUTH-}" ]; then
	REDISCLI_AUTH=${REDLOCKCTL_PASSWORD-}
fi
if [ -z "$REDISCLI_AUTH" ]; then
	printf 'password of the masters: ' >&2
	stty -echo
	read -r REDISCLI_AUTH
	stty echo
	echo >&2
fi
export REDISCLI_AUTH
{{- end}}

failed=0
# send NODE OPTION...: sends the node's commands with these options.
send() {
	node=$1
	shift
	if [ "$mode" = undo ]; then
		out=$(echo "ACL DELUSER{{range .Users}} {{.}}{{end}}" | "$cli" "$@") || true
		case $out in
		[0-9]) echo "$node: $out users deleted"; return ;;
		esac
	else
		out=$("$cli" "$@" <"$node/users.redis") || true
		if [ "$out" = "$(printf 'OK\nOK\nOK')" ]; then
			echo "$node: 3 users made"
			return
		fi
	fi
	echo "$node: FAILED: $out" >&2
	failed=1
}

{{range .Hosts -}}
send {{sh .Name}}
{{- if .Host}} -h {{sh .Host}} -p {{.Port}}{{else}} -s {{sh .Addr}}{{end}}
{{- if .User}} --user {{sh .User}}{{end}}
{{- if .TLS}} --tls{{if $.CA}} --cacert ca.pem{{end}}{{if $.Cert}} --cert {{sh $.Cert}} --key {{sh $.Key}}{{end}}{{if $.ServerName}} --sni {{sh $.ServerName}}{{end}}{{end}}
{{end -}}
exit $failed
