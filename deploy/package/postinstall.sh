#!/bin/sh
# After an install and after an upgrade: makes the user of the service. It starts and restarts
# nothing, because a new node has to be told of its cluster first, and the nodes of a cluster are
# restarted one after the other.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers claimq.conf
elif ! getent passwd claimq >/dev/null; then
	useradd --system --user-group --no-create-home --home-dir /var/lib/claimq --shell /usr/sbin/nologin claimq
fi
chgrp claimq /etc/claimq /etc/claimq/claimq.yaml
chmod g+s /etc/claimq # the service can read what is copied there for its group, the private key
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
