"""RAPL through powercap: energy counters of the processor and its memory, as the kernel shows them.

RAPL covers the processor and, on servers, the memory, but not network cards, fans and the losses of the power supply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.lab.testbed.meters._meter import Zone
from routecast.lab.testbed.meters._sampled import Sample, Source
from routecast.quantity.schema import field, value

RAPL_SCOPES: Final = ("package", "psys", "dram", "package+dram")
"""What the sum may cover; ``package`` by default."""

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
"""RAPL counters have 32 bits (Intel SDM vol. 3B, 15.10.1): their range has so many steps."""

RAPL_INTERVAL_S: Final = 0.1
"""Time between samples: far below a minute, in which a 32-bit counter can wrap, and above 50 ms, below which the jitter
of its updates shows."""

_SUSPICIOUS_RATIO = 0.5
"""A counter read in time uses a small share of its range: 0.1 s at 500 W is 0.02 % of the usual range."""

READ_RECIPE: Final = (
    "echo 'z /sys/devices/virtual/powercap/intel-rapl/intel-rapl:*/energy_uj 0440 root power' "
    "> /etc/tmpfiles.d/rapl.conf; "
    "echo 'z /sys/devices/virtual/powercap/intel-rapl/intel-rapl:*/intel-rapl:*/energy_uj 0440 root power' "
    ">> /etc/tmpfiles.d/rapl.conf; "
    'groupadd -f power; usermod -aG power "$USER"; systemd-tmpfiles --create rapl.conf'
)
"""Lets a group read the counters, now and after each boot. Others may not: CVE-2020-8694 reads keys with them."""


@value
class RaplSelection:
    """The counters that a RAPL meter adds up.

    Raises FileProblem: there is no such scope.
    """

    meter: str = field('``"rapl"`` or ``"perf"``')
    covers: str = field("One of :data:`RAPL_SCOPES`")

    def __post_init__(self) -> None:
        if self.covers not in RAPL_SCOPES:
            allowed = ", ".join(f"{self.meter}:{scope}" for scope in RAPL_SCOPES)
            message = f"got {self.meter}:{self.covers}: allowed are {allowed}"
            raise FileProblem("power meter", [Problem("", message)])

    @property
    def name(self) -> str:
        """Name of the meter: ``rapl``, ``perf:psys``."""
        return self.meter if self.covers == "package" else f"{self.meter}:{self.covers}"

    @property
    def scope(self) -> str:
        """What the sum covers: ``rapl:package+dram``."""
        return f"rapl:{self.covers}"

    @property
    def zone_scopes(self) -> frozenset[str]:
        """Scopes of the zones in the sum."""
        return frozenset(f"rapl:{part}" for part in self.covers.split("+"))


@value
class RaplZone:
    """A zone with a counter of energy, in the tree under ``/sys/class/powercap``.

    ::

        psys ⊃ package-0 ⊃ core, uncore          a zone's watts include those of zones within it
               package-1 ⊃ …                     packages stand side by side and add up
               dram                              listed below its package, which does not include its watts

    In sysfs, psys stands beside the packages that it contains, and dram below a package that does not contain it. So
    the names decide about sums, not the folders (Documentation/power/powercap/powercap.rst and
    drivers/powercap/intel_rapl_common.c of Linux). AMD's processors have the same tree.
    """

    folder: Path
    name: str = field('Name, after that of its package if it lies below one: ``"package-0/dram"``')
    scope: str
    range_uj: int = field(
        "Largest value of the counter; 0 if the kernel does not report it, so that wraps cannot be undone"
    )

    @property
    def counter(self) -> Path:
        """The file of the counter, in microjoules."""
        return self.folder / "energy_uj"


def read_text(path: Path) -> str:
    """Read a file of sysfs."""
    return path.read_text(encoding="ascii", errors="replace").strip()


def rapl_zones(root: Path = Path("/"), *, read: Callable[[Path], str] = read_text) -> tuple[RaplZone, ...]:
    """Return each zone of a machine once; duplicates of the memory-mapped interface are left out."""
    folders = sorted(_zone_folders(root / POWERCAP), key=_folder_key)
    name_by_folder: dict[Path, str] = {}
    for folder in folders:
        try:
            name_by_folder[folder] = read(folder / "name")
        except OSError:
            continue
    zones: dict[str, RaplZone] = {}
    # Model-specific registers go first: of two zones with one name the memory-mapped one is the duplicate.
    for folder in sorted(name_by_folder, key=lambda folder: folder.name.startswith("intel-rapl-mmio")):
        package = name_by_folder.get(folder.with_name(folder.name.rpartition(":")[0]))
        name = f"{package}/{name_by_folder[folder]}" if package else name_by_folder[folder]
        scope = next((scope for pattern, scope in _SCOPES if pattern.fullmatch(name_by_folder[folder])), "")
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
    """Return the increase of a counter in microjoules, if it wrapped at most once.

    The step after its largest value leads to 0, so that the counter wraps every ``range + step``.

    Examples
    --------
    >>> round(wrapped_difference(262143328850, 0, 262143328850))
    61
    """
    return (after_uj - before_uj) % (range_uj + energy_step_uj(range_uj))


def _zone_folders(powercap: Path) -> Sequence[Path]:
    try:
        return [folder for folder in powercap.iterdir() if _FOLDER.fullmatch(folder.name)]
    except OSError:
        return []


def _folder_key(folder: Path) -> tuple[str, tuple[int, ...]]:
    kind, *numbers = folder.name.split(":")
    return kind, tuple(map(int, numbers))


def why_no_zone(root: Path) -> str:
    """Return the likely reason why a machine has no RAPL zone, from its files."""
    has_powercap = (root / POWERCAP).is_dir()
    message = "powercap has no RAPL zone" if has_powercap else f"there is no /{POWERCAP}"
    kinds = [
        kind
        for kind, is_so in (
            ("a virtual machine (hypervisors do not pass RAPL on)", is_virtual(root)),
            ("a container (engines hide powercap, CVE-2020-8694)", _is_container(root)),
        )
        if is_so
    ]
    return f"this is {' and '.join(kinds)}; {message}" if kinds else f"{message}: try modprobe intel_rapl_msr"


def is_virtual(root: Path) -> bool:
    """Whether the processor's flags name a hypervisor."""
    try:
        text = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any("hypervisor" in line.split() for line in text.splitlines() if line.startswith("flags"))


