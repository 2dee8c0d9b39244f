"""A load balancer with its eBPF programs, and the frames that it sends of its own accord."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from routecast.lab._lab import LoadBalancer
from routecast.lab.testbed.netns import FOLDER
from routecast.multistage._layout import Layout, octets
from routecast.multistage._membership import Membership
from routecast.multistage._wiring import close_at_once, raw_socket
from routecast.multistage.protocol.watch import BalancerView, MemberView

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
                    "probe6": list(ipaddress.ip_address(layout.probe_source_ipv6(number)).packed),
                    # What the other one sends on the paths comes back to the active one, where the switch knows the
                    # neighbours; and no neighbour may send in its name.
                    "other_probe": list(socket.inet_aton(layout.probe_addresses(1 - number)[0])),
                    "other_probe6": list(ipaddress.ip_address(layout.probe_source_ipv6(1 - number)).packed),
                    "pins": str(pins),
                    "in_use": [membership.weights(), membership.seed],
                }
            )
        )
        self.interfaces = ["i0", *map(layout.port, range(len(file.segment)))]
        self._sockets = {name: raw_socket(self.netns, name) for name in self.interfaces}
        self._sequence = 0

    def status(self) -> dict[str, Any]:
        """Return the tables and counts of the programs."""
        status: dict[str, Any] = json.loads(self.plane.status())
        return status

    def send_probes(self, numbers: list[int]) -> None:
        """Send a probe frame to each of these members; a healthy member returns it."""
        source, destination = map(socket.inet_aton, self._layout.probe_addresses(self.number))
        self._sequence = (self._sequence + 1) & 0xFFFF
        header = _ipv4_header(self._sequence, source, destination)
        for number in numbers:
            ethernet = _ethernet(self._layout.member_mac(number), self._layout.inside_mac(self.number), 0x0800)
            self.send("i0", ethernet + header)

    def send_path_probes(self, numbers: Iterable[int], paths: Iterable[str]) -> None:
        """Send each of these members a frame for each destination, which a healthy member sends on to its neighbour.

        The programs count the frames by member and path instead of letting them out. ``paths``: destinations; empty
        for a path without one.
        """
        source, source_ipv6 = self._layout.probe_addresses(self.number)[0], self._layout.probe_source_ipv6(self.number)
        packets = []
        for path, destination in enumerate(paths):
            if not destination:
                continue
            address = ipaddress.ip_address(destination)
            self._sequence = (self._sequence + 1) & 0x3FF
            if address.version == 4:
                identification = self._sequence << 6 | path
                packets.append((0x0800, _ipv4_header(identification, socket.inet_aton(source), address.packed)))
            else:
                label = self._sequence << 6 | path
                start = struct.pack("!IHBB", 6 << 28 | label, 0, _PROBE_PROTOCOL, 64)
                packets.append((0x86DD, start + ipaddress.ip_address(source_ipv6).packed + address.packed))
        for number in numbers:
            for kind, packet in packets:
                ethernet = _ethernet(self._layout.member_mac(number), self._layout.inside_mac(self.number), kind)
                self.send("i0", ethernet + packet)

    def call(self, other: Balancer) -> None:
        """Send the active load balancer a call on every interface."""
        for place, name in enumerate(self.interfaces):
            to = self._layout.inside_mac(other.number) if place == 0 else self._layout.router_mac(place - 1)
            source = self._layout.caller_mac(self.number, (place - 1) % 256)
            self.send(name, _ethernet(to, source, _HELLO) + bytes([_CALL]))

    def view(self) -> BalancerView:
        """Return what the protocol wants to know of it."""
        counted, paths = self.status(), self.plane.paths()
        members = {
            row["number"]: MemberView(
                returned=row["returned_frames"] + row["probes_returned"],
                # The flag in the status includes verdicts of this process.
                is_dead=row["deaths"] > row["revivals"],
                unanswered=row["unanswered"],
                paths=tuple(paths.get(row["number"], ())),
                sent=row["sent_frames"],
            )
            for row in counted["members"]
        }
        return BalancerView(members, tuple(self.plane.answers()), tuple(self.interfaces_down()))

    def interfaces_down(self) -> list[str]:
        """Return the interfaces that cannot carry frames; it starts no process, which is slow on a busy machine."""
        up_flags = _IFF_UP | _IFF_RUNNING
        down = []
        for name, handle in self._sockets.items():
            try:
                flags = fcntl.ioctl(handle, _SIOCGIFFLAGS, struct.pack("16sh14x", name.encode(), 0))
            except OSError:
                down.append(name)
                continue
            if struct.unpack("16sh14x", flags)[1] & up_flags != up_flags:
                down.append(name)
        return down

    def announce_inside(self, macs: list[str]) -> None:
        """Make the switch to the back-end routers learn that neighbours are behind this load balancer."""
        for mac in [self._layout.inside_mac(self.number), *macs]:
            self.send("i0", _BROADCAST + bytes(octets(mac)) + struct.pack("!HB", _HELLO, _ANNOUNCE))

    def announce_outside(self, only: int | None = None) -> None:
        """Make the outside networks' switches learn the router's port (ARP announcement, RFC 5227 sec. 3).

        ``only``: the only network to announce on; None: all.
        """
        for s, segment in enumerate(self._layout.file.segment):
            if only is not None and s != only:
                continue
            mac = bytes(octets(self._layout.router_mac(s)))
            address = socket.inet_aton(segment.ipv4.partition("/")[0])
            body = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, address, bytes(6), address)
            self.send(self._layout.port(s), _BROADCAST + mac + struct.pack("!H", 0x0806) + body)

    def send(self, interface: str, frame: bytes) -> None:
        """Send a frame; an interface that is down or has a full queue loses it."""
        with suppress(OSError):
            self._sockets[interface].send(frame.ljust(_MIN_FRAME_BYTES, b"\0"))

    def close(self) -> None:
        """Release the load balancer; its programs stay as long as their pins."""
        close_at_once([*self._sockets.values(), self.plane])


def _ethernet(to: str, source: str, kind: int) -> bytes:
    return bytes(octets(to)) + bytes(octets(source)) + struct.pack("!H", kind)


def _ipv4_header(identification: int, source: bytes, destination: bytes) -> bytes:
    """Return the header of an own frame, which has no more."""
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 28, identification, 0x4000, 64, _PROBE_PROTOCOL, 0, source, destination
    )
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:]


def checksum(header: bytes) -> int:
    """Return the checksum of an even number of octets, such as an IPv4 header (RFC 1071).

    Examples
    --------
    >>> hex(checksum(bytes.fromhex("45000073000040004011 0000 c0a80001c0a800c7")))
    '0xb861'
    """
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)
