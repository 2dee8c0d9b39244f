"""Whether a router model contradicts itself, with every fault at once.

Places are written as in a router file: ``task[2].service.per_byte_s``, ``pool[0].units``, ``port[1].entry``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Self, get_args

from routecast.contention import LAWS, PARAMETERS
from routecast.errors import ModelProblem, Problem
from routecast.quantity import format_duration, format_frequency, format_power
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.router.check_numbers import (
    FREQUENCIES_HZ,
    LINK_RATES_BPS,
    LONGEST_BYTE_S,
    LONGEST_S,
    MAX_FRAMES,
    MAX_UNITS,
    MOST_CONTENTION,
    SPEED_RATIOS,
    duration,
    known,
    not_negative,
    positive,
    time_slice,
    whole,
    within,
)
from routecast.router.graph import find_cycle, reachable_tasks
from routecast.router.model import (
    Activation,
    ActivationKind,
    Contention,
    Interruptions,
    NamedLaw,
    Need,
    Policy,
    PolicyKind,
    PollDiscipline,
    Port,
    PowerDraw,
    RandomTime,
    ResourcePool,
    Route,
    RouteKind,
    RouterModel,
    ServiceCost,
    SleepState,
    TaskUnit,
    Variation,
)
from routecast.router.window import Window, windows_among

__all__ = [
    "Targets",
    "check_contention",
    "check_interruptions",
    "check_model",
    "check_policy",
    "check_route",
    "check_time",
    "check_variation",
    "check_ways",
]


# Whether task units that poll, share a thread, sleep as threads or hold frames back contradict themselves.


_BY_TURN = {"round_robin", "random"}
_KINDS = {"thread", "polling"}


def check_threads(model: RouterModel, add: Callable[[str, str], None]) -> None:
    """Report what is wrong with the threads of a model, through ``add(place, message)``."""
    leaders: dict[str, TaskUnit] = {}
    linux = {pool.name for pool in model.pools if pool.policy.kind == "linux"}
    for index, task in enumerate(model.tasks):
        _check_alone(f"task[{index}]", task, add)
        if task.priority < 0 and any(need.pool in linux for need in task.needs):
            add(
                f"task[{index}].priority",
                f"got {task.priority}: under linux 0 is the fair share and more is real time; use the weight",
            )
        if task.thread:
            _check_together(f"task[{index}]", task, leaders.setdefault(task.thread, task), add)


def check_polling(model: RouterModel, add: Callable[[str, str], None]) -> None:
    """Report pools whose units polling task units hold for good, so that others never get one.

    Under ``linux`` nothing is held for good: even a thread that spins is cut off when its slice is over.
    """
    held_units = {pool.name: 0 for pool in model.pools if pool.policy.kind != "linux"}
    waiting: dict[str, str] = {}
    threads: set[tuple[str, str]] = set()
    for task in model.tasks:
        needed_units: dict[str, int] = {}
        for need in task.needs:
            if need.pool in held_units:
                needed_units[need.pool] = needed_units.get(need.pool, 0) + need.units
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
        if pool.policy.kind == "linux":
            continue
        held = held_units[pool.name]
        if held > pool.units:
            add(f"pool[{index}].units", f'polling task units hold {held} units, but "{pool.name}" has {pool.units}')
        elif pool.name in waiting and held == pool.units:
            add(f"pool[{index}].units", f'polling task units hold all {held}, so "{waiting[pool.name]}" never gets one')


def _check_alone(place: str, task: TaskUnit, add: Callable[[str, str], None]) -> None:
    kind = task.activation.kind
    is_thread = kind == "thread" or bool(task.thread)
    what = "a thread" if is_thread else "one that holds back"
    if (is_thread or task.holds_back) and task.parallel != 1:
        add(f"{place}.parallel", f"got {task.parallel}: {what} serves one frame at a time; give several task units")
    if (is_thread or task.holds_back) and task.request != "task":
        add(f"{place}.request", f"is {task.request}: {what} asks for its units itself; leave it out")
    if task.thread and kind not in _KINDS:
        add(
            f"{place}.activation.kind",
            f'is {kind}, but task units that share a thread ("{task.thread}") are thread or polling',
        )
    elif task.holds_back and kind not in _KINDS:
        add(
            f"{place}.activation.kind",
            f"is {kind}, but only task units that are thread or polling can wait for room and hold frames back",
        )
    if kind == "thread" and task.batch_frames != 1:
        add(
            f"{place}.batch_frames",
            f"got {task.batch_frames}: a thread takes batches of its budget_frames; leave it out",
        )
    if task.holds_back and task.route.kind in _BY_TURN and len(task.route.to) > 1:
        add(
            f"{place}.route.kind",
            f"is {task.route.kind}, but a task unit that holds back must know where the next frame goes before it "
            "takes it: use a route that the flow decides",
        )
    if task.holds_back and not task.route.to:
        add(
            f"{place}.holds_back", "is true, but frames leave the router here, where there is always room: leave it out"
        )


def _check_together(place: str, task: TaskUnit, leader: TaskUnit, add: Callable[[str, str], None]) -> None:
    kind = task.activation.kind
    pairs = (
        ("needs", task.needs, leader.needs),
        ("pin", task.pin, leader.pin),
        ("priority", task.priority, leader.priority),
        ("weight", task.weight, leader.weight),
        *([("activation.kind", kind, leader.activation.kind)] if kind in _KINDS else []),
    )
    for name, own, theirs in pairs:
        if own != theirs:
            add(
                f"{place}.{name}",
                f'differs from that of "{leader.name}", but both are thread "{task.thread}": give them the same',
            )


# Whether the power states of a pool make sense.


Add = Callable[[str, str], None]

_RESERVED = ("active", "idle", "waking", "base")


def check_power(place: str, draw: PowerDraw, frequency_hz: float | None, add: Add) -> None:
    """Report powers that are negative or upside down, states out of order, and P-states of a pool without a clock."""
    for name in ("active_w", "idle_w", "base_w"):
        not_negative(f"{place}.{name}", getattr(draw, name), add)
    if draw.idle_w > draw.active_w:
        got = f"got {format_power(draw.idle_w)}, more than the {format_power(draw.active_w)} of a unit at work"
        add(f"{place}.idle_w", f"{got}: give at most that")
    if not draw.scope.strip():
        add(f"{place}.scope", "is empty: say what the figures cover, such as package, server or wall")
    names: set[str] = set()
    before: SleepState | None = None
    for index, state in enumerate(draw.sleep):
        _check_sleep(f"{place}.sleep[{index}]", state, before, draw, add)
        if state.name in names:
            add(f"{place}.sleep[{index}].name", f'"{state.name}" is given twice: states need different names')
        names.add(state.name)
        before = state
    _check_performance(f"{place}.performance", draw, frequency_hz, add)


def _check_sleep(place: str, state: SleepState, before: SleepState | None, draw: PowerDraw, add: Add) -> None:
    if not state.name.strip():
        add(f"{place}.name", "is empty: sleep states need a name, such as C1")
    elif state.name in _RESERVED:
        add(f"{place}.name", f'"{state.name}" is the name of another state: call it C1, C6 or the like')
    for name in ("power_w", "wake_energy_j"):
        not_negative(f"{place}.{name}", getattr(state, name), add)
    for name in ("exit_s", "after_s"):
        duration(f"{place}.{name}", getattr(state, name), add)
    if state.power_w > draw.idle_w:
        got = f"got {format_power(state.power_w)}, more than the {format_power(draw.idle_w)} of an idle unit"
        add(f"{place}.power_w", f"{got}: sleep saves power; give at most that, or leave the state out")
    if before is None:
        return
    if state.after_s <= before.after_s:
        got = f"got {format_duration(state.after_s)} after {format_duration(before.after_s)}"
        add(f"{place}.after_s", f"{got}: states go from light to deep sleep, in rising idle time")
    if state.power_w > before.power_w:
        got = f"got {format_power(state.power_w)}, more than in {before.name}, which is entered before it"
        add(f"{place}.power_w", f"{got}: a deeper sleep draws at most as much")


def _check_performance(place: str, draw: PowerDraw, frequency_hz: float | None, add: Add) -> None:
    if draw.performance and frequency_hz is None:
        add(place, "is given, but the pool has no frequency: give the one that it runs at")
    before_hz = 0.0
    for index, state in enumerate(draw.performance):
        at = f"{place}[{index}]"
        right = within(f"{at}.frequency_hz", state.frequency_hz, FREQUENCIES_HZ, "a frequency", "Hz", add)
        if right and state.frequency_hz <= before_hz:
            got = f"got {format_frequency(state.frequency_hz)} after {format_frequency(before_hz)}"
            add(f"{at}.frequency_hz", f"{got}: P-states go in rising frequency")
        before_hz = state.frequency_hz
        for name in ("active_w", "idle_w"):
            not_negative(f"{at}.{name}", getattr(state, name), add)
        if state.idle_w > state.active_w:
            got = f"got {format_power(state.idle_w)}, more than the {format_power(state.active_w)} of a unit at work"
            add(f"{at}.idle_w", f"{got}: give at most that")
        deepest = max(draw.sleep, key=lambda state: state.power_w, default=None)
        if deepest is not None and deepest.power_w > state.idle_w:
            got = f"got {format_power(state.idle_w)}, less than the {format_power(deepest.power_w)} asleep in"
            add(f"{at}.idle_w", f"{got} {deepest.name}: an idle unit draws at least as much as a sleeping one")
        same = frequency_hz is not None and math.isclose(state.frequency_hz, frequency_hz, rel_tol=1e-9)
        if same and (state.active_w, state.idle_w) != (draw.active_w, draw.idle_w):
            add(at, "is the P-state that the pool runs at, but has other watts: give both the same")
        if state.voltage_v is not None and not (math.isfinite(state.voltage_v) and state.voltage_v > 0.0):
            add(f"{at}.voltage_v", f"got {state.voltage_v}: a voltage is a finite number > 0")


# Whether random times and how things vary make sense: for services, wake-ups and interruptions alike.


MOST_INTERRUPTIONS_HZ: Final = 1e8
"""Most interruptions per second of work; what strikes more often is part of the service."""

MOST_QUANTILES: Final = 100_001
"""Longest table of quantiles."""

_SCV_RANGES: dict[str, tuple[float, float, str]] = {
    "deterministic": (0.0, 0.0, "0, or not given"),
    "exponential": (1.0, 1.0, "1, or not given"),
    "gamma": (1e-6, 1e6, "a number > 0"),
    "lognormal": (1e-6, 1e6, "a number > 0"),
    "hyperexponential": (1.0, 1e6, "a number >= 1"),
    "uniform": (1e-6, 1.0 / 3.0, "a number > 0 and at most 1/3 (at 1/3 it reaches from 0 to twice the mean)"),
}

_LAWS: Final = get_args(Variation)


def check_variation(place: str, variation: str, scv: float | None, add: Add) -> None:
    """Report a law that is not known, or a squared coefficient of variation that it cannot have."""
    if variation not in _LAWS:
        add(f"{place}.variation", f'got "{variation}": {did_you_mean(str(variation), _LAWS)}')
        return
    low, high, allowed = _SCV_RANGES[variation]
    if scv is None:
        if variation == "uniform":
            add(f"{place}.scv", f"is missing: for uniform times it is {allowed}")
    elif not (math.isfinite(scv) and low <= scv <= high):
        add(f"{place}.scv", f"got {scv}: for {variation} times it is {allowed}")


def check_time(place: str, time: RandomTime, add: Add) -> None:
    """Report what is wrong with a random time: both ways of giving it, falling quantiles, negative times."""
    if not time.quantiles_s:
        duration(f"{place}.mean_s", time.mean_s, add)
        check_variation(place, time.variation, time.scv, add)
        return
    if time.mean_s or time.scv is not None or time.variation != "deterministic":
        add(place, "gives both quantiles and a mean or its variation: give one of the two")
    if len(time.quantiles_s) > MOST_QUANTILES:
        add(f"{place}.quantiles_s", f"has {len(time.quantiles_s)} entries: at most {MOST_QUANTILES}")
    for index, quantile in enumerate(time.quantiles_s):
        duration(f"{place}.quantiles_s[{index}]", quantile, add)
        if index and quantile < time.quantiles_s[index - 1]:
            add(
                f"{place}.quantiles_s[{index}]",
                f"got {quantile} after {time.quantiles_s[index - 1]}: quantiles rise, or stay the same",
            )


def check_interruptions(place: str, interruptions: Interruptions, add: Add) -> None:
    """Report interruptions that never or all the time strike, or whose duration makes no sense."""
    rate_hz = interruptions.rate_hz
    if not (math.isfinite(rate_hz) and 0.0 < rate_hz <= MOST_INTERRUPTIONS_HZ):
        allowed = f"a number > 0 and at most {MOST_INTERRUPTIONS_HZ:g}"
        add(
            f"{place}.rate_hz",
            f"got {rate_hz}: interruptions per second of work are {allowed}; where there are none, leave them out",
        )
    check_time(f"{place}.duration", interruptions.duration, add)


# Whether a pool makes sense: its units, their speeds, their scheduler, and how they slow each other down.


_POLICIES: Final = get_args(PolicyKind)


def check_pool(place: str, pool: ResourcePool, add: Add) -> None:
    """Report what is wrong with a pool."""
    if not whole(f"{place}.units", pool.units, MAX_UNITS, "a number of units", add):
        return
    if pool.frequency_hz is not None:
        within(f"{place}.frequency_hz", pool.frequency_hz, FREQUENCIES_HZ, "a frequency", "Hz", add)
    if pool.unit_speed_ratio:
        if len(pool.unit_speed_ratio) != pool.units:
            got = f"has {len(pool.unit_speed_ratio)} entries for {pool.units} units"
            add(f"{place}.unit_speed_ratio", f"{got}: give one for each unit, or none")
        for index, ratio in enumerate(pool.unit_speed_ratio):
            within(f"{place}.unit_speed_ratio[{index}]", ratio, SPEED_RATIOS, "a relative speed", "", add)
    check_policy(f"{place}.policy", pool.policy, add)
    duration(f"{place}.switch_cost_s", pool.switch_cost_s, add)
    duration(f"{place}.migration_cost_s", pool.migration_cost_s, add)
    check_contention(f"{place}.contention", pool.contention, pool.units, add)
    if pool.interruptions is not None:
        check_interruptions(f"{place}.interruptions", pool.interruptions, add)
    if pool.power is not None:
        check_power(f"{place}.power", pool.power, pool.frequency_hz, add)


def check_policy(place: str, policy: Policy, add: Add) -> None:
    """Report a scheduler that is not known, and times that it lacks, does not use or cannot keep."""
    known(f"{place}.kind", policy.kind, _POLICIES, add)
    sliced = policy.kind in {"round_robin", "fair", "linux"}
    if sliced and policy.quantum_s is None:
        add(f"{place}.quantum_s", f"is missing: {policy.kind} grants units for at most a time slice; give it")
    elif sliced and policy.quantum_s is not None:
        time_slice(f"{place}.quantum_s", policy.quantum_s, add)
    elif policy.quantum_s is not None:
        add(f"{place}.quantum_s", f"is given, but {policy.kind} knows no time slice: leave it out")
    duration(f"{place}.wakeup_granularity_s", policy.wakeup_granularity_s, add)
    if policy.wakeup_granularity_s and policy.kind != "linux":
        add(
            f"{place}.wakeup_granularity_s",
            f"is given, but under {policy.kind} nobody is revoked for waking up: only linux uses it",
        )


def check_contention(place: str, contention: Contention, units: int, add: Add) -> None:
    """Report contention that is given twice, or slows so many units down by factors that cannot be."""
    are_right = check_law(place, contention, add)
    for index, each in enumerate(contention.mixture):
        are_right &= check_law(f"{place}.mixture[{index}]", each, add)
        are_right &= positive(f"{place}.mixture[{index}].weight", each.weight, "a weight", add)
    allowed = (1.0 / MOST_CONTENTION, MOST_CONTENTION)
    for index, factor in enumerate(contention.table):
        within(f"{place}.table[{index}]", factor, allowed, "a factor on the service time", "", add)
    for index, factor in enumerate(contention.discrepancy):
        are_right &= within(f"{place}.discrepancy[{index}]", factor, allowed, "a factor on top of the law", "", add)
    if contention.table and (contention.sigma or contention.kappa):
        add(place, "gives both a table and sigma or kappa: give one of the two")
    elif contention.table and contention != Contention(table=contention.table):
        add(place, "gives both a table and a law, a mixture or a discrepancy: give one of the two")
    elif contention.mixture and replace(contention, mixture=(), discrepancy=()) != Contention():
        add(place, "gives both a mixture and a law: give the law as one more entry of the mixture, or alone")
    elif are_right and not contention.table:
        slowest = next(
            (k for k, factor in enumerate(contention.factors(units), start=1) if not _between(factor, allowed)), 0
        )
        if slowest:
            got = f"slows {slowest} busy units down by a factor of {contention.factor(slowest):g}"
            add(place, f"{got}: a factor on the service time is from {allowed[0]:g} to {allowed[1]:g}")
    if len(contention.table) > MAX_UNITS:
        add(f"{place}.table", f"has {len(contention.table)} entries: at most {MAX_UNITS}")
    elif len(contention.table) > 1 and all(math.isfinite(entry) for entry in contention.table):
        last, before = contention.table[-1], contention.table[-2]
        if last + (last - before) * max(units - len(contention.table), 0) <= 0.0:
            add(f"{place}.table", f"falls to 0 or less before {units} busy units: give more entries")


def check_law(place: str, named: NamedLaw, add: Add) -> bool:
    """Report an unknown law, and parameters that it lacks, has not, or that are out of range; return if none is."""
    if not known(f"{place}.law", named.law, LAWS, add):
        return False
    shapes, is_right = {shape.name: shape for shape in LAWS[named.law].shapes}, True
    for name in PARAMETERS:
        at, got, shape = f"{place}.{name}", getattr(named, name), shapes.get(name)
        if shape is None:
            if got:
                has = " and ".join(shapes) or "no parameters"
                add(at, f'is given, but the law "{named.law}" has {has}: leave it out, or name another law')
                is_right = False
        elif got is None:
            add(at, f'is missing: {shape.meaning}; the law "{named.law}" needs it')
            is_right = False
        elif shape.least > 0.0:
            is_right &= within(at, got, (shape.least, shape.most), shape.meaning, "", add)
        else:
            is_right &= not_negative(at, got, add, most=shape.most)
    return is_right


def _between(factor: float, allowed: tuple[float, float]) -> bool:
    return allowed[0] <= factor <= allowed[1]


# Whether a route of a task unit makes sense: its own, or one that it gets during a trial.


INDIRECTION_ENTRIES: Final = 128
"""Length of an RSS indirection table."""

_CHECK_ROUTE_KINDS: Final = get_args(RouteKind)


@value
class Targets:
    """What the routes of a model may lead to, by name and in order: made once, looked up for every route."""

    tasks: Mapping[str, None]
    ports: Mapping[str, None]
    both: Mapping[str, None]
    port_count: int = field("Ports, those of one name too")

    @classmethod
    def of(cls, model: RouterModel) -> Self:
        """Return the names of a model's task units and ports."""
        tasks = dict.fromkeys(task.name for task in model.tasks)
        ports = dict.fromkeys(port.name for port in model.ports)
        return cls(tasks=tasks, ports=ports, both=tasks | ports, port_count=len(model.ports))


