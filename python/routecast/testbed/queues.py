"""What the queues of an interface dropped, each by itself, from the counters of its driver (``ethtool -S``)."""

from __future__ import annotations

import array
import fcntl
import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

__all__ = ["queue_drops"]

_SIOCETHTOOL = 0x8946
_GET_STRINGS, _GET_COUNTS, _GET_SIZE = 0x1B, 0x1D, 0x37
_STATISTICS = 1
_NAME_BYTES = 32
# Such as rx_queue_0_drops (veth, virtio_net), rx0_dropped, rx3_missed. What an XDP program drops on purpose is no loss.
_DROPS = re.compile(r"rx[_-]?(?:queue[_-])?(\d+)[._-](?!xdp)\w*(?:drop|discard|miss|no_buf)\w*")


class Socket(Protocol):
    """Any socket of the interface's network namespace."""

    def fileno(self) -> int:
        """Return its descriptor."""
        ...


def queue_drops(socket: Socket, interface: str) -> Mapping[int, int]:
    """Return the frames that each receive queue dropped since the interface was made; empty where it does not say."""
    drops: dict[int, int] = {}
    with suppress(OSError):
        names = _names(socket, interface)
        if not any(map(_DROPS.fullmatch, names)):
            return {}
        answer = _asked(socket, interface, struct.pack("=II", _GET_COUNTS, len(names)), 8 * len(names))
        for name, count in zip(names, struct.unpack_from(f"={len(names)}Q", answer, 8), strict=True):
            if found := _DROPS.fullmatch(name):
                drops[int(found[1])] = drops.get(int(found[1]), 0) + count
    return drops


def _names(socket: Socket, interface: str) -> list[str]:
    size = _asked(socket, interface, struct.pack("=IIQ", _GET_SIZE, 0, 1 << _STATISTICS), 4)
    mask, count = struct.unpack_from("=QI", size, 8)
    if not mask:
        return []
    answer = _asked(socket, interface, struct.pack("=III", _GET_STRINGS, _STATISTICS, count), _NAME_BYTES * count)
    texts = (answer[12 + _NAME_BYTES * place :][:_NAME_BYTES] for place in range(count))
    return [text.partition(b"\0")[0].decode(errors="replace") for text in texts]


def _asked(socket: Socket, interface: str, question: bytes, room: int) -> bytes:
    """Return the kernel's answer, which begins as the question does (linux/ethtool.h)."""
    data = array.array("B", question + bytes(room))
    request = struct.pack("16sP16x", interface.encode(), data.buffer_info()[0])
    fcntl.ioctl(socket.fileno(), _SIOCETHTOOL, request)
    return data.tobytes()
