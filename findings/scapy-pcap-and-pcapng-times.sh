#!/usr/bin/env bash
# scapy 2.8.0: a frame's time differs by a microsecond between its pcap writer, which rounds, and its pcapng writer, which cuts.
#
# Both writers store microseconds unless asked for more. Of 1,000 frames that are 1.9 us apart, about half are a
# microsecond earlier in the pcapng file than in the pcap file: a comparison of two captures shows a jitter that is none.
#
#   seen: 473 of 1000 times differ, each by -1 us; 0.9999996 s is 1.000000 in pcap and 0.999999 in pcapng
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check scapy==2.8.0
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import sys
from collections import Counter

from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter, PcapWriter, rdpcap


def stored_us(times_s, writer, path):
    for time_s in times_s:
        frame = Ether(bytes(60))
        frame.time = time_s
        writer.write(frame)
    writer.close()
    return [round(frame.time * 10**6) for frame in rdpcap(path)]


times_s = [0.9999996, *(1 + k * 1.9e-6 for k in range(1000))]
pcap_us = stored_us(times_s, PcapWriter("a.pcap", linktype=1), "a.pcap")
pcapng_us = stored_us(times_s, PcapNgWriter("a.pcapng"), "a.pcapng")
shifts = Counter(ng - classic for classic, ng in zip(pcap_us[1:], pcapng_us[1:], strict=True))
print(f"0.9999996 s: {pcap_us[0]} us in pcap, {pcapng_us[0]} us in pcapng; shifts in us of 1000 frames: {dict(shifts)}")
if (pcap_us[0], pcapng_us[0]) != (1000000, 999999) or set(shifts) != {0, -1} or not 400 < shifts[-1] < 600:
    sys.exit("changed: the two writers store other times than before")
PYTHON
echo "as seen"
