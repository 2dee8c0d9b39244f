"""RAPL through powercap: energy counters of the processor and its memory, as the kernel shows them.

RAPL sees the processor and, on servers, the memory: neither network cards nor fans nor what the power supply loses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.quantity.schema import field, value
from routecast.testbed.meters._sampled import Sample
from routecast.testbed.meters.meter import Zone

RAPL_SCOPES: Final = ("package", "psys", "dram", "package+dram")
"""What the sum may cover; ``package`` if not told."""


@value
class RaplCover:
    """A meter of RAPL's counters and what it adds up.

    Raises FileProblem: there is no such scope.
    """

    meter: str = field('``"rapl"`` or ``"perf"``')
    covers: str = field("One of :data:`RAPL_SCOPES`")

    def __post_init__(self) -> None:
        if self.covers not in RAPL_SCOPES:
            allowed = ", ".join(f"{self.meter}:{rapl_scope}" for rapl_scope in RAPL_SCOPES)
            what = f"got {self.meter}:{self.covers}: allowed are {allowed}"
            raise FileProblem("power meter", [Problem("", what)])

    @property
    def name(self) -> str:
        """The meter as it is named: ``rapl``, ``perf:psys``."""
        return self.meter if self.covers == "package" else f"{self.meter}:{self.covers}"

    @property
    def scope(self) -> str:
        """What the sum covers: ``rapl:package+dram``."""
        return f"rapl:{self.covers}"

    @property
    def zone_scopes(self) -> frozenset[str]:
        """Scopes of the zones that are added up."""
        return frozenset(f"rapl:{part}" for part in self.covers.split("+"))


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


@value
class RaplZone:
    """A zone that counts energy.

    The tree of RAPL zones under ``/sys/class/powercap``, and what lies within what.

    ::

        psys ⊃ package-0 ⊃ core, uncore          watts of a zone hold those of the zones within it
               package-1 ⊃ …                     packages stand side by side and add up
               dram                              listed below its package, but its watts are its own

    In sysfs, psys stands beside the packages that it contains, and dram below a package that does not contain it, so
    the tree of folders says nothing about sums: the names do (Documentation/power/powercap/powercap.rst and
    drivers/powercap/intel_rapl_common.c of Linux). AMD's processors have the same tree.
    """

    folder: Path
    name: str = field('Its name, with that of its package before it where it lies below one: ``"package-0/dram"``')
    scope: str
    # The largest value that the counter shows; 0 where the kernel does not tell, so that wraps cannot be undone.
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

    ``root``: where the machine's files are; ``read``: reads a file.
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


RAPL_INTERVAL_S: Final = 0.1
"""Between samples: far below a minute, in which a counter of 32 bits can wrap, and above the 50 ms below which the
jitter of the counter's updates shows."""

_SUSPICIOUS_RATIO = 0.5
"""A counter that is read in time goes by a small share of its range: 0.1 s of 500 W are 0.02 % of the usual one."""

READ_RECIPE: Final = (
    "echo 'z /sys/devices/virtual/powercap/intel-rapl/intel-rapl:*/energy_uj 0440 root power' "
    "> /etc/tmpfiles.d/rapl.conf; "
    "echo 'z /sys/devices/virtual/powercap/intel-rapl/intel-rapl:*/intel-rapl:*/energy_uj 0440 root power' "
    ">> /etc/tmpfiles.d/rapl.conf; "
    'groupadd -f power; usermod -aG power "$USER"; systemd-tmpfiles --create rapl.conf'
)
"""Lets a group read the counters, now and after each start. Not everybody: CVE-2020-8694 reads keys with them."""


