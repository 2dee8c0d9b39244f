"""The kernel's energy events: RAPL through ``perf_event_open(2)``.

They exist where powercap does not (a container that hides it), need CAP_PERFMON instead of root, and do not wrap: the
kernel's counters have 64 bits. The system call needs no program ``perf`` and reads a counter at any instant.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed.meters._meter import Zone
from routecast.lab.testbed.meters._rapl import RaplSelection, is_virtual
from routecast.lab.testbed.meters._sampled import Sample, Source
from routecast.lab.testbed.placement import cores_of

PMU: Final = "sys/bus/event_source/devices/power"

_SCOPES: Final = {
    "energy-pkg": "rapl:package",
    "energy-psys": "rapl:psys",
    "energy-ram": "rapl:dram",
    "energy-cores": "rapl:core",
    "energy-gpu": "rapl:uncore",
}
"""Events of the PMU ``power`` (arch/x86/events/rapl.c of Linux)."""

_SYSCALLS: Final = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTE_BYTES = 64
"""PERF_ATTR_SIZE_VER0, which every kernel takes."""


def energy_events(root: Path = Path("/")) -> Mapping[str, tuple[int, float]]:
    """Return the number and the joules per count of each energy event of a machine; empty if it has none.

    Raises EnvironmentProblem: the kernel describes an event in an unknown way.
    """
    folder = root / PMU / "events"
    events = {}
    for event in _SCOPES:
        try:
            config, scale, unit = (
                (folder / f"{event}{suffix}").read_text(encoding="ascii").strip() for suffix in ("", ".scale", ".unit")
            )
        except OSError:
            continue
        number = re.fullmatch(r"event=(0x[0-9a-fA-F]+|\d+)", config)
        if number is None or unit != "Joules":
            raise EnvironmentProblem(
                f"power meter perf: {folder / event} holds {config!r} in {unit!r}: event=NUMBER in Joules is known here"
            )
        events[event] = (int(number[1], 0), float(scale))
    return events


def open_event(kind: int, number: int, cpu: int) -> int:
    """Open a counter over all work of a CPU; return a file descriptor that yields the count in 8 bytes.

    Raises OSError: the kernel refuses.
    """
    syscall = _SYSCALLS.get(platform.machine())
    if syscall is None:
        raise OSError(f"perf_event_open is not known for {platform.machine()}")
    # type, size, config, sample_period, sample_type, read_format, flags, wakeup_events, bp_type, config1
    attribute = struct.pack("=IIQQQQQIIQ", kind, _ATTRIBUTE_BYTES, number, 0, 0, 0, 0, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    handle = libc.syscall(
        ctypes.c_long(syscall),
        ctypes.c_char_p(attribute),
        ctypes.c_int(-1),  # every process
        ctypes.c_int(cpu),
        ctypes.c_int(-1),  # no group
        ctypes.c_ulong(8),  # PERF_FLAG_FD_CLOEXEC
    )
    if handle < 0:
        error_number = ctypes.get_errno()
        raise OSError(error_number, os.strerror(error_number))
    return int(handle)


class PerfSource(Source):
    """Energy events of the PMU ``power``.

    ``root`` is the folder of the machine's files, ``covers`` one of RAPL_SCOPES, ``opener`` opens a counter as
    :func:`open_event` does. Raises FileProblem: there is no such scope.
    """

    is_gauge = False

    def __init__(
        self, root: Path = Path("/"), *, covers: str = "package", opener: Callable[[int, int, int], int] = open_event
    ) -> None:
        self._root = root
        self._selection = RaplSelection(meter="perf", covers=covers)
        self.name, self.scope = self._selection.name, self._selection.scope
        self._opener = opener
        self._handles: dict[str, tuple[int, float]] = {}
        self.zones: tuple[Zone, ...] = ()

    def open(self) -> None:
        """Open the counters on a CPU of each package.

        Raises EnvironmentProblem: the kernel has no energy events of this scope, or refuses to open them.
        """
        events = energy_events(self._root)
        if not events:
            why = "this is a virtual machine; " if is_virtual(self._root) else ""
            raise EnvironmentProblem(f"power meter perf: {why}the kernel has no energy events (there is no /{PMU})")
        scopes = self._selection.zone_scopes
        missing = scopes - {_SCOPES[event] for event in events}
        if missing:
            raise EnvironmentProblem(
                f"power meter {self.name}: no event for {', '.join(sorted(missing))}; there are: {', '.join(events)}"
            )
        try:
            kind = int((self._root / PMU / "type").read_text(encoding="ascii"))
            # The first CPU of each package.
            cpus = cores_of((self._root / PMU / "cpumask").read_text(encoding="ascii"))
        except (OSError, ValueError) as problem:
            raise EnvironmentProblem(f"power meter perf: /{PMU} cannot be read: {problem}") from problem
        zones = []
        try:
            for event, (number, unit_j) in events.items():
                # There is one platform: every package's counter of it counts the same energy.
                for cpu in cpus[:1] if event == "energy-psys" else cpus:
                    name = f"{event} of cpu {cpu}"
                    self._handles[name] = (self._opener(kind, number, cpu), unit_j)
                    zones.append(Zone(name=name, scope=_SCOPES[event], is_counted=_SCOPES[event] in scopes))
        except OSError as problem:
            self.close()
            raise EnvironmentProblem(
                f"power meter perf: the kernel refuses energy events: {problem.strerror or problem}; run as root, "
                "with CAP_PERFMON, or after sysctl -w kernel.perf_event_paranoid=0"
            ) from problem
        self.zones = tuple(zones)

    def read(self) -> Mapping[str, float]:
        """Return each counter in joules."""
        values = {}
        for name, (handle, unit_j) in self._handles.items():
            with contextlib.suppress(OSError, struct.error):
                values[name] = struct.unpack("=q", os.read(handle, 8))[0] * unit_j
        return values

    def power_w(self, zone: str, before: Sample, after: Sample) -> float:
        """Return the energy between two samples over their time."""
        return (after.values[zone] - before.values[zone]) / (after.at_s - before.at_s)

    def close(self) -> None:
        """Close the counters."""
        for handle, _ in self._handles.values():
            with contextlib.suppress(OSError):
                os.close(handle)
        self._handles = {}
