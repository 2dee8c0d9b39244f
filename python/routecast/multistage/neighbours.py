"""Neighbours of the router: the kernel says by netlink what it learns and what it looks for."""

from __future__ import annotations

import ipaddress
import select
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from routecast.testbed.netns import inside

__all__ = ["Heard", "NeighbourSocket"]

_RTMGRP_NEIGH = 1 << 2
_RTM_NEWNEIGH, _RTM_GETNEIGH = 28, 30
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NDA_DST, _NDA_LLADDR = 1, 2
_INCOMPLETE, _FAILED = 0x01, 0x20
_KNOWN = 0x02 | 0x04 | 0x08 | 0x10 | 0x80
"""Reachable, stale, delay, probe, permanent: there is an address of the link."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a kernel said of a neighbour: an interface by its number, and a MAC address if it knows one."""

    interface_index: int
    address: str
    mac: str | None


class NeighbourSocket:
    """What the kernel of a network namespace says of its neighbours; first of all those that it knows."""

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

    def heard(self) -> Iterator[Heard]:
        """Return what was said since, without waiting."""
        while select.select([self._socket], [], [], 0)[0]:
            try:
                data = self._socket.recv(1 << 16)
            except (BlockingIOError, OSError):
                return  # more was said than the kernel kept: it says it again when it changes
            yield from _parsed(data)

    def close(self) -> None:
        """Hear no more."""
        self._socket.close()


def _parsed(data: bytes) -> Iterator[Heard]:
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
                    yield Heard(interface, address, link.hex(":"))
                elif state & (_INCOMPLETE | _FAILED):
                    yield Heard(interface, address, None)
        at += (length + 3) & ~3


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3
