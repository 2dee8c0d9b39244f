"""Energy of a fleet over the day from below and from above, fast enough to ask for thousands of fleets.

Where one table answers exactly the two are the same. Elsewhere the search may not wait for every fleet:

* with spares and idle power together the lower value is the greater of two relaxations (no spares; every bit at the
  least slope) until the upper one is asked for, which is exact and takes many tables;
* capacities without a common quantum are rounded to a fine one, up for the lower value and down for the upper. What
  the rounded capacities miss at the edge of a fleet is carried by all of its machines.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from routecast.plan.cluster.model import Schedule
from routecast.plan.cluster.step.cover import (
    Floats,
    Ints,
    cover_costs,
    cover_counts,
    idle_cover_costs,
    spare_cover_costs,
    spare_cover_counts,
)
from routecast.plan.cluster.step.dispatch import Dispatcher
from routecast.plan.cluster.step.power import power_w

__all__ = ["FleetEnergy", "OutOfTime"]

_CELLS = 50_000
"""Quanta of the peak where capacities have no quantum in common, or a finer one."""
_FEW_CELLS = 5_000
"""The same for a schedule that is wanted at once."""
_TIGHT_S = 0.1
"""A fleet that takes longer is not worked out for a bound: more bounds, if less tight, are found in that time."""


class OutOfTime(Exception):
    """Raised by ``Dispatcher.pause`` where an answer that takes long may be replaced by a quick one."""


class FleetEnergy:
    """Energies of fleets for the loads of a dispatcher; each fleet is worked out once.

    Attributes
    ----------
    asked : int
        Fleets worked out.
    slowest_s : float
        The longest time that a fleet took which one table does not answer.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.exact = dispatcher.quick
        self._low: dict[tuple[int, ...], float] = {}
        self._high: dict[tuple[int, ...], float] = {}
        self._quick: dict[tuple[int, ...], float] = {}
        self.slowest_s = 0.0
        self._rounded_up = _Rounded(dispatcher, np.ceil)
        self._rounded_down = _Rounded(dispatcher, np.floor)

    @property
    def asked(self) -> int:
        """Fleets worked out."""
        return len(self._low) + (0 if self.exact else len(self._high) + len(self._quick))

    def low_j(self, fleet: Sequence[int]) -> float:
        """Return an energy that the fleet, or any smaller one, cannot go below; inf if it does not carry the peak."""
        key = tuple(self.dispatcher.limits(fleet).tolist())
        value = self._low.get(key)
        if value is None:
            if self.exact:
                value = self.dispatcher.energy_j(key)
            else:
                value = self._day_j(self._rounded_up.least_w(np.array(key)))
            self._low[key] = value
        return value

    def high_j(self, fleet: Sequence[int]) -> float:
        """Return an energy that the fleet can be run at; inf if it does not carry the peak.

        Where tables answer it is the least, unless the time is over.
        """
        if self.exact:
            return self.low_j(fleet)
        key = tuple(self.dispatcher.limits(fleet).tolist())
        value = self._high.get(key)
        if value is not None:
            return value
        if self._is_worked_out(key):
            return self._high[key]
        value = self._quick.get(key)
        if value is None:
            carries = self.dispatcher.carried_bps(key) >= float(self._loads_bps[-1]) * (1.0 - 1e-12)
            powers_w = power_w(self.dispatcher.arrays, self._reachable(key), self._loads_bps)
            value = self._quick[key] = self._day_j(powers_w) if carries else np.inf
        return value

    def tight_j(self, fleet: Sequence[int]) -> float:
        """Return ``low_j``, raised to the least energy of the fleet where tables give it soon."""
        key = tuple(self.dispatcher.limits(fleet).tolist())
        if not self.exact and key not in self._high and self.slowest_s < _TIGHT_S:
            self._is_worked_out(key)
        return self.low_j(key)

    def _is_worked_out(self, key: tuple[int, ...]) -> bool:
        """Find the least energy of a fleet, if tables give it in time."""
        if not self.dispatcher.tabulated:
            return False
        begin = time.perf_counter()
        try:
            self._low[key] = self._high[key] = self.dispatcher.energy_j(key)
        except OutOfTime:
            return False
        self.slowest_s = max(self.slowest_s, time.perf_counter() - begin)
        return True

    def schedule(self, fleet: Sequence[int]) -> Schedule:
        """Return the cheapest schedule of a fleet that carries the peak; one as in ``high_j`` if the time is over."""
        try:
            return self.dispatcher.schedule(fleet)
        except OutOfTime:
            return self.dispatcher.schedule_of(self._reachable(tuple(self.dispatcher.limits(fleet).tolist())))

    @property
    def _loads_bps(self) -> Floats:
        return self.dispatcher.loads_bps

    def _reachable(self, key: tuple[int, ...]) -> Ints:
        """Return machines for every distinct load, the best of a few choices."""
        arrays = self.dispatcher.arrays
        best = np.where(self._loads_bps[:, None] > 0.0, np.array(key), 0)
        for costs in (arrays.power_w, arrays.idle_w) if self.dispatcher.linear else (arrays.power_w,):
            known, counts = self._rounded_down.machines(np.array(key), costs)
            better = known & (power_w(arrays, counts, self._loads_bps) < power_w(arrays, best, self._loads_bps))
            best[better] = counts[better]
        return best

    def _day_j(self, powers_w: Floats) -> float:
        return float(powers_w @ self.dispatcher.repeats) * self.dispatcher.problem.step_s


