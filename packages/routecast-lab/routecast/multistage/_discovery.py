"""Frames of ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861) on the outside networks: sent, heard, taken apart.

The load balancers' kernels do not decide who a neighbour is: the last frame would win there. They answer for the
router's addresses, and get the entries that the protocol has confirmed.
"""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

from routecast.lab.testbed.netns import inside
from routecast.multistage._balancer import Balancer, checksum
from routecast.multistage._layout import Layout, octets
from routecast.multistage._wiring import close_at_once

__all__ = ["Claim", "Discovery", "claim_of_arp", "claim_of_discovery", "solicitation"]

_ARP, _IPV6 = 0x0806, 0x86DD
_REQUEST, _REPLY = 1, 2
_SOLICITATION, _ADVERTISEMENT = 135, 136
_SOURCE_OPTION, _TARGET_OPTION = 1, 2
_SOLICITED = 0x40
_ICMPV6 = 58
_OUTGOING = 4
"""Type of a packet that this machine sent (PACKET_OUTGOING)."""
_SO_ATTACH_FILTER = 26
_MAX_FRAMES = 64
"""Frames of one network and protocol that are taken in at once; a flood waits, and is lost where it came from."""

_DISCOVERY_ONLY = (
    (0x30, 0, 0, 20),  # load the next header of IPv6
    (0x15, 0, 3, _ICMPV6),
    (0x30, 0, 0, 54),  # load the type of ICMPv6
    (0x35, 0, 1, _SOLICITATION),
    (0x25, 0, 1, _ADVERTISEMENT),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0x40000),
)
"""A classic BPF program that takes solicitations and advertisements only."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A neighbour's claim that it has an address; the fields are those of ``NeighbourTable.hear``."""

    address: str
    mac: str
    is_for_us: bool
    is_probe: bool = False


def claim_of_arp(frame: bytes, own: frozenset[str]) -> Claim | None:
    r"""Return what an ARP frame claims; None if it is malformed. ``own``: the router's addresses.

    Examples
    --------
    >>> arp = bytes.fromhex("0001080006040001 02000000000a c6120102 000000000000 c6120101")
    >>> claim_of_arp(bytes(12) + b"\x08\x06" + arp, frozenset({"198.18.1.1"}))
    Claim(address='198.18.1.2', mac='02:00:00:00:00:0a', is_for_us=True, is_probe=False)
    """
    if len(frame) < 42:
        return None
    hardware, protocol, *lengths, operation = struct.unpack_from("!HHBBH", frame, 14)
    if (hardware, protocol, *lengths) != (1, 0x0800, 6, 4) or operation not in {_REQUEST, _REPLY}:
        return None
    sender, target = socket.inet_ntoa(frame[28:32]), socket.inet_ntoa(frame[38:42])
    is_probe = sender == "0.0.0.0"
    return Claim(target if is_probe else sender, frame[22:28].hex(":"), target in own, is_probe)


def claim_of_discovery(frame: bytes, own: frozenset[str]) -> Claim | None:
    """Return what a message of neighbour discovery claims; None if it claims nothing or is malformed.

    A message that came through a router has a hop limit below 255, and is void (RFC 4861 sec. 7.1).
    """
    if len(frame) < 78 or frame[20] != _ICMPV6 or frame[21] != 255:
        return None
    kind = frame[54]
    source, to, target = (ipaddress.IPv6Address(frame[at : at + 16]) for at in (22, 38, 62))
    if kind == _SOLICITATION:
        if source.is_unspecified:
            return Claim(str(target), frame[6:12].hex(":"), str(target) in own, is_probe=True)
        mac = _option(frame, _SOURCE_OPTION)
        return None if mac is None or source.is_link_local else Claim(str(source), mac, str(target) in own)
    if kind != _ADVERTISEMENT or target.is_link_local:
        return None
    # The answer to a solicitation that went to one neighbour need not have the option (RFC 4861 sec. 4.4).
    mac = _option(frame, _TARGET_OPTION) or frame[6:12].hex(":")
    return Claim(str(target), mac, bool(frame[58] & _SOLICITED) and str(to) in own)