class RaplSource:
    """Counters of the RAPL zones of a machine.

    ``root``: where the machine's files are; ``covers``: one of :data:`~routecast.testbed.meters._rapl.RAPL_SCOPES`:
    which zones make the sum. The others are read and reported, but not added; ``read``: reads a file. Raises
    FileProblem: there is no such scope.
    """

    def __init__(
        self, root: Path = Path("/"), *, covers: str = "package", read: Callable[[Path], str] = read_text
    ) -> None:
        self._root = root
        self._covers = RaplCover(meter="rapl", covers=covers)
        self._read = read
        self._zones: Mapping[str, RaplZone] = {}
        self._unread: tuple[str, ...] = ()
        self.zones: tuple[Zone, ...] = ()

    @property
    def name(self) -> str:
        """The meter as it is named: ``rapl``, ``rapl:psys``."""
        return self._covers.name

    @property
    def scope(self) -> str:
        """What the sum covers."""
        return self._covers.scope

    @property
    def quantum_j(self) -> float:
        """Least step of the sum: that of its coarsest counter."""
        steps = [energy_step_uj(self._zones[zone.name].range_uj) for zone in self.zones if zone.is_counted]
        return 1e-6 * max(steps, default=math.nan)

    def open(self) -> None:
        """Find the zones that can be read.

        Raises EnvironmentProblem: there is no zone of this scope, or it may not be read.
        """
        zones = rapl_zones(self._root, read=self._read)
        if not zones:
            raise EnvironmentProblem(f"power meter {self.name}: {why_no_zone(self._root)}")
        readable: list[RaplZone] = []
        denied: list[RaplZone] = []
        broken: list[RaplZone] = []
        for zone in zones:
            try:
                int(self._read(zone.counter))
            except PermissionError:
                denied.append(zone)
            except (OSError, ValueError):
                broken.append(zone)
            else:
                (readable if zone.range_uj else broken).append(zone)
        wanted = self._covers.zone_scopes
        missing = wanted - {zone.scope for zone in readable}
        if missing and denied:
            raise EnvironmentProblem(
                f"power meter {self.name}: {zones[0].counter.parent.name}/energy_uj is for root only "
                f"(CVE-2020-8694): run as root, or let a group read it: {READ_RECIPE}"
            )
        if missing:
            there = ", ".join(sorted({zone.scope for zone in readable})) or "none"
            raise EnvironmentProblem(
                f"power meter {self.name}: this processor has no zone {', '.join(sorted(missing))}; there are: {there}"
            )
        self._zones = {zone.name: zone for zone in readable}
        self._unread = tuple(
            f"{zone.name}{' (the sum lacks it)' if zone.scope in wanted else ''}" for zone in (*denied, *broken)
        )
        first_psys = next((zone.name for zone in readable if zone.scope == "rapl:psys"), "")
        # psys is the whole platform: where each socket shows one, adding them could count it twice.
        self.zones = tuple(
            Zone(
                name=zone.name,
                scope=zone.scope,
                is_counted=zone.scope in wanted and (zone.scope != "rapl:psys" or zone.name == first_psys),
            )
            for zone in readable
        )

    def read(self) -> Mapping[str, float]:
        """Return each zone's counter in microjoules; a zone that went away is not in it."""
        values = {}
        for name, zone in self._zones.items():
            try:
                values[name] = float(int(self._read(zone.counter)))
            except (OSError, ValueError):
                continue
        return values

    def power_w(self, zone: str, before: Sample, after: Sample) -> float:
        """Return the energy between two samples over their time; a wrap between them is undone."""
        difference_uj = wrapped_difference(
            int(before.values[zone]), int(after.values[zone]), self._zones[zone].range_uj
        )
        return 1e-6 * difference_uj / (after.at_s - before.at_s)

    def is_gauge(self) -> bool:
        """Return False: it counts energy."""
        return False

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Say which counters stand still, and which cannot be read."""
        notes = []
        for zone in self.zones:
            seen = [sample.values[zone.name] for sample in samples if zone.name in sample.values]
            if zone.is_counted and len(seen) > 1 and len(set(seen)) == 1:
                notes.append(
                    f"the counter of {zone.name} stands still: a hypervisor shows it without counting, or it is broken"
                )
            if share := self._farthest(zone.name, samples):
                notes.append(
                    f"the counter of {zone.name} went by {share:.0%} of its range between two samples: it was started "
                    "anew in between, or they are so far apart that it may have wrapped more than once"
                )
        if self._unread:
            notes.append(f"zones that cannot be read: {', '.join(self._unread)}")
        return notes

    def close(self) -> None:
        """Keep nothing open."""

    def _farthest(self, zone: str, samples: Sequence[Sample]) -> float:
        """Return the largest share of its range that a counter went between two samples, if it is suspicious."""
        range_uj = self._zones[zone].range_uj
        seen = [int(sample.values[zone]) for sample in samples if zone in sample.values]
        shares = [wrapped_difference(before, after, range_uj) / range_uj for before, after in pairwise(seen)]
        return max((share for share in shares if share > _SUSPICIOUS_RATIO), default=0.0)
