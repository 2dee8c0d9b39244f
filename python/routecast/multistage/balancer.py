"""One load balancer: its eBPF programs, and the frames that the process sends in its name."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

from routecast._core import LoadBalancer
from routecast.multistage.layout import Layout, octets
from routecast.multistage.membership import Membership
from routecast.multistage.wiring import raw_socket
from routecast.testbed.netns import FOLDER

__all__ = ["Balancer"]

_HELLO = 0x88B5
_ANNOUNCE, _CALL = 0, 1
_OWN_PROTOCOL = 253
"""For experimentation and testing (RFC 3692)."""
_SIOCGIFFLAGS = 0x8913
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_EVERYBODY = b"\xff" * 6
_LEAST_FRAME = 60


class Balancer:
    """A load balancer.

    Parameters
    ----------
    layout : Layout
    number : int
        Which of the file's it is.
    membership : Membership
        Whose table is in force, where its programs are taken over from an earlier process.
    pins : Path
        Folder in a BPF file system where its programs stay.
    """

    def __init__(self, layout: Layout, number: int, membership: Membership, pins: Path) -> None:
        file = layout.file
        self.name = layout.balancers()[number]
        self.number = number
        self.netns = layout.netns(self.name)
        self._layout = layout
        numbers = {one.name: one.number for one in membership.members.values()}
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
                    "probe": [list(socket.inet_aton(text)) for text in layout.own_addresses(number)],
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
        """Return what its programs know and have counted."""
        found: dict[str, Any] = json.loads(self.plane.status())
        return found

    def send_own(self, numbers: list[int]) -> None:
        """Send a frame to each of some members that a healthy one sends back."""
        source, destination = map(socket.inet_aton, self._layout.own_addresses(self.number))
        self._sequence = (self._sequence + 1) & 0xFFFF
        header = struct.pack(
            "!BBHHHBBH4s4s", 0x45, 0, 28, self._sequence, 0x4000, 64, _OWN_PROTOCOL, 0, source, destination
        )
        header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
        for number in numbers:
            ethernet = _ethernet(self._layout.member_mac(number), self._layout.inside_mac(self.number), 0x0800)
            self._send("i0", ethernet + header)

    def call(self, other: Balancer) -> None:
        """Call the load balancer that works by every interface, and count what it left unanswered."""
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
        """Whether every interface can carry frames; asked without another process, which a busy machine starts late."""
        wanted = _IFF_UP | _IFF_RUNNING
        for name, handle in self._sockets.items():
            try:
                found = fcntl.ioctl(handle, _SIOCGIFFLAGS, struct.pack("16sh14x", name.encode(), 0))
            except OSError:
                return False
            if struct.unpack("16sh14x", found)[1] & wanted != wanted:
                return False
        return True

    def forget_calls(self) -> None:
        """Begin to count anew."""
        self.missed = [0] * len(self.interfaces)

    def announce_inside(self, macs: list[str]) -> None:
        """Let the switch to the back-end routers learn that neighbours are behind this load balancer."""
        for mac in [self._layout.inside_mac(self.number), *macs]:
            self._send("i0", _EVERYBODY + bytes(octets(mac)) + struct.pack("!HB", _HELLO, _ANNOUNCE))

    def announce_outside(self) -> None:
        """Let the outside networks' switches learn where the router is (ARP announcement, RFC 5227 sec. 3)."""
        for s, segment in enumerate(self._layout.file.segment):
            mac = bytes(octets(self._layout.router_mac(s)))
            address = socket.inet_aton(segment.ipv4.partition("/")[0])
            body = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, address, bytes(6), address)
            self._send(self._layout.port(s), _EVERYBODY + mac + struct.pack("!H", 0x0806) + body)

    def _send(self, interface: str, frame: bytes) -> None:
        # An interface that is down, or whose queue is full, loses the frame as a wire would.
        with suppress(OSError):
            self._sockets[interface].send(frame.ljust(_LEAST_FRAME, b"\0"))

    def close(self) -> None:
        """Let go of it; its programs stay as long as their pins."""
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
