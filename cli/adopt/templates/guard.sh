#!/bin/sh
# Installs the guard of {{.Instance}} on this machine, as root, and starts it: the systemd unit
# redlockctl-guard@{{.Instance}}. Guards of other clusters on this machine are not touched.
# Not on a host of the masters: the guard should outlive them.
#
#   sh guard.sh                 does it; again: changes only what differs
#   sh guard.sh undo            stops it and removes its files; its memory stays
#   sh guard.sh undo --force    also while a master needs it
#
# Program and unit are those of the package redlockctl, if it is installed.
set -eu
cd "$(dirname "$0")"
name={{sh .Instance}}
root=${DESTDIR-}
etc=$root/etc/redlockctl
guard=redlockctl-guard@$name
package=$root/usr/lib/systemd/system/redlockctl-guard@.service
brought=$etc/brought-by-init # program and unit, if guard.sh has installed them
program=/usr/local/bin/redlockctl
if [ -e "$package" ]; then
	program=/usr/bin/redlockctl
fi

# take_back removes program and unit, if guard.sh has installed them.
take_back() {
	[ -f "$brought" ] || return 0
	while read -r file; do
		rm -f "$root$file"
	done <"$brought"
	rm -f "$brought"
}

if [ "${1-}" = undo ]; then
	if [ -d "$etc/$name" ]; then
		[ "${2-}" = --force ] || "$root$program" init --check --before-undo guard --out .
		systemctl disable --now "$guard"
		rm -r "${etc:?}/$name"
		echo "the guard of $name is gone from this machine; its memory stays in /var/lib/redlockctl/$name"
	else
		echo "there is no guard of $name on this machine"
	fi
	if ! ls "$etc"/*/config.toml >/dev/null 2>&1; then
		take_back
		[ -e "$package" ] || rmdir "$etc" 2>/dev/null || true
	fi
	systemctl daemon-reload
	exit
fi

if [ -f "$etc/$name/config.toml" ] && ! grep '^addr = ' config.toml | grep -qFxf - "$etc/$name/config.toml"; then
	echo "a guard of other masters is called $name here: run init again with another --cluster; nothing was changed" >&2
	exit 1
fi

changed=
# put MODE FILE PATH: installs a file, if it differs.
put() {
	cmp -s "$2" "$root$3" && return
	install -D -m "$1" "$2" "$root$3"
	changed=yes
}

install -d -m 755 "$etc" "$etc/$name"
if [ -e "$package" ]; then
	if [ -f "$brought" ]; then
		take_back
		changed=yes
	fi
else
	found=$(command -v redlockctl || true)
	if ! [ -x "$root$program" ] && [ -z "$found" ]; then
		echo "put the program into /usr/local/bin first: install -m 755 redlockctl /usr/local/bin/" >&2
		exit 1
	fi
	[ -x "$root$program" ] || echo "$program" >>"$brought"
	if grep -sqFx "$program" "$brought" && [ -n "$found" ]; then
		put 755 "$found" "$program"
	fi
	unit=/etc/systemd/system/redlockctl-guard@.service
	[ -e "$root$unit" ] || echo "$unit" >>"$brought"
	if grep -sqFx "$unit" "$brought"; then
		put 644 redlockctl-guard@.service "$unit"
	fi
fi
# Program and unit are those of all guards here.
[ -z "$changed" ] || everybody="redlockctl-guard@*.service"
put 644 config.toml "/etc/redlockctl/$name/config.toml"
{{- if .CA}}
put 644 ca.pem "/etc/redlockctl/$name/ca.pem"
{{- end}}
put 600 guard.env "/etc/redlockctl/$name/guard.env"
if ! [ -f "$etc/$name/options.env" ]; then
	port=9622
	while grep -sq -- "127.0.0.1:$port " "$etc"/*/options.env; do
		port=$((port + 1))
	done
	echo "GUARD_OPTIONS=--listen 127.0.0.1:$port --watch-locks" >"$etc/$name/options.env"
	changed=yes
fi
systemctl daemon-reload
systemctl enable "$guard"
if [ -n "${everybody-}" ]; then
	systemctl try-restart "$everybody"
fi
if [ -n "$changed" ]; then
	systemctl restart "$guard"
else
	systemctl start "$guard"
fi
[ -n "$changed" ] || echo "nothing to change"
echo "the guard of $name runs: journalctl -u $guard; its options: /etc/redlockctl/$name/options.env"
