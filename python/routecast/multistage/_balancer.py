"""A load balancer with its eBPF programs, the search for partial black holes, and the kernel's reports of neighbours.

A partial black hole is a back-end router that answers, but lacks a route or a neighbour of the others. Drops alone are
no fault: packets with a time to live of 1 make any router drop them. Drops therefore only start a comparison of the
router's addresses, routes and neighbours with those of the others, and the comparison decides.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routecast._core import LoadBalancer
from routecast.errors import EnvironmentProblem
from routecast.multistage._layout import Layout, octets
from routecast.multistage._membership import Membership
from routecast.multistage._wiring import raw_socket
from routecast.testbed.netns import FOLDER, inside

_RTMGRP_NEIGH = 1 << 2
_RTM_NEWNEIGH, _RTM_GETNEIGH = 28, 30
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NDA_DST, _NDA_LLADDR = 1, 2
_INCOMPLETE, _FAILED = 0x01, 0x20
_KNOWN = 0x02 | 0x04 | 0x08 | 0x10 | 0x80
"""States of a neighbour whose MAC address is known: reachable, stale, delay, probe, permanent."""


@dataclass(frozen=True, slots=True)
class NeighbourReport:
    """A kernel's report of a neighbour; ``mac``: None while the kernel looks for it."""

    interface_index: int
    address: str
    mac: str | None


class NeighbourSocket:
    """A netlink socket for the kernel's reports of neighbours in a namespace; the known neighbours come first."""

    def __init__(self, netns: str) -> None:
        self._socket = inside(netns, self._open)

    @staticmethod
    def _open() -> socket.socket:
        handle = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        handle.bind((0, _RTMGRP_NEIGH))
        request = struct.pack("=LHHLLBxxxiHBB", 28, _RTM_GETNEIGH, _NLM_F_REQUEST | _NLM_F_DUMP, 1, 0, 0, 0, 0, 0, 0)
        handle.send(request)
        handle.setblocking(False)
        return handle

    def fileno(self) -> int:
        """Return the descriptor, for select."""
        return self._socket.fileno()

    def reports(self) -> Iterator[NeighbourReport]:
        """Yield the reports since the last call, without waiting."""
        while select.select([self._socket], [], [], 0)[0]:
            try:
                data = self._socket.recv(1 << 16)
            except (BlockingIOError, OSError):
                return  # the kernel lost reports, and repeats them when they change
            yield from _parsed(data)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _parsed(data: bytes) -> Iterator[NeighbourReport]:
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=LH", data, at)
        if length < 16:
            return
        if kind in (_RTM_NEWNEIGH, _RTM_GETNEIGH) and length >= 28:
            _, interface, state = struct.unpack_from("=BxxxiH", data, at + 16)
            attributes = dict(_attributes(data[at + 28 : at + length]))
            if _NDA_DST in attributes and len(attributes[_NDA_DST]) in (4, 16):
                address = str(ipaddress.ip_address(attributes[_NDA_DST]))
                link = attributes.get(_NDA_LLADDR, b"")
                if state & _KNOWN and len(link) == 6:
                    yield NeighbourReport(interface, address, link.hex(":"))
                elif state & (_INCOMPLETE | _FAILED):
                    yield NeighbourReport(interface, address, None)
        at += (length + 3) & ~3


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


COMPARES_EVERY_S = 1.0
"""Interval of comparisons of sent and returned frames, s."""
_MIN_FRAMES = 100
_DROPS_RATIO = 0.02
_MIN_DIFFERENCES = 2
"""Consecutive comparisons with a difference until a verdict; neighbours reach one router after the other."""
_MAX_COMPARED = 3
_MAX_PAUSE = 15
"""Longest pause, in intervals, while comparisons find no difference, as in a flood of rightly dropped packets."""


