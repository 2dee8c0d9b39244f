"""The changes of a test bed on this machine: written to disk before each change, so that a later process can undo them.

::

    /run/routecast/BED.lock   held (flock) while the bed is in use; the kernel releases it when the owner dies
    /run/routecast/BED.json   namespaces, processes, flags of interfaces with their old values, XDP pins, scratch folder

A bed records each change before it makes it. A kill in between leaves at worst a record of something that does not
exist, and the next run can undo what a killed run left.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed import netns
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import inside
from routecast.quantity.whole_file import write_whole

__all__ = [
    "ENDING_SIGNALS",
    "FOLDER",
    "PINS",
    "SECOND_BED_ADVICE",
    "BedLock",
    "BedState",
    "beds",
    "change_link",
    "clean",
    "clean_dead",
    "describe_bed",
    "remove",
    "restore",
    "set_offload",
    "signals_ignored",
    "start_ticks",
]

FOLDER = Path("/run/routecast")
PINS = Path("/sys/fs/bpf/routecast")
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals, besides Ctrl-C, that end a process by default."""

SECOND_BED_ADVICE = "a second bed beside it needs a name and cores of its own (name and [cores] of its file)"
"""Advice about a bed in use. With a new name alone, both beds would use the same cores."""

_SIOCETHTOOL = 0x8946
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_FLAGS = {"up": 0x1, "promiscuous": 0x100}

_OFFLOADS = {"rx": 0x15, "tx": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C, "flags": 0x26}
"""Offloads as ethtool calls them, with the commands that set them (linux/ethtool.h).

``flags`` switches several at once: VLAN tags beside the frame (rxvlan, txvlan), LRO, n-tuple filters, hash.
"""

_END_TIMEOUT_S = 2.0
_LOCK_TIMEOUT_S = 10.0
_OPEN_ATTEMPTS = 100
_RETRY_S = 0.01


@dataclass(slots=True, kw_only=True)
class BedState:
    """The resources and changes of a bed; every entry is written to disk at once.

    ``pid`` and ``pid_start_ticks`` (field 22 of ``/proc/PID/stat``) identify the owner even if its number is reused.
    ``is_kept`` beds stay without an owner (``routecast testbed up``). ``beside`` names a bed that takes turns with this
    one on the same ``cores``. ``since_s`` (0: unknown) and ``measuring_since_s`` (0: no trial yet) are seconds since
    1970. ``processes`` have ``pid``, ``start_ticks`` and ``command``; ``settings`` are the flags of interfaces in order
    of change, with ``netns``, ``interface``, ``name`` and ``old``. ``mounts`` are the bed's own file systems;
    ``folder`` holds scratch files.
    """

    bed: str
    pid: int = field(default_factory=os.getpid)
    pid_start_ticks: int = 0
    is_kept: bool = False
    cores: list[int] = field(default_factory=list)
    beside: str = ""
    measuring_since_s: float = 0.0
    since_s: float = 0.0
    namespaces: list[str] = field(default_factory=list)
    processes: list[dict[str, Any]] = field(default_factory=list)
    settings: list[dict[str, Any]] = field(default_factory=list)
    pins: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    folder: str = ""

    @property
    def path(self) -> Path:
        """The file of this state."""
        return FOLDER / f"{self.bed}.json"

    def write(self) -> None:
        """Write the state to disk atomically.

        Raises EnvironmentProblem: it cannot be written.
        """
        try:
            FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
            write_whole(self.path, json.dumps(asdict(self), indent=1))
        except OSError as problem:
            reason = f"cannot be written: {problem.strerror}; a test bed records its changes there"
            raise EnvironmentProblem(f"{self.path}: {reason}") from problem

    def is_in_use(self) -> bool:
        """Whether the process that made the bed is alive."""
        return not self.is_kept and self.pid_start_ticks != 0 and start_ticks(self.pid) == self.pid_start_ticks

    def is_measuring(self) -> bool:
        """Whether a process sends trials over the bed."""
        return self.measuring_since_s > 0.0 and self.is_in_use()

    @property
    def hold(self) -> str:
        """Cores that the bed holds, and since when: ``"cores 0, 1 since 2026-11-27 06:12:04 UTC"``."""
        cores = f"core{'s' if len(self.cores) > 1 else ''} {', '.join(map(str, self.cores))}" if self.cores else ""
        since = f"since {datetime.fromtimestamp(self.since_s, UTC):%Y-%m-%d %H:%M:%S} UTC" if self.since_s else ""
        return " ".join(filter(None, (cores, since)))

    def add_process(self, pid: int, command: str) -> None:
        """Note a process that belongs to the bed."""
        self.processes.append({"pid": pid, "start_ticks": start_ticks(pid), "command": command[:200]})
        self.write()

    @classmethod
    def read(cls, bed: str) -> BedState | None:
        """Return the state on disk, or None; a state that cannot be read counts as empty."""
        state = cls(bed=bed)
        try:
            data = json.loads(state.path.read_text(encoding="utf-8"))
            return cls(**{**data, "bed": bed})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, OSError):
            return state


