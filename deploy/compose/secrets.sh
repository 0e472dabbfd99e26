#!/bin/sh
# Makes the secrets of compose.yaml in secrets/, once: the nodes' join key, an
# operator's key, a reader's for Prometheus, and the file of keys for the nodes.
# CLAIMQ is the claimq to make them with.
set -eu
cd "$(dirname "$0")"
: "${CLAIMQ:=docker run --rm ${CLAIMQ_IMAGE:-claimq:dev}}"
if [ -e secrets ]; then
	echo "secrets is there already: remove it to make new ones" >&2
	exit 1
fi

# The folder keeps others out; the containers' users must be able to read the files.
umask 022
mkdir -m 700 secrets.new
trap 'rm -rf secrets.new' EXIT
od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >secrets.new/join.key
echo >>secrets.new/join.key

echo keys: >secrets.new/keys.yaml
add() { # FILE NAME ROLE
	$CLAIMQ key generate --role "$3" --name "$2" --rate 0 >secrets.new/made
	grep -o 'claimq_[A-Za-z0-9_-]*' secrets.new/made | head -n 1 >"secrets.new/$1"
	sed -n '/^keys:/,$p' secrets.new/made | sed 1d >>secrets.new/keys.yaml
	rm secrets.new/made
}
add operator.key ops operator
add prometheus.key prometheus reader
mv secrets.new secrets
echo "made deploy/compose/secrets; the operator's key is in operator.key there"
