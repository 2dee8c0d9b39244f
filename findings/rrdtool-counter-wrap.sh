#!/usr/bin/env bash
# rrdtool 1.7.2 (Debian 12): a COUNTER loses one packet at each 32-bit wrap, and all packets of the interval at a 64-bit wrap.
#
# The correction for a wrap adds 2^32 - 1, not 2^32. For a 64-bit wrap it adds, in double precision, numbers so large that
# a few hundred packets vanish in the rounding. Each counter below grows by 300 in each 300 s, a rate of 1 a second.
#
#   seen: without a wrap 1;   across 2^32 0.996666667 (299 packets);   across 2^64 0 (none)
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Debian's package and what it needs are unpacked, not installed; apt writes to the temporary folder alone.
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
apt=(apt-get -qq -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o Debug::NoLocking=1)
apt+=(-o APT::Sandbox::User="$(id -un)")
"${apt[@]}" update
version=1.7.2-4+b8
"${apt[@]}" install --yes --reinstall --download-only --no-install-recommends "rrdtool=$version" "librrd8=$version" >"$work/apt.log"
for package in "$work"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$work/root"; done
libraries=$(find "$work/root/usr/lib" -maxdepth 1 -type d -name '*-linux-gnu*')
rrdtool() { LD_LIBRARY_PATH=$libraries LC_ALL=C "$work/root/usr/bin/rrdtool" "$@"; }
echo "rrdtool and librrd8 $version: $(rrdtool --version | head -n 1 | cut -d ' ' -f 1,2)"

rate() { # the rate that rrdtool stores for a counter that goes from $1 to $2 in 300 s
    rrdtool create "$work/a.rrd" --start 1000000000 --step 300 DS:packets:COUNTER:600:U:U RRA:LAST:0.5:1:10
    rrdtool update "$work/a.rrd" "1000000200:$1" "1000000500:$2"
    rrdtool fetch "$work/a.rrd" LAST --start 1000000200 --end 1000000499 | awk '/^1000000500:/ { printf "%.9f\n", $2 }'
}

plain=$(rate 100 400)
wrap32=$(rate 4294967196 200)
wrap64=$(rate 18446744073709551516 200)
echo "rate: no wrap $plain, 32-bit wrap $wrap32, 64-bit wrap $wrap64"
if [[ "$plain $wrap32 $wrap64" != "1.000000000 0.996666667 0.000000000" ]]; then
    echo "changed: it was 1.000000000, 0.996666667 and 0.000000000" >&2
    exit 1
fi
echo "as seen"
