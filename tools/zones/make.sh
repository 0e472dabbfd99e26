#!/bin/bash
# Makes internal/zones/zones.zip, the time zones of every node, from Debian's newest package
# tzdata: bash tools/zones/make.sh. It needs Debian's apt, dpkg-deb and zip. The same package
# gives the same file. Commit zones.zip with zones.zip.sha256; the tests say what changed.
set -euo pipefail
export LC_ALL=C TZ=UTC
into=$(cd "$(dirname "$0")/../../internal/zones" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -q tzdata
dpkg-deb -x tzdata_*.deb .
cd usr/share/zoneinfo
version=$(sed -n '1s/^# version //p' tzdata.zi)
[[ $version =~ ^20[0-9]{2}[a-z]+$ ]] || { echo "tzdata.zi does not begin with its version" >&2; exit 1; }
mkdir "$work/zones"
# What is no zone, leap seconds, and zones that differ from host to host stay out.
find . \( -path ./right -o -path ./posix \) -prune -o \( -type f -o -type l \) -print | while read -r file; do
  case $file in ./localtime | ./posixrules | *.tab | *.zi | *leap*) continue ;; esac
  install -D -m 644 "$file" "$work/zones/$file"
done
cd "$work/zones"
echo "$version" >+VERSION
find . -exec touch -d 1980-01-01T00:00:00Z {} +
rm -f "$into/zones.zip"
find . -type f -printf '%P\n' | sort | zip -q -X -9 -@ "$into/zones.zip"
cd "$into"
sha256sum zones.zip >zones.zip.sha256
echo "zones.zip has $version, $(wc -c <zones.zip) bytes"
