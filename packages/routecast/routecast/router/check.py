"""Check that a router model does not contradict itself, and report all faults together.

A fault's place is written as in a router file: ``task[2].service.per_byte_s``, ``pool[0].units``, ``port[1].entry``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self

from routecast.contention import LAWS, PARAMETERS
from routecast.errors import ModelProblem, Problem
from routecast.quantity import format_duration, format_frequency, format_power
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import Range, faults_in, field, is_faulty, value
from routecast.router.bounds import CONTENTION_FACTORS, LONGEST_BYTE_S, LONGEST_S
from routecast.router.graph import find_cycle, reachable_tasks
from routecast.router.parts import (
    SLICED,
    Contention,
    NamedLaw,
    Need,
    Policy,
    PowerDraw,
    RandomTime,
    ResourcePool,
    Route,
    ServiceCost,
    SleepState,
    TaskUnit,
    Variation,
)
from routecast.router.window import Window, windows_among

if TYPE_CHECKING:
    from routecast.router.model import RouterModel

__all__ = [
    "Targets",
    "check_contention",
    "check_model",
    "check_policy",
    "check_route",
    "check_time",
    "check_variation",
    "check_window_paths",
]

Add = Callable[[str, str], None]
"""Takes a path and a message."""

INDIRECTION_ENTRIES: Final = 128
"""Length of an RSS indirection table."""

ROUTES_WITHOUT_FLOW = {"round_robin", "random"}
"""Kinds of route where the flow of a frame does not decide its target."""
_THREAD_KINDS = {"thread", "polling"}
_RESERVED = ("active", "idle", "waking", "base")
"""Names of the states of a unit other than sleep states."""
_LONGEST_COST_S: Final = {"per_packet": LONGEST_S, "per_byte": LONGEST_BYTE_S, "per_batch": LONGEST_S}
_SCV_RANGES: dict[str, tuple[float, float, str]] = {
    "deterministic": (0.0, 0.0, "0, or not given"),
    "exponential": (1.0, 1.0, "1, or not given"),
    "gamma": (1e-6, 1e6, "a number > 0"),
    "lognormal": (1e-6, 1e6, "a number > 0"),
    "hyperexponential": (1.0, 1e6, "a number >= 1"),
    "uniform": (1e-6, 1.0 / 3.0, "a number > 0 and at most 1/3 (at 1/3 it reaches from 0 to twice the mean)"),
}


def check_threads(model: RouterModel, add: Add) -> None:
    """Report the faults of the threads of a model."""
    leaders: dict[str, TaskUnit] = {}
    linux = {pool.name for pool in model.pools if pool.policy.kind == "linux"}
    for index, task in enumerate(model.tasks):
        _check_thread_member(f"task[{index}]", task, add)
        if task.priority < 0 and any(need.pool in linux for need in task.needs):
            add(
                f"task[{index}].priority",
                f"got {task.priority}: under linux 0 is the fair share and more is real time; use the weight",
            )
        if task.thread:
            _check_common_thread(f"task[{index}]", task, leaders.setdefault(task.thread, task), add)


def check_polling(model: RouterModel, add: Add) -> None:
    """Report pools whose units are all held by polling task units, so that other task units never get a unit.

    Under ``linux`` even a polling thread loses its unit at the end of its slice.
    """
    held_units = {pool.name: 0 for pool in model.pools if pool.policy.kind != "linux"}
    waiting: dict[str, str] = {}
    threads: set[tuple[str, str]] = set()
    for task in model.tasks:
        needed_units: Counter[str] = Counter()
        for need in task.needs:
            if need.pool in held_units:
                needed_units[need.pool] += need.units
        for pool_name, units in needed_units.items():
            if units and task.activation.kind == "polling":
                # Task units of one thread hold the same units.
                if (pool_name, task.thread) not in threads:
                    held_units[pool_name] += units * task.parallel
                if task.thread:
                    threads.add((pool_name, task.thread))
            elif units:
                waiting.setdefault(pool_name, task.name)
    for index, pool in enumerate(model.pools):
        held = held_units.get(pool.name, 0)
        if held > pool.units:
            add(f"pool[{index}].units", f'polling task units hold {held} units, but "{pool.name}" has {pool.units}')
        elif pool.name in waiting and held == pool.units:
            add(f"pool[{index}].units", f'polling task units hold all {held}, so "{waiting[pool.name]}" never gets one')


def _check_thread_member(path: str, task: TaskUnit, add: Add) -> None:
    kind = task.activation.kind
    is_thread = kind == "thread" or bool(task.thread)
    subject = "a thread" if is_thread else "a task unit that holds back"
    if (is_thread or task.holds_back) and task.parallel != 1:
        add(f"{path}.parallel", f"got {task.parallel}: {subject} serves one frame at a time; give several task units")
    if (is_thread or task.holds_back) and task.request != "task":
        add(f"{path}.request", f"is {task.request}: {subject} requests its units itself; leave it out")
    if task.thread and kind not in _THREAD_KINDS:
        add(
            f"{path}.activation.kind",
            f'is {kind}, but task units that share a thread ("{task.thread}") are thread or polling',
        )
    elif task.holds_back and kind not in _THREAD_KINDS:
        add(
            f"{path}.activation.kind",
            f"is {kind}, but only task units that are thread or polling can wait for room and hold frames back",
        )
    if kind == "thread" and task.batch_frames != 1:
        add(
            f"{path}.batch_frames",
            f"got {task.batch_frames}: a thread takes batches of its budget_frames; leave it out",
        )
    if task.holds_back and task.route.kind in ROUTES_WITHOUT_FLOW and len(task.route.to) > 1:
        add(
            f"{path}.route.kind",
            f"is {task.route.kind}, but a task unit that holds back must know where the next frame goes before it "
            "takes it: use a route that the flow decides",
        )
    if task.holds_back and not task.route.to:
        add(f"{path}.holds_back", "is true, but frames leave the router here, where there is always room: leave it out")


def _check_common_thread(path: str, task: TaskUnit, leader: TaskUnit, add: Add) -> None:
    kind = task.activation.kind
    pairs = (
        ("needs", task.needs, leader.needs),
        ("pin", task.pin, leader.pin),
        ("priority", task.priority, leader.priority),
        ("weight", task.weight, leader.weight),
        *([("activation.kind", kind, leader.activation.kind)] if kind in _THREAD_KINDS else []),
    )
    for name, own, theirs in pairs:
        if own != theirs:
            add(
                f"{path}.{name}",
                f'differs from that of "{leader.name}", but both are thread "{task.thread}": give them the same',
            )


def check_power(path: str, power: PowerDraw, frequency_hz: float | None, add: Add) -> None:
    """Report idle power above active power, states out of order, and P-states of a pool without a frequency."""
    if power.idle_w > power.active_w:
        got = f"got {format_power(power.idle_w)}, more than the {format_power(power.active_w)} of a unit at work"
        add(f"{path}.idle_w", f"{got}: give at most that")
    if not power.scope.strip():
        add(f"{path}.scope", "is empty: say what the figures cover, such as package, server or wall")
    names: set[str] = set()
    previous: SleepState | None = None
    for index, state in enumerate(power.sleep):
        _check_sleep(f"{path}.sleep[{index}]", state, previous, power, add)
        if state.name in names:
            add(f"{path}.sleep[{index}].name", f'"{state.name}" is given twice: states need different names')
        names.add(state.name)
        previous = state
    _check_performance(f"{path}.performance", power, frequency_hz, add)


def _check_sleep(path: str, state: SleepState, previous: SleepState | None, power: PowerDraw, add: Add) -> None:
    if not state.name.strip():
        add(f"{path}.name", "is empty: sleep states need a name, such as C1")
    elif state.name in _RESERVED:
        add(f"{path}.name", f'"{state.name}" is the name of another state: call it C1, C6 or the like')
    if state.power_w > power.idle_w:
        got = f"got {format_power(state.power_w)}, more than the {format_power(power.idle_w)} of an idle unit"
        add(f"{path}.power_w", f"{got}: sleep saves power; give at most that, or leave the state out")
    if previous is None:
        return
    if state.after_s <= previous.after_s:
        got = f"got {format_duration(state.after_s)} after {format_duration(previous.after_s)}"
        add(f"{path}.after_s", f"{got}: states go from light to deep sleep, in rising idle time")
    if state.power_w > previous.power_w:
        got = f"got {format_power(state.power_w)}, more than in {previous.name}, which is entered before it"
        add(f"{path}.power_w", f"{got}: a deeper sleep draws at most as much")


def _check_performance(path: str, power: PowerDraw, frequency_hz: float | None, add: Add) -> None:
    if power.performance and frequency_hz is None:
        add(path, "is given, but the pool has no frequency: give the frequency that it runs at")
    before_hz = 0.0
    for index, state in enumerate(power.performance):
        place = f"{path}[{index}]"
        if state.frequency_hz <= before_hz:
            got = f"got {format_frequency(state.frequency_hz)} after {format_frequency(before_hz)}"
            add(f"{place}.frequency_hz", f"{got}: P-states go in rising frequency")
        before_hz = state.frequency_hz
        if state.idle_w > state.active_w:
            got = f"got {format_power(state.idle_w)}, more than the {format_power(state.active_w)} of a unit at work"
            add(f"{place}.idle_w", f"{got}: give at most that")
        deepest = max(power.sleep, key=lambda state: state.power_w, default=None)
        if deepest is not None and deepest.power_w > state.idle_w:
            got = f"got {format_power(state.idle_w)}, less than the {format_power(deepest.power_w)} asleep in"
            add(f"{place}.idle_w", f"{got} {deepest.name}: an idle unit draws at least as much as a sleeping one")
        is_current = frequency_hz is not None and math.isclose(state.frequency_hz, frequency_hz, rel_tol=1e-9)
        if is_current and (state.active_w, state.idle_w) != (power.active_w, power.idle_w):
            add(place, "is the P-state that the pool runs at, but has other watts: give both the same")


def check_variation(path: str, variation: Variation, scv: float | None, add: Add) -> None:
    """Report a squared coefficient of variation that a distribution cannot have."""
    low, high, allowed = _SCV_RANGES[variation]
    if scv is None:
        if variation == "uniform":
            add(f"{path}.scv", f"is missing: for uniform times it is {allowed}")
    elif not low <= scv <= high:
        add(f"{path}.scv", f"got {scv}: for {variation} times it is {allowed}")


def check_time(path: str, time: RandomTime, add: Add) -> None:
    """Report a random time with both a mean and quantiles, and falling quantiles."""
    if not time.quantiles_s:
        check_variation(path, time.variation, time.scv, add)
        return
    if time.mean_s or time.scv is not None or time.variation != "deterministic":
        add(path, "gives both quantiles and a mean or its variation: give one of the two")
    for index, (before, quantile) in enumerate(pairwise(time.quantiles_s), start=1):
        if quantile < before:
            add(f"{path}.quantiles_s[{index}]", f"got {quantile} after {before}: quantiles rise, or stay the same")


def check_pool(path: str, pool: ResourcePool, add: Add) -> None:
    """Report the faults of a pool."""
    if pool.unit_speed_ratio and len(pool.unit_speed_ratio) != pool.units:
        got = f"has {len(pool.unit_speed_ratio)} entries for {pool.units} units"
        add(f"{path}.unit_speed_ratio", f"{got}: give one for each unit, or none")
    check_policy(f"{path}.policy", pool.policy, add)
    check_contention(f"{path}.contention", pool.contention, pool.units, add)
    if pool.interruptions is not None:
        check_time(f"{path}.interruptions.duration", pool.interruptions.duration, add)
    if pool.power is not None:
        check_power(f"{path}.power", pool.power, pool.frequency_hz, add)


def check_policy(path: str, policy: Policy, add: Add) -> None:
    """Report a scheduler that lacks its time slice."""
    if policy.kind in SLICED and policy.quantum_s is None:
        add(f"{path}.quantum_s", f"is missing: {policy.kind} grants units for at most a time slice; give it")


def check_contention(path: str, contention: Contention, units: int, add: Add) -> None:
    """Report contention that is given twice, or whose factors are out of range for this number of units."""
    are_right = check_law(path, contention, add)
    for index, weighted_law in enumerate(contention.mixture):
        are_right &= check_law(f"{path}.mixture[{index}]", weighted_law, add)
    least, most = CONTENTION_FACTORS
    if contention.table and (contention.sigma or contention.kappa):
        add(path, "gives both a table and sigma or kappa: give one of the two")
    elif contention.table and contention != Contention(table=contention.table):
        add(path, "gives both a table and a law, a mixture or a discrepancy: give one of the two")
    elif contention.mixture and replace(contention, mixture=(), discrepancy=()) != Contention():
        add(path, "gives both a mixture and a law: give the law as one more entry of the mixture, or alone")
    elif are_right and not contention.table:
        slowest = next(
            (k for k, factor in enumerate(contention.factors(units), start=1) if not least <= factor <= most), 0
        )
        if slowest:
            got = f"slows {slowest} busy units down by a factor of {contention.factor(slowest):g}"
            add(path, f"{got}: a factor on the service time is from {least:g} to {most:g}")
    if len(contention.table) > 1:
        last, before = contention.table[-1], contention.table[-2]
        if last + (last - before) * max(units - len(contention.table), 0) <= 0.0:
            add(f"{path}.table", f"falls to 0 or less before {units} busy units: give more entries")


def check_law(path: str, named: NamedLaw, add: Add) -> bool:
    """Report parameters that are missing, unknown to the law or out of its range; return whether all are valid."""
    shapes, is_right = {shape.name: shape for shape in LAWS[named.law].shapes}, True
    for name in PARAMETERS:
        place, got, shape = f"{path}.{name}", getattr(named, name), shapes.get(name)
        if shape is None:
            if got:
                parameters = " and ".join(shapes) or "no parameters"
                add(place, f'is given, but the law "{named.law}" has {parameters}: leave it out, or name another law')
                is_right = False
        elif got is None:
            add(place, f'is missing: {shape.meaning}; the law "{named.law}" needs it')
            is_right = False
        elif not shape.minimum <= got <= shape.maximum:
            allowed = Range(shape.minimum, shape.maximum)
            add(place, f'got {got:g}: {shape.meaning} of the law "{named.law}", allowed is {allowed}')
            is_right = False
    return is_right


@value
class Targets:
    """Names of the possible targets of a model's routes, in order."""

    tasks: Mapping[str, None]
    ports: Mapping[str, None]
    both: Mapping[str, None]
    port_count: int = field("Number of ports, also where two ports have the same name")

    @classmethod
    def of(cls, model: RouterModel) -> Self:
        """Return the names of a model's task units and ports."""
        tasks = dict.fromkeys(task.name for task in model.tasks)
        ports = dict.fromkeys(port.name for port in model.ports)
        return cls(tasks=tasks, ports=ports, both=tasks | ports, port_count=len(model.ports))