def _option(frame: bytes, wanted: int) -> str | None:
    at = 78
    while at + 8 <= len(frame):
        kind, octets_8 = frame[at], frame[at + 1]
        if not octets_8:
            return None
        if kind == wanted and octets_8 == 1:
            return frame[at + 2 : at + 8].hex(":")
        at += 8 * octets_8
    return None


def solicitation(*, mac: str, own: str, address: str, to: str | None) -> bytes:
    """Return the frame that asks who has an address: an ARP request, or a neighbour solicitation.

    ``mac``, ``own``: the router's addresses on the network; ``to``: MAC address of the only one asked; None: all.
    """
    target = ipaddress.ip_address(address)
    source = bytes(octets(mac))
    if target.version == 4:
        head = (bytes(octets(to)) if to else b"\xff" * 6) + source + struct.pack("!H", _ARP)
        body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, _REQUEST)
        return head + body + source + socket.inet_aton(own) + bytes(6) + target.packed
    group = ipaddress.IPv6Address(b"\xff\x02" + bytes(9) + b"\x01\xff" + target.packed[-3:])
    packet_to = target.packed if to else group.packed
    head = (bytes(octets(to)) if to else b"\x33\x33" + group.packed[-4:]) + source + struct.pack("!H", _IPV6)
    message = struct.pack("!BBHI", _SOLICITATION, 0, 0, 0) + target.packed + bytes([_SOURCE_OPTION, 1]) + source
    own_packed = ipaddress.ip_address(own).packed
    pseudo = own_packed + packet_to + struct.pack("!II", len(message), _ICMPV6)
    message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:]
    return head + struct.pack("!IHBB", 6 << 28, len(message), _ICMPV6, 255) + own_packed + packet_to + message


class Discovery:
    """The sockets on which the load balancers hear their neighbours."""

    def __init__(self, layout: Layout, balancers: list[Balancer]) -> None:
        self._layout = layout
        self._own = frozenset(
            text.partition("/")[0] for wire in layout.file.segment for text in (wire.ipv4, wire.ipv6) if text
        )
        self._sockets = [
            (balancer.name, s, kind, inside(balancer.netns, lambda s=s, kind=kind: _listen(layout.port(s), kind)))  # type: ignore[misc]
            for balancer in balancers
            for s in range(len(layout.file.segment))
            for kind in (_ARP, _IPV6)
        ]
        self._empty_s = [time.monotonic()] * len(self._sockets)

    def claims(self, now_s: float) -> Iterator[tuple[str, int, Claim, float]]:
        """Yield load balancer, network and claim of the frames that have come, and when each came at the earliest."""
        for place, (balancer, segment, kind, handle) in enumerate(self._sockets):
            parse = claim_of_arp if kind == _ARP else claim_of_discovery
            since_s = self._empty_s[place]
            for _ in range(_MAX_FRAMES):
                try:
                    frame, address = handle.recvfrom(512)
                except OSError:  # nothing more, or the interface is down
                    self._empty_s[place] = now_s
                    break
                if address[2] != _OUTGOING and (claim := parse(frame, self._own)) is not None:
                    yield balancer, segment, claim, since_s

    def ask(self, balancer: Balancer, segment: int, address: str, to: str | None) -> None:
        """Send a solicitation; see :func:`solicitation`."""
        table = self._layout.file.segment[segment]
        own = table.ipv6 if ":" in address else table.ipv4
        if own is not None:
            mac = self._layout.router_mac(segment)
            frame = solicitation(mac=mac, own=own.partition("/")[0], address=address, to=to)
            balancer.send(self._layout.port(segment), frame)

    def close(self) -> None:
        """Close the sockets."""
        close_at_once(handle for *_, handle in self._sockets)


def _listen(interface: str, kind: int) -> socket.socket:
    handle = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    if kind == _IPV6:
        steps = b"".join(struct.pack("HBBI", *step) for step in _DISCOVERY_ONLY)
        memory = ctypes.create_string_buffer(steps)
        program = struct.pack("HL", len(_DISCOVERY_ONLY), ctypes.addressof(memory))
        handle.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    handle.setblocking(False)
    handle.bind((interface, kind))
    return handle
