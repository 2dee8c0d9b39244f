"""The processes of a device: their start in its namespace, readiness, binding to its core, and end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from routecast.errors import DeviceEnded, EnvironmentProblem
from routecast.lab.testbed.dut_host import DeviceSite
from routecast.lab.testbed.throttling import RealTimeThrottle
from routecast.quantity import format_duration

__all__ = ["Processes", "accepts_connections", "check_socket_path", "in_real_time", "make_real_time", "threads_named"]

_POLL_S = 0.02
_GRACE_S = 3.0
_GREATEST_WEIGHT = -20  # nice(2)
_MAX_LOG_LINES = 5
_MAX_SOCKET_PATH_BYTES = 107  # sun_path of unix(7) is 108 bytes with its end


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunningProcess:
    process: subprocess.Popen[bytes]
    program: str
    log: Path


class Processes:
    """The running processes of one device."""

    def __init__(self) -> None:
        self._running: list[_RunningProcess] = []

    def spawn(
        self, site: DeviceSite, program: str, *command: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process of the device; the site records it, and ``PROGRAM.log`` takes its output."""
        log = f"{program}.log"
        process = site.spawn(*command, log=log, environment=environment)
        self._running.append(_RunningProcess(process=process, program=program, log=site.folder / log))
        return process

    def wait_for(
        self, is_ready: Callable[[], bool], description: str, *, timeout_s: float = 10.0, poll_s: float = _POLL_S
    ) -> None:
        """Call ``is_ready`` every ``poll_s`` seconds until it returns true; ``description`` names the wait in messages.

        Raises EnvironmentProblem: a process ends meanwhile (:class:`~routecast.errors.DeviceEnded`), or ``is_ready``
        stays false for ``timeout_s``; the message has the last lines of the log.
        """
        deadline_s = time.monotonic() + timeout_s
        while not is_ready():
            self.check()
            if time.monotonic() > deadline_s:
                logs = "; ".join(f"{process.program}: {_last_lines(process.log)}" for process in self._running)
                raise EnvironmentProblem(f"{description} is not ready after {timeout_s:g} s: {logs}")
            time.sleep(poll_s)

    def check(self) -> None:
        """Raise DeviceEnded, with the last lines of the log, if a process has ended by itself."""
        for process in self._running:
            if process.process.poll() is not None:
                raise DeviceEnded(
                    f"{process.program}: ended by itself with {_exit_status(process)}: {_last_lines(process.log)}"
                )

    def stop(self, *, in_order: bool = False) -> None:
        """End the processes and their children one after the other: terminate them, and kill them 3 s later.

        ``in_order`` ends the processes in the order of their start; by default the last comes first.
        """
        processes, self._running = self._running, []
        for process in processes if in_order else reversed(processes):
            _signal(process.process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.process.wait(_GRACE_S)
            _signal(process.process, signal.SIGKILL)
            process.process.wait()


def threads_named(process_id: int, is_chosen: Callable[[str], bool]) -> tuple[int, ...]:
    """Return the threads of a process whose names ``is_chosen`` accepts."""
    threads = []
    for task in Path(f"/proc/{process_id}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            if is_chosen((task / "comm").read_text(encoding="utf-8").strip()):
                threads.append(int(task.name))
    return tuple(sorted(threads))


@contextmanager
def in_real_time(threads: Sequence[int], priority: int) -> Iterator[None]:
    """Have threads in SCHED_FIFO within the context, and in the ordinary class after it."""

    def schedule(policy: int, of_policy: int) -> None:
        for thread in threads:
            with suppress(PermissionError, ProcessLookupError):
                os.sched_setscheduler(thread, policy, os.sched_param(of_policy))

    schedule(os.SCHED_FIFO, priority)
    try:
        yield
    finally:
        schedule(os.SCHED_OTHER, 0)


def make_real_time(
    process_id: int, site: DeviceSite, is_chosen: Callable[[str], bool], *, polls: bool = False
) -> list[str]:
    """Bind the threads whose names ``is_chosen`` accepts to the site's core with its SCHED_FIFO priority.

    Threads that poll without a pause (``polls``) keep the ordinary class where the kernel would stop them for a part of
    each second (:class:`RealTimeThrottle`), with the greatest weight that it has; short trials run them in real time
    (:func:`in_real_time`). Returns a line for each thread;
    without permission the line says so, and the device runs on.
    """
    lines = []
    throttle = RealTimeThrottle.of_machine() if polls else None
    for task in sorted(Path(f"/proc/{process_id}/task").iterdir(), key=lambda path: int(path.name)):
        with suppress(FileNotFoundError, ProcessLookupError):
            name = (task / "comm").read_text(encoding="utf-8").strip()
            if not is_chosen(name):
                continue
            actions = []
            try:
                if site.cpu is not None:
                    os.sched_setaffinity(int(task.name), {site.cpu})
                    actions.append(f"core {site.cpu}")
                if site.priority > 0 and throttle is not None:
                    os.setpriority(os.PRIO_PROCESS, int(task.name), _GREATEST_WEIGHT)
                    actions.append(
                        f"SCHED_FIFO {site.priority} in trials of up to {format_duration(throttle.longest_trial_s)}, "
                        f"else the ordinary class with nice {_GREATEST_WEIGHT}, because of {throttle.text}"
                    )
                elif site.priority > 0:
                    os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(site.priority))
                    actions.append(f"SCHED_FIFO {site.priority}")
            except PermissionError:
                actions.append("no real-time priority: not permitted")
            lines.append(f"thread {name}: {', '.join(actions) or 'left to the scheduler'}")
    return lines


def accepts_connections(path: Path) -> bool:
    """Whether a process accepts connections at a Unix socket, whose file may exist without a process."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def check_socket_path(path: Path) -> None:
    """Check the length of the path of a Unix socket.

    Raises EnvironmentProblem: the path is longer than ``unix(7)`` allows.
    """
    length = len(os.fsencode(path))
    if length > _MAX_SOCKET_PATH_BYTES:
        raise EnvironmentProblem(
            f"{path}: {length} bytes are too long for a socket, {_MAX_SOCKET_PATH_BYTES} are allowed; "
            "use a folder with a shorter path for the test bed"
        )


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # A spawned process leads its own group, which may outlive it.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _exit_status(running: _RunningProcess) -> str:
    code = running.process.returncode
    return f"signal {-code}" if code < 0 else f"code {code}"


def _last_lines(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return "no log"
    printed_lines = [line.strip() for line in lines if line.strip()]
    return " / ".join(printed_lines[-_MAX_LOG_LINES:]) or "it printed nothing"