def check_route(path: str, route: Route, targets: Targets, add: Add) -> None:
    """Report invalid targets, weights, table entries and copies of a route."""
    _check_copies(path, route, targets, add)
    allowed = targets.ports if route.kind == "egress" else targets.both
    for index, name in enumerate(route.to if not allowed.keys() >= set(route.to) else ()):
        if name in allowed:
            continue
        if name in targets.tasks:
            add(
                f"{path}.to[{index}]",
                f'"{name}" is a task unit: an egress route leads to ports, {did_you_mean("", allowed)}',
            )
        else:
            add(f"{path}.to[{index}]", f'"{name}" is neither task unit nor port: {did_you_mean(name, allowed)}')
    if route.kind == "single" and len(route.to) > 1:
        remedy = "use rss or round_robin, or random with weights"
        add(f"{path}.to", f"has {len(route.to)} targets: kind single has one; {remedy}")
    if route.kind != "single" and not route.to:
        add(f"{path}.to", f"is empty: kind {route.kind} needs targets to choose from")
    elif route.kind == "by_egress" and len(route.to) != targets.port_count:
        add(
            f"{path}.to",
            f"has {len(route.to)} targets for {targets.port_count} ports: by_egress needs one for each port",
        )
    if route.kind == "random":
        if len(route.weights) != len(route.to):
            add(f"{path}.weights", f"has {len(route.weights)} entries for {len(route.to)} targets: give one for each")
        if route.weights and all(weight == 0.0 for weight in route.weights):
            add(f"{path}.weights", "are all 0: at least one target needs a chance")
    if route.indirection:
        if len(route.indirection) != INDIRECTION_ENTRIES:
            add(f"{path}.indirection", f"has {len(route.indirection)} entries: RSS has {INDIRECTION_ENTRIES}")
        for index, entry in enumerate(route.indirection):
            if entry >= max(len(route.to), 1):
                add(f"{path}.indirection[{index}]", f"got {entry}: there are {len(route.to)} targets, numbered from 0")
                break


