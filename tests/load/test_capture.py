"""Captures are read as a second reader reads them, whatever their container, link type, clock and order.

The writer and the second reader here use ``struct`` and the drafts of the formats (draft-ietf-opsawg-pcap,
draft-ietf-opsawg-pcapng) alone; where wireshark-common is installed, capinfos reads the same files.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from routecast.errors import FileProblem
from routecast.load.capture import Recording, is_capture, read_recording

Frame = tuple[Fraction, bytes]
"""Time in seconds and packet of IP."""

START_S = 1_700_000_000


def ip4(source: int, destination: int, ports: tuple[int, int] | None, payload_bytes: int, protocol: int = 17) -> bytes:
    """A packet of IPv4 between 198.18.0.SOURCE and 198.19.0.DESTINATION."""
    body = b"" if ports is None else struct.pack(">HH", *ports)
    if protocol == 6:
        body += struct.pack(">IIBBHHH", 0, 0, 0x50, 0x10, 100, 0, 0)
    elif ports is not None:
        body += struct.pack(">HH", 8 + payload_bytes, 0)
    body += bytes(payload_bytes)
    addresses = bytes([198, 18, 0, source, 198, 19, 0, destination])
    return struct.pack(">BBHHHBBH", 0x45, 0, (20 + len(body)) & 0xFFFF, 1, 0, 64, protocol, 0) + addresses + body


def ip6(source: int, destination: int, ports: tuple[int, int], payload_bytes: int) -> bytes:
    """A packet of UDP in IPv6."""
    udp = struct.pack(">HHHH", *ports, 8 + payload_bytes, 0) + bytes(payload_bytes)
    addresses = b"".join(bytes.fromhex("20010db8") + bytes(11) + bytes([end]) for end in (source, destination))
    return struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + addresses + udp


def frames(count: int = 12) -> list[Frame]:
    """Packets of four flows, 1.5 ms apart."""
    made = [ip4(1, 1, (5000, 80), 18), ip4(1, 2, (5000, 80), 500, 6), ip6(1, 2, (7, 9), 1000), ip4(2, 1, None, 40, 1)]
    return [(START_S + Fraction(3 * n, 2000), made[n % len(made)]) for n in range(count)]


def is_v6(packet: bytes) -> bool:
    return packet[0] >> 4 == 6


def cooked(packet: bytes) -> bytes:
    return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), 0x86DD if is_v6(packet) else 0x800) + packet


def cooked2(packet: bytes) -> bytes:
    return struct.pack(">HHIHBB8s", 0x86DD if is_v6(packet) else 0x800, 0, 2, 1, 0, 6, bytes(8)) + packet


def ppp(packet: bytes) -> bytes:
    return (b"\x00\x57" if is_v6(packet) else b"\x00\x21") + packet


ETHERNET = 1
HEADS: dict[int, Callable[[bytes], bytes]] = {
    1: lambda packet: bytes(12) + (b"\x86\xdd" if is_v6(packet) else b"\x08\x00") + packet,
    113: cooked,
    276: cooked2,
    101: bytes,
    12: bytes,
    14: bytes,
    228: bytes,
    229: bytes,
    9: ppp,
    50: lambda packet: b"\xff\x03" + ppp(packet),
    51: lambda packet: struct.pack(">BBHH", 0x11, 0, 1, len(packet) + 2) + ppp(packet),
    0: lambda packet: struct.pack("<I", 30 if is_v6(packet) else 2) + packet,
    108: lambda packet: struct.pack(">I", 24 if is_v6(packet) else 2) + packet,
    104: lambda packet: struct.pack(">HH", 0x0F00, 0x86DD if is_v6(packet) else 0x800) + packet,
}
"""What a packet of IP is after in a capture of each link type (https://www.tcpdump.org/linktypes.html)."""


def pcap(sent: list[Frame], link: int = ETHERNET, order: str = "<", kind: str = "micro", fcs: bool = False) -> bytes:
    magic = {"micro": 0xA1B2C3D4, "nano": 0xA1B23C4D, "modified": 0xA1B2CD34}[kind]
    per_second = 10**9 if kind == "nano" else 10**6
    word = link | (0x24000000 if fcs else 0)
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262_144, word)]
    for time_s, packet in sent:
        data = HEADS[link](packet) + (b"\xaa\xbb\xcc\xdd" if fcs else b"")
        second, rest = divmod(time_s, 1)
        out.append(struct.pack(order + "IIII", int(second), round(rest * per_second), len(data), len(data)))
        out.append((struct.pack(order + "IHBB", 1, 0x800, 0, 0) if kind == "modified" else b"") + data)
    return b"".join(out)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


