"""Packets that gather before they are polled: two settings of a NAPI instance, set for a moment and put back.

``napi_defer_hard_irqs`` and ``gro_flush_timeout`` (Linux 5.9) let a poll that found little be followed by another one
after a while, instead of an interrupt. Linux 6.13 sets them for one NAPI instance (netlink ``netdev``, ``napi-set``);
before, they belong to the interface (sysfs).

Settings are put back by whoever set them, and by a guardian process if that one dies. What a kill of both leaves is in
a file of ``/run/routecast``, which :func:`restore` reads.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from routecast.errors import EnvironmentProblem
from routecast.lab.netlink import (
    ACKNOWLEDGE,
    DUMP,
    GENERIC,
    REQUEST,
    answer_bodies,
    attribute,
    attributes,
    confirm,
    family_of,
    generic,
    message,
    open_netlink,
)
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import command_inside, inside
from routecast.lab.testbed.state import start_ticks

__all__ = ["Deferral", "NapiInstance", "instances", "restore"]

_GET, _SET = 11, 14
_IFINDEX, _ID, _PID, _DEFER, _TIMEOUT = 1, 2, 4, 5, 6
_LEFT: Final = Path("/run/routecast/watch")
_POLLS_BEFORE_INTERRUPT: Final = 10
_ATTEMPTS, _RETRY_S = 20, 0.05

Settings = tuple[int, int]
"""Polls that find nothing before an interrupt, and nanoseconds between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NapiInstance:
    """What polls one receive queue: a kernel thread, if there is one, or the softirq of a processor."""

    id: int
    thread_pid: int | None
    settings: Settings


def instances(netns: str | None, interface: str) -> tuple[NapiInstance, ...]:
    """Return the NAPI instances of an interface; empty where the kernel lists none (before Linux 6.8).

    Raises EnvironmentProblem: there is no such interface, or the namespace may not be entered.
    """

    def listed() -> tuple[NapiInstance, ...]:
        index = interface_index(interface)
        with open_netlink(GENERIC) as handle:
            family = family_of(handle, "netdev")
            return () if family is None else tuple(_listed(handle, family, index))

    return inside(netns, listed)


def interface_index(interface: str) -> int:
    """Return the number of an interface of the calling thread's namespace.

    Raises EnvironmentProblem: there is none of that name.
    """
    try:
        return socket.if_nametoindex(interface)
    except OSError as problem:
        known = ", ".join(name for _, name in socket.if_nameindex())
        raise EnvironmentProblem(f"there is no interface {interface} here, but {known}") from problem


def _listed(handle: socket.socket, family: int, index: int) -> Iterator[NapiInstance]:
    handle.send(message(family, generic(_GET, attribute(_IFINDEX, struct.pack("I", index))), REQUEST | DUMP))
    for body in list(answer_bodies(handle, family)):
        entries = {kind: int.from_bytes(entry, "little") for kind, entry in attributes(body[4:]).items()}
        settings = (entries.get(_DEFER, 0), entries.get(_TIMEOUT, 0))
        yield NapiInstance(id=entries[_ID], thread_pid=entries.get(_PID) or None, settings=settings)


class Deferral:
    """Lets packets gather at a NAPI instance, for ``limit_s`` at most; a context manager.

    Parameters
    ----------
    netns : str or None
        Network namespace of the interface.
    interface : str
    instance : NapiInstance or None
        None: the whole interface, by sysfs.
    limit_s : float
        After so long the guardian puts the settings back, whatever happens.

    Raises
    ------
    EnvironmentProblem
        Somebody uses deferral there already, or the kernel refuses.
    """

    def __init__(self, netns: str | None, interface: str, instance: NapiInstance | None, *, limit_s: float) -> None:
        self.interface = interface
        self._limit_s = limit_s
        self._name = f"{netns or 'host'}-{interface}-{'all' if instance is None else instance.id}"
        self._stamp = _LEFT / f"{self._name}.json"
        self._left: dict[str, Any] = {
            "netns": netns,
            "interface": interface,
            "napi_id": None if instance is None else instance.id,
        }
        self._left |= {"pid": os.getpid(), "pid_start_ticks": start_ticks(os.getpid())}
        self._place = (netns, interface, None if instance is None else instance.id)
        self._before: Settings = _of_sysfs(netns, interface) if instance is None else instance.settings
        self._pipe = self._guardian = -1
        self._until_s = 0.0

    def __enter__(self) -> Self:
        if self._before != (0, 0):
            polls, wait_ns = self._before
            message_text = (
                f"{self.interface}: packets gather there already (napi_defer_hard_irqs {polls}, gro_flush_timeout "
                f"{wait_ns} ns): left alone; watch without --probe reads the polls as they are"
            )
            raise EnvironmentProblem(message_text)
        self._settings = _opened(*self._place)
        self._stamp.parent.mkdir(parents=True, exist_ok=True)
        self._stamp.write_text(json.dumps({**self._left, "settings": self._before}), encoding="utf-8")
        reading, self._pipe = os.pipe()
        self._guardian = os.fork()
        if self._guardian == 0:
            os.close(self._pipe)
            _guard(reading, self._limit_s, self._put_back)
        os.close(reading)
        self._until_s = time.monotonic() + self._limit_s
        return self

    def wait(self, wait_ns: int) -> None:
        """Let packets gather for ``wait_ns`` at most before a poll.

        Raises EnvironmentProblem: the time of the deferral is up, or the kernel refuses.
        """
        if time.monotonic() > self._until_s - 0.1:
            raise EnvironmentProblem(f"{self.interface}: the time of the probe is up")
        self._written((_POLLS_BEFORE_INTERRUPT, wait_ns))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._written(self._before)
        finally:
            os.close(self._pipe)
            os.waitpid(self._guardian, 0)
            self._settings.close()
        self._stamp.unlink(missing_ok=True)

    def _written(self, settings: Settings) -> None:
        try:
            self._settings.write(settings)
        except OSError as problem:
            raise EnvironmentProblem(f"{self.interface}: packets cannot gather: {problem.strerror}") from problem

    def _put_back(self) -> None:
        self._settings.write(self._before)
        self._stamp.unlink(missing_ok=True)