def check_route(place: str, route: Route, targets: Targets, add: Add) -> None:
    """Report targets, weights, table entries and copies of a route that cannot be."""
    if route.kind not in _CHECK_ROUTE_KINDS:
        add(f"{place}.kind", f'got "{route.kind}": {did_you_mean(str(route.kind), _CHECK_ROUTE_KINDS)}')
        return
    _check_copies(place, route, targets, add)
    known = targets.ports if route.kind == "egress" else targets.both
    for index, name in enumerate(route.to):
        if name in known:
            continue
        if name in targets.tasks:
            add(
                f"{place}.to[{index}]",
                f'"{name}" is a task unit: an egress route leads to ports, {did_you_mean("", known)}',
            )
        else:
            add(f"{place}.to[{index}]", f'"{name}" is neither task unit nor port: {did_you_mean(name, known)}')
    if route.kind == "single" and len(route.to) > 1:
        add(f"{place}.to", f"has {len(route.to)} targets: kind single has one; use rss, round_robin or random")
    if route.kind != "single" and not route.to:
        add(f"{place}.to", f"is empty: kind {route.kind} needs targets to choose from")
    elif route.kind == "by_egress" and len(route.to) != targets.port_count:
        add(
            f"{place}.to",
            f"has {len(route.to)} targets for {targets.port_count} ports: by_egress needs one for each port",
        )
    if route.kind == "random":
        if len(route.weights) != len(route.to):
            add(f"{place}.weights", f"has {len(route.weights)} entries for {len(route.to)} targets: give one for each")
        for index, weight in enumerate(route.weights):
            if not (math.isfinite(weight) and weight >= 0.0):
                add(f"{place}.weights[{index}]", f"got {weight}: allowed is a finite number >= 0")
        if route.weights and all(weight == 0.0 for weight in route.weights):
            add(f"{place}.weights", "are all 0: at least one target needs a chance")
    elif route.weights:
        add(f"{place}.weights", f"are given, but kind {route.kind} does not use them: only random does")
    if route.indirection and route.kind != "rss":
        add(f"{place}.indirection", f"is given, but kind {route.kind} does not use it: only rss does")
    elif route.indirection:
        if len(route.indirection) != INDIRECTION_ENTRIES:
            add(f"{place}.indirection", f"has {len(route.indirection)} entries: RSS has {INDIRECTION_ENTRIES}")
        for index, entry in enumerate(route.indirection):
            if not isinstance(entry, int) or not 0 <= entry < max(len(route.to), 1):
                add(f"{place}.indirection[{index}]", f"got {entry}: there are {len(route.to)} targets, numbered from 0")
                break