class RouteComparison:
    """The comparison of back-end routers that drop many of their frames with the others.

    ``digest``: returns the digest of the addresses, routes and neighbours of a back-end router.
    """

    def __init__(self, digest: Callable[[str], str]) -> None:
        self._digest = digest
        self._counts: Mapping[str, tuple[int, int]] = {}
        self._differences: dict[str, int] = {}
        self._thread: threading.Thread | None = None
        self._pause = self._pause_length = 0

    def differs(self, name: str) -> bool:
        """Return whether a back-end router lacks routes or neighbours of the others."""
        return self._differences.get(name, 0) >= _MIN_DIFFERENCES

    def compare(self, counts: Mapping[str, tuple[int, int]]) -> None:
        """Compare the routers that drop frames with the others, in the background; each :data:`COMPARES_EVERY_S`.

        ``counts``: sent and returned frames of each router.
        """
        before, self._counts = self._counts, dict(counts)
        self._differences = {name: differences for name, differences in self._differences.items() if name in counts}
        if self._thread is not None and self._thread.is_alive():
            return
        suspects = [name for name, now in counts.items() if self._drops(before.get(name), now) or self.differs(name)]
        if not suspects:
            self._pause_length = 0
        elif self._pause:
            self._pause -= 1
        else:
            others = [name for name in counts if name not in suspects][:_MAX_COMPARED]
            self._thread = threading.Thread(target=self._compare, args=(suspects, others), daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for the end of a running comparison."""
        if self._thread is not None:
            self._thread.join()

    @staticmethod
    def _drops(before: tuple[int, int] | None, now: tuple[int, int]) -> bool:
        if before is None:
            return False
        sent, returned = now[0] - before[0], now[1] - before[1]
        return sent >= _MIN_FRAMES and sent - returned > _DROPS_RATIO * sent

    def _compare(self, suspects: Iterable[str], others: Iterable[str]) -> None:
        try:
            other_digests = [self._digest(name) for name in others]
            digests = {name: self._digest(name) for name in suspects}
        except EnvironmentProblem:
            return  # a router has just been removed
        # If all routers drop frames, the digest of the majority is right; without a majority there is no verdict.
        common, count = Counter(other_digests or digests.values()).most_common(1)[0]
        if not other_digests and 2 * count <= len(digests):
            return
        for name, digest in digests.items():
            self._differences[name] = self._differences.get(name, 0) + 1 if digest != common else 0
        self._pause_length = 0 if any(self._differences.values()) else min(2 * self._pause_length + 1, _MAX_PAUSE)
        self._pause = self._pause_length


_HELLO = 0x88B5
_ANNOUNCE, _CALL = 0, 1
_PROBE_PROTOCOL = 253
"""IP protocol for experimentation and testing (RFC 3692)."""
_SIOCGIFFLAGS = 0x8913
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_BROADCAST = b"\xff" * 6
_MIN_FRAME_BYTES = 60


class Balancer:
    """A load balancer.

    ``number``: position in the file; ``membership``: members whose table is in force if its programs are taken over
    from an earlier process; ``pins``: folder of its programs in a BPF file system.
    """

    def __init__(self, layout: Layout, number: int, membership: Membership, pins: Path) -> None:
        file = layout.file
        self.name = layout.balancers()[number]
        self.number = number
        self.netns = layout.netns(self.name)
        self._layout = layout
        numbers = {member.name: member.number for member in membership.members.values()}
        detector = file.detector
        self.plane = LoadBalancer(
            json.dumps(
                {
                    "netns": str(FOLDER / self.netns),
                    "scheme": file.scheme,
                    "detector": {
                        "silence_s": detector.silence,
                        "alone_s": detector.alone,
                        "unanswered": detector.unanswered,
                        "probes": detector.probes,
                        "returns": detector.returns,
                        "hold_s": detector.hold,
                        "verdicts_per_s": detector.verdicts,
                    },
                    "outside": [
                        {
                            "interface": layout.port(s),
                            "mac": octets(layout.router_mac(s)),
                            "local": numbers.get(segment.local or "", 0),
                        }
                        for s, segment in enumerate(file.segment)
                    ],
                    "inside": "i0",
                    "inside_mac": octets(layout.inside_mac(number)),
                    "inside_mtu": layout.inside_mtu,
                    "probe": [list(socket.inet_aton(text)) for text in layout.probe_addresses(number)],
                    "pins": str(pins),
                    "in_use": [membership.weights(), membership.seed],
                }
            )
        )
        self.interfaces = ["i0", *map(layout.port, range(len(file.segment)))]
        self._sockets = {name: raw_socket(self.netns, name) for name in self.interfaces}
        self._answered = self.plane.answers()
        self.missed = [0] * len(self.interfaces)
        self._sequence = 0

    def status(self) -> dict[str, Any]:
        """Return the tables and counts of the programs."""
        status: dict[str, Any] = json.loads(self.plane.status())
        return status

    def send_probes(self, numbers: list[int]) -> None:
        """Send a probe frame to each of these members; a healthy member returns it."""
        source, destination = map(socket.inet_aton, self._layout.probe_addresses(self.number))
        self._sequence = (self._sequence + 1) & 0xFFFF
        header = struct.pack(
            "!BBHHHBBH4s4s", 0x45, 0, 28, self._sequence, 0x4000, 64, _PROBE_PROTOCOL, 0, source, destination
        )
        header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
        for number in numbers:
            ethernet = _ethernet(self._layout.member_mac(number), self._layout.inside_mac(self.number), 0x0800)
            self._send("i0", ethernet + header)

    def call(self, other: Balancer) -> None:
        """Send the active load balancer a call on every interface, and count the calls without an answer."""
        answered = self.plane.answers()
        for place, name in enumerate(self.interfaces):
            if answered[place] != self._answered[place]:
                self.missed[place] = 0
            else:
                self.missed[place] += 1
            to = self._layout.inside_mac(other.number) if place == 0 else self._layout.router_mac(place - 1)
            source = self._layout.caller_mac(self.number, (place - 1) % 256)
            self._send(name, _ethernet(to, source, _HELLO) + bytes([_CALL]))
        self._answered = answered

    def links_are_up(self) -> bool:
        """Return whether every interface can carry frames; it starts no process, which is slow on a busy machine."""
        up_flags = _IFF_UP | _IFF_RUNNING
        for name, handle in self._sockets.items():
            try:
                flags = fcntl.ioctl(handle, _SIOCGIFFLAGS, struct.pack("16sh14x", name.encode(), 0))
            except OSError:
                return False
            if struct.unpack("16sh14x", flags)[1] & up_flags != up_flags:
                return False
        return True

    def forget_calls(self) -> None:
        """Set the counts of missed calls to zero."""
        self.missed = [0] * len(self.interfaces)

    def announce_inside(self, macs: list[str]) -> None:
        """Make the switch to the back-end routers learn that neighbours are behind this load balancer."""
        for mac in [self._layout.inside_mac(self.number), *macs]:
            self._send("i0", _BROADCAST + bytes(octets(mac)) + struct.pack("!HB", _HELLO, _ANNOUNCE))

    def announce_outside(self) -> None:
        """Make the outside networks' switches learn the router's port (ARP announcement, RFC 5227 sec. 3)."""
        for s, segment in enumerate(self._layout.file.segment):
            mac = bytes(octets(self._layout.router_mac(s)))
            address = socket.inet_aton(segment.ipv4.partition("/")[0])
            body = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, address, bytes(6), address)
            self._send(self._layout.port(s), _BROADCAST + mac + struct.pack("!H", 0x0806) + body)

    def _send(self, interface: str, frame: bytes) -> None:
        # An interface that is down or has a full queue loses the frame.
        with suppress(OSError):
            self._sockets[interface].send(frame.ljust(_MIN_FRAME_BYTES, b"\0"))

    def close(self) -> None:
        """Release the load balancer; its programs stay as long as their pins."""
        for handle in self._sockets.values():
            handle.close()
        self.plane.close()


def _ethernet(to: str, source: str, kind: int) -> bytes:
    return bytes(octets(to)) + bytes(octets(source)) + struct.pack("!H", kind)


def _checksum(header: bytes) -> int:
    """Return the checksum of an IPv4 header (RFC 1071).

    Examples
    --------
    >>> hex(_checksum(bytes.fromhex("45000073000040004011 0000 c0a80001c0a800c7")))
    '0xb861'
    """
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)
