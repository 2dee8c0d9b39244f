"""The fluid steady state: arriving and admitted rates, service times under contention, busy units.

The steady state is a fixed point. Each round computes the shares of the task units in shared units, and the load of
these units. There are many rounds over few task units, so rates and times are lists of floats by task unit: numpy is
slower on such short arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from routecast.evaluate.solve._cost import Cost, keeps_first_unit
from routecast.evaluate.solve._scheduling_shares import (
    Component,
    ContendedPool,
    components,
    contended_pools,
    divide,
    mean_contention,
    served_at_once,
    uses_of,
)
from routecast.evaluate.solve._throughput import Steady
from routecast.evaluate.solve.flow import FlowGraph, Vector
from routecast.load.offered import OfferedLoad
from routecast.quantity import format_ratio
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel, TaskUnit

if TYPE_CHECKING:
    from routecast.evaluate.solve._windows import WindowRates, Windows

__all__ = ["MEAN_BATCHES", "Fluid", "Sharing", "intended_of", "sharing_of", "solve_fluid", "switching_s"]

MEAN_BATCHES = "threads wake and switch as often as with mean batches, an approximation"
"""Note on threads whose starts cost."""
_MAX_TURNS = 20
_SAME_RATIO = 1e-12
_MAX_ROUNDS = 400
_UNDAMPED_ROUNDS = 12
_TOLERANCE = 1e-10


@value
class Sharing:
    """Task units, and the components of units that frames reach."""

    tasks: tuple[TaskUnit, ...]
    costs: tuple[Cost, ...]
    parts: tuple[Component, ...]
    full_s: tuple[float, ...] = field("Service time by task unit under overload, without contention, s")
    equal_gaps: Sequence[bool] = field("Whether frames arrive at equal gaps, by task unit")
    # By task unit: whether batches or interrupts have a cost, so that the work for a frame depends on the rate.
    starts_cost: tuple[bool, ...]
    # By task unit: frames that it may serve at once on its own units; infinite where it shares all its units.
    own_lanes: tuple[float, ...]
    shared: tuple[Component, ...] = field(
        "Components where the share of a task unit depends on other task units or on its other needs"
    )

    def served(self, wanted_pps: Sequence[float], frame_s: Sequence[float]) -> list[float]:
        """Return the rate that each task unit gets of its requested rate, limited by all pools that it needs."""
        granted = [
            min(rate, lanes / seconds) if seconds > 0.0 else rate
            for rate, lanes, seconds in zip(wanted_pps, self.own_lanes, frame_s, strict=True)
        ]
        if not self.shared:
            return granted
        has_several_needs = any(len(self.tasks[index].needs) > 1 for part in self.shared for index, _ in part.members)
        for _ in range(_MAX_TURNS):
            before = granted.copy()
            for part in self.shared:
                for index, rate in divide(part, self.tasks, granted, frame_s, self.costs).items():
                    granted[index] = min(granted[index], rate)
            # A rate that one pool limits frees units of another pool.
            if not has_several_needs or all(
                abs(new - old) <= _SAME_RATIO * old for new, old in zip(granted, before, strict=True)
            ):
                break
        return granted

    def busy(
        self, granted_pps: Sequence[float], short: Sequence[bool], factor: Sequence[float], switching_s: Sequence[float]
    ) -> dict[str, list[float]]:
        """Return by pool the mean number of units that each task unit keeps busy.

        ``short``: whether a task unit gets less than it requests, so that its batches are full; ``factor``: contention
        factor.
        """
        busy: dict[str, list[float]] = {}
        for part in self.parts:
            of_pool = busy.get(part.pool.name)
            if of_pool is None:
                of_pool = busy[part.pool.name] = [0.0] * len(self.tasks)
            max_units = float(len(part.units))
            for index, units in part.members:
                rate = granted_pps[index]
                if short[index] or not self.starts_cost[index]:
                    used = rate * self.full_s[index] * factor[index]
                else:
                    lanes = served_at_once(self.tasks[index], max(len(part.units) // units, 1))
                    used = lanes * self.costs[index].used(
                        rate / lanes, factor[index], equal_gaps=self.equal_gaps[index]
                    )
                taken = (used + rate * switching_s[index]) * units
                of_pool[index] += taken if taken < max_units else max_units
        return busy


def sharing_of(
    tasks: tuple[TaskUnit, ...], costs: tuple[Cost, ...], parts: Sequence[Component], equal_gaps: Sequence[bool]
) -> Sharing:
    """Return the constants of all rounds: the shared units and the cost of a frame."""
    own = [math.inf if task.needs else float(task.parallel) for task in tasks]
    shared = []
    for part in parts:
        index, units = part.members[0]
        if len(part.members) == 1 and len(tasks[index].needs) == 1:
            own[index] = served_at_once(tasks[index], len(part.units) // units)
        else:
            shared.append(part)
    return Sharing(
        tasks=tasks,
        costs=costs,
        parts=tuple(parts),
        full_s=tuple(cost.busy_s for cost in costs),
        equal_gaps=equal_gaps,
        starts_cost=tuple(cost.batch_s + cost.interrupt_s > 0.0 for cost in costs),
        own_lanes=tuple(own),
        shared=tuple(shared),
    )


@value
class Fluid:
    """The steady state of a router under a load, without fluctuation."""

    model: RouterModel
    load: OfferedLoad
    graph: FlowGraph
    costs: tuple[Cost, ...]
    components: tuple[Component, ...]
    uses: tuple[tuple[tuple[Component, int], ...], ...] = field(
        "Components that each task unit uses, with the units that a frame takes"
    )
    intended_pps: float
    offered: Vector = field("Offered rate by stream")
    rates: Vector = field("Arriving rate by node and stream")
    admitted_ratio: Vector = field("Share of the arriving frames that is served, by node (task units, ports, exit)")
    service_s: Vector = field("Seconds per frame by task unit, with contention, at this load")
    factor: Vector = field("Contention factor by task unit")
    busy_units: dict[str, Vector] = field("Mean number of units that each task unit keeps busy, by pool")
    active_units: dict[str, Vector] = field("The same with the units that polling holds")
    notes: tuple[str, ...]
    contended: tuple[ContendedPool, ...] = field("Pools whose units slow each other", default=())
    windows: Windows | None = None
    window_rates: WindowRates | None = None
    """Rates through the windows, where the router has windows."""
    steady: Steady | None = None
    """The fixed point of threads, where the router has threads."""

    def components_by_pool(self) -> dict[str, list[Component]]:
        """Return the components of each pool by its name."""
        by_pool: dict[str, list[Component]] = {pool.name: [] for pool in self.model.pools}
        for part in self.components:
            by_pool[part.pool.name].append(part)
        return by_pool

    def drops_pps(self) -> dict[str, float]:
        """Loss by location: task units by name, ports as ``"port 1 out"``."""
        places = [task.name for task in self.graph.tasks]
        places += [f"{port.name} out" for port in self.model.ports]
        lost = (self.rates.sum(axis=1) * (1.0 - self.admitted_ratio)).tolist()
        least = 1e-9 * float(self.offered.sum())
        return {place: rate for place, rate in zip(places, lost, strict=False) if rate > least}


def solve_fluid(
    model: RouterModel, load: OfferedLoad, graph: FlowGraph, costs: tuple[Cost, ...], *, overload: bool = False
) -> Fluid:
    """Return the fixed point of rates, shares and contention; of two states, the one that an idle router reaches.

    ``graph``, ``costs``: those of the load on the model, by task unit; ``overload``: offer line rate on every port that
    a flow enters, whatever the load's rate.
    """
    tasks = graph.tasks
    parts = components(model, tasks)
    intended_pps = intended_of(graph, load, overload=overload)
    offered = graph.offered(intended_pps)
    switching, notes = switching_s(parts, costs)

    contended = contended_pools(model, tasks)

    count = len(tasks)
    factor, admitted = [1.0] * count, [1.0] * count
    to_links = [1.0] * (graph.ports + 1)
    rates = graph.arriving(offered, [*admitted, *to_links])
    # A loss at a task unit lowers the rates of the task units after it; a loss at a link lowers no other rate.
    feeds_tasks = [any(node < count for node, _ in edges) for edges in graph.edges]
    wanted = rates[:count].sum(axis=1).tolist()
    reached = [part for part in parts if any(wanted[index] > 0.0 for index, _ in part.members)]
    sharing = sharing_of(tasks, costs, reached, _at_equal_gaps(load, graph, rates, costs))
    full_s = sharing.full_s
    full = np.array(full_s)
    windows: Windows | None = None
    if any(need.until for task in tasks for need in task.needs):
        from routecast.evaluate.solve._windows import scv_of, windows_in

        windows = windows_in(graph, parts, rates, full + switching, lambda: scv_of(model, load, tasks))
    window_rates = None
    losing = False
    caps = [math.inf] * count
    for round_number in range(_MAX_ROUNDS):
        is_damped = round_number >= _UNDAMPED_ROUNDS
        frame_s = [base * slower + more for base, slower, more in zip(full_s, factor, switching, strict=True)]
        granted = sharing.served(wanted, frame_s)
        if windows is not None:
            # Frames inside a window wait for each other and are not lost: the window takes in the rate through it.
            window_rates = _grant_in_windows(windows, wanted, granted)
        short = [rate < want * (1.0 - 1e-12) for rate, want in zip(granted, wanted, strict=True)]
        busy = sharing.busy(granted, short, factor, switching)
        new_factor = mean_contention(contended, busy, count)
        if is_damped:
            new_factor = [0.5 * (new + old) for new, old in zip(new_factor, factor, strict=True)]
        settled = _is_settled(new_factor, factor)
        factor = new_factor
        if losing or any(short):
            new_caps = [rate if is_short else math.inf for rate, is_short in zip(granted, short, strict=True)]
            if is_damped:
                new_caps = [
                    0.5 * (new + old) if math.isfinite(old) else new for new, old in zip(new_caps, caps, strict=True)
                ]
            new_admitted = [
                min(1.0, cap / max(want, 1e-9)) if is_short else 1.0
                for cap, want, is_short in zip(new_caps, wanted, short, strict=True)
            ]
            if is_damped and windows is not None:
                # Successive windows with a common full memory run short by turns: ever smaller steps end that.
                step = max(0.5 * 0.99 ** (round_number - _UNDAMPED_ROUNDS), 0.1)
                new_admitted = [old + step * (new - old) for new, old in zip(new_admitted, admitted, strict=True)]
            settled = settled and _is_settled(new_admitted, admitted, least=1e-12)
            if new_admitted != admitted and any(
                new != old and on for new, old, on in zip(new_admitted, admitted, feeds_tasks, strict=True)
            ):
                new_rates = graph.arriving(offered, [*new_admitted, *to_links])
                least = 1e-12 * float(offered.sum())
                settled = settled and bool((np.abs(new_rates - rates) <= least + _TOLERANCE * np.abs(rates)).all())
                rates, wanted = new_rates, new_rates[:count].sum(axis=1).tolist()
            caps, admitted, losing = new_caps, new_admitted, True
        if settled:
            break
    else:
        notes.append("the shares of the resources did not converge to full precision")
    if losing:
        rates = graph.arriving(offered, [*admitted, *to_links])
    out, out_cap = rates[count : graph.exit].sum(axis=1), graph.ingress_cap
    links = out_cap / np.maximum(out, 1e-9 * out_cap)
    # A link that carries just what it gets loses nothing, whatever the last digits say.
    to_links[:-1] = np.where(links >= 1.0 - _SAME_RATIO, 1.0, links).tolist()

    service_s = full * factor
    for i, cost in enumerate(costs):
        if cost.batch_s + cost.interrupt_s > 0.0 and admitted[i] >= 1.0:
            rate = float(rates[i].sum()) / tasks[i].parallel
            if rate > 0.0:
                service_s[i] = cost.used(rate, factor[i], equal_gaps=sharing.equal_gaps[i]) / rate
    # ``busy`` lacks pools that no frame reaches.
    busy_units = {pool.name: np.array(busy.get(pool.name, [0.0] * count)) for pool in model.pools}
    if windows is not None and window_rates is not None:
        _hold_in_windows(model, tasks, windows, window_rates, busy_units)
    return Fluid(
        model=model,
        load=load,
        graph=graph,
        costs=costs,
        components=parts,
        uses=uses_of(parts, count),
        intended_pps=intended_pps,
        offered=offered,
        rates=rates,
        admitted_ratio=np.array([*admitted, *to_links]),
        service_s=service_s,
        factor=np.array(factor),
        busy_units=busy_units,
        active_units=_active(parts, tasks, busy_units),
        notes=tuple(notes + _notes(model, parts, tasks)),
        contended=contended,
        windows=windows,
        window_rates=window_rates,
    )


def _grant_in_windows(windows: Windows, wanted: list[float], granted: list[float]) -> WindowRates:
    """Grant the task units of windows the rates that pass through them, and return these; ``wanted``: by task unit."""
    window_rates = windows.rates_through(np.array([wanted[index] for index in windows.enter]))
    for index in windows.inside:
        granted[index] = wanted[index]
    for index, rate in zip(windows.enter, window_rates.pps.tolist(), strict=True):
        granted[index] = rate
    return window_rates


def _hold_in_windows(
    model: RouterModel,
    tasks: tuple[TaskUnit, ...],
    windows: Windows,
    window_rates: WindowRates,
    busy_units: dict[str, Vector],
) -> None:
    """Count units as busy where windows begin for as long as frames are inside the windows."""
    held_frames = window_rates.pps * window_rates.residence_s
    for name, index, held in zip(windows.pools, windows.enter, held_frames, strict=True):
        units = next(need.units for need in tasks[index].needs)
        busy_units[name][index] = min(float(held) * units, float(model.pool(name).units))


def intended_of(graph: FlowGraph, load: OfferedLoad, *, overload: bool) -> float:
    """Return the intended rate of a load, or the rate that offers line rate on every port that a flow enters."""
    if overload:
        by_port = graph.by_port(graph.share)
        used = by_port > 0.0
        return float(np.max(graph.ingress_cap[used] / by_port[used]))
    return load.rate_pps


def _at_equal_gaps(load: OfferedLoad, graph: FlowGraph, rates: Vector, costs: tuple[Cost, ...]) -> list[bool]:
    """Return by task unit whether frames arrive at equal gaps: from one port, or from ports of one rate, by turns.

    The answer matters only where batches or interrupts have a cost, and is False elsewhere.
    """
    shares = []
    if all(cost.batch_s + cost.interrupt_s <= 0.0 for cost in costs):
        return [False] * len(graph.tasks)
    if load.arrivals.kind != "cbr" or any(task.route.kind == "random" for task in graph.tasks):
        return [False] * len(graph.tasks)
    for index in range(len(graph.tasks)):
        by_port = graph.by_port(rates[index])
        used = by_port[by_port > 0.0]
        shares.append(used.size > 0 and bool(np.ptp(used) <= 1e-9 * used.max()))
    return shares


def _is_settled(new: Sequence[float], old: Sequence[float], *, least: float = 0.0) -> bool:
    """Whether the changes of a round are negligible."""
    return all(abs(after - before) <= least + _TOLERANCE * abs(before) for after, before in zip(new, old, strict=True))


def _active(parts: tuple[Component, ...], tasks: tuple[TaskUnit, ...], busy: dict[str, Vector]) -> dict[str, Vector]:
    active = {name: vector.copy() for name, vector in busy.items()}
    for part in parts:
        for index, units in part.members:
            task = tasks[index]
            if task.activation.kind == "polling":
                held = float(min(task.parallel * units, len(part.units)))
                active[part.pool.name][index] = max(held, float(active[part.pool.name][index]))
    return active


def switching_s(parts: tuple[Component, ...], costs: tuple[Cost, ...]) -> tuple[list[float], list[str]]:
    """Return the switch cost per frame where task units take turns on units, at one switch per grant, s."""
    extra = [0.0] * len(costs)
    notes = []
    for part in parts:
        if part.pool.switch_cost_s > 0.0 and len(part.members) > 1:
            for index, _ in part.members:
                extra[index] += part.pool.switch_cost_s / costs[index].batch_frames
            notes.append(f'pool "{part.pool.name}": every grant pays the switch cost, as under overload')
    return extra, notes


def _batches_matter(task: TaskUnit) -> bool:
    """Whether the service time of frames depends on the size of batches."""
    activation, service = task.activation, task.service
    if service.per_batch_s or service.per_batch_cycles:
        return True
    if activation.linger_s > 0.0:
        return False
    costs = activation.interrupt_cost_s > 0.0 or activation.discipline == "gated"
    return activation.kind == "interrupt" and costs


def _notes(model: RouterModel, parts: tuple[Component, ...], tasks: Sequence[TaskUnit]) -> list[str]:
    notes = []
    if any(_batches_matter(task) for task in model.tasks):
        notes.append("below overload, batches are taken at their mean size, an approximation")
    for pool in model.pools:
        if pool.interruptions is not None:
            more = format_ratio(pool.interruptions.stretch - 1.0)
            notes.append(f'pool "{pool.name}": interruptions lengthen its work by {more} on average')
        if not pool.contention.is_none:
            notes.append(
                f'pool "{pool.name}": units slow each other by a mean factor, so rates and delays are approximate'
            )
        if not (pool.migration_cost_s or pool.unit_speed_ratio):
            continue
        own = [part for part in parts if part.pool is pool and len(part.units) > 1]
        if all(keeps_first_unit(tasks[index], model) for part in own for index, _ in part.members):
            continue
        if pool.migration_cost_s > 0.0:
            notes.append(f'pool "{pool.name}": the migration cost is left out of the rates, which are upper bounds')
        if any(len({pool.unit_speed_ratio[unit] for unit in part.units}) > 1 for part in own if pool.unit_speed_ratio):
            notes.append(f'pool "{pool.name}": units of unequal speed count with their mean speed')
    if any(len(task.needs) > 1 for task in model.tasks) and any(len(part.members) > 1 for part in parts):
        notes.append("units that wait for units of other pools do not count as busy: the rate is an upper bound")
    return notes
