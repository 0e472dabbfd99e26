#!/bin/sh
# The release of main.go by commands: needs claimq and jq.
#
#   examples/release/release.sh
set -eu

if [ "${1-}" = step ]; then # claimq work runs this for each step, below
	case $CLAIMQ_TASK_TYPE in
	release.test) jq -c '{passed: {linux: 40, mac: 2}[.on]}' ;; # the params are on standard input
	release.pack) jq -c '{passed: ([.[].result.passed] | add)}' "$CLAIMQ_DEPENDENCIES" ;;
	release.ship)
		if [ "$(echo "$CLAIMQ_SIGNAL" | jq .approved)" != true ]; then
			echo 'it was not approved' >&2
			exit 100 # for good
		fi
		echo '{"shipped":true}'
		;;
	esac
	exit
fi

submitted=$(claimq submit release --steps "$(dirname "$0")/steps.json" --output json)
id_of() { echo "$submitted" | jq ".task.steps[] | select(.step == \"$1\").id"; }

claimq work --type release.test --type release.pack --type release.ship -- "$0" step &
worker=$!
trap 'kill $worker; wait $worker' EXIT

passed=$(claimq get "$(id_of pack)" --wait 1m --output json | jq -c .task.result)
echo "release $(echo "$submitted" | jq .task.id): $passed. Ship it? (y/n)"
read -r answer
if [ "$answer" = y ]; then approved=true; else approved=false; fi
claimq signal "$(id_of ship)" "{\"approved\":$approved}"
claimq get "$(id_of ship)" --wait 1m --output json |
	jq -r '"\(.task.status): \(if .task.result then .task.result | tojson else .task.error end)"'