def _check_copies(path: str, route: Route, targets: Targets, add: Add) -> None:
    named: set[str] = set()
    for index, name in enumerate(route.copies):
        place = f"{path}.copies[{index}]"
        if name in targets.ports:
            add(place, f'"{name}" is a port: copies go to task units and end there; name task units')
        elif name not in targets.tasks:
            add(place, f'"{name}" is no task unit: {did_you_mean(name, targets.tasks)}')
        elif name in named:
            add(place, f'"{name}" is named twice: a task unit gets one copy of a frame')
        named.add(name)


def check_windows(model: RouterModel, targets: Targets, add: Add) -> None:
    """Report the faults of the windows of a model."""
    places: dict[str, str] = {}
    enter_by_pool: dict[str, str] = {}
    is_consistent = True
    for index, task in enumerate(model.tasks):
        for position, need in enumerate(task.needs):
            if need.until:
                places[task.name] = f"task[{index}].needs[{position}].until"
                enter_by_pool.setdefault(need.pool, task.name)
                is_consistent &= _check_until(places[task.name], task, need, targets, add)
                _check_window_request(f"task[{index}]", task, add)
    if not places:
        return
    server_by_pool = {need.pool: task.name for task in reversed(model.tasks) for need in task.needs if not need.until}
    for index, pool in enumerate(model.pools):
        if pool.name in enter_by_pool:
            server = server_by_pool.get(pool.name, "")
            _check_window_pool(f"pool[{index}]", pool, enter_by_pool[pool.name], server, add)
    if is_consistent and not find_cycle(model.tasks):
        check_window_paths(model.tasks, lambda window: places[window.enter], add)
    for index, task in enumerate(model.tasks):
        for position, name in enumerate(task.route.copies):
            if name in places:
                add(f"task[{index}].route.copies[{position}]", copied_window_message(name))