def _check_copies(place: str, route: Route, targets: Targets, add: Add) -> None:
    named: set[str] = set()
    for index, name in enumerate(route.copies):
        at = f"{place}.copies[{index}]"
        if name in targets.ports:
            add(at, f'"{name}" is a port: copies go to task units and end there; name task units')
        elif name not in targets.tasks:
            add(at, f'"{name}" is no task unit: {did_you_mean(name, targets.tasks)}')
        elif name in named:
            add(at, f'"{name}" is named twice: a task unit gets one copy of a frame')
        named.add(name)


# Whether windows make sense: units that a frame carries over several task units (:attr:`Need.until`).


def check_windows(model: RouterModel, targets: Targets, add: Add) -> None:
    """Report what is wrong with the windows of a model, through ``add(place, message)``."""
    places: dict[str, str] = {}
    carrying: dict[str, str] = {}
    sound = True
    for index, task in enumerate(model.tasks):
        for position, need in enumerate(task.needs):
            if need.until:
                places[task.name] = f"task[{index}].needs[{position}].until"
                carrying.setdefault(need.pool, task.name)
                sound &= _check_until(places[task.name], task, need, targets, add)
                _check_asking(f"task[{index}]", task, add)
    if not places:
        return
    working = {need.pool: task.name for task in reversed(model.tasks) for need in task.needs if not need.until}
    for index, pool in enumerate(model.pools):
        if pool.name in carrying:
            _check_pool(f"pool[{index}]", pool, carrying[pool.name], working.get(pool.name, ""), add)
    if sound and not find_cycle(model.tasks):
        check_ways(model.tasks, lambda window: places[window.enter], add)
    for index, task in enumerate(model.tasks):
        for position, name in enumerate(task.route.copies):
            if name in places:
                add(f"task[{index}].route.copies[{position}]", copied(name))


