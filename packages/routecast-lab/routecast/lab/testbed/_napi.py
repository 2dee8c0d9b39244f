"""Netlink, and NAPI threads: kernel threads that receive on an interface and can be bound to a core.

A veth port has a NAPI instance while it has an XDP program or GRO. With ``threaded`` on, the kernel thread
``napi/IFACE-ID`` polls the instance instead of the sender's softirq. A new XDP program makes a new thread, which must
be bound again.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import command_inside, inside

ROUTE, GENERIC = 0, 16  # NETLINK_ROUTE, NETLINK_GENERIC
REQUEST, DUMP = 0x1, 0x300

_ERROR, _DONE = 2, 3
_NESTED_AND_ORDER_BITS = 0x3FFF
_WAIT_S = 1.0
_RECEIVE_BYTES = 1 << 17

_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2
_NAPI_GET, _NAPI_IFINDEX, _NAPI_PID = 11, 1, 4


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


def make_threaded(netns: str, interface: str) -> bool:
    """Let kernel threads poll the NAPI instances of an interface; return whether it has any.

    An interface that is down, or a veth port with neither GRO nor an XDP program, has none.
    """
    command = f"echo 1 > /sys/class/net/{interface}/threaded"
    run_command(command_inside(netns, "sh", "-c", command), check=False)
    return bool(threads(netns, interface))


def threads(netns: str | None, interface: str) -> tuple[int, ...]:
    """Return the kernel threads that poll an interface, by netlink's ``netdev`` family.

    Linux before 6.8 has no such family; the result is then the newest thread with the interface's name. Interfaces in
    other namespaces may have the same name, so only one test bed at a time is safe on these kernels.
    """

    def pids() -> list[int]:
        pids = _pids_by_netlink(interface)
        return _pids_by_name(interface) if pids is None else pids

    return tuple(dict.fromkeys(inside(netns, pids)))


def is_napi_thread(pid: int) -> bool:
    """Whether a process id from the kernel names a NAPI thread; in a container it may name another process."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").startswith("napi/")
    except OSError:
        return False


def bind(netns: str | None, interface: str, *, cpu: int | None, priority: int) -> tuple[int, ...]:
    """Bind the NAPI threads of an interface to a core with real-time priority and return the bound ones.

    The function skips threads that this process cannot see or may not bind.
    """
    bound = []
    for pid in filter(is_napi_thread, threads(netns, interface)):
        try:
            if cpu is not None:
                os.sched_setaffinity(pid, {cpu})
            policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
            os.sched_setscheduler(pid, policy, os.sched_param(priority))
        except (PermissionError, ProcessLookupError):
            continue
        bound.append(pid)
    return tuple(bound)


def _pids_by_netlink(interface: str) -> list[int] | None:
    """Return the threads that the kernel lists; None if it has no ``netdev`` family."""
    try:
        index = socket.if_nametoindex(interface)
    except OSError:
        return []
    with open_netlink(GENERIC) as handle:
        name = struct.pack("BBH", _GET_FAMILY, 1, 0) + attribute(_FAMILY_NAME, b"netdev\0")
        handle.send(message(GENERIC, name, REQUEST))
        family = next(
            (attributes(body[4:])[_FAMILY_ID] for body in answer_bodies(handle, GENERIC, first_datagram_only=True)),
            None,
        )
        if family is None:
            return None
        number = struct.unpack("H", family)[0]
        request = struct.pack("BBH", _NAPI_GET, 1, 0) + attribute(_NAPI_IFINDEX, struct.pack("I", index))
        handle.send(message(number, request, REQUEST | DUMP))
        pids = [attributes(body[4:]).get(_NAPI_PID, bytes(4)) for body in answer_bodies(handle, number)]
        return [value for pid in pids if (value := struct.unpack("I", pid)[0])]


def _pids_by_name(interface: str) -> list[int]:
    names = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name = (folder / "comm").read_text(encoding="utf-8").strip()
            except OSError:
                continue
            if name.startswith(f"napi/{interface}-"):
                names.append(int(folder.name))
    return sorted(names, reverse=True)[:1]
