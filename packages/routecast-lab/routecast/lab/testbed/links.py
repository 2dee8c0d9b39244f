"""State and counters of interfaces from rtnetlink, and drops of their receive queues from ethtool."""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from routecast.lab.netlink import DUMP, REQUEST, ROUTE, answer_bodies, attributes, message, open_netlink
from routecast.lab.testbed.netns import inside

__all__ = ["LinkReader", "LinkState", "wait_for_frames"]

_SIOCETHTOOL = 0x8946
_GET_STRINGS, _GET_COUNTS, _GET_SIZE = 0x1B, 0x1D, 0x37
_STRING_SET = 1
_NAME_BYTES = 32
# Matches rx_queue_0_drops (veth, virtio_net), rx0_dropped, rx3_missed, but no intended drops by XDP programs.
_DROPS = re.compile(r"rx[_-]?(?:queue[_-])?(\d+)[._-](?!xdp)\w*(?:drop|discard|miss|no_buf)\w*")

_GET_LINK, _NEW_LINK = 18, 16
_ADDRESS, _NAME, _MTU, _MASTER, _STATISTICS, _CARRIER, _CARRIER_CHANGES = 1, 3, 4, 10, 23, 33, 35
_IFF_UP = 1
_POLL_S = 2e-3


def _counter_names(handle: socket.socket, interface: str) -> list[str]:
    size = _ethtool(handle, interface, struct.pack("=IIQ", _GET_SIZE, 0, 1 << _STRING_SET), 4)
    mask, count = struct.unpack_from("=QI", size, 8)
    if not mask:
        return []
    answer = _ethtool(handle, interface, struct.pack("=III", _GET_STRINGS, _STRING_SET, count), _NAME_BYTES * count)
    texts = (answer[12 + _NAME_BYTES * position :][:_NAME_BYTES] for position in range(count))
    return [text.partition(b"\0")[0].decode(errors="replace") for text in texts]


def _ethtool(handle: socket.socket, interface: str, command: bytes, answer_bytes: int) -> bytes:
    """Return the kernel's answer, which begins as the command does (linux/ethtool.h)."""
    data = array.array("B", command + bytes(answer_bytes))
    request = struct.pack("16sP16x", interface.encode(), data.buffer_info()[0])
    fcntl.ioctl(handle.fileno(), _SIOCETHTOOL, request)
    return data.tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """An interface at an instant; the kernel counts since the interface exists."""

    name: str
    mac: str
    mtu: int
    is_up: bool
    has_carrier: bool
    carrier_changes: int
    is_member: bool
    rx_frames: int
    tx_frames: int
    rx_dropped_frames: int
    tx_dropped_frames: int
    rx_errors: int
    tx_errors: int
    rx_missed_frames: int


class LinkReader:
    """Reads the interfaces of a network namespace (rtnetlink); None is the namespace of this process.

    Raises EnvironmentProblem: there is no such namespace.
    """

    def __init__(self, netns: str | None) -> None:
        self._socket = inside(netns, lambda: open_netlink(ROUTE))

    def read(self) -> dict[str, LinkState]:
        """Return all interfaces of the namespace by name."""
        self._socket.send(message(_GET_LINK, struct.pack("BxHiII", 0, 0, 0, 0, 0), REQUEST | DUMP))
        links = map(_parse_link, answer_bodies(self._socket, _NEW_LINK))
        return {link.name: link for link in links}

    def queue_drops(self, interface: str) -> Mapping[int, int]:
        """Return the drops of each receive queue; empty if the driver does not count them."""
        drops: dict[int, int] = {}
        with suppress(OSError):
            names = _counter_names(self._socket, interface)
            if not any(map(_DROPS.fullmatch, names)):
                return {}
            command = struct.pack("=II", _GET_COUNTS, len(names))
            answer = _ethtool(self._socket, interface, command, 8 * len(names))
            for name, count in zip(names, struct.unpack_from(f"={len(names)}Q", answer, 8), strict=True):
                if match := _DROPS.fullmatch(name):
                    drops[int(match[1])] = drops.get(int(match[1]), 0) + count
        return drops

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def wait_for_frames(netns: str | None, interface: str, done: threading.Event, *, frames: int = 1) -> None:
    """Wait until an interface has sent a number of frames, or is gone, or ``done`` is set."""
    with LinkReader(netns) as reader:
        before = reader.read().get(interface)
        while before is not None and not done.wait(_POLL_S):
            now = reader.read().get(interface)
            if now is None or now.tx_frames >= before.tx_frames + frames:
                return


def _parse_link(body: bytes) -> LinkState:
    flags = struct.unpack_from("I", body, 8)[0]
    fields = attributes(body[16:])
    counts = struct.unpack_from("10Q", fields[_STATISTICS])
    missed = struct.unpack_from("15Q", fields[_STATISTICS])[14]
    return LinkState(
        name=fields[_NAME].rstrip(b"\0").decode(),
        mac=":".join(f"{byte:02x}" for byte in fields.get(_ADDRESS, b"")),
        mtu=struct.unpack("I", fields[_MTU])[0],
        is_up=bool(flags & _IFF_UP),
        has_carrier=bool(fields.get(_CARRIER, b"\1")[0]),
        carrier_changes=struct.unpack("I", fields.get(_CARRIER_CHANGES, bytes(4)))[0],
        is_member=_MASTER in fields,
        rx_frames=counts[0],
        tx_frames=counts[1],
        rx_errors=counts[4],
        tx_errors=counts[5],
        rx_dropped_frames=counts[6],
        tx_dropped_frames=counts[7],
        rx_missed_frames=missed,
    )
