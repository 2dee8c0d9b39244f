"""What a running test bed has changed on this machine, on disk, so that the next run can mend what a killed one left.

::

    /run/routecast/BED.lock   held (flock) while the bed is in use; the kernel lets go of it when the owner dies
    /run/routecast/BED.json   namespaces, processes, settings with their old values, XDP pins, scratch folder

A thing is written down before it is made, so that a kill in between leaves at worst a note of something that is not
there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from routecast.errors import EnvironmentProblem
from routecast.testbed import netns
from routecast.testbed.dut_host import run_command

__all__ = [
    "BESIDE",
    "ENDING",
    "FOLDER",
    "PINS",
    "BedLock",
    "BedState",
    "beds",
    "clean",
    "clean_dead",
    "described",
    "remove",
    "signals_ignored",
    "start_ticks",
]

FOLDER = Path("/run/routecast")
PINS = Path("/sys/fs/bpf/routecast")
ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals, besides Ctrl-C, that end a process which does not listen to them."""

BESIDE = "a second bed beside it needs a name and cores of its own (name and [cores] of its file)"
"""What a message about a bed in use advises: a name alone would put both on the same cores."""

_END_WITHIN_S = 2.0
_TRIES = 100
_LOOKS_AGAIN_AFTER_S = 0.01


@dataclass(slots=True, kw_only=True)
class BedState:
    """What a bed has made and changed. It is data on disk: every change is written at once.

    ``pid`` and ``pid_start_ticks``: the owner and the instant of its start in clock ticks since boot (field 22 of
    ``/proc/PID/stat``), which together name a process even when its number is used again; ``is_kept``: the bed is to
    stay without an owner (``routecast testbed up``); ``cores``: cores that the bed works on; ``beside``: name of the
    bed to which this one belongs: the two take turns on the same cores; ``measuring_since_s``: since when trials are
    sent over the bed, in seconds since 1970; 0 for a bed that only stands; ``since_s``: when the bed was made, in
    seconds since 1970; 0 where that is not known; ``mounts``: file systems of the bed's own; ``processes``: ``pid``,
    ``start_ticks``, ``command``; ``settings``: ``kind``, ``netns``, ``interface``, ``name``, ``old``: in the order in
    which they were changed; ``folder``: scratch folder.
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
        """Put the state on disk, whole or not at all.

        Raises EnvironmentProblem: it cannot be written.
        """
        part = self.path.with_suffix(".json.part")
        try:
            FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
            part.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
            part.replace(self.path)
        except OSError as problem:
            reason = f"cannot be written: {problem.strerror}; a test bed notes there what it changes"
            raise EnvironmentProblem(f"{self.path}: {reason}") from problem

    def is_in_use(self) -> bool:
        """Whether the process that made the bed is there."""
        return not self.is_kept and self.pid_start_ticks != 0 and start_ticks(self.pid) == self.pid_start_ticks

    def is_measuring(self) -> bool:
        """Whether a process sends trials over the bed."""
        return self.measuring_since_s > 0.0 and self.is_in_use()

    @property
    def hold(self) -> str:
        """Which cores the bed holds, and since when: ``"cores 0, 1 since 2026-11-27 06:12:04 UTC"``."""
        cores = f"core{'s' if len(self.cores) > 1 else ''} {', '.join(map(str, self.cores))}" if self.cores else ""
        since = f"since {datetime.fromtimestamp(self.since_s, UTC):%Y-%m-%d %H:%M:%S} UTC" if self.since_s else ""
        return " ".join(filter(None, (cores, since)))

    def add_process(self, pid: int, command: str) -> None:
        """Note a process that belongs to the bed."""
        self.processes.append({"pid": pid, "start_ticks": start_ticks(pid), "command": command[:200]})
        self.write()

    @classmethod
    def read(cls, bed: str) -> BedState | None:
        """Return the state on disk; None where there is none. One that cannot be understood counts as empty."""
        state = cls(bed=bed)
        try:
            data = json.loads(state.path.read_text(encoding="utf-8"))
            return cls(**{**data, "bed": bed})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, OSError):
            return state


class BedLock:
    """The right to use a bed: one process at a time has it.

    Raises EnvironmentProblem: another process has it; the message names it.
    """

    def __init__(self, bed: str) -> None:
        self.bed = bed
        self._path = FOLDER / f"{bed}.lock"
        # A command that a killed owner had begun may hold its lock until that command is under way.
        deadline_s = time.monotonic() + _END_WITHIN_S
        while True:
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:
                file.close()
                if time.monotonic() < deadline_s and _owner_is_dead(bed):
                    time.sleep(_LOOKS_AGAIN_AFTER_S)
                    continue
                raise EnvironmentProblem(
                    f"test bed {bed!r} is in use by {_owner(bed)}: wait for it, or end it; {BESIDE}"
                ) from problem
            # Whoever had it before may have removed the file between our opening and our locking it.
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                    break
            file.close()
        self._file = file

    def release(self) -> None:
        """Give the bed to others."""
        self._path.unlink(missing_ok=True)
        self._file.close()
        with contextlib.suppress(OSError):
            FOLDER.rmdir()  # only when no bed is left

    def _open(self) -> IO[bytes]:
        for _ in range(_TRIES):
            try:
                FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
                return self._path.open("a+b")
            except FileNotFoundError:
                continue  # somebody removed the folder that we had just made
            except OSError as problem:
                raise EnvironmentProblem(
                    f"{self._path}: {problem.strerror}: a test bed notes there what it changes; run it as root (sudo)"
                ) from problem
        raise EnvironmentProblem(f"{self._path}: cannot be made")


def start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[19])


def beds() -> tuple[str, ...]:
    """Return the beds that have a state on disk."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json"))) if FOLDER.is_dir() else ()


