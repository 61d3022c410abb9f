#!/bin/sh
# Installs the guard on this machine, as root: configuration, password, unit; and starts it.
# Not on a host of the masters: the guard should outlive them.
#
#   sh guard.sh         does it; again: the guard restarts, and its memory goes on
#   sh guard.sh undo    stops it and takes its files away; its memory stays
set -eu
cd "$(dirname "$0")"
root=${DESTDIR-}
unit=$root/etc/systemd/system/redlockctl-guard.service

if [ "${1-}" = undo ]; then
	systemctl disable --now redlockctl-guard
	rm -f "$unit" "$root/etc/redlockctl/config.toml" "$root/etc/redlockctl/guard.env"
	systemctl daemon-reload
	echo "the guard is gone from this machine"
	exit
fi
if ! [ -x "$root/usr/local/bin/redlockctl" ]; then
	program=$(command -v redlockctl) || {
		echo "put the program into /usr/local/bin first: install -m 755 redlockctl /usr/local/bin/" >&2
		exit 1
	}
	install -D -m 755 "$program" "$root/usr/local/bin/redlockctl"
fi
install -d -m 755 "$root/etc/redlockctl" "$root/etc/systemd/system"
install -m 644 config.toml{{if .CA}} ca.pem{{end}} "$root/etc/redlockctl/"
install -m 600 guard.env "$root/etc/redlockctl/"
install -m 644 redlockctl-guard.service "$unit"
systemctl daemon-reload
systemctl enable redlockctl-guard
systemctl restart redlockctl-guard
echo "the guard runs: journalctl -u redlockctl-guard"