def copied_window_message(name: str) -> str:
    """Return the message for a task unit that begins a window and gets copies."""
    return f'"{name}" begins a window, but a copy ends there and cannot release the units: send the copy elsewhere'


def check_window_paths(tasks: Sequence[TaskUnit], path: Callable[[Window], str], add: Add) -> None:
    """Report windows that frames can leave without releasing their units, and windows that wait for each other.

    ``tasks`` may have more routes than the model, such as those of all events.
    """
    windows = windows_among(tasks)
    for window in windows:
        if window.until not in window.inside:
            add(
                path(window),
                f'"{window.until}" is not downstream: no path leads there from "{window.enter}"; name a task unit '
                f"after it: {did_you_mean('', window.inside)}",
            )
        elif window.leak:
            add(
                path(window),
                f'"{window.until}" is not on the path {" → ".join(window.leak)}: every path from "{window.enter}" '
                "must lead through it, otherwise the frame never releases its units",
            )
    _check_order(tasks, windows, path, add)


def _check_until(path: str, task: TaskUnit, need: Need, targets: Targets, add: Add) -> bool:
    others = (name for name in targets.tasks if name != task.name)
    if need.until == task.name:
        add(path, "is the task unit itself, which releases its units after service anyway: leave it out")
    elif need.until in targets.ports:
        add(path, f'"{need.until}" is a port: name a task unit before it, {did_you_mean("", others)}')
    elif need.until not in targets.tasks:
        add(path, f'"{need.until}" is no task unit: {did_you_mean(need.until, others)}')
    else:
        return True
    return False


