#!/usr/bin/env bash
# pcapng: three Python readers misread the clock of an interface, each in its own cases.
#
# In pcapng each interface declares its own clock: if_tsresol is the length of a tick, if_tsoffset a number of seconds to
# add. A packet's time is ticks * resolution + offset of the interface that it names, and libpcap 1.10.3 reads it so.
#
#   file                                        true times    dpkt 1.9.8   python-pcapng 2.1.1   scapy 2.8.0
#   an offset of 1000 s on the only interface   1005          1005         5                     5
#   an offset of 1000 s on the second of two    5, 1006       5, 6         5, 6                  5, 6
#   nanoseconds on the second of two            5, 6          5, 6000      5, 6                  5, 6
#
# No reader raises or warns. dpkt applies the first interface's clock to all; the other two ignore the offset.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check dpkt==1.9.8 python-pcapng==2.1.1 scapy==2.8.0
"$work/venv/bin/python" -I - <<'PYTHON'
import io
import struct
import sys

import dpkt
import pcapng
from scapy.utils import PcapNgReader


def block(kind, body):
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def interface(*options):
    listed = b"".join((*options, bytes(4))) if options else b""
    return block(1, struct.pack("<HHI", 1, 0, 65535) + listed)


def packet(interface_id, ticks):
    return block(6, struct.pack("<5I", interface_id, ticks >> 32, ticks & 0xFFFFFFFF, 60, 60) + bytes(60))


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
OFFSET_1000_S = struct.pack("<HHq", 14, 8, 1000)
NANOSECONDS = struct.pack("<HHB3x", 9, 1, 9)
FILES = {
    "offset, only": SECTION + interface(OFFSET_1000_S) + packet(0, 5 * 10**6),
    "offset, second": SECTION + interface() + interface(OFFSET_1000_S) + packet(0, 5 * 10**6) + packet(1, 6 * 10**6),
    "resolution, second": SECTION + interface() + interface(NANOSECONDS) + packet(0, 5 * 10**6) + packet(1, 6 * 10**9),
}
READERS = {
    "dpkt": lambda file: [time for time, _ in dpkt.pcapng.Reader(file)],
    "python-pcapng": lambda file: [b.timestamp for b in pcapng.FileScanner(file) if hasattr(b, "timestamp")],
    "scapy": lambda file: [frame.time for frame in PcapNgReader(file)],
}
EXPECTED = {
    "offset, only": {"dpkt": [1005], "python-pcapng": [5], "scapy": [5]},
    "offset, second": {"dpkt": [5, 6], "python-pcapng": [5, 6], "scapy": [5, 6]},
    "resolution, second": {"dpkt": [5, 6000], "python-pcapng": [5, 6], "scapy": [5, 6]},
}
changed = []
for name, data in FILES.items():
    for reader, read in READERS.items():
        times = [round(float(time), 6) for time in read(io.BytesIO(data))]
        print(f"{name}: {reader} {times}")
        if times != EXPECTED[name][reader]:
            changed.append(f"{name}: {reader} gives {times}, gave {EXPECTED[name][reader]}")
sys.exit("changed: " + "; ".join(changed) if changed else 0)
PYTHON
echo "as seen"
