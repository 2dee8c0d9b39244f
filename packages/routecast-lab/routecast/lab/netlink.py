"""Netlink: sockets to the kernel, messages and attributes (RFC 3549)."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

__all__ = [
    "ACKNOWLEDGE",
    "DUMP",
    "GENERIC",
    "REQUEST",
    "ROUTE",
    "answer_bodies",
    "attribute",
    "attributes",
    "confirm",
    "family_of",
    "generic",
    "message",
    "open_netlink",
]

ROUTE, GENERIC = 0, 16  # NETLINK_ROUTE, NETLINK_GENERIC
REQUEST, ACKNOWLEDGE, DUMP = 0x1, 0x4, 0x300

_ERROR, _DONE = 2, 3
_NESTED_AND_ORDER_BITS = 0x3FFF
_WAIT_S = 1.0
_RECEIVE_BYTES = 1 << 17
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2


def open_netlink(protocol: int) -> socket.socket:
    """Open a socket to the kernel in the calling thread's network namespace."""
    handle = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    handle.bind((0, 0))
    handle.settimeout(_WAIT_S)
    return handle


def attribute(kind: int, data: bytes) -> bytes:
    """Return a netlink attribute, padded to 4 bytes."""
    return struct.pack("HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def message(kind: int, body: bytes, flags: int) -> bytes:
    """Return a netlink message with its header."""
    return struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body


def answer_bodies(handle: socket.socket, kind: int, *, first_datagram_only: bool = False) -> Iterator[bytes]:
    """Yield the body of each answer of a kind; with ``first_datagram_only``, stop after the first datagram."""
    while True:
        data = handle.recv(_RECEIVE_BYTES)
        offset = 0
        while offset + 16 <= len(data):
            length, answer_kind = struct.unpack_from("IH", data, offset)
            if answer_kind in {_ERROR, _DONE}:
                return
            if answer_kind == kind:
                yield data[offset + 16 : offset + length]
            offset += (length + 3) & ~3
        if first_datagram_only:
            return


def attributes(data: bytes) -> dict[int, bytes]:
    """Return the attributes of a message by kind."""
    by_kind = {}
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, offset)
        if length < 4:
            break
        by_kind[kind & _NESTED_AND_ORDER_BITS] = data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return by_kind


def generic(command: int, body: bytes) -> bytes:
    """Return the body of a message of generic netlink."""
    return struct.pack("BBH", command, 1, 0) + body


def family_of(handle: socket.socket, name: str) -> int | None:
    """Return the number of a family of generic netlink; None if the kernel has it not."""
    wanted = attribute(_FAMILY_NAME, name.encode() + b"\0")
    handle.send(message(GENERIC, generic(_GET_FAMILY, wanted), REQUEST))
    for body in answer_bodies(handle, GENERIC, first_datagram_only=True):
        return int(struct.unpack("H", attributes(body[4:])[_FAMILY_ID])[0])
    return None


def confirm(handle: socket.socket) -> None:
    """Wait for the kernel's answer to a message with :data:`ACKNOWLEDGE`.

    Raises OSError: the kernel refuses.
    """
    data = handle.recv(_RECEIVE_BYTES)
    if struct.unpack_from("H", data, 4)[0] == _ERROR and (code := struct.unpack_from("i", data, 16)[0]):
        raise OSError(-code, os.strerror(-code))