def _check_window_request(path: str, task: TaskUnit, add: Add) -> None:
    if task.request != "frame":
        add(
            f"{path}.request",
            f"is {task.request}, but with until each frame requests the units that it holds: give frame",
        )
    if len(task.needs) > 1:
        add(
            f"{path}.needs",
            f"has {len(task.needs)} entries, but a need with until must be the only one: let a later task unit "
            "request the others",
        )
    if task.pin:
        add(f"{path}.pin", "is given, but the units that frames hold are all alike: leave it out, or split the pool")


def _check_window_pool(path: str, pool: ResourcePool, enter: str, server: str, add: Add) -> None:
    """Report the faults of a pool of a window that begins at ``enter``, and which ``server`` also uses for service."""
    if server:
        add(
            path,
            f'frames of "{enter}" hold its units beyond service (until), but "{server}" needs them to serve: '
            "give one of the two its own pool",
        )
    if pool.policy.kind != "fifo":
        add(
            f"{path}.policy.kind",
            f'is {pool.policy.kind}, but units that frames of "{enter}" hold beyond service are granted in order of '
            "arrival: give fifo",
        )
    for name, is_given in (
        ("unit_speed_ratio", bool(pool.unit_speed_ratio)),
        ("switch_cost_s", bool(pool.switch_cost_s)),
        ("migration_cost_s", bool(pool.migration_cost_s)),
        ("contention", not pool.contention.is_none),
        ("interruptions", pool.interruptions is not None),
        ("power", pool.power is not None),
    ):
        if is_given:
            add(
                f"{path}.{name}",
                f'is given, but its units do no work, because frames of "{enter}" hold them beyond service: give it to '
                "the pool whose units work",
            )


