"""Windows (:attr:`~routecast.router.model.Need.until`): throughput and latency with a limited number of frames inside.

Between the two ends of a window there are at most T frames, so frames pass at ``T / (time inside)`` at most (Little's
law), and no faster than the stations inside serve: the asymptotic bounds of a closed network (Denning & Buzen, ACM
Computing Surveys 10(3), 1978). Between the bounds:

- *stations that a window has for itself* (an engine and its threads): exact for service times that are constant (the
  pattern in which T frames follow each other) and, station by station, for exponential ones (mean value analysis,
  Reiser & Lavenberg, JACM 27(2), 1980); in between by the squared coefficient of variation (see
  :mod:`routecast.evaluate._closed_networks`);
- *stations that several windows share* (a memory, an engine with two stages): the wait is that of approximate mean
  value analysis: an arriving frame finds the mean queue without itself (Schweitzer, Approximate analysis of multiclass
  closed networks of queues, 1979), less the finished part of the service under way (Reiser, A queueing network analysis
  of computer communication networks with window flow control, IEEE Trans. Comm. 27(8), 1979). At a full station every
  visit waits equally long, so long that the arriving rate equals the service rate (first come, first served);
- a window passes no more than its arriving rate, and its frames occupy its units only while they are inside; a window
  inside another window makes frames wait as a full station does.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from routecast.evaluate._general_queues import ServiceMix
from routecast.evaluate.solve._scheduling_shares import Component, served_at_once
from routecast.evaluate.solve.flow import FlowGraph, Vector
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel, TaskUnit
from routecast.router.window import Window, windows_among

if TYPE_CHECKING:
    from routecast.evaluate._closed_networks import Visit

_MAX_ROUNDS = 400
_PATTERN_ROUNDS = (0, 20)
_TOLERANCE = 1e-9
_TINY = 1e-300
_AT_THE_BOUND = 0.999
_IN_STEP_RATIO = 0.5
"""Frames with constant service times fall into step, so their wait is this share of the random wait. Calibrated on
packet simulations of 40 random routers (2 to 5 engines, 1 to 8 threads, up to 4 accesses to one memory, in overload):
1 % off on average, at most 6 %."""
_DISTURBED_SPREAD = 0.2
"""Spread of the delays of a window that shares stations with others. Calibrated on packet simulations of twenty routers
on network processors whose threads and engines limit alike; their rates are within 5 %."""


@value
class WindowRates:
    """Rates through the windows, in the order of :attr:`Windows.enter`."""

    pps: Vector = field("Rate of frames")
    residence_s: Vector = field("Time from the grant of the units to their return, waits inside included, s")
    max_pps: Vector = field(
        "Rate that each window would let through if enough frames came, the others unchanged, frames/s"
    )
    alone_pps: Vector = field("Capacity of the units themselves, if no station were full, frames/s")
    # Wait for each visit of a station that is shared or full; shape (stations,). The waits of the threads of one engine
    # for each other are in ``residence_s``.
    wait_s: Vector


@value
class Windows:
    """The windows of a router under a load, prepared for repeated computation."""

    enter: tuple[int, ...] = field("Task unit where each window begins")
    pools: tuple[str, ...]
    units: Vector = field("Frames that each window has room for")
    visits: Vector = field("Visits of a frame of each window to each station, (windows, stations)")
    demand_s: Vector = field("Service demand of a frame of each window at each station, s, (windows, stations)")
    servers: Vector = field("Servers of each station; for a window inside another one its units")
    delay_s: Vector = field("Time that each window's frames spend outside all stations, s")
    inner: tuple[int, ...] = field("Window that each station stands for; -1 for a station of units")
    paths: tuple[tuple[Visit, ...], ...] = field(
        "Visits in order by window, where all frames take the same path; else empty"
    )
    scv: Vector = field("Squared coefficient of variation of the service times by station")
    station: Mapping[int, int] = field("Station by task unit")
    names: tuple[str, ...] = field("Names of the stations: pools, or task units without a pool")
    tasks: tuple[frozenset[int], ...] = field("Task units inside, by window")

    @property
    def inside(self) -> frozenset[int]:
        """Task units where frames hold units of a window, except the task units that grant these units."""
        return frozenset().union(*self.tasks) - frozenset(self.enter)

    @property
    def never_wait(self) -> frozenset[int]:
        """Task units inside windows that serve all frames at once, so that frames are only delayed."""
        return self.inside - frozenset(self.station)

    def paces(self, arriving_pps: Vector) -> tuple[Vector, Vector]:
        """Return bounds of :attr:`WindowRates.max_pps` at these arriving rates.

        At shared stations frames wait between not at all and as long as random ones; at a window's own stations their
        pattern is that of even delays, or of delays that vary twice as much as calibrated.
        """
        slow = self.rates_through(arriving_pps, in_step_ratio=1.0, spread=2.0 * _DISTURBED_SPREAD).max_pps
        fast = self.rates_through(arriving_pps, in_step_ratio=0.0, spread=0.0).max_pps
        return np.minimum(slow, fast), np.maximum(slow, fast)

    def rates_through(
        self, arriving_pps: Vector, *, in_step_ratio: float = _IN_STEP_RATIO, spread: float = _DISTURBED_SPREAD
    ) -> WindowRates:
        """Return the rates through the windows at these arriving rates.

        ``in_step_ratio``: share of the random wait that frames with constant service times wait at shared stations;
        ``spread``: variation of the delays between the own stations of a window that shares others.
        """
        shared = (self.visits > 0.0).sum(axis=0) > 1
        per_server = np.where(shared, self.demand_s / self.servers, 0.0)
        in_step = in_step_ratio + (1.0 - in_step_ratio) * np.minimum(self.scv, 1.0)
        alone_s = self.demand_s.sum(axis=1) + self.delay_s
        wait, full_s = np.zeros_like(self.demand_s), np.zeros(len(self.servers))
        bound_ratio = np.ones(len(self.units))
        rate = np.minimum(arriving_pps, self.units / np.maximum(alone_s, _TINY))
        residence = max_pps = alone_s
        for number in range(_MAX_ROUNDS):
            previous = rate, full_s
            free_s = alone_s + wait.sum(axis=1)
            if number in _PATTERN_ROUNDS:
                bound_ratio = self._bound_ratios(free_s, arriving_pps, spread)
            residence = free_s + self.visits @ full_s
            max_pps = bound_ratio * self.units / np.maximum(residence, _TINY)
            rate = 0.5 * (rate + np.minimum(arriving_pps, max_pps)) if number else np.minimum(arriving_pps, max_pps)
            frames_inside = np.maximum(rate * residence, 1.0)
            used = rate[:, None] * per_server
            queue = rate[:, None] * (per_server + wait)
            others = (queue.sum(axis=0) - queue / frames_inside[:, None]) - 0.5 * (1.0 - self.scv) * (
                used.sum(axis=0) - used / frames_inside[:, None]
            )
            wait = 0.5 * (wait + in_step * per_server * np.maximum(others, 0.0))
            full_s = self._adjusted_waits_s(rate, residence, full_s)
            settled = np.allclose(rate, previous[0], rtol=_TOLERANCE, atol=0.0) and np.allclose(
                full_s, previous[1], rtol=1e-6, atol=1e-6 * float(residence.max())
            )
            if settled and number > _PATTERN_ROUNDS[-1] + 3:
                break
        # Removes the last error of the iteration: a full station serves exactly its service rate.
        load = np.where(full_s > 0.0, rate @ self.demand_s / self.servers, 0.0)
        fullest = np.where(self.visits > 0.0, load, 0.0).max(axis=1, initial=0.0)
        rate = np.where(fullest > 1.0 - 1e-6, rate / np.maximum(fullest, _TINY), rate)
        return WindowRates(
            pps=np.where(max_pps >= arriving_pps * (1.0 - 1e-6), arriving_pps, np.minimum(rate, arriving_pps)),
            residence_s=np.minimum(residence, self.units / np.maximum(rate, _TINY)),
            max_pps=max_pps,
            alone_pps=bound_ratio * self.units / np.maximum(free_s, _TINY),
            wait_s=full_s + np.divide(wait, self.visits, out=np.zeros_like(wait), where=self.visits > 0.0).max(axis=0),
        )

    def _adjusted_waits_s(self, rate: Vector, residence: Vector, full_s: Vector) -> Vector:
        """Return the waits after a Newton step: longer at overloaded stations, shorter at stations with spare time."""
        work = rate @ self.demand_s
        for station, window in enumerate(self.inner):
            if window >= 0:
                work[station] = rate[window] * residence[window]
        slope = ((rate / np.maximum(residence, _TINY))[:, None] * self.demand_s * self.visits).sum(axis=0)
        step = np.divide(work - self.servers, slope, out=np.zeros_like(work), where=slope > 0.0)
        longer: Vector = np.maximum(full_s + 0.7 * step, 0.0)
        return longer

    def _bound_ratios(self, free_s: Vector, arriving_pps: Vector, disturbed: float) -> Vector:
        """Return the share of the bound that each window reaches while its frames wait at its own stations."""
        # Most routers have no windows.
        from routecast.evaluate._closed_networks import bound_pps, constant_pps, exponential_pps

        bound_ratio = np.ones(len(self.enter))
        for number, path in enumerate(self.paths):
            if not path:
                continue
            own_stations = [
                station
                for station in dict.fromkeys(station for station, _ in path if station >= 0)
                if (self.visits[:, station] > 0.0).sum() == 1 and self.servers[station] < self.units[number]
            ]
            if not own_stations:
                continue
            # Stations shared with other windows count as delays, with their waits.
            number_of = {station: index for index, station in enumerate(own_stations)}
            extra_s = float(free_s[number]) - sum(time_s for _, time_s in path)
            own_path = (*((number_of.get(station, -1), time_s) for station, time_s in path), (-1, max(extra_s, 0.0)))
            servers, customers = tuple(int(self.servers[station]) for station in own_stations), int(self.units[number])
            bound = bound_pps(own_path, servers, customers)
            scv = float(max(self.scv[station] for station in own_stations))
            spread = disturbed if len(own_stations) < int((self.visits[number] > 0.0).sum()) else 0.0
            gap_s = 1.0 / max(float(arriving_pps[number]), bound)
            steady = constant_pps(*_rounded(own_path, gap_s, servers, customers, spread)) if scv < 1.0 else 0.0
            random = exponential_pps(own_path, servers, customers) if scv > 0.0 else 0.0
            scv = min(scv, 1.0)
            rate = (1.0 - scv) * steady + scv * random
            if rate < _AT_THE_BOUND * min(bound, customers / float(free_s[number])):
                bound_ratio[number] = rate * float(free_s[number]) / customers
        return bound_ratio


def _rounded(
    path: Sequence[Visit], gap_s: float, servers: tuple[int, ...], customers: int, spread: float
) -> tuple[tuple[Visit, ...], tuple[int, ...], int, float, float]:
    """Round times to a thousandth of their sum, so that nearly equal patterns are computed once."""
    digits = 3 - math.floor(math.log10(sum(time_s for _, time_s in path)))
    rounded = tuple((station, round(time_s, digits)) for station, time_s in path)
    return rounded, servers, customers, round(gap_s, digits), spread


def windows_in(
    graph: FlowGraph, parts: Sequence[Component], rates: Vector, busy_s: Vector, scv: Callable[[], Sequence[float]]
) -> Windows | None:
    """Prepare the windows of a router; None where no frame arrives at any.

    ``rates``: rates by node and stream without loss; ``busy_s``: mean service time by task unit; ``scv``: function that
    returns the squared coefficient of variation of the service time over all frames, by task unit.
    """
    number = {task.name: index for index, task in enumerate(graph.tasks)}
    windows = [window for window in windows_among(graph.tasks) if rates[number[window.enter]].any()]
    if not windows:
        return None
    enters = [number[window.enter] for window in windows]
    insides = [frozenset(number[name] for name in window.inside) for window in windows]
    units = _units(windows, parts, rates, enters)
    spreads = scv()
    stations = _Stations(graph.tasks, parts, enters, insides, units)
    shape = (len(windows), len(stations.names))
    visits, demand, spread = np.zeros(shape), np.zeros(shape), np.zeros(shape[1])
    delay, paths = np.zeros(len(windows)), []
    for row, enter in enumerate(enters):
        visits_of_task = _visits_by_task(graph, rates, enter, insides[row])
        path: list[Visit] = []
        for index, visits_per_frame in visits_of_task.items():
            station = stations.of.get(index, -1) if index != enter else -1
            if station >= 0:
                visits[row, station] += visits_per_frame
            if station >= 0 and stations.inner[station] < 0:
                demand[row, station] += visits_per_frame * busy_s[index]
                spread[station] = max(spread[station], spreads[index])
            else:
                # The task unit where a window begins takes its time outside all stations.
                delay[row] += visits_per_frame * busy_s[index]
                station = -1
            if busy_s[index] > 0.0:
                path.append((station, float(busy_s[index])))
        straight = all(
            math.isclose(visits_per_frame, 1.0, rel_tol=1e-9) for visits_per_frame in visits_of_task.values()
        )
        paths.append(tuple(path) if straight else ())
    return Windows(
        enter=tuple(enters),
        pools=tuple(window.pool for window in windows),
        units=units,
        visits=visits,
        demand_s=demand,
        servers=np.array(stations.servers),
        delay_s=delay,
        inner=tuple(stations.inner),
        paths=tuple(paths),
        scv=spread,
        station=stations.of,
        names=tuple(stations.names),
        tasks=tuple(insides),
    )


def scv_of(model: RouterModel, load: OfferedLoad, tasks: Sequence[TaskUnit]) -> list[float]:
    """Return the squared coefficient of variation of each task unit's service time, over all frames of a load."""
    shares = load.frames.share_by_bytes
    scvs = []
    for task in tasks:
        frequency_hz = model.pool(task.needs[0].pool).frequency_hz if task.needs else None
        times = tuple(task.service.mean_s(size, frequency_hz=frequency_hz) for size in shares)
        mix = ServiceMix(shares=tuple(shares.values()), times_s=times, scv=task.service.squared_cv)
        scvs.append(mix.squared_cv)
    return scvs