def copied(name: str) -> str:
    """Say that a task unit with a window gets no copies."""
    return f'"{name}" gives units to frames that carry them on, but a copy ends there: send it elsewhere'


def check_ways(tasks: Sequence[TaskUnit], place: Callable[[Window], str], add: Add) -> None:
    """Report windows that frames leave, if their routes are these, with units in hand, or that wait for each other.

    The task units may have more routes than a model's: all that are ever in force.
    """
    windows = windows_among(tasks)
    for window in windows:
        if window.until not in window.inside:
            add(
                place(window),
                f'"{window.until}" is not further on: no way leads there from "{window.enter}"; name a task unit '
                f"behind it: {did_you_mean('', window.inside)}",
            )
        elif window.leak:
            add(
                place(window),
                f'"{window.until}" is missed on the way {" → ".join(window.leak)}: every way from "{window.enter}" '
                "must lead through it, or the frame never gives its units back",
            )
    _check_order(tasks, windows, place, add)


def _check_until(place: str, task: TaskUnit, need: Need, targets: Targets, add: Add) -> bool:
    others = (name for name in targets.tasks if name != task.name)
    if need.until == task.name:
        add(place, "is the task unit itself, which gives its units back when it has served: leave it out")
    elif need.until in targets.ports:
        add(place, f'"{need.until}" is a port: name a task unit before it, {did_you_mean("", others)}')
    elif need.until not in targets.tasks:
        add(place, f'"{need.until}" is no task unit: {did_you_mean(need.until, others)}')
    else:
        return True
    return False