@dataclass(frozen=True)
class Port:
    """An interface of a section of pcapng."""

    link: int = ETHERNET
    resolution: int = 6
    offset_s: int = 0
    fcs: bool = False

    @property
    def per_second(self) -> int:
        return int((2 if self.resolution & 0x80 else 10) ** (self.resolution & 0x7F))

    def block(self, order: str) -> bytes:
        options = b""
        if self.resolution != 6:
            options += option(order, 9, bytes([self.resolution]))
        if self.offset_s:
            options += option(order, 14, struct.pack(order + "q", self.offset_s))
        if self.fcs:
            options += option(order, 13, b"\x04")
        return block(order, 1, struct.pack(order + "HHI", self.link, 0, 0) + options + option(order, 0, b""))


def pcapng(
    sent: list[Frame],
    ports: tuple[Port, ...] = (Port(),),
    order: str = "<",
    obsolete: bool = False,
    directions: tuple[int, ...] = (),
) -> bytes:
    """A section; packets go to its interfaces in turn."""
    out = [block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    out += [port.block(order) for port in ports]
    out.append(block(order, 5, bytes(12)))
    for number, (time_s, packet) in enumerate(sent):
        place = number % len(ports)
        port = ports[place]
        data = HEADS[port.link](packet) + (b"\xaa\xbb\xcc\xdd" if port.fcs else b"")
        stamp = round((time_s - port.offset_s) * port.per_second)
        times = struct.pack(order + "II", stamp >> 32, stamp & 0xFFFFFFFF)
        head = struct.pack(order + ("HH" if obsolete else "I"), *((place, 0) if obsolete else (place,)))
        body = head + times + struct.pack(order + "II", len(data), len(data)) + data + bytes(-len(data) % 4)
        if directions:
            body += option(order, 2, struct.pack(order + "I", directions[number % len(directions)])) + bytes(4)
        out.append(block(order, 2 if obsolete else 6, body))
    return b"".join(out)


def second_reader(data: bytes) -> list[tuple[Fraction, int, bytes]]:
    """Time, bytes on the wire with FCS, and addresses and ports of each packet, sorted by time."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    packets = list(_pcapng_packets(data) if data[:4] == b"\n\r\r\n" else _pcap_packets(data))
    out = []
    for time_s, link, data_bytes, has_fcs in packets:
        inside = _ip_of(link, data_bytes)
        outside_bytes = len(data_bytes) - (4 if has_fcs else 0)
        # A PPPoE header is part of the frame; headers of other links are not.
        wire_bytes = outside_bytes + 4 if link == ETHERNET else (outside_bytes if link == 51 else len(inside)) + 18
        length = 40 if is_v6(inside) else 20
        addresses = inside[8:40] if is_v6(inside) else inside[12:20]
        protocol = inside[6] if is_v6(inside) else inside[9]
        ports = inside[length : length + 4] if protocol in (6, 17) else b""
        out.append((time_s, max(64, wire_bytes), addresses + ports))
    return sorted(out, key=lambda packet: packet[0])


def _ip_of(link: int, data: bytes) -> bytes:
    if link == ETHERNET:
        total = data[14:]
        return total[
            : (struct.unpack(">H", total[4:6])[0] + 40) if is_v6(total) else struct.unpack(">H", total[2:4])[0]
        ]
    skipped = {113: 16, 276: 20, 9: 2, 50: 4, 51: 8, 0: 4, 108: 4, 104: 4}.get(link, 0)
    return data[skipped:]


def _pcap_packets(data: bytes) -> Iterator[tuple[Fraction, int, bytes, bool]]:
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1", b"\x34\xcd\xb2\xa1") else ">"
    magic = struct.unpack(order + "I", data[:4])[0]
    word = struct.unpack(order + "I", data[20:24])[0]
    at = 24
    while at < len(data):
        second, rest, captured, _ = struct.unpack(order + "IIII", data[at : at + 16])
        at += 24 if magic == 0xA1B2CD34 else 16
        scale = 10**9 if magic == 0xA1B23C4D else 10**6
        yield second + Fraction(rest, scale), word & 0xFFFF, data[at : at + captured], bool(word & 0x04000000)
        at += captured


def _pcapng_packets(data: bytes) -> Iterator[tuple[Fraction, int, bytes, bool]]:
    at, order, ports = 0, "<", list[tuple[int, Fraction, int, bool]]()
    while at < len(data):
        if data[at : at + 4] == b"\n\r\r\n":
            order, ports = "<" if data[at + 8] == 0x4D else ">", []
        kind, length = struct.unpack(order + "II", data[at : at + 8])
        body = data[at + 8 : at + length - 4]
        at += length
        if kind == 1:
            unit, offset, has_fcs, options = Fraction(1, 10**6), 0, False, body[8:]
            while options:
                code, size = struct.unpack(order + "HH", options[:4])
                value = options[4 : 4 + size]
                if code == 9:
                    unit = Fraction(1, (2 if value[0] > 127 else 10) ** (value[0] % 128))
                elif code == 14:
                    offset = struct.unpack(order + "q", value)[0]
                elif code == 13:
                    has_fcs = True
                options = options[4 + size + -size % 4 :]
            ports.append((struct.unpack(order + "H", body[:2])[0], unit, offset, has_fcs))
        elif kind in (2, 6):
            port = struct.unpack(order + ("H" if kind == 2 else "I"), body[: 2 if kind == 2 else 4])[0]
            high, low, captured, _ = struct.unpack(order + "IIII", body[4:20])
            link, unit, offset, has_fcs = ports[port]
            yield offset + ((high << 32) + low) * unit, link, body[20 : 20 + captured], has_fcs


def shuffled(sent: list[Frame]) -> list[Frame]:
    return [sent[index ^ 1] for index in range(len(sent))]


def _cases() -> dict[str, bytes]:
    sent = frames()
    made: dict[str, bytes] = {}
    for link in HEADS:
        made[f"pcap-link-{link}"] = pcap(sent, link)
        made[f"pcapng-link-{link}"] = pcapng(sent, (Port(link),))
    for order in "<>":
        for kind in ("micro", "nano", "modified"):
            made[f"pcap-{kind}-{order}"] = pcap(sent, order=order, kind=kind)
            made[f"pcap-{kind}-{order}-gzip"] = gzip.compress(pcap(sent, order=order, kind=kind))
        made[f"pcap-fcs-{order}"] = pcap(sent, order=order, fcs=True)
        made[f"pcap-shuffled-{order}"] = pcap(shuffled(sent), order=order)
        for resolution in (4, 6, 9, 12, 15, 0x80 | 20, 0x80 | 30):
            # 64 bits do not hold today's picoseconds since 1970.
            for offset_s in (START_S - 7,) if resolution in (12, 15) else (0, START_S - 7):
                port = Port(resolution=resolution, offset_s=offset_s)
                made[f"pcapng-resolution-{resolution}-offset-{offset_s}-{order}"] = pcapng(sent, (port,), order)
        made[f"pcapng-fcs-{order}"] = pcapng(sent, (Port(fcs=True),), order)
        made[f"pcapng-obsolete-{order}"] = pcapng(sent, order=order, obsolete=True)
        made[f"pcapng-shuffled-{order}"] = pcapng(shuffled(sent), order=order)
        several = (Port(resolution=9), Port(113, 6, START_S), Port(101, 0x80 | 20, -9), Port(fcs=True))
        made[f"pcapng-interfaces-{order}"] = pcapng(sent, several, order)
        made[f"pcapng-interfaces-obsolete-{order}"] = pcapng(sent, several, order, obsolete=True)
        other = ">" if order == "<" else "<"
        made[f"pcapng-sections-{order}"] = pcapng(sent[:6], order=order) + pcapng(
            sent[6:], (Port(resolution=9),), other
        )
        made[f"pcapng-directions-{order}"] = pcapng(sent, order=order, directions=(1, 2))
        made[f"pcapng-gzip-{order}"] = gzip.compress(pcapng(sent[:6], order=order)) + gzip.compress(
            pcapng(sent[6:], order=order)
        )
    return made


CASES = _cases()


def written(folder: Path, data: bytes, name: str = "x.pcap0") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def flow_texts(read: Recording) -> list[str]:
    return [read.flows[number].text for number in read.flow]


def test_there_are_at_least_sixty_cases() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_a_capture_is_read_as_the_second_reader_reads_it(name: str, tmp_path: Path) -> None:
    read = read_recording(written(tmp_path, CASES[name]))
    expected = second_reader(CASES[name])
    first_s = expected[0][0]
    assert read.time_s == pytest.approx([float(time_s - first_s) for time_s, _, _ in expected], abs=1e-12)
    assert read.frame_bytes.tolist() == [frame_bytes for _, frame_bytes, _ in expected]
    # The four kinds of packets; a card hashes none of what is in PPPoE.
    if "link-51" in name:
        assert [flow.text for flow in read.flows] == ["not hashed"]
        read = read_recording(written(tmp_path, CASES[name]), inner=True)
    assert [read.flows[number].rss_input for number in read.flow] == [key for _, _, key in expected]
    assert sum(flow.frames for flow in read.flows) == len(expected)


CUT_S = {"resolution-4-": 1e-3, f"resolution-{0x80 | 20}-": 2e-6}


# capinfos reads units down to 10^-9 s.
@pytest.mark.parametrize("name", [name for name in CASES if "resolution-15" not in name])
def test_capinfos_counts_the_same_packets_and_the_same_duration(name: str, tmp_path: Path) -> None:
    if not shutil.which("capinfos"):
        pytest.skip("capinfos is not installed (package wireshark-common)")
    # capinfos cuts the times of both ends to the decimal unit above the file's, at most nanoseconds.
    shown_s = next((unit_s for part, unit_s in CUT_S.items() if part in name), 2e-9)
    path = written(tmp_path, CASES[name])
    shown = subprocess.run(
        ["capinfos", "-T", "-r", "-m", "-c", "-u", path], capture_output=True, text=True, check=True, timeout=60
    )
    fields = shown.stdout.strip().split(",")
    read = read_recording(path)
    assert int(fields[1]) == len(read.time_s)
    assert float(fields[2]) == pytest.approx(read.time_s[-1], abs=shown_s)


def test_the_arrays_are_read_only_and_have_their_types(tmp_path: Path) -> None:
    read = read_recording(written(tmp_path, CASES["pcap-micro-<"]))
    assert [array.dtype for array in (read.time_s, read.frame_bytes, read.flow)] == [np.float64, np.uint32, np.uint32]
    assert not any(array.flags.writeable for array in (read.time_s, read.frame_bytes, read.flow))


def test_a_packet_out_of_order_is_sorted_and_counted(tmp_path: Path) -> None:
    read = read_recording(written(tmp_path, CASES["pcap-shuffled-<"]))
    assert read.counts["out_of_order"] == 6
    assert read.notes[0] == "50.0 % (6 of 12) of the packets are out of order in time; they are sorted."


def test_links_without_ethernet_are_noted_as_18_bytes_longer(tmp_path: Path) -> None:
    read = read_recording(written(tmp_path, CASES["pcap-link-101"]))
    assert any("18 B longer" in note and "100.0 %" in note for note in read.notes)
    assert read.frame_bytes.tolist()[:4] == [64, 540 + 18, 1048 + 18, 78]


# --- flows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tunnel:
    """A way of packing ``INNER``: bytes from the Ethernet type on, and the flow that a card sees."""

    head: bytes
    outer: str
    tail: bytes = field(default=b"")


INNER = ip4(1, 9, (5000, 80), 20)
INNER_TEXT = "198.18.0.1:5000 > 198.19.0.9:80 udp"


def in_udp(port: int, header: bytes) -> bytes:
    return b"\x08\x00" + ip4(7, 8, (999, port), 0)[:28] + header


TUNNELS = {
    "vlan": Tunnel(b"\x81\x00\x00\x05\x08\x00", INNER_TEXT),
    "qinq": Tunnel(b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00", INNER_TEXT),
    "qinq-9100": Tunnel(b"\x91\x00\x00\x05\x81\x00\x00\x06\x08\x00", "not hashed"),
    "mpls": Tunnel(b"\x88\x47\x00\x01\x00\x40\x00\x02\x01\x40", "not hashed"),
    "pseudowire": Tunnel(b"\x88\x47\x00\x02\x01\x40" + bytes(4) + bytes(12) + b"\x08\x00", "not hashed"),
    "pppoe": Tunnel(b"\x88\x64\x11\x00\x00\x01\x00\x40\x00\x21", "not hashed"),
    "gre": Tunnel(b"\x08\x00" + ip4(7, 8, None, 0, 47) + b"\x00\x00\x08\x00", "198.18.0.7 > 198.19.0.8 gre"),
    "gre-key": Tunnel(
        b"\x08\x00" + ip4(7, 8, None, 0, 47) + b"\x20\x00\x65\x58" + bytes(4) + bytes(12) + b"\x08\x00",
        "198.18.0.7 > 198.19.0.8 gre",
    ),
    "ipip": Tunnel(b"\x08\x00" + ip4(7, 8, None, 0, 4), "198.18.0.7 > 198.19.0.8 protocol 4"),
    "vxlan": Tunnel(in_udp(4789, b"\x08" + bytes(7) + bytes(12) + b"\x08\x00"), "198.18.0.7:999 > 198.19.0.8:4789 udp"),
    "geneve": Tunnel(
        in_udp(6081, b"\x01\x00\x65\x58" + bytes(4) + bytes(4) + bytes(12) + b"\x08\x00"),
        "198.18.0.7:999 > 198.19.0.8:6081 udp",
    ),
    "gtp-u": Tunnel(in_udp(2152, b"\x30\xff" + bytes(6)), "198.18.0.7:999 > 198.19.0.8:2152 udp"),
    "gtp-u-extended": Tunnel(
        in_udp(2152, b"\x34\xff" + bytes(6) + b"\x00\x00\x00\x85\x01\x00\x00\x00"),
        "198.18.0.7:999 > 198.19.0.8:2152 udp",
    ),
}


def raw_pcap(packets: list[bytes], wire_bytes: list[int] | None = None, link: int = ETHERNET) -> bytes:
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, link)]
    for number, data in enumerate(packets):
        length = wire_bytes[number] if wire_bytes else len(data)
        out.append(struct.pack("<IIII", START_S, number, len(data), length) + data)
    return b"".join(out)


@pytest.mark.parametrize("name", TUNNELS)
def test_tags_and_tunnels_have_the_outer_flow_and_the_inner_one_on_request(name: str, tmp_path: Path) -> None:
    tunnel = TUNNELS[name]
    path = written(tmp_path, raw_pcap([bytes(12) + tunnel.head + INNER]))
    assert [flow.text for flow in read_recording(path).flows] == [tunnel.outer]
    assert [flow.text for flow in read_recording(path, inner=True).flows] == [INNER_TEXT]


def test_what_a_card_cannot_hash_is_one_flow_with_its_share_and_its_causes(tmp_path: Path) -> None:
    def ethernet(packet: bytes) -> bytes:
        return HEADS[ETHERNET](packet)

    packets = [
        ethernet(INNER),
        ethernet(INNER),
        bytes(12) + b"\x08\x06" + bytes(28),
        bytes(12) + TUNNELS["mpls"].head + INNER,
        ethernet(INNER)[:36],
    ]
    read = read_recording(written(tmp_path, raw_pcap(packets, [62, 62, 42, 70, 62])))
    assert flow_texts(read) == [INNER_TEXT, INNER_TEXT, *["not hashed"] * 3]
    assert read.flows[1].rss_input == b""
    (note,) = [note for note in read.notes if "cannot hash" in note]
    assert "60.0 % (3 of 5)" in note
    for cause in ("20.0 % MPLS", "20.0 % cut", "20.0 % not IP"):
        assert cause in note


def test_fragments_are_hashed_by_their_addresses(tmp_path: Path) -> None:
    fragment = INNER[:6] + b"\x20\x00" + INNER[8:]
    read = read_recording(written(tmp_path, raw_pcap([HEADS[ETHERNET](fragment), HEADS[ETHERNET](INNER)])))
    assert [flow.rss_input for flow in read.flows] == [INNER[12:20], INNER[12:24]]
    assert read.counts["fragments"] == 1


def test_sides_are_of_the_interface_then_of_the_direction_then_of_the_addresses(tmp_path: Path) -> None:
    there, back = ip4(1, 9, (1, 2), 0), INNER[:12] + INNER[16:20] + INNER[12:16] + struct.pack(">HHHH", 2, 1, 8, 0)
    sent = [(START_S + Fraction(n, 1000), packet) for n, packet in enumerate([there, back, there, there])]

    def sides(data: bytes) -> tuple[list[int], str]:
        read = read_recording(written(tmp_path, data))
        return [read.flows[number].side for number in read.flow], read.notes[-1]

    found, note = sides(pcapng(sent))
    assert found == [0, 1, 0, 0]
    assert "sent first" in note
    found, note = sides(pcapng(sent, directions=(2, 1, 2, 1)))
    assert found == [1, 0, 1, 0]
    assert "0 came in, 1 went out" in note
    found, note = sides(pcapng(sent, (Port(), Port())))
    assert found == [0, 1, 0, 1]
    assert "number of the interface" in note


# --- offloads ---------------------------------------------------------------------------------------------------------


def test_super_packets_are_named_with_their_share_and_the_cure(tmp_path: Path) -> None:
    packets = [HEADS[ETHERNET](ip4(1, 1, (1, 2), data, 6)) for data in (1460, 1460, 2920, 64_240)]
    read = read_recording(written(tmp_path, raw_pcap(packets)))
    (note,) = [note for note in read.notes if "super-packets" in note]
    assert "50.0 % (2 of 4)" in note
    assert "ethtool -K DEVICE gro off gso off tso off lro off" in note
    assert read.counts["super_packets"] == 2


def test_a_super_packet_is_split_into_the_frames_that_the_wire_carried(tmp_path: Path) -> None:
    # 40 B of headers: 1460 B of data fill an MTU of 1500 B. 3000 = 2 * 1460 + 80.
    packets = [HEADS[ETHERNET](ip4(1, 1, (1, 2), data, 6)) for data in (1460, 3000)]
    read = read_recording(written(tmp_path, raw_pcap(packets)), split_mtu=1500)
    assert read.frame_bytes.tolist() == [1518, 1518, 1518, 58 + 80]
    assert read.time_s.tolist() == [0.0, 1e-6, 1e-6, 1e-6]
    assert read.flow.tolist() == [0, 0, 0, 0]
    assert any("split into 3 frames" in note for note in read.notes)
    assert not any("super-packets" in note for note in read.notes)


def test_what_cannot_be_split_is_still_named_as_a_super_packet(tmp_path: Path) -> None:
    packets = [HEADS[ETHERNET](ip4(1, 1, None, data, 50)) for data in (40_000, 3000)]
    read = read_recording(written(tmp_path, raw_pcap(packets)), split_mtu=1500)
    assert read.counts["super_packets"] == 2
    assert any("super-packets" in note for note in read.notes)


def test_jumbo_frames_are_no_super_packets(tmp_path: Path) -> None:
    packets = [HEADS[ETHERNET](ip4(1, 1, (1, 2), 8960, 6)) for _ in range(3)]
    read = read_recording(written(tmp_path, raw_pcap(packets)))
    assert read.frame_bytes.tolist() == [9018] * 3
    assert not any("super-packets" in note for note in read.notes)


@pytest.mark.parametrize("mtu", [-1, 1, 575, 65_536])
def test_an_mtu_that_no_link_has_is_refused(mtu: int, tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="576 to 65,535"):
        read_recording(written(tmp_path, CASES["pcap-micro-<"]), split_mtu=mtu)


# --- sources and refusals ---------------------------------------------------------------------------------------------


def test_zstd_is_read_whatever_its_name(tmp_path: Path) -> None:
    if not shutil.which("zstd"):
        pytest.skip("zstd is not installed (package zstd)")
    plain = written(tmp_path, CASES["pcap-micro-<"], "plain")
    packed = tmp_path / "x.pcap.1"
    subprocess.run(["zstd", "-q", "-19", plain, "-o", packed], check=True, timeout=60)
    assert read_recording(packed).time_s.tolist() == read_recording(plain).time_s.tolist()
    assert is_capture(packed)
    half = written(tmp_path, packed.read_bytes()[:-40], "half")
    with pytest.raises(FileProblem):
        read_recording(half)


def test_pipes_are_read(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as pipe:
        pipe.write(CASES["pcapng-gzip-<"])
    try:
        assert len(read_recording(f"/dev/fd/{read_end}").time_s) == 12
    finally:
        os.close(read_end)


def test_the_standard_input_is_read(tmp_path: Path) -> None:
    program = "from routecast.load.capture import read_recording; print(len(read_recording('-').time_s))"
    for data in (CASES["pcapng-interfaces-<"], gzip.compress(CASES["pcap-nano->"])):
        shown = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True, timeout=60)
        assert shown.stdout.strip() == b"12"
        with written(tmp_path, data).open("rb") as file:
            shown = subprocess.run(
                [sys.executable, "-c", program], stdin=file, capture_output=True, check=True, timeout=60
            )
        assert shown.stdout.strip() == b"12"
    assert not is_capture("-")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\xd4", "less than 4 bytes"),
        (b"GET / HTTP/1.1\r\n", "neither pcap nor pcapng"),
        (b"snoop\0\0\0", "editcap -F pcapng IN OUT"),
        (b"\xfd7zXZ\0", "xz -dk"),
        (gzip.compress(gzip.compress(b"x")), "packed twice"),
        (raw_pcap([]), "holds no packet"),
        (raw_pcap([bytes(60)], link=127), r"packet 1 is of link type 127: 802.11 \(Wi-Fi\) with a radiotap header"),
        (raw_pcap([bytes(60)], link=147), "editcap -T ether IN OUT"),
        (
            raw_pcap([bytes(60)]) + struct.pack("<IIII", 1, 1, 2**31, 60),
            "packet 2 claims 2147483648 bytes.*editcap -r IN OUT 1-1",
        ),
        (raw_pcap([bytes(60)])[:50], "ends within its first packet"),
        (pcapng([]) + block("<", 3, bytes(64)), "packet 1 is a simple packet block, which has no time"),
        (pcapng([]) + block("<", 6, struct.pack("<IIIII", 4, 0, 0, 0, 0)), "interface 4, which the file does not"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_says_what_is_wrong_where_and_what_to_do(data: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match=words) as caught:
        read_recording(written(tmp_path, data))
    assert str(caught.value).startswith(str(tmp_path))


@pytest.mark.parametrize("path", ["/nonexistent.pcap", "/dev/zero", "/", "a\0b"])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(FileProblem):
        read_recording(path)


def test_a_file_that_ends_in_its_last_packet_is_read_up_to_there_and_says_so(tmp_path: Path) -> None:
    read = read_recording(written(tmp_path, CASES["pcapng-obsolete->"][:-5]))
    assert len(read.time_s) == 11
    assert read.notes[0] == "The file ends within packet 12; the 11 before it are read."


def test_captures_are_told_from_other_files_by_their_content(tmp_path: Path) -> None:
    assert all(is_capture(written(tmp_path, data)) for data in CASES.values())
    others = [
        b"",
        b"x",
        b"time_s,frame_bytes\n",
        gzip.compress(b"time_s\n"),
        b"\x1f\x8b\x08broken",
        b"\x28\xb5\x2f\xfd",
    ]
    assert not any(is_capture(written(tmp_path, data, "x.pcap")) for data in others)
    with pytest.raises(FileProblem):
        is_capture(tmp_path / "missing")


def mutated(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    kind = draw.randrange(4)
    if kind == 0:
        return bytes(changed[: draw.randrange(len(changed))])
    for _ in range(draw.choice((1, 1, 3, 20))):
        place = draw.randrange(len(changed))
        if kind == 1:
            changed[place] ^= 1 << draw.randrange(8)
        elif kind == 2:
            changed[place : place + 4] = draw.choice((b"\xff\xff\xff\xff", bytes(4), b"\0\0\0\x7f", b"\x10\0\0\0"))
        else:
            del changed[place : place + draw.randrange(1, 9)]
            if not changed:
                break
    return bytes(changed)


def test_two_thousand_damaged_captures_are_read_or_refused_within_seconds(tmp_path: Path) -> None:
    draw = random.Random(58)
    names = sorted(CASES)
    refused = 0
    for _ in range(2000):
        data = mutated(CASES[draw.choice(names)], draw)
        if draw.randrange(10) == 0:
            data = gzip.compress(data, 1)
        path = written(tmp_path, data)
        began_s = time.monotonic()
        try:
            read = read_recording(path, inner=draw.random() < 0.5, split_mtu=draw.choice((0, 1500)))
            assert np.all(np.diff(read.time_s) >= 0)
            assert np.all(read.frame_bytes >= 64)
            assert read.flow.max() < len(read.flows)
            is_capture(path)
        except FileProblem:
            refused += 1
        # A hang, not a slow machine.
        assert time.monotonic() - began_s < 5.0
    assert 100 < refused < 2000
