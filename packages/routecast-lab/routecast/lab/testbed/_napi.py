"""NAPI threads: kernel threads that receive on an interface and can be bound to a core.

A veth port has a NAPI instance while it has an XDP program or GRO. With ``threaded`` on, the kernel thread
``napi/IFACE-ID`` polls the instance instead of the sender's softirq. A new XDP program makes a new thread, which must
be bound again.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from routecast.lab.netlink import (
    DUMP,
    GENERIC,
    REQUEST,
    answer_bodies,
    attribute,
    attributes,
    family_of,
    generic,
    message,
    open_netlink,
)
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import command_inside, inside

_NAPI_GET, _NAPI_IFINDEX, _NAPI_PID = 11, 1, 4


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
        number = family_of(handle, "netdev")
        if number is None:
            return None
        request = generic(_NAPI_GET, attribute(_NAPI_IFINDEX, struct.pack("I", index)))
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
