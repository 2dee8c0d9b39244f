"""Network namespaces: run a function inside one in a thread of its own, and a command by ``ip netns exec``.

Files of ``/proc/net`` and ``/proc/sys/net`` and sockets belong to the namespace in which they were opened, even after
their thread has ended. Files of ``/sys/class/net`` need a mount of their own, which ``ip netns exec`` makes.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from routecast.errors import EnvironmentProblem

__all__ = ["FOLDER", "command_inside", "inside", "names", "process_ids"]

FOLDER = Path("/run/netns")
"""Folder of the namespaces that iproute2 knows."""

_CLONE_NEWNET = 0x4000_0000

_T = TypeVar("_T")


def inside(netns: str | None, work: Callable[[], _T]) -> _T:
    """Run ``work`` in a network namespace (None: that of this process) and return its result.

    Raises EnvironmentProblem: there is no such namespace, or it may not be entered.
    """
    if netns is None:
        return work()
    results: list[_T] = []
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            _enter(netns)
            results.append(work())
        except BaseException as problem:  # raised again in the calling thread
            errors.append(problem)

    thread = threading.Thread(target=enter, name=f"in {netns}")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _enter(netns: str) -> None:
    try:
        descriptor = os.open(FOLDER / netns, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise EnvironmentProblem(f"network namespace {netns}: {problem.strerror}") from problem
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        # os.setns exists since Python 3.12.
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise EnvironmentProblem(f"network namespace {netns} cannot be entered: {reason}; run as root")
    finally:
        os.close(descriptor)


def command_inside(netns: str | None, *command: str) -> list[str]:
    """Return a command that runs in a network namespace."""
    return list(command) if netns is None else ["ip", "netns", "exec", netns, *command]


def names() -> tuple[str, ...]:
    """Return the names of the network namespaces that iproute2 knows."""
    return tuple(sorted(path.name for path in FOLDER.iterdir())) if FOLDER.is_dir() else ()


def process_ids(netns: str) -> tuple[int, ...]:
    """Return the ids of the processes in a network namespace; empty if it does not exist."""
    try:
        namespace = (FOLDER / netns).stat()
    except OSError:
        return ()
    ids = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            process_netns = (folder / "ns" / "net").stat()
        except OSError:
            continue  # it has ended, or is another user's
        if (process_netns.st_dev, process_netns.st_ino) == (namespace.st_dev, namespace.st_ino):
            ids.append(int(folder.name))
    return tuple(ids)