def _guard(reading: int, limit_s: float, put_back: Callable[[], None]) -> None:
    """Wait until the other end of the pipe is closed or time is up, put the settings back, and end this process."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        select.select([reading], [], [], limit_s)
        for _ in range(_ATTEMPTS):
            try:
                put_back()
            except OSError:
                time.sleep(_RETRY_S)
            else:
                break
    finally:
        os._exit(0)


def restore() -> tuple[str, ...]:
    """Put back what killed watchers and their guardians left; return the interfaces, each with its namespace.

    What a living watcher set is its own.
    """
    restored = []
    for stamp in sorted(_LEFT.glob("*.json")) if _LEFT.is_dir() else ():
        try:
            left = json.loads(stamp.read_text(encoding="utf-8"))
            if left["pid_start_ticks"] and start_ticks(left["pid"]) == left["pid_start_ticks"]:
                continue
            netns, interface, napi_id = left["netns"], left["interface"], left["napi_id"]
            before = (int(left["settings"][0]), int(left["settings"][1]))
            with closing(_opened(netns, interface, napi_id)) as settings:
                settings.write(before)
            restored.append(f"{interface} of {netns}" if netns else interface)
        except (ValueError, KeyError, TypeError, IndexError):
            pass  # not written to its end, so nothing was set yet
        except (OSError, EnvironmentProblem):
            pass  # the interface, or its namespace, is gone with its settings
        stamp.unlink(missing_ok=True)
    return tuple(restored)


class _OfInstance:
    """Settings of one instance. The socket is open from now on, so that a guardian need not enter a namespace."""

    def __init__(self, netns: str | None, napi_id: int) -> None:
        self._handle = inside(netns, lambda: open_netlink(GENERIC))
        self._napi_id = napi_id
        family = family_of(self._handle, "netdev")
        if family is None:
            self._handle.close()
            raise EnvironmentProblem("this kernel has no settings of a single NAPI instance (Linux 6.13 has)")
        self._family = family

    def write(self, settings: Settings) -> None:
        body = b"".join(
            attribute(kind, struct.pack("I", number))
            for kind, number in ((_ID, self._napi_id), (_DEFER, settings[0]), (_TIMEOUT, settings[1]))
        )
        self._handle.send(message(self._family, generic(_SET, body), REQUEST | ACKNOWLEDGE))
        confirm(self._handle)

    def close(self) -> None:
        self._handle.close()


class _OfInterface:
    """Settings of a whole interface, in sysfs."""

    def __init__(self, netns: str | None, interface: str) -> None:
        self._netns, self._folder = netns, Path("/sys/class/net") / interface

    def write(self, settings: Settings) -> None:
        lines = [
            f"echo {number} > {self._folder}/{name}"
            for number, name in zip(settings, ("napi_defer_hard_irqs", "gro_flush_timeout"), strict=True)
        ]
        try:
            run_command(command_inside(self._netns, "sh", "-c", " && ".join(lines)))
        except EnvironmentProblem as problem:
            raise OSError(0, str(problem)) from problem

    def close(self) -> None:
        pass


def _opened(netns: str | None, interface: str, napi_id: int | None) -> _OfInstance | _OfInterface:
    return _OfInterface(netns, interface) if napi_id is None else _OfInstance(netns, napi_id)


def _of_sysfs(netns: str | None, interface: str) -> Settings:
    folder = Path("/sys/class/net") / interface
    text = run_command(command_inside(netns, "cat", f"{folder}/napi_defer_hard_irqs", f"{folder}/gro_flush_timeout"))
    polls, wait_ns = (int(word) for word in text.split())
    return polls, wait_ns