def clean_dead(*, on_remark: Callable[[str], None], every: bool = False) -> list[str]:
    """Remove what dead owners left behind; return the names of the beds that were removed.

    ``on_remark``: told a line for each bed that is removed; ``every``: remove all beds that are not in use, those that
    were put up to stay as well.
    """
    removed = []
    for bed in beds():
        with contextlib.suppress(EnvironmentProblem), _held(bed):
            state = BedState.read(bed)
            if state is None or (state.is_kept and not every):
                continue
            if not state.is_kept:
                on_remark(f"removing what process {state.pid} left of test bed {bed!r}")
            clean(state)
            removed.append(bed)
    return removed


def remove(bed: str) -> None:
    """Take a bed down that nobody is using.

    Raises EnvironmentProblem: somebody is using it, or something of it cannot be removed.
    """
    with _held(bed):
        state = BedState.read(bed)
        if state is not None:
            clean(state)


def described(bed: str) -> dict[str, Any]:
    """Return what a bed is: its name, whether it is in use, kept or left, its process and its namespaces."""
    state = BedState.read(bed) or BedState(bed=bed)
    condition = "put up to stay" if state.is_kept else "left by a process that ended"
    if state.is_in_use():
        condition = "in use"
    return {"name": bed, "state": condition, "pid": state.pid, "namespaces": state.namespaces}


@contextlib.contextmanager
def _held(bed: str) -> Iterator[None]:
    lock = BedLock(bed)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def signals_ignored() -> Iterator[None]:
    """Let no second Ctrl-C break off what undoes: it is short and must come to its end.

    Commands that are started meanwhile ignore the signals too: a terminal sends Ctrl-C to all processes of a job.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *ENDING)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def clean(state: BedState) -> None:
    """Undo what a bed has done: processes, settings, namespaces, pins, scratch files; then forget it.

    What is not there any more is no fault. The state stays on disk when something cannot be undone.

    Raises EnvironmentProblem: something is still there, or could not be set back.
    """
    from routecast.testbed.settings import restore

    problems = []
    _end([int(process["pid"]) for process in state.processes if _is_same(process)])
    for name in state.namespaces:
        _end(list(netns.process_ids(name)))
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
        raise EnvironmentProblem(f"test bed {state.bed!r} is not removed as a whole: {'; '.join(problems)}")
    state.path.unlink(missing_ok=True)


def _is_same(process: dict[str, Any]) -> bool:
    ticks = start_ticks(int(process["pid"]))
    return ticks != 0 and ticks == process["start_ticks"]


def _end(pids: list[int]) -> None:
    """Ask processes to end, then make them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            if pid != os.getpid():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        deadline = time.monotonic() + _END_WITHIN_S
        while any(_is_alive(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.01)
        if not any(_is_alive(pid) for pid in pids):
            return


def _is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie; children of ours are reaped on the way."""
    if pid == os.getpid():
        return False
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in {"Z", "X"}


def _owner_is_dead(bed: str) -> bool:
    state = BedState.read(bed)
    return state is not None and state.pid_start_ticks != 0 and start_ticks(state.pid) != state.pid_start_ticks


def _owner(bed: str) -> str:
    state = BedState.read(bed)
    if state is None:
        return "another process"
    try:
        command = Path(f"/proc/{state.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        command = ""
    held = f", which holds {state.hold}" if state.hold else ""
    return f"process {state.pid}" + (f" ({command[:80]})" if command else "") + held