def _check_order(tasks: Sequence[TaskUnit], windows: Sequence[Window], path: Callable[[Window], str], add: Add) -> None:
    """Report a possible deadlock: frames that hold units of one pool and wait for units of the other."""
    named = {task.name: task for task in tasks}
    awaited = {window.enter: window.pool for window in windows}
    # By pool: the pools that a frame may wait for while it holds units of the pool, and where it waits.
    waits: dict[str, dict[str, tuple[Window, str]]] = {}
    seen: dict[str, set[str]] = {}
    for window in windows:
        for name in window.inside:
            for pool, where in _awaited(name, awaited, named, seen.setdefault(window.pool, set())):
                waits.setdefault(window.pool, {}).setdefault(pool, (window, where))
    cycle = find_cycle(
        [TaskUnit(name=pool, route=Route(kind="rss", to=tuple(others))) for pool, others in waits.items()]
    )
    if not cycle:
        return
    steps = [waits[pool][other] for pool, other in zip(cycle, (*cycle[1:], cycle[0]), strict=True)]
    steps_text = "; ".join(
        f'frames that hold units of "{window.pool}" wait at "{where}" for units of "{other}"'
        for (window, where), other in zip(steps, (*cycle[1:], cycle[0]), strict=True)
    )
    add(
        path(steps[0][0]),
        f"{steps_text}: once no unit is free, they wait forever; let all frames request the pools in the same order",
    )