class _Stations:
    """Stations where frames inside windows can wait: units of a pool, a task unit, another window inside."""

    def __init__(
        self,
        tasks: Sequence[TaskUnit],
        parts: Sequence[Component],
        enters: Sequence[int],
        insides: Sequence[frozenset[int]],
        units: Vector,
    ) -> None:
        self.names: list[str] = []
        self.servers: list[float] = []
        self.inner: list[int] = []
        self.of: dict[int, int] = {}
        part_of = {index: part for part in parts for index, _ in part.members}
        station_of_units: dict[object, int] = {}
        for index in sorted(frozenset().union(*insides)):
            task = tasks[index]
            if index in enters:
                place = enters.index(index)
                self.of[index] = self._new(part_of[index].pool.name, float(units[place]), place)
            elif task.needs:
                part = part_of[index]
                key = (part.pool.name, part.units)
                if key not in station_of_units:
                    at_once = served_at_once(task, max(len(part.units) // task.needs[0].units, 1))
                    station_of_units[key] = self._new(part.pool.name, float(at_once), -1)
                self.of[index] = station_of_units[key]
            else:
                max_frames = sum(float(units[place]) for place, inside in enumerate(insides) if index in inside)
                if task.parallel < max_frames:
                    self.of[index] = self._new(task.name, float(task.parallel), -1)

    def _new(self, name: str, servers: float, inner: int) -> int:
        self.names.append(name)
        self.servers.append(servers)
        self.inner.append(inner)
        return len(self.names) - 1


def _units(windows: Sequence[Window], parts: Sequence[Component], rates: Vector, enters: Sequence[int]) -> Vector:
    """Return the number of frames that each window admits; windows over one pool share it by their arriving rates."""
    size = {part.pool.name: part.pool.units for part in parts}
    coming: dict[str, float] = defaultdict(float)
    for window, enter in zip(windows, enters, strict=True):
        coming[window.pool] += float(rates[enter].sum())
    return np.array(
        [
            max(size[window.pool] // window.units * float(rates[enter].sum()) / coming[window.pool], 1.0)
            for window, enter in zip(windows, enters, strict=True)
        ]
    )


def _visits_by_task(graph: FlowGraph, rates: Vector, enter: int, inside: frozenset[int]) -> dict[int, float]:
    """Return the number of visits of a frame of a window to each task unit, in the order of its path."""
    local = np.zeros_like(rates)
    local[enter] = rates[enter]
    entering = float(rates[enter].sum())
    visits = {}
    for index in range(len(graph.tasks)):
        if index == enter or (index in inside and local[index].any()):
            visits[index] = float(local[index].sum()) / entering
            graph.pass_on(index, local, 1.0)
    return visits