def _check_asking(place: str, task: TaskUnit, add: Add) -> None:
    if task.request != "frame":
        add(
            f"{place}.request",
            f"is {task.request}, but its frames carry their units on: each asks for its own, so give frame",
        )
    if len(task.needs) > 1:
        add(
            f"{place}.needs",
            f"has {len(task.needs)} entries: a need with until stands alone; let another task unit behind it "
            "ask for the others",
        )
    if task.pin:
        add(f"{place}.pin", "is given, but units that frames carry are all alike: leave it out, or split the pool")


def _check_pool(place: str, pool: ResourcePool, carrying: str, working: str, add: Add) -> None:
    """Report what is wrong with a pool whose units frames of ``carrying`` carry on, and that ``working`` works with."""
    if working:
        add(
            place,
            f'frames of "{carrying}" carry its units on (until), but "{working}" needs them to serve: '
            "give one of the two a pool of its own",
        )
    if pool.policy.kind != "fifo":
        add(
            f"{place}.policy.kind",
            f'is {pool.policy.kind}, but frames of "{carrying}" carry its units on: they are granted in order '
            "of arrival, so give fifo",
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
                f"{place}.{name}",
                f'is given, but its units do no work, frames of "{carrying}" carry them on: give it to the pool '
                "that works",
            )


