"""Inside a network namespace: a function runs in a thread of its own that has entered the namespace.

Files of ``/proc/net`` and ``/proc/sys/net`` and sockets belong to the namespace in which they were opened, and go on
belonging to it when the thread that opened them has ended. Files of ``/sys/class/net`` do not: they need a mount of
their own, which ``ip netns exec`` makes.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from routecast.errors import EnvironmentProblem

__all__ = ["FOLDER", "inside", "named", "process_ids"]

FOLDER = Path("/run/netns")
"""Where iproute2 keeps names of namespaces."""

_CLONE_NEWNET = 0x4000_0000

_T = TypeVar("_T")


def inside(netns: str | None, work: Callable[[], _T]) -> _T:
    """Run ``work`` in a network namespace and return what it returns; None is the namespace of this process.

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
        except BaseException as problem:  # it is raised again in the thread that asked
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
        # os.setns came with Python 3.12.
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise EnvironmentProblem(f"network namespace {netns} cannot be entered: {reason}; run as root")
    finally:
        os.close(descriptor)


def named() -> tuple[str, ...]:
    """Return the names of the network namespaces that iproute2 knows."""
    return tuple(sorted(path.name for path in FOLDER.iterdir())) if FOLDER.is_dir() else ()


def process_ids(netns: str) -> tuple[int, ...]:
    """Return the processes that are in a network namespace; none where there is no such namespace."""
    try:
        wanted = (FOLDER / netns).stat()
    except OSError:
        return ()
    ids = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            there = (folder / "ns" / "net").stat()
        except OSError:
            continue  # it has just ended, or is another user's
        if (there.st_dev, there.st_ino) == (wanted.st_dev, wanted.st_ino):
            ids.append(int(folder.name))
    return tuple(ids)
