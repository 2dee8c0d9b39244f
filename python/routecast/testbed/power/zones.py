"""The tree of RAPL zones under ``/sys/class/powercap``, and what lies within what.

::

    psys ⊃ package-0 ⊃ core, uncore          watts of a zone hold those of the zones within it
           package-1 ⊃ …                     packages stand side by side and add up
           dram                              listed below its package, but its watts are its own

In sysfs, psys stands beside the packages that it contains, and dram below a package that does not contain it, so the
tree of folders says nothing about sums: the names do (Documentation/power/powercap/powercap.rst and
drivers/powercap/intel_rapl_common.c of Linux). AMD's processors have the same tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = [
    "POWERCAP",
    "RaplZone",
    "energy_step_uj",
    "is_virtual",
    "rapl_zones",
    "read_text",
    "why_no_zone",
    "wrapped_difference",
]

POWERCAP: Final = "sys/class/powercap"

_FOLDER = re.compile(r"intel-rapl(?P<mmio>-mmio)?:\d+(?::\d+)*")
_SCOPES: Final = (
    (re.compile(r"package-\d+(-die-\d+)?"), "rapl:package"),
    (re.compile(r"psys(-\d+)?"), "rapl:psys"),
    (re.compile(r"dram"), "rapl:dram"),
    (re.compile(r"core"), "rapl:core"),
    (re.compile(r"uncore"), "rapl:uncore"),
)
_COUNTER_STEPS = 2**32 - 1
"""RAPL counters have 32 bits (Intel SDM vol. 3B, 15.10.1), so the range is so many steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaplZone:
    """A zone that counts energy.

    Parameters
    ----------
    folder : Path
    name : str
        Its name, with that of its package before it where it lies below one: ``"package-0/dram"``.
    scope : str
    range_uj : int
        The largest value that the counter shows; 0 where the kernel does not tell, so that wraps cannot be undone.
    """

    folder: Path
    name: str
    scope: str
    range_uj: int

    @property
    def counter(self) -> Path:
        """The file that counts, in microjoules."""
        return self.folder / "energy_uj"


def read_text(path: Path) -> str:
    """Read a file of sysfs."""
    return path.read_text(encoding="ascii", errors="replace").strip()


def rapl_zones(root: Path = Path("/"), *, read: Callable[[Path], str] = read_text) -> tuple[RaplZone, ...]:
    """Return the zones of a machine, each once: what the memory-mapped interface shows as well is dropped.

    Parameters
    ----------
    root : Path
        Where the machine's files are.
    read : callable
        Reads a file.
    """
    folders = sorted(_folders(root / POWERCAP), key=_order)
    named: dict[Path, str] = {}
    for folder in folders:
        try:
            named[folder] = read(folder / "name")
        except OSError:
            continue
    zones: dict[str, RaplZone] = {}
    # Those of the model-specific registers first: of two with one name the memory-mapped one is the duplicate.
    for folder in sorted(named, key=lambda folder: folder.name.startswith("intel-rapl-mmio")):
        above = named.get(folder.with_name(folder.name.rpartition(":")[0]))
        name = f"{above}/{named[folder]}" if above else named[folder]
        scope = next((scope for pattern, scope in _SCOPES if pattern.fullmatch(named[folder])), "")
        try:
            range_uj = max(int(read(folder / "max_energy_range_uj")), 0)
        except (OSError, ValueError):
            range_uj = 0
        if scope and name not in zones:
            zones[name] = RaplZone(folder=folder, name=name, scope=scope, range_uj=range_uj)
    return tuple(zones.values())


def energy_step_uj(range_uj: int) -> float:
    """Return the step of a counter from its range, in microjoules: 61.035 on most of Intel's, 15.258 on AMD's.

    Examples
    --------
    >>> round(energy_step_uj(262143328850), 3)
    61.035
    """
    return range_uj / _COUNTER_STEPS


def wrapped_difference(before_uj: int, after_uj: int, range_uj: int) -> float:
    """Return how far a counter went, in microjoules, if it wrapped once at most.

    After its largest value the counter goes on at 0 with its next step, so that it starts anew every
    ``range + step``.

    Examples
    --------
    >>> round(wrapped_difference(262143328850, 0, 262143328850))
    61
    """
    return (after_uj - before_uj) % (range_uj + energy_step_uj(range_uj))


def _folders(powercap: Path) -> Sequence[Path]:
    try:
        return [folder for folder in powercap.iterdir() if _FOLDER.fullmatch(folder.name)]
    except OSError:
        return []


def _order(folder: Path) -> tuple[str, tuple[int, ...]]:
    kind, *numbers = folder.name.split(":")
    return kind, tuple(map(int, numbers))


def why_no_zone(root: Path) -> str:
    """Return in words why a machine has no RAPL zone, as far as its files tell."""
    if not (root / "sys/class/powercap").is_dir():
        what = "there is no /sys/class/powercap"
    else:
        what = "powercap has no RAPL zone"
    kinds = [
        kind
        for kind, holds in (
            ("a virtual machine (hypervisors do not pass RAPL on)", is_virtual(root)),
            ("a container (engines hide powercap, CVE-2020-8694)", _is_container(root)),
        )
        if holds
    ]
    return f"this is {' and '.join(kinds)}; {what}" if kinds else f"{what}: try modprobe intel_rapl_msr"


def is_virtual(root: Path) -> bool:
    """Whether the processor says that a hypervisor runs it."""
    try:
        text = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any("hypervisor" in line.split() for line in text.splitlines() if line.startswith("flags"))


def _is_container(root: Path) -> bool:
    return any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv"))
