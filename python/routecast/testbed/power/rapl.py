"""RAPL through powercap: energy counters of the processor and its memory, as the kernel shows them.

RAPL sees the processor and, on servers, the memory: neither network cards nor fans nor what the power supply loses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from routecast.errors import EnvironmentProblem
from routecast.testbed.power.rapl_cover import RaplCover
from routecast.testbed.power.reading import Zone
from routecast.testbed.power.sampled import Sample
from routecast.testbed.power.zones import (
    RaplZone,
    energy_step_uj,
    rapl_zones,
    read_text,
    why_no_zone,
    wrapped_difference,
)

__all__ = ["RAPL_INTERVAL_S", "READ_RECIPE", "RaplSource"]

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

    Parameters
    ----------
    root : Path
        Where the machine's files are.
    covers : str
        One of :data:`~routecast.testbed.power.rapl_cover.RAPL_SCOPES`: which zones make the sum. The others are read
        and reported, but not added.
    read : callable
        Reads a file.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such scope.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        covers: str = "package",
        read: Callable[[Path], str] = read_text,
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

        Raises
        ------
        routecast.errors.EnvironmentProblem
            There is no zone of this scope, or it may not be read.
        """
        found = rapl_zones(self._root, read=self._read)
        if not found:
            raise EnvironmentProblem(f"power meter {self.name}: {why_no_zone(self._root)}")
        readable: list[RaplZone] = []
        denied: list[RaplZone] = []
        broken: list[RaplZone] = []
        for zone in found:
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
                f"power meter {self.name}: {found[0].counter.parent.name}/energy_uj is for root only "
                f"(CVE-2020-8694): run as root, or let a group read it: {READ_RECIPE}"
            )
        if missing:
            there = ", ".join(sorted({zone.scope for zone in readable})) or "none"
            raise EnvironmentProblem(
                f"power meter {self.name}: this processor has no zone {', '.join(sorted(missing))}; there are: {there}"
            )
        self._zones = {zone.name: zone for zone in readable}
        self._unread = tuple(
            f"{zone.name}{' (the sum lacks it)' if zone.scope in wanted else ''}"
            for zone in (*denied, *broken)
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
            seen = [one.values[zone.name] for one in samples if zone.name in one.values]
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
        seen = [int(one.values[zone]) for one in samples if zone in one.values]
        shares = [wrapped_difference(before, after, range_uj) / range_uj for before, after in pairwise(seen)]
        return max((share for share in shares if share > _SUSPICIOUS_RATIO), default=0.0)