class BedLock:
    """The lock of a bed, which one process at a time holds.

    Raises EnvironmentProblem: another process holds it; the message names that process.
    """

    def __init__(self, bed: str) -> None:
        self.bed = bed
        self._path = FOLDER / f"{bed}.lock"
        # A command that a killed owner was starting may hold its lock for a moment, as may who cleans up after it.
        deadline_s = time.monotonic() + _LOCK_TIMEOUT_S
        while True:
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:
                file.close()
                if time.monotonic() < deadline_s and not _owner_may_live(bed):
                    time.sleep(_RETRY_S)
                    continue
                raise EnvironmentProblem(
                    f"test bed {bed!r} is in use by {_describe_owner(bed)}: wait for it, or end it; {SECOND_BED_ADVICE}"
                ) from problem
            # The previous owner may have removed the file between open and lock.
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                    break
            file.close()
        self._file = file

    def release(self) -> None:
        """Release the lock."""
        self._path.unlink(missing_ok=True)
        self._file.close()
        with contextlib.suppress(OSError):
            FOLDER.rmdir()  # succeeds when no bed is left

    def _open(self) -> IO[bytes]:
        for _ in range(_OPEN_ATTEMPTS):
            try:
                FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
                return self._path.open("a+b")
            except FileNotFoundError:
                continue  # another process removed the folder in between
            except OSError as problem:
                raise EnvironmentProblem(
                    f"{self._path}: {problem.strerror}: a test bed records its changes there; run it as root (sudo)"
                ) from problem
        raise EnvironmentProblem(f"{self._path}: cannot be made")


def start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[19])


def beds() -> tuple[str, ...]:
    """Return the beds that have a state on disk."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json"))) if FOLDER.is_dir() else ()


def clean_dead(*, on_remark: Callable[[str], None], include_kept: bool = False) -> list[str]:
    """Remove the beds of dead owners and return their names.

    ``on_remark`` gets a line for each of them; ``include_kept`` also removes beds that were put up to stay.
    """
    removed = []
    for bed in beds():
        with contextlib.suppress(EnvironmentProblem), _locked(bed):
            state = BedState.read(bed)
            if state is None or (state.is_kept and not include_kept):
                continue
            if not state.is_kept:
                on_remark(f"removing what process {state.pid} left of test bed {bed!r}")
            clean(state)
            removed.append(bed)
    return removed


def remove(bed: str) -> None:
    """Take down a bed that is not in use.

    Raises EnvironmentProblem: it is in use, or a part of it cannot be removed.
    """
    with _locked(bed):
        state = BedState.read(bed)
        if state is not None:
            clean(state)


def describe_bed(bed: str) -> dict[str, Any]:
    """Return name, state (in use, kept or left), process and namespaces of a bed as plain data."""
    state = BedState.read(bed) or BedState(bed=bed)
    state_text = "put up to stay" if state.is_kept else "left by a process that ended"
    if state.is_in_use():
        state_text = "in use"
    return {"name": bed, "state": state_text, "pid": state.pid, "namespaces": state.namespaces}


@contextlib.contextmanager
def _locked(bed: str) -> Iterator[None]:
    lock = BedLock(bed)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def signals_ignored() -> Iterator[None]:
    """Ignore signals while a bed is taken down, which is short and must finish.

    Commands started meanwhile ignore them too, since a terminal sends Ctrl-C to all processes of a job.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *ENDING_SIGNALS)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def clean(state: BedState) -> None:
    """Undo what a bed has done: processes, settings, namespaces, pins, scratch files; then remove its state.

    Things that are gone already are no problem. The state stays on disk if something cannot be undone.

    Raises EnvironmentProblem: something still exists, or cannot be restored.
    """
    problems = []
    _end_processes([int(process["pid"]) for process in state.processes if _is_same_process(process)])
    for name in state.namespaces:
        _end_processes(list(netns.process_ids(name)))
    for setting in reversed(state.settings):
        try:
            restore(setting)
        except (EnvironmentProblem, OSError) as problem:
            problems.append(str(problem))
    for name in state.namespaces:
        if (netns.FOLDER / name).exists():
            try:
                run_command(["ip", "netns", "del", name])
            except EnvironmentProblem as problem:
                problems.append(str(problem))
    for pin in state.pins:
        path = Path(pin)
        with contextlib.suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
    for mount in state.mounts:
        while os.path.ismount(mount):
            try:
                run_command(["umount", mount])
            except EnvironmentProblem as problem:
                problems.append(str(problem))
                break
    if state.folder and not any(map(os.path.ismount, state.mounts)):
        shutil.rmtree(state.folder, ignore_errors=True)
    if problems:
        raise EnvironmentProblem(f"test bed {state.bed!r} is not removed completely: {'; '.join(problems)}")
    state.path.unlink(missing_ok=True)


