#!/bin/sh
# Before a removal, which dpkg calls "remove" and rpm 0, but not before an upgrade: stops the node
# and the workers.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /run/systemd/system ]; then
		systemctl disable --now claimq.service
		systemctl stop 'claimq-work@*.service'
	fi
fi
