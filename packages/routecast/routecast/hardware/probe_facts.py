"""Calls of the compiled probe, and facts that the system reports about this host.

The facts are the processor, the kernel, the hypervisor, pages, network cards and their bus.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from routecast.errors import EnvironmentProblem, ModelProblem, Problem, RoutecastError
from routecast.hardware.catalogue import HOST
from routecast.hardware.model import Hardware, Nic, Pcie
from routecast.progress import ShareProgress
from routecast.wings import require_part

__all__ = ["Call", "clock", "cpu_name", "host_facts", "is_of_this_machine", "native", "network_cards", "packages"]

Call = Literal["probe_host", "run_function", "run_workload", "trace_workload"]
"""Functions of the compiled probe that take and return JSON."""

_PARTS: Mapping[Call, str] = {
    "probe_host": "a probe of this host",
    "run_function": "a run of a network function",
    "run_workload": "a run of a workload",
    "trace_workload": "a trace of a workload",
}
"""Names of the lab's parts."""

_SUBJECTS = {"probe_host": "probe", "run_function": "run of a function"}

_ENVIRONMENT = ("memory", "system")
"""Kinds of errors that the machine causes; the request causes all others."""

_DEFECTS = ("panic", "outcome")


def native(call: Call, request: Mapping[str, object], on_progress: ShareProgress | None = None) -> dict[str, Any]:
    """Call a function of the compiled probe and return its outcome, as plain data.

    ``crates/probe`` documents the fields of ``request``. ``on_progress`` is called about every 50 ms. Raises
    ModelProblem: the request is not possible; EnvironmentProblem: the lab is not installed, or the machine lacks
    memory, a core or a right.
    """
    function, failure = require_part(_PARTS[call]), require_part("errors of the probe")
    try:
        text = function(json.dumps(request, allow_nan=False), on_progress)
    except failure as error:
        raise _problem(call, *error.args) from None
    outcome: dict[str, Any] = json.loads(text)
    return outcome


def _problem(call: str, kind: str = "", message: str = "", *more: object) -> RoutecastError:
    if kind == "interrupted":
        raise KeyboardInterrupt
    if kind in _DEFECTS:
        raise RuntimeError(f"{call}: {message}")
    if kind in _ENVIRONMENT:
        return EnvironmentProblem(message)
    return ModelProblem(_SUBJECTS.get(call, "workload"), [Problem("", message or kind)])


_SYS = Path("/sys")
_PROC = Path("/proc")
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5}
"""GT/s of a lane by generation of PCI Express."""


def cpu_name(proc: Path = _PROC) -> str:
    """Return the name of the processor, or of the architecture if the kernel reports no processor."""
    for line in _read(proc / "cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def is_of_this_machine(hardware: Hardware, proc: Path = _PROC) -> bool:
    """Whether a hardware file is of this machine: a probe wrote it on a processor of the same name.

    A file without the processor's name in its facts is of this machine if it is named as a probe's.
    """
    probed = hardware.facts.get("cpu")
    return hardware.name == HOST if probed is None else probed == cpu_name(proc)


def clock(sys: Path = _SYS, proc: Path = _PROC) -> tuple[float | None, str]:
    """Return the clock that the system reports, in Hz or None, and its source."""
    for name in ("base_frequency", "cpuinfo_max_freq"):
        path = sys / "devices/system/cpu/cpu0/cpufreq" / name
        if (khz := _number(path)) > 0.0:
            return khz * 1e3, f"{name} of the kernel's cpufreq"
    for line in _read(proc / "cpuinfo").splitlines():
        if line.startswith("cpu MHz"):
            with contextlib.suppress(ValueError):
                return float(line.partition(":")[2]) * 1e6, "the clock just now, of /proc/cpuinfo"
    return None, ""


def packages(sys: Path = _SYS) -> tuple[int, int]:
    """Return the numbers of sockets and of cores per socket; sibling threads count as one core."""
    cores: set[tuple[str, str]] = set()
    for folder in (sys / "devices/system/cpu").glob("cpu[0-9]*"):
        core = _read(folder / "topology/core_id")
        if core:
            cores.add((_read(folder / "topology/physical_package_id"), core))
    sockets = len({socket for socket, _ in cores})
    return (sockets, len(cores) // sockets) if sockets else (1, os.cpu_count() or 1)


def host_facts(cpu: int = 0, *, sys: Path = _SYS, proc: Path = _PROC) -> Mapping[str, object]:
    """Return facts that describe the state of a host, as plain data."""
    governor = _read(sys / f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
    transparent = re.search(r"\[(\w+)\]", _read(sys / "kernel/mm/transparent_hugepage/enabled"))
    flags = re.search(r"^flags\s*:(.*)$", _read(proc / "cpuinfo"), re.MULTILINE)
    is_virtual = flags is not None and "hypervisor" in flags[1].split()
    vendor = _read(sys / "class/dmi/id/sys_vendor")
    siblings = _read(sys / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return {
        "cpu": cpu_name(proc),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "hypervisor": (vendor or "yes, unnamed") if is_virtual else "none seen",
        "governor": governor or "not reported",
        "transparent_huge_pages": transparent[1] if transparent else "not reported",
        "huge_pages_reserved": _read(sys / "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages") or "0",
        "threads_of_the_core": siblings or "not reported",
    }


def network_cards(sys: Path = _SYS) -> tuple[tuple[Nic, ...], tuple[str, ...]]:
    """Return the network cards with a speed, and notes on cards without a speed or on missing cards."""
    cards, notes = [], []
    for folder in sorted((sys / "class/net").glob("*")):
        device = folder / "device"
        if not device.exists():
            continue  # software interfaces: lo, bridges, veth
        speed = _number(folder / "speed")
        bus = device.resolve()
        pcie = _pcie(bus)
        if speed <= 0.0:
            kind = bus.name if pcie is None else f"PCI Express {pcie.generation} x{pcie.lanes}"
            notes.append(f"network card {folder.name} ({kind}) reports no speed: it is left out")
            continue
        cards.append(
            Nic(
                name=folder.name,
                ports=1,
                link_bps=speed * 1e6,
                pcie=pcie,
                socket=max(int(_number(device / "numa_node")), 0),
            )
        )
    if not cards and not notes:
        notes.append("the system shows no network card with a bus: limits of card and bus are unknown")
    return tuple(cards), tuple(notes)


def _pcie(device: Path) -> Pcie | None:
    """Return the bus of a device or of its parent (a virtio device has a PCI parent)."""
    for folder in (device, *device.parents[:2]):
        speed = re.match(r"([\d.]+)", _read(folder / "current_link_speed"))
        lanes = int(_number(folder / "current_link_width"))
        if speed and lanes > 0 and float(speed[1]) in _GENERATIONS:
            return Pcie(generation=_GENERATIONS[float(speed[1])], lanes=lanes)
    return None


def _number(path: Path) -> float:
    """Return the number in a file; −1 without a number."""
    with contextlib.suppress(ValueError):
        return float(_read(path))
    return -1.0


def _read(path: Path) -> str:
    """Return the text of a file; empty if it is missing or unreadable, as ``speed`` of a card that is down."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip()
    return ""