def _is_same_process(process: dict[str, Any]) -> bool:
    ticks = start_ticks(int(process["pid"]))
    return ticks != 0 and ticks == process["start_ticks"]


def _end_processes(pids: list[int]) -> None:
    """Terminate processes, then kill them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            if pid != os.getpid():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        deadline = time.monotonic() + _END_TIMEOUT_S
        while any(_is_alive(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.01)
        if not any(_is_alive(pid) for pid in pids):
            return


def _is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie; a finished child process is reaped."""
    if pid == os.getpid():
        return False
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in {"Z", "X"}


def _owner_may_live(bed: str) -> bool:
    state = BedState.read(bed)
    if state is None:  # who holds the lock has just begun, or has just removed what a dead owner left
        return False
    return state.pid_start_ticks == 0 or start_ticks(state.pid) == state.pid_start_ticks


def _describe_owner(bed: str) -> str:
    state = BedState.read(bed)
    if state is None:
        return "another process"
    try:
        command = Path(f"/proc/{state.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        command = ""
    hold_clause = f", which holds {state.hold}" if state.hold else ""
    return f"process {state.pid}" + (f" ({command[:80]})" if command else "") + hold_clause


def set_offload(netns: str | None, interface: str, offload: str, *, on: bool) -> None:
    """Switch an offload of an interface if its driver has it.

    Raises EnvironmentProblem: the interface does not exist, or may not be changed.
    """
    data = array.array("I", [_OFFLOADS[offload], int(on)])
    request = struct.pack("16sP16x", interface.encode(), data.buffer_info()[0])
    try:
        _ioctl(netns, interface, _SIOCETHTOOL, request)
    except OSError as problem:
        if problem.errno not in {errno.EOPNOTSUPP, errno.EINVAL}:
            raise EnvironmentProblem(f"{interface}: its offloads cannot be set: {problem.strerror}") from problem


def change_link(state: BedState, netns: str | None, interface: str, flag: str, *, on: bool) -> None:
    """Set a flag of an interface, ``"up"`` or ``"promiscuous"``, and record its old value first."""
    old = bool(_flags(netns, interface) & _FLAGS[flag])
    if old != on:
        state.settings.append({"netns": netns, "interface": interface, "name": flag, "old": old})
        state.write()
        _set_flag(netns, interface, flag, on=on)


def restore(setting: Mapping[str, Any]) -> None:
    """Restore the flag of a recorded setting, unless its interface is gone."""
    with contextlib.suppress(_GoneError):
        _set_flag(setting["netns"], setting["interface"], setting["name"], on=bool(setting["old"]))


class _GoneError(EnvironmentProblem):
    """The interface does not exist."""


def _flags(netns: str | None, interface: str) -> int:
    answer = _ioctl(netns, interface, _SIOCGIFFLAGS, struct.pack("16sH22x", interface.encode(), 0))
    return int(struct.unpack_from("16sH", answer)[1])


def _set_flag(netns: str | None, interface: str, flag: str, *, on: bool) -> None:
    flags = _flags(netns, interface)
    new_flags = flags | _FLAGS[flag] if on else flags & ~_FLAGS[flag]
    _ioctl(netns, interface, _SIOCSIFFLAGS, struct.pack("16sH22x", interface.encode(), new_flags))


def _ioctl(netns: str | None, interface: str, number: int, request: bytes) -> bytes:
    def call() -> bytes:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            return fcntl.ioctl(handle, number, request)

    try:
        return inside(netns, call)
    except OSError as problem:
        if problem.errno == errno.ENODEV:
            raise _GoneError(f"there is no interface {interface}") from problem
        raise
