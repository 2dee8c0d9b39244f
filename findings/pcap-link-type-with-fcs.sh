#!/usr/bin/env bash
# Classic pcap: scapy 2.8.0 and dpkt 1.9.8 take the FCS bits of the file header for a part of the link type.
#
# The last word of a pcap header holds the link type in its low 16 bits; bit 26 says that the length of the frame check
# sequence is known, bits 28 to 31 are that length in units of 16 bits. 0x24000001 is Ethernet with an FCS of 4 bytes, and
# libpcap 1.10.3 reports link type 1.
#
#   seen: scapy  "unknown LL type [603979777]/[0x24000001]. Using Raw packets": no Ethernet header is parsed
#         dpkt   datalink() is 603979777, which equals no DLT constant
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check dpkt==1.9.8 scapy==2.8.0
"$work/venv/bin/python" -I - <<'PYTHON'
import io
import struct
import sys

import dpkt
from scapy.layers.l2 import Ether
from scapy.utils import PcapReader

FRAME = bytes(Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02", type=0x88B5)) + bytes(46) + b"\xde\xad\xbe\xef"
EXPECTED = {0x00000001: ("Ether", 1), 0x24000001: ("Raw", 0x24000001)}
for link_type, expected in EXPECTED.items():
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type)
    data = header + struct.pack("<IIII", 1, 0, len(FRAME), len(FRAME)) + FRAME
    layer = type(PcapReader(io.BytesIO(data)).read_packet()).__name__
    seen = layer, dpkt.pcap.Reader(io.BytesIO(data)).datalink()
    print(f"{link_type:#010x}: scapy {seen[0]}, dpkt {seen[1]:#x}")
    if seen != expected:
        sys.exit(f"changed: {link_type:#010x} is {seen}, was {expected}")
PYTHON
echo "as seen"
