"""The site of a device under test (its namespace, ports, core and folder), and the protocols of devices.

A test bed makes a :class:`DeviceSite` and hands it to a :class:`Device`, which configures and starts itself there::

    tester port 0 ── d0 ┐                ┌ d1 ── tester port 1
                        └ device (site) ─┘
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed.netns import FOLDER as NETNS_FOLDER
from routecast.lab.testbed.netns import command_inside
from routecast.quantity.schema import field, value

__all__ = ["Device", "DevicePort", "DeviceSite", "Missing", "SelfTimed", "SelfTimedCounts", "run_command"]

_COMMAND_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A program that a device lacks, with the package that installs it, or the reason why no package does."""

    program: str
    package: str = ""
    why: str = ""

    def __str__(self) -> str:
        """Return the remedy, or the reason why there is none: ``ovs-vswitchd: apt install openvswitch-switch``."""
        return f"{Path(self.program).name}: {self.why or f'apt install {self.package}'}"


@value
class DevicePort:
    """One port of the device under test, and the tester's port at the other end of its wire."""

    interface: str = field("Name of the device's interface, in the device's namespace")
    mac: str = field("MAC address")
    ipv4: str = field('IPv4 address: ``"198.18.1.1/24"``; a router sets it itself, a bridge has none')
    ipv6: str = field('IPv6 address: ``"2001:2:0:1::1/64"``')
    neighbour_mac: str = field(
        "MAC address of the tester's port, which answers no ARP and no neighbour solicitation: set it statically"
    )
    neighbour_ipv4: str = field("IPv4 address without prefix length")
    neighbour_ipv6: str = field("IPv6 address without prefix length")
    networks_ipv4: tuple[str, ...] = field("Further IPv4 networks behind the neighbour (RFC 2544 sec. 12)", default=())
    networks_ipv6: tuple[str, ...] = field("Further IPv6 networks behind the neighbour", default=())
    neighbour_netns: str | None = field(
        "Namespace of the tester's port, where a routing neighbour may run", default=None
    )
    wire: str = field("Interface at the wire, where ``interface`` is its sub-interface for VLAN tags", default="")

    @property
    def link(self) -> str:
        """Interface at the wire."""
        return self.wire or self.interface


def _ignore_process(process: int, command: str) -> None:
    """Record nothing."""


