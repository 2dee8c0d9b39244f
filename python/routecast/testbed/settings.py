"""Settings outside a bed's own namespaces: changed with a note of the old value, restored from the note.

Kinds: ``file`` (a file of ``/proc/sys`` or ``/sys``), ``offload`` (an offload of an interface), ``link`` (a flag
of an interface).
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem
from routecast.testbed.netns import inside
from routecast.testbed.state import BedState

__all__ = ["OFFLOADS", "change_file", "change_link", "change_offload", "get_offload", "restore", "set_offload"]

_SIOCETHTOOL = 0x8946
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_FLAGS = {"up": 0x1, "promiscuous": 0x100}

OFFLOADS: Mapping[str, tuple[int, int]] = {
    "rx": (0x14, 0x15),
    "tx": (0x16, 0x17),
    "sg": (0x18, 0x19),
    "tso": (0x1E, 0x1F),
    "gso": (0x23, 0x24),
    "gro": (0x2B, 0x2C),
    "flags": (0x25, 0x26),
}
"""Offloads as ethtool calls them, with the commands that get and set them (linux/ethtool.h).

``flags`` are several at once, off together: VLAN tags beside the frame (rxvlan, txvlan), LRO, n-tuple filters, hash.
"""


def set_offload(netns: str | None, interface: str, offload: str, *, on: bool) -> None:
    """Switch an offload of an interface; one that the driver does not have stays as it is.

    Raises EnvironmentProblem: the interface is not there, or may not be changed.
    """
    _ethtool(netns, interface, OFFLOADS[offload][1], int(on))


def get_offload(netns: str | None, interface: str, offload: str) -> bool:
    """Return whether an offload is on; False where the driver has none."""
    return bool(_ethtool(netns, interface, OFFLOADS[offload][0], 0))


def change_offload(state: BedState, netns: str | None, interface: str, offload: str, *, on: bool) -> None:
    """Switch an offload, if it stands otherwise, with a note of what it was."""
    old = get_offload(netns, interface, offload)
    if old != on:
        _note(state, kind="offload", netns=netns, interface=interface, name=offload, old=old)
        set_offload(netns, interface, offload, on=on)


def change_file(state: BedState, path: str, value: str, *, netns: str | None = None) -> None:
    """Write a file of ``/proc/sys`` or ``/sys``, if it says something else, with a note of what it said."""
    old = inside(netns, lambda: Path(path).read_text(encoding="utf-8").strip())
    if old != value:
        _note(state, kind="file", netns=netns, interface="", name=path, old=old)
        inside(netns, lambda: Path(path).write_text(value, encoding="utf-8"))


def change_link(state: BedState, netns: str | None, interface: str, flag: str, *, on: bool) -> None:
    """Set a flag of an interface, ``"up"`` or ``"promiscuous"``, with a note of what it was."""
    old = bool(_flags(netns, interface) & _FLAGS[flag])
    if old != on:
        _note(state, kind="link", netns=netns, interface=interface, name=flag, old=old)
        _set_flag(netns, interface, flag, on=on)


def restore(setting: Mapping[str, Any]) -> None:
    """Set back what a note says. An interface or a namespace that is gone needs nothing."""
    netns, interface = setting["netns"], setting["interface"]
    with contextlib.suppress(_GoneError, FileNotFoundError):
        if setting["kind"] == "file":
            inside(netns, lambda: Path(setting["name"]).write_text(str(setting["old"]), encoding="utf-8"))
        elif setting["kind"] == "offload":
            set_offload(netns, interface, setting["name"], on=bool(setting["old"]))
        elif setting["kind"] == "link":
            _set_flag(netns, interface, setting["name"], on=bool(setting["old"]))


def _note(state: BedState, **setting: object) -> None:
    state.settings.append(dict(setting))
    state.write()


class _GoneError(EnvironmentProblem):
    """The interface is not there (any more)."""


def _ethtool(netns: str | None, interface: str, command: int, value: int) -> int:
    data = array.array("I", [command, value])
    request = struct.pack("16sP16x", interface.encode(), data.buffer_info()[0])
    try:
        _ioctl(netns, interface, _SIOCETHTOOL, request)
    except OSError as problem:
        if problem.errno in {errno.EOPNOTSUPP, errno.EINVAL}:
            return 0
        raise EnvironmentProblem(f"{interface}: its offloads cannot be set: {problem.strerror}") from problem
    return int(data[1])


def _flags(netns: str | None, interface: str) -> int:
    answer = _ioctl(netns, interface, _SIOCGIFFLAGS, struct.pack("16sH22x", interface.encode(), 0))
    return int(struct.unpack_from("16sH", answer)[1])


def _set_flag(netns: str | None, interface: str, flag: str, *, on: bool) -> None:
    flags = _flags(netns, interface)
    wanted = flags | _FLAGS[flag] if on else flags & ~_FLAGS[flag]
    _ioctl(netns, interface, _SIOCSIFFLAGS, struct.pack("16sH22x", interface.encode(), wanted))


def _ioctl(netns: str | None, interface: str, number: int, request: bytes) -> bytes:
    def call() -> bytes:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            return fcntl.ioctl(handle, number, request)

    try:
        return inside(netns, call)
    except OSError as problem:
        if problem.errno == errno.ENODEV:
            raise _GoneError(f"interface {interface} is not there") from problem
        raise
