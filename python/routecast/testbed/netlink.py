"""Netlink: questions to the kernel and its answers, as bytes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

__all__ = [
    "DUMP",
    "GENERIC",
    "REQUEST",
    "ROUTE",
    "answers",
    "attribute",
    "attributes",
    "message",
    "open_netlink",
]

ROUTE = 0
"""NETLINK_ROUTE."""

GENERIC = 16
"""NETLINK_GENERIC."""

REQUEST = 0x1
DUMP = 0x300

_ERROR, _DONE = 2, 3
_NESTED_AND_ORDER_BITS = 0x3FFF
_WAIT_S = 1.0
_RECEIVE_BYTES = 1 << 17


def open_netlink(protocol: int) -> socket.socket:
    """Open a socket to the kernel in the calling thread's network namespace."""
    handle = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    handle.bind((0, 0))
    handle.settimeout(_WAIT_S)
    return handle


def attribute(kind: int, data: bytes) -> bytes:
    """Return an attribute, padded."""
    return struct.pack("HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def message(kind: int, body: bytes, flags: int) -> bytes:
    """Return a message with its header."""
    return struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body


def answers(handle: socket.socket, kind: int, *, one: bool = False) -> Iterator[bytes]:
    """Yield the bodies of the answers of a kind: the first datagram's, or all until the kernel says that it is done."""
    while True:
        data = handle.recv(_RECEIVE_BYTES)
        place = 0
        while place + 16 <= len(data):
            length, got = struct.unpack_from("IH", data, place)
            if got in {_ERROR, _DONE}:
                return
            if got == kind:
                yield data[place + 16 : place + length]
            place += (length + 3) & ~3
        if one:
            return


def attributes(data: bytes) -> dict[int, bytes]:
    """Split attributes by their kind."""
    found = {}
    place = 0
    while place + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, place)
        if length < 4:
            break
        found[kind & _NESTED_AND_ORDER_BITS] = data[place + 4 : place + length]
        place += (length + 3) & ~3
    return found