@value
class DeviceSite:
    """Where a device under test runs."""

    netns: str | None = field(
        "Name of the network namespace below ``/run/netns``; None is the namespace of this process"
    )
    ports: tuple[DevicePort, ...] = field("Ports in the order in which loads number them")
    cpu: int | None = field("The device's core; None if routecast may not choose it")
    more_cpus: tuple[int, ...] = field("Further cores of the device", default=())
    priority: int = field("SCHED_FIFO priority of the forwarding threads; 0 for ordinary scheduling")
    folder: Path = field("Scratch folder of the device, removed with the test bed")
    shares_core: bool = field("Whether the generator works on ``cpu`` too", default=False)
    on_spawn: Callable[[int, str], None] = field(
        "Gets the id and the command of each spawned process, so that a leftover can be ended", default=_ignore_process
    )

    @property
    def netns_path(self) -> str | None:
        """Path of the namespace, for the compiled core."""
        return None if self.netns is None else str(NETNS_FOLDER / self.netns)

    def run(
        self,
        *command: str,
        check: bool = True,
        stdin: str | None = None,
        timeout_s: float = _COMMAND_TIMEOUT_S,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command in the namespace to its end and return its stdout.

        Raises
        ------
        routecast.errors.EnvironmentProblem
            The program is missing, takes longer than ``timeout_s``, or (with ``check``) exits with another code
            than 0.
        """
        return run_command(
            command_inside(self.netns, *command),
            check=check,
            stdin=stdin,
            timeout_s=timeout_s,
            environment=environment,
            folder=self.folder,
        )

    def spawn(
        self, *command: str, log: str = "", environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a long-running process in the namespace and record it.

        Parameters
        ----------
        *command : str
        log : str
            File in the site's folder that takes stdout and stderr; named for the program if not given.
        environment : mapping of str to str, optional
            Variables to add.

        Raises
        ------
        routecast.errors.EnvironmentProblem
            The program cannot be started.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / (log or f"{Path(command[0]).name}.log")
        try:
            with path.open("ab") as output:
                process = subprocess.Popen(
                    command_inside(self.netns, *command),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    env=_environment(environment),
                    start_new_session=True,  # Ctrl-C reaches routecast alone, which ends the device in order
                )
        except OSError as problem:
            raise EnvironmentProblem(f"{command[0]}: cannot be started: {problem.strerror}") from problem
        self.on_spawn(process.pid, " ".join(command))
        return process


def run_command(
    command: Sequence[str],
    *,
    check: bool = True,
    stdin: str | None = None,
    timeout_s: float = _COMMAND_TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run a command to its end and return its stdout; parameters and errors are those of :meth:`DeviceSite.run`."""
    try:
        completed = subprocess.run(
            list(command),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=_environment(environment),
            cwd=folder if folder is not None and folder.is_dir() else None,
        )
    except subprocess.TimeoutExpired as problem:
        raise EnvironmentProblem(f"{' '.join(command)}: does not end within {timeout_s:g} s") from problem
    except OSError as problem:
        raise EnvironmentProblem(f"{command[0]}: cannot be run: {problem.strerror}") from problem
    if check and completed.returncode != 0:
        message = (completed.stderr or completed.stdout).strip() or "it prints nothing"
        raise EnvironmentProblem(f"{' '.join(command)}: exits with {completed.returncode}: {message}")
    return completed.stdout


def _environment(additions: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C", **(additions or {})}


@runtime_checkable
class Device(Protocol):
    """A device under test: one class per kind, made with its options.

    The class is called with one argument, a frozen dataclass of its options (``options`` names the dataclass), which
    the test bed fills from ``[dut]`` of the file or ``--dut-option``.

    Attributes
    ----------
    name : str
        Its name in files and options: ``"linux"``, ``"bridge"``.
    title : str
        Its name in reports: ``"Linux IP forwarding"``.
    layer : {2, 3}
        2: frames keep their MAC addresses, and the tester addresses its own port at the far side. 3: the tester
        addresses the router's port.
    data_path : {"kernel", "process"}
        ``kernel``: the test bed makes the NAPI instance of the device's receiving port a kernel thread on
        ``site.cpu`` with ``site.priority``, after :meth:`start` and :meth:`restart` (a change of XDP programs ends
        that thread).
        ``process``: the device binds its own threads to ``site.cpu``.
    options : type
        Frozen dataclass of the device's options; each field has a default and is documented.
    reset_kinds : tuple of str
        Kinds of :meth:`restart` that make sense (RFC 6201).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    layer: ClassVar[Literal[2, 3]]
    data_path: ClassVar[Literal["kernel", "process"]]
    options: ClassVar[type[Any]]
    reset_kinds: tuple[str, ...]

    def missing(self) -> tuple[Missing, ...]:
        """Return the missing programs."""
        ...

    def start(self, site: DeviceSite) -> None:
        """Configure and start the device; it forwards when this returns."""
        ...

    def stop(self) -> None:
        """End the device; a second call does nothing."""
        ...

    def restart(self, kind: str) -> None:
        """Reset the device (RFC 6201) and return when the reset is under way; ``kind`` is one of ``reset_kinds``."""
        ...

    def facts(self) -> Mapping[str, object]:
        """Return version, exact configuration and what is disabled, as plain data (RFC 2544 sec. 7)."""
        ...

    def counters(self) -> Mapping[str, int]:
        """Return cumulative counts of frames by name: ``rx``, ``tx``, ``drop``, and drops by place."""
        ...


@value
class SelfTimedCounts:
    """Counts of a device that makes its frames itself and forwards them as fast as it can, without a tester."""

    frame_bytes: int = field(
        "Frame size with the FCS (S1); the device itself processes frames without it, four bytes less"
    )
    duration_s: float = field("Time between the two readings of the counters, s")
    busy_s: float = field("Part of it in which the device had its core, without the time of other tasks")
    received_frames: int = field("Over all ports")
    forwarded_frames: int = field("Over all ports; the other received frames were dropped")

    @property
    def has_forwarded(self) -> bool:
        """Whether the device had its core and forwarded frames, so that a rate can be told."""
        return self.forwarded_frames > 0 and self.busy_s > 0.0

    @property
    def forwarded_pps(self) -> float:
        """Frames forwarded per second of the core, over all ports."""
        return self.forwarded_frames / self.busy_s

    @property
    def seconds_per_frame(self) -> float:
        """Time of the core per frame."""
        return self.busy_s / self.forwarded_frames if self.forwarded_frames else float("inf")


@runtime_checkable
class SelfTimed(Protocol):
    """A device that can measure its own throughput for a frame size, without a tester.

    The throughput is ``self_timed(…).forwarded_pps``; at an offered rate r it forwards min(r, throughput).
    """

    @property
    def times_itself(self) -> bool:
        """Whether the device, as configured, makes its frames itself."""
        ...

    def self_timed(self, frame_bytes: int, duration_s: float) -> SelfTimedCounts:
        """Forward frames of one size as fast as possible for ``duration_s`` and return the counts."""
        ...