def _check_order(
    tasks: Sequence[TaskUnit], windows: Sequence[Window], place: Callable[[Window], str], add: Add
) -> None:
    """Report pools whose frames could wait for each other for ever: each carries what the other asks for."""
    named = {task.name: task for task in tasks}
    awaited = {window.enter: window.pool for window in windows}
    # By pool: the pools that a frame may wait for with units of it in hand, and where.
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
    what = "; ".join(
        f'with units of "{window.pool}" in hand frames wait at "{where}" for units of "{other}"'
        for (window, where), other in zip(steps, (*cycle[1:], cycle[0]), strict=True)
    )
    add(place(steps[0][0]), f"{what}: once none is left they wait for ever; let all ask in one order of pools")


def _awaited(
    name: str, awaited: Mapping[str, str], tasks: Mapping[str, TaskUnit], seen: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield the pools that a frame may wait for at a task unit, and the task units that ask for them.

    One that holds back waits for room in the next queue, and so for whatever that one waits for. What was ``seen``
    before is left out, and so is all that it waits for: that was seen with it.
    """
    pending = [name] if name not in seen else []
    seen.add(name)
    while pending:
        at = pending.pop()
        if at in awaited:
            yield awaited[at], at
        if at in tasks and tasks[at].holds_back:
            following = [to for to in tasks[at].route.to if to not in seen]
            seen.update(following)
            pending.extend(following)


_ACTIVATIONS: Final = get_args(ActivationKind)
_DISCIPLINES: Final = get_args(PollDiscipline)
_LONGEST: Final = {"per_packet": LONGEST_S, "per_byte": LONGEST_BYTE_S, "per_batch": LONGEST_S}


def check_model(model: RouterModel) -> None:
    """Check that a router model is free of contradictions.

    Raises
    ------
    ModelProblem
        With all problems: unknown names (and the nearest known one), needs that no pool can meet, pins out of
        range, a cycle in the task graph, task units that no frame reaches, queues of 0, numbers that are
        negative, not finite or beyond all bounds, routes without what their kind needs, costs in cycles without a
        frequency, windows that frames leave with units in hand, and more.
    """
    problems: list[Problem] = []

    def add(place: str, message: str) -> None:
        problems.append(Problem(place, message))

    targets = Targets.of(model)
    _check_names(model, add)
    for index, port in enumerate(model.ports):
        _check_port(f"port[{index}]", port, targets, add)
    for index, pool in enumerate(model.pools):
        check_pool(f"pool[{index}]", pool, add)
    pools = {pool.name: pool for pool in model.pools}
    # Builders make many task units alike but for their names and pins: what has no fault is looked at once.
    sound: set[object] = set()
    for index, task in enumerate(model.tasks):
        parts = (
            id(task.needs),
            id(task.service),
            id(task.activation),
            # As text: 1, 1.0 and True are equal, and not every value that is wrong can be hashed.
            repr((task.queue_frames, task.batch_frames, task.weight, task.request, task.parallel)),
            len(set(task.pin)),
        )
        if parts not in sound:
            before = len(problems)
            _check_task(f"task[{index}]", task, pools, add)
            _check_service(f"task[{index}].service", task, pools, add)
            _check_activation(f"task[{index}].activation", task.activation, add)
            if len(problems) == before:
                sound.add(parts)
        if id(task.route) not in sound:
            before = len(problems)
            check_route(f"task[{index}].route", task.route, targets, add)
            if len(problems) == before:
                sound.add(id(task.route))
        _check_pin(f"task[{index}].pin", task, pools, add)
    check_threads(model, add)
    check_polling(model, add)
    check_windows(model, targets, add)
    _check_graph(model, add)
    if problems:
        raise ModelProblem(f"router {model.name!r}", problems)


def _check_names(model: RouterModel, add: Add) -> None:
    if not model.ports:
        add("port", "there is no port: frames need at least one to come in by")
    if not model.tasks:
        add("task", "there is no task unit: frames need at least one to be processed by")
    taken: dict[str, str] = {}
    places = [(f"port[{index}]", port.name) for index, port in enumerate(model.ports)]
    places += [(f"task[{index}]", task.name) for index, task in enumerate(model.tasks)]
    for place, name in places:
        if not name.strip():
            add(f"{place}.name", "is empty: ports and task units need a name")
        elif name in taken:
            add(f"{place}.name", f'"{name}" is already the name of {taken[name]}: routes could not tell them apart')
        taken.setdefault(name, place)
    pools: dict[str, str] = {}
    for index, pool in enumerate(model.pools):
        if not pool.name.strip():
            add(f"pool[{index}].name", "is empty: pools need a name")
        elif pool.name in pools:
            add(f"pool[{index}].name", f'"{pool.name}" is already the name of {pools[pool.name]}')
        pools.setdefault(pool.name, f"pool[{index}]")


def _check_port(place: str, port: Port, targets: Targets, add: Add) -> None:
    within(f"{place}.link_bps", port.link_bps, LINK_RATES_BPS, "a link rate", "bit/s", add)
    whole(f"{place}.tx_ring_frames", port.tx_ring_frames, MAX_FRAMES, "a transmit ring", add)
    if not port.entry:
        add(
            f"{place}.entry",
            f"is missing: name the task unit that receives its frames; {did_you_mean('', targets.tasks)}",
        )
    elif port.entry not in targets.tasks:
        add(f"{place}.entry", f'"{port.entry}" is no task unit: {did_you_mean(port.entry, targets.tasks)}')


def _check_task(place: str, task: TaskUnit, pools: dict[str, ResourcePool], add: Add) -> None:
    whole(f"{place}.queue_frames", task.queue_frames, MAX_FRAMES, "a queue", add)
    whole(f"{place}.batch_frames", task.batch_frames, MAX_FRAMES, "a batch", add)
    positive(f"{place}.weight", task.weight, "a weight", add)
    if known(f"{place}.request", task.request, ("task", "frame"), add) and task.request == "frame":
        if not task.needs:
            add(f"{place}.request", "is frame, but the task unit needs no pool to request from: leave it out")
        if task.activation.kind != "dedicated" or task.batch_frames != 1:
            add(f"{place}.request", "is frame: then frames are served one by one, dedicated, in batches of 1")
    parallel_ok = whole(f"{place}.parallel", task.parallel, MAX_UNITS, "a number of frames served at once", add)
    seen: set[str] = set()
    for index, need in enumerate(task.needs):
        at = f"{place}.needs[{index}]"
        if need.pool not in pools:
            add(f"{at}.pool", f'"{need.pool}" is no pool: {did_you_mean(need.pool, pools)}')
            continue
        if need.pool in seen:
            add(f"{at}.pool", f'"{need.pool}" is needed twice: give the sum of the units in one need')
        seen.add(need.pool)
        if not whole(f"{at}.units", need.units, MAX_UNITS, "a need", add):
            continue
        pool = pools[need.pool]
        allowed = len(set(task.pin)) if task.pin and index == 0 else pool.units
        where = (
            f'the pin allows {allowed} of "{pool.name}"' if task.pin and index == 0 else f'"{pool.name}" has {allowed}'
        )
        if need.units > allowed:
            add(f"{at}.units", f"needs {need.units} units at once, but {where}")
        elif parallel_ok and need.units * task.parallel > allowed:
            want = f"{task.parallel} at once need {need.units * task.parallel} units"
            add(f"{place}.parallel", f"{want}, but {where}: lower parallel or add units")


def _check_pin(place: str, task: TaskUnit, pools: dict[str, ResourcePool], add: Add) -> None:
    if task.pin and not task.needs:
        add(place, "pins a task unit that needs no pool: give it a need, or no pin")
    elif task.pin and task.needs[0].pool in pools:
        units = pools[task.needs[0].pool].units
        for index, unit in enumerate(task.pin):
            if not isinstance(unit, int) or not 0 <= unit < units:
                there = f'"{task.needs[0].pool}" has {units}, numbered from 0'
                add(f"{place}[{index}]", f"got {unit}: more cores than units; {there}")
        if len(set(task.pin)) < len(task.pin):
            add(place, "names a unit twice")


def _check_activation(place: str, activation: Activation, add: Add) -> None:
    is_known = known(f"{place}.kind", activation.kind, _ACTIVATIONS, add)
    whole(f"{place}.budget_frames", activation.budget_frames, MAX_FRAMES, "a poll budget", add)
    duration(f"{place}.interrupt_cost_s", activation.interrupt_cost_s, add)
    duration(f"{place}.moderation_s", activation.moderation_s, add)
    duration(f"{place}.linger_s", activation.linger_s, add)
    if is_known and activation.linger_s and activation.kind != "interrupt":
        add(
            f"{place}.linger_s",
            f"is given, but a task unit that is {activation.kind} enables no interrupts that it could put off: "
            "leave it out",
        )
    known(f"{place}.discipline", activation.discipline, _DISCIPLINES, add)
    if activation.wakeup is None:
        return
    if is_known and activation.kind not in {"interrupt", "thread"}:
        add(
            f"{place}.wakeup",
            f"is given, but a task unit that is {activation.kind} never sleeps: interrupts wake, and threads are "
            "woken; leave it out",
        )
    check_time(f"{place}.wakeup", activation.wakeup, add)


def _check_service(place: str, task: TaskUnit, pools: dict[str, ResourcePool], add: Add) -> None:
    service: ServiceCost = task.service
    first = pools.get(task.needs[0].pool) if task.needs else None
    _check_cost(place, service, first.frequency_hz if first is not None else None, add)
    if any((service.per_packet_cycles, service.per_byte_cycles, service.per_batch_cycles)):
        if not task.needs:
            add(place, "costs cycles, but the task unit needs no pool whose frequency would tell how long they take")
        elif first is not None and first.frequency_hz is None:
            add(place, f'costs cycles, but pool "{first.name}" has no frequency: give it, or the cost as a time')
    check_variation(place, service.variation, service.scv, add)


def _check_cost(place: str, cost: ServiceCost, frequency_hz: float | None, add: Add) -> None:
    """Report work that is negative, or takes longer than any time may."""
    for name, longest_s in _LONGEST.items():
        duration(f"{place}.{name}_s", getattr(cost, f"{name}_s"), add, most_s=longest_s)
        cycles = getattr(cost, f"{name}_cycles")
        right = not_negative(f"{place}.{name}_cycles", cycles, add)
        if right and frequency_hz is not None and cycles > longest_s * frequency_hz > 0.0:
            got = f"got {cycles:g} cycles, {cycles / frequency_hz:g} s"
            add(f"{place}.{name}_cycles", f"{got}: a time of at most {longest_s:g} s is allowed")
    accesses = not_negative(f"{place}.memory_accesses", cost.memory_accesses, add)
    latency = duration(f"{place}.memory_latency_s", cost.memory_latency_s, add)
    if accesses and latency and cost.memory_accesses * cost.memory_latency_s > LONGEST_S:
        got = f"got {cost.memory_accesses:g} of {cost.memory_latency_s:g} s each"
        add(f"{place}.memory_accesses", f"{got}: together a time of at most {LONGEST_S:g} s is allowed")


def _check_graph(model: RouterModel, add: Add) -> None:
    cycle = find_cycle(model.tasks)
    if cycle:
        add("task", f"the task graph has a cycle: {' → '.join([*cycle, cycle[0]])}; frames must only go on")
    reached = reachable_tasks(model)
    for index, task in enumerate(model.tasks):
        if reached and task.name not in reached:
            add(f"task[{index}]", f'"{task.name}" is never reached: no port enters it and no route leads there')