def _is_container(root: Path) -> bool:
    return any((root / marker).exists() for marker in (".dockerenv", "run/.containerenv"))


class RaplSource(Source):
    """Counters of the RAPL zones of a machine.

    ``root`` is the folder of the machine's files. ``covers``, one of RAPL_SCOPES, names the zones of the sum; the other
    zones are read and reported, but not added. Raises FileProblem: there is no such scope.
    """

    is_gauge = False

    def __init__(
        self, root: Path = Path("/"), *, covers: str = "package", read: Callable[[Path], str] = read_text
    ) -> None:
        self._root = root
        self._selection = RaplSelection(meter="rapl", covers=covers)
        self.name, self.scope = self._selection.name, self._selection.scope
        self._read = read
        self._zones: Mapping[str, RaplZone] = {}
        self._unreadable: tuple[str, ...] = ()
        self.zones: tuple[Zone, ...] = ()

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
        scopes = self._selection.zone_scopes
        missing = scopes - {zone.scope for zone in readable}
        if missing and denied:
            raise EnvironmentProblem(
                f"power meter {self.name}: {zones[0].counter.parent.name}/energy_uj is for root only "
                f"(CVE-2020-8694): run as root, or let a group read it: {READ_RECIPE}"
            )
        if missing:
            names = ", ".join(sorted({zone.scope for zone in readable})) or "none"
            raise EnvironmentProblem(
                f"power meter {self.name}: this processor has no zone {', '.join(sorted(missing))}; there are: {names}"
            )
        self._zones = {zone.name: zone for zone in readable}
        self._unreadable = tuple(
            f"{zone.name}{' (the sum lacks it)' if zone.scope in scopes else ''}" for zone in (*denied, *broken)
        )
        first_psys = next((zone.name for zone in readable if zone.scope == "rapl:psys"), "")
        # psys is the whole platform: if each socket shows one, adding them could count it twice.
        self.zones = tuple(
            Zone(
                name=zone.name,
                scope=zone.scope,
                is_counted=zone.scope in scopes and (zone.scope != "rapl:psys" or zone.name == first_psys),
            )
            for zone in readable
        )
        steps_uj = [energy_step_uj(self._zones[zone.name].range_uj) for zone in self.zones if zone.is_counted]
        self.quantum_j = 1e-6 * max(steps_uj, default=math.nan)  # that of the coarsest counter

    def read(self) -> Mapping[str, float]:
        """Return each zone's counter in microjoules; zones that went away are left out."""
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

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return notes on counters that stand still, jump or cannot be read."""
        notes = []
        for zone in self.zones:
            values = [sample.values[zone.name] for sample in samples if zone.name in sample.values]
            if zone.is_counted and len(values) > 1 and len(set(values)) == 1:
                notes.append(f"the counter of {zone.name} does not change: a hypervisor emulates it, or it is broken")
            if share := self._suspicious_step_ratio(zone.name, samples):
                notes.append(
                    f"the counter of {zone.name} rose by {share:.0%} of its range between two samples: it restarted "
                    "in between, or they are so far apart that it may have wrapped more than once"
                )
        if self._unreadable:
            notes.append(f"zones that cannot be read: {', '.join(self._unreadable)}")
        return notes

    def _suspicious_step_ratio(self, zone: str, samples: Sequence[Sample]) -> float:
        """Return the largest step of a counter between two samples as a share of its range; 0 if unsuspicious."""
        range_uj = self._zones[zone].range_uj
        values = [int(sample.values[zone]) for sample in samples if zone in sample.values]
        shares = [wrapped_difference(before, after, range_uj) / range_uj for before, after in pairwise(values)]
        return max((share for share in shares if share > _SUSPICIOUS_RATIO), default=0.0)