def _awaited(
    name: str, awaited: Mapping[str, str], tasks: Mapping[str, TaskUnit], seen: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield the pools that a frame may wait for at a task unit, and the task units that request them.

    A task unit that holds back waits for room in the next queue, so it also waits for the pools of the next task unit.
    The function skips task units in ``seen``.
    """
    pending = [name] if name not in seen else []
    seen.add(name)
    while pending:
        current = pending.pop()
        if current in awaited:
            yield awaited[current], current
        if current in tasks and tasks[current].holds_back:
            following = [to for to in tasks[current].route.to if to not in seen]
            seen.update(following)
            pending.extend(following)


def check_model(model: RouterModel) -> None:
    """Check that a router model is free of contradictions.

    Raises ModelProblem with all problems. Examples: unknown names (with the nearest known name), needs that no pool can
    meet, pins out of range, a cycle in the task graph, task units that no frame reaches, queues of 0, numbers out of
    range, routes that lack a key of their kind, costs in cycles without a frequency, windows that frames leave without
    releasing their units.
    """
    problems = [*faults_in("port", model.ports), *faults_in("pool", model.pools), *faults_in("task", model.tasks)]
    faults = tuple(problems)

    def add(path: str, message: str) -> None:
        problems.append(Problem(path, message))

    targets = Targets.of(model)
    pools = {pool.name: pool for pool in model.pools}
    _check_names(model, add)
    for index, port in enumerate(model.ports):
        _check_entry(f"port[{index}].entry", port.entry, targets, add)
    for index, task in enumerate(model.tasks):
        _check_needs(f"task[{index}].needs", task.needs, pools, add)
        if not is_faulty(faults, f"task[{index}].route"):
            check_route(f"task[{index}].route", task.route, targets, add)
    _check_graph(model, add)
    if not faults:  # the checks below compare numbers, which must be valid
        for index, pool in enumerate(model.pools):
            check_pool(f"pool[{index}]", pool, add)
        for index, task in enumerate(model.tasks):
            _check_task(f"task[{index}]", task, pools, add)
        check_threads(model, add)
        check_polling(model, add)
        check_windows(model, targets, add)
    if problems:
        raise ModelProblem(f"router {model.name!r}", problems)


def _check_names(model: RouterModel, add: Add) -> None:
    if not model.ports:
        add("port", "there is no port: frames need at least one port to enter by")
    if not model.tasks:
        add("task", "there is no task unit: at least one must process the frames")
    taken: dict[str, str] = {}
    places = [(f"port[{index}]", port.name) for index, port in enumerate(model.ports)]
    places += [(f"task[{index}]", task.name) for index, task in enumerate(model.tasks)]
    for path, name in places:
        if not name.strip():
            add(f"{path}.name", "is empty: ports and task units need a name")
        elif name in taken:
            add(f"{path}.name", f'"{name}" is already the name of {taken[name]}: routes could not tell them apart')
        taken.setdefault(name, path)
    pools: dict[str, str] = {}
    for index, pool in enumerate(model.pools):
        if not pool.name.strip():
            add(f"pool[{index}].name", "is empty: pools need a name")
        elif pool.name in pools:
            add(f"pool[{index}].name", f'"{pool.name}" is already the name of {pools[pool.name]}')
        pools.setdefault(pool.name, f"pool[{index}]")


def _check_entry(path: str, entry: str, targets: Targets, add: Add) -> None:
    if not entry:
        add(path, f"is missing: name the task unit that receives its frames; {did_you_mean('', targets.tasks)}")
    elif entry not in targets.tasks:
        add(path, f'"{entry}" is no task unit: {did_you_mean(entry, targets.tasks)}')


def _check_needs(path: str, needs: Sequence[Need], pools: Mapping[str, ResourcePool], add: Add) -> None:
    seen: set[str] = set()
    for index, need in enumerate(needs):
        if need.pool not in pools:
            add(f"{path}[{index}].pool", f'"{need.pool}" is no pool: {did_you_mean(need.pool, pools)}')
        elif need.pool in seen:
            add(f"{path}[{index}].pool", f'"{need.pool}" is needed twice: give the sum of the units in one need')
        seen.add(need.pool)


def _check_task(path: str, task: TaskUnit, pools: Mapping[str, ResourcePool], add: Add) -> None:
    if task.request == "frame":
        if not task.needs:
            add(f"{path}.request", "is frame, but the task unit needs no pool to request from: leave it out")
        if task.activation.kind != "dedicated" or task.batch_frames != 1:
            add(f"{path}.request", "is frame, which needs the activation dedicated and batches of 1 frame")
    serves_at_once = task.activation.kind == "dedicated" and task.batch_frames == 1 and task.request == "task"
    if task.queue_frames == 0 and (not serves_at_once or any(need.until for need in task.needs)):
        add(
            f"{path}.queue_frames",
            "is 0: without places to wait a task unit is dedicated, requests units itself, serves frames one by one "
            "and begins no window; give it a queue of 1 frame or more",
        )
    for index, need in enumerate(task.needs):
        if need.pool in pools:
            _check_capacity(path, task, index, pools[need.pool], add)
    if task.pin:
        _check_pin(f"{path}.pin", task, pools, add)
    _check_service(f"{path}.service", task, pools, add)
    if task.activation.wakeup is not None:
        check_time(f"{path}.activation.wakeup", task.activation.wakeup, add)


def _check_capacity(path: str, task: TaskUnit, index: int, pool: ResourcePool, add: Add) -> None:
    """Report a need that its pool, or the pin of the first need, cannot meet."""
    units, is_pinned = task.needs[index].units, bool(task.pin) and index == 0
    allowed = len(set(task.pin)) if is_pinned else pool.units
    where = f'the pin allows {allowed} of "{pool.name}"' if is_pinned else f'"{pool.name}" has {allowed}'
    if units > allowed:
        add(f"{path}.needs[{index}].units", f"needs {units} units at once, but {where}")
    elif units * task.parallel > allowed:
        request = f"{task.parallel} at once need {units * task.parallel} units"
        add(f"{path}.parallel", f"{request}, but {where}: lower parallel or add units")


def _check_pin(path: str, task: TaskUnit, pools: Mapping[str, ResourcePool], add: Add) -> None:
    if not task.needs:
        add(path, "pins a task unit that needs no pool: give it a need, or no pin")
    elif task.needs[0].pool in pools:
        units = pools[task.needs[0].pool].units
        for index, unit in enumerate(task.pin):
            if unit >= units:
                count = f"{units} unit{'s' if units != 1 else ''}"
                add(f"{path}[{index}]", f'got {unit}: "{task.needs[0].pool}" has {count}, numbered from 0')
        if len(set(task.pin)) < len(task.pin):
            add(path, "names a unit twice")


def _check_service(path: str, task: TaskUnit, pools: Mapping[str, ResourcePool], add: Add) -> None:
    service = task.service
    first = pools.get(task.needs[0].pool) if task.needs else None
    if service.per_packet_cycles or service.per_byte_cycles or service.per_batch_cycles:
        if not task.needs:
            add(path, "costs cycles, but the task unit needs no pool, whose frequency would turn them into a time")
        elif first is not None and first.frequency_hz is None:
            add(path, f'costs cycles, but pool "{first.name}" has no frequency: give it, or the cost as a time')
        elif first is not None and first.frequency_hz is not None:
            _check_cycles(path, service, first.frequency_hz, add)
    if service.memory_accesses * service.memory_latency_s > LONGEST_S:
        got = f"got {service.memory_accesses:g} of {service.memory_latency_s:g} s each"
        add(f"{path}.memory_accesses", f"{got}: together a time of at most {LONGEST_S:g} s is allowed")
    check_variation(path, service.variation, service.scv, add)


def _check_cycles(path: str, cost: ServiceCost, frequency_hz: float, add: Add) -> None:
    """Report costs in cycles that exceed the longest time of a model."""
    for name, longest_s in _LONGEST_COST_S.items():
        cycles = getattr(cost, f"{name}_cycles")
        if cycles > longest_s * frequency_hz:
            got = f"got {cycles:g} cycles, {cycles / frequency_hz:g} s"
            add(f"{path}.{name}_cycles", f"{got}: a time of at most {longest_s:g} s is allowed")


def _check_graph(model: RouterModel, add: Add) -> None:
    cycle = find_cycle(model.tasks)
    if cycle:
        add("task", f"the task graph has a cycle: {' → '.join([*cycle, cycle[0]])}; frames must only go forward")
    reached = reachable_tasks(model)
    for index, task in enumerate(model.tasks):
        if reached and task.name not in reached:
            add(f"task[{index}]", f'"{task.name}" is never reached: no port enters it and no route leads there')
