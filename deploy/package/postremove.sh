#!/bin/sh
# After a removal or an upgrade. The data, the keys and the user stay.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