class _Rounded:
    """Tables over capacities that are rounded to a quantum; not used where the dispatcher's own are exact."""

    def __init__(self, dispatcher: Dispatcher, rounding: np.ufunc) -> None:
        arrays = dispatcher.arrays
        peak_bps = float(dispatcher.loads_bps[-1]) or float(arrays.capacity_bps.max())
        cells = _CELLS if rounding is np.ceil or not dispatcher.tabulated else _FEW_CELLS
        quantum_bps = max(dispatcher.quantum_bps or 0.0, peak_bps / cells)
        self._dispatcher = dispatcher
        quanta = arrays.capacity_bps / quantum_bps
        is_whole = quantum_bps == dispatcher.quantum_bps
        rounded = np.rint(quanta) if is_whole else rounding(quanta * (1.0 + 1e-12))
        self._weights: Ints = rounded.astype(np.int64)
        self._loads: Floats = dispatcher.loads_bps / quantum_bps
        self._needs: Ints = np.ceil(self._loads * (1.0 - 1e-12)).astype(np.int64)
        self._slopes: Floats = arrays.slope_j * quantum_bps

    def least_w(self, limits: Ints) -> Floats:
        """Return powers not above the least ones of every distinct load."""
        spare = self._dispatcher.problem.spare
        arrays = self._dispatcher.arrays
        cells = int(self._needs[-1])
        if not self._dispatcher.linear:
            return self._cover_w(arrays.power_w, limits, cells)
        # A machine that is rounded up serves its rounded load at the slope of its true one: never dearer.
        without_spares = idle_cover_costs(self._weights, arrays.idle_w, self._slopes, limits, self._loads)
        if not spare:
            return without_spares
        used = limits > 0
        slope = float(self._slopes[used].min(initial=np.inf)) if used.any() else 0.0
        every_bit = self._cover_w(arrays.idle_w, limits, cells) + slope * self._loads
        return np.maximum(without_spares, every_bit)

    def _cover_w(self, costs: Floats, limits: Ints, cells: int) -> Floats:
        spare = self._dispatcher.problem.spare
        if spare:
            return spare_cover_costs(self._weights, costs, limits, cells, spare)[self._needs]
        return cover_costs(self._weights, costs, limits, cells)[self._needs]

    def machines(self, limits: Ints, costs: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Ints]:
        """Return which distinct loads the rounded machines carry, and the cheapest of them by ``costs``."""
        limits = np.where(self._weights > 0, limits, 0)
        known = np.isfinite(self._cover_w(costs, limits, int(self._needs[-1])))
        counts = np.zeros((known.size, limits.size), dtype=np.int64)
        spare = self._dispatcher.problem.spare
        if spare:
            counts[known] = spare_cover_counts(self._weights, costs, limits, self._needs[known], spare)
        else:
            counts[known] = cover_counts(self._weights, costs, limits, self._needs[known])
        return known, counts
