"""Whether a router model contradicts itself, with every fault at once.

Places are written as in a router file: ``task[2].service.per_byte_s``, ``pool[0].units``, ``port[1].entry``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, get_args

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check_power import check_power
from routecast.router.check_route import check_route
from routecast.router.check_thread import check_polling, check_threads
from routecast.router.check_time import check_interruptions, check_time, check_variation
from routecast.router.graph import find_cycle, reachable_tasks
from routecast.router.model import (
    Activation,
    ActivationKind,
    PolicyKind,
    PollDiscipline,
    Port,
    ResourcePool,
    RouterModel,
    ServiceCost,
    TaskUnit,
)

__all__ = ["MAX_FRAMES", "MAX_UNITS", "check_model"]

MAX_UNITS: Final = 65_536
"""Most units of a pool; more is taken for a typing error."""

MAX_FRAMES: Final = 2**31 - 1
"""Longest queue, ring or batch."""

_SERVICE_NUMBERS = (
    *("per_packet_cycles", "per_byte_cycles", "per_batch_cycles"),
    *("per_packet_s", "per_byte_s", "per_batch_s", "memory_accesses", "memory_latency_s"),
)
Add = Callable[[str, str], None]


def check_model(model: RouterModel) -> None:
    """Check that a router model is free of contradictions.

    Raises
    ------
    ModelProblem
        With all problems: unknown names (and the nearest known one), needs that no pool can meet, pins out of
        range, a cycle in the task graph, task units that no frame reaches, queues of 0, numbers that are
        negative or not finite, routes without what their kind needs, costs in cycles without a frequency, and
        more.
    """
    problems: list[Problem] = []

    def add(place: str, message: str) -> None:
        problems.append(Problem(place, message))

    _check_names(model, add)
    for index, port in enumerate(model.ports):
        _check_port(f"port[{index}]", port, model, add)
    for index, pool in enumerate(model.pools):
        _check_pool(f"pool[{index}]", pool, add)
    for index, task in enumerate(model.tasks):
        _check_task(f"task[{index}]", task, model, add)
    check_threads(model, add)
    check_polling(model, add)
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
            add(
                f"{place}.name",
                f'"{name}" is already the name of {taken[name]}: routes could not tell them apart',
            )
        taken.setdefault(name, place)
    pools: dict[str, str] = {}
    for index, pool in enumerate(model.pools):
        if not pool.name.strip():
            add(f"pool[{index}].name", "is empty: pools need a name")
        elif pool.name in pools:
            add(f"pool[{index}].name", f'"{pool.name}" is already the name of {pools[pool.name]}')
        pools.setdefault(pool.name, f"pool[{index}]")


def _check_port(place: str, port: Port, model: RouterModel, add: Add) -> None:
    _positive(f"{place}.link_bps", port.link_bps, "a link rate", add)
    _whole(f"{place}.tx_ring_frames", port.tx_ring_frames, MAX_FRAMES, "a transmit ring", add)
    names = [task.name for task in model.tasks]
    if not port.entry:
        add(
            f"{place}.entry",
            f"is missing: name the task unit that receives its frames; {did_you_mean('', names)}",
        )
    elif port.entry not in names:
        add(f"{place}.entry", f'"{port.entry}" is no task unit: {did_you_mean(port.entry, names)}')


def _check_pool(place: str, pool: ResourcePool, add: Add) -> None:
    if not _whole(f"{place}.units", pool.units, MAX_UNITS, "a number of units", add):
        return
    if pool.frequency_hz is not None:
        _positive(f"{place}.frequency_hz", pool.frequency_hz, "a frequency", add)
    if pool.unit_speed_ratio:
        if len(pool.unit_speed_ratio) != pool.units:
            got = f"has {len(pool.unit_speed_ratio)} entries for {pool.units} units"
            add(f"{place}.unit_speed_ratio", f"{got}: give one for each unit, or none")
        for index, ratio in enumerate(pool.unit_speed_ratio):
            _positive(f"{place}.unit_speed_ratio[{index}]", ratio, "a relative speed", add)
    _known(f"{place}.policy.kind", pool.policy.kind, get_args(PolicyKind), add)
    sliced = pool.policy.kind in {"round_robin", "fair", "linux"}
    if sliced and pool.policy.quantum_s is None:
        add(
            f"{place}.policy.quantum_s",
            f"is missing: {pool.policy.kind} grants units for at most a time slice; give it",
        )
    elif sliced and pool.policy.quantum_s is not None:
        _positive(f"{place}.policy.quantum_s", pool.policy.quantum_s, "a time slice", add)
    elif pool.policy.quantum_s is not None:
        add(
            f"{place}.policy.quantum_s", f"is given, but {pool.policy.kind} knows no time slice: leave it out"
        )
    _not_negative(f"{place}.policy.wakeup_granularity_s", pool.policy.wakeup_granularity_s, add)
    if pool.policy.wakeup_granularity_s and pool.policy.kind != "linux":
        add(
            f"{place}.policy.wakeup_granularity_s",
            f"is given, but under {pool.policy.kind} nobody is revoked for waking up: only linux uses it",
        )
    _not_negative(f"{place}.switch_cost_s", pool.switch_cost_s, add)
    _not_negative(f"{place}.migration_cost_s", pool.migration_cost_s, add)
    _not_negative(f"{place}.contention.sigma", pool.contention.sigma, add)
    _not_negative(f"{place}.contention.kappa", pool.contention.kappa, add)
    for index, factor in enumerate(pool.contention.table):
        _positive(f"{place}.contention.table[{index}]", factor, "a factor on the service time", add)
    if pool.contention.table and (pool.contention.sigma or pool.contention.kappa):
        add(f"{place}.contention", "gives both a table and sigma or kappa: give one of the two")
    if len(pool.contention.table) > MAX_UNITS:
        add(f"{place}.contention.table", f"has {len(pool.contention.table)} entries: at most {MAX_UNITS}")
    elif len(pool.contention.table) > 1 and all(math.isfinite(entry) for entry in pool.contention.table):
        last, before = pool.contention.table[-1], pool.contention.table[-2]
        if last + (last - before) * max(pool.units - len(pool.contention.table), 0) <= 0.0:
            add(
                f"{place}.contention.table",
                f"falls to 0 or less before {pool.units} busy units: give more entries",
            )
    if pool.interruptions is not None:
        check_interruptions(f"{place}.interruptions", pool.interruptions, add)
    if pool.power is not None:
        check_power(f"{place}.power", pool.power, pool.frequency_hz, add)


def _check_task(place: str, task: TaskUnit, model: RouterModel, add: Add) -> None:
    _whole(f"{place}.queue_frames", task.queue_frames, MAX_FRAMES, "a queue", add)
    _whole(f"{place}.batch_frames", task.batch_frames, MAX_FRAMES, "a batch", add)
    _positive(f"{place}.weight", task.weight, "a weight", add)
    if _known(f"{place}.request", task.request, ("task", "frame"), add) and task.request == "frame":
        if not task.needs:
            add(f"{place}.request", "is frame, but the task unit needs no pool to request from: leave it out")
        if task.activation.kind != "dedicated" or task.batch_frames != 1:
            add(f"{place}.request", "is frame: then frames are served one by one, dedicated, in batches of 1")
    parallel_ok = _whole(
        f"{place}.parallel", task.parallel, MAX_UNITS, "a number of frames served at once", add
    )
    pools = {pool.name: pool for pool in model.pools}
    seen: set[str] = set()
    for index, need in enumerate(task.needs):
        at = f"{place}.needs[{index}]"
        if need.pool not in pools:
            add(f"{at}.pool", f'"{need.pool}" is no pool: {did_you_mean(need.pool, pools)}')
            continue
        if need.pool in seen:
            add(f"{at}.pool", f'"{need.pool}" is needed twice: give the sum of the units in one need')
        seen.add(need.pool)
        if not _whole(f"{at}.units", need.units, MAX_UNITS, "a need", add):
            continue
        pool = pools[need.pool]
        allowed = len(set(task.pin)) if task.pin and index == 0 else pool.units
        where = (
            f'the pin allows {allowed} of "{pool.name}"'
            if task.pin and index == 0
            else f'"{pool.name}" has {allowed}'
        )
        if need.units > allowed:
            add(f"{at}.units", f"needs {need.units} units at once, but {where}")
        elif parallel_ok and need.units * task.parallel > allowed:
            want = f"{task.parallel} at once need {need.units * task.parallel} units"
            add(f"{place}.parallel", f"{want}, but {where}: lower parallel or add units")
    if task.pin and not task.needs:
        add(f"{place}.pin", "pins a task unit that needs no pool: give it a need, or no pin")
    elif task.pin and task.needs[0].pool in pools:
        units = pools[task.needs[0].pool].units
        for index, unit in enumerate(task.pin):
            if not isinstance(unit, int) or not 0 <= unit < units:
                there = f'"{task.needs[0].pool}" has {units}, numbered from 0'
                add(f"{place}.pin[{index}]", f"got {unit}: more cores than units; {there}")
        if len(set(task.pin)) < len(task.pin):
            add(f"{place}.pin", "names a unit twice")
    _check_service(f"{place}.service", task, pools, add)
    _check_activation(f"{place}.activation", task.activation, add)
    check_route(f"{place}.route", task.route, model, add)


def _check_activation(place: str, activation: Activation, add: Add) -> None:
    known = _known(f"{place}.kind", activation.kind, get_args(ActivationKind), add)
    _whole(f"{place}.budget_frames", activation.budget_frames, MAX_FRAMES, "a poll budget", add)
    _not_negative(f"{place}.interrupt_cost_s", activation.interrupt_cost_s, add)
    _not_negative(f"{place}.moderation_s", activation.moderation_s, add)
    _not_negative(f"{place}.linger_s", activation.linger_s, add)
    if known and activation.linger_s and activation.kind != "interrupt":
        add(
            f"{place}.linger_s",
            f"is given, but a task unit that is {activation.kind} enables no interrupts that it could put off: "
            "leave it out",
        )
    _known(f"{place}.discipline", activation.discipline, get_args(PollDiscipline), add)
    if activation.wakeup is None:
        return
    if known and activation.kind not in {"interrupt", "thread"}:
        add(
            f"{place}.wakeup",
            f"is given, but a task unit that is {activation.kind} never sleeps: interrupts wake, and threads are "
            "woken; leave it out",
        )
    check_time(f"{place}.wakeup", activation.wakeup, add)


def _check_service(place: str, task: TaskUnit, pools: dict[str, ResourcePool], add: Add) -> None:
    service: ServiceCost = task.service
    for name in _SERVICE_NUMBERS:
        _not_negative(f"{place}.{name}", getattr(service, name), add)
    if any((service.per_packet_cycles, service.per_byte_cycles, service.per_batch_cycles)):
        first = pools.get(task.needs[0].pool) if task.needs else None
        if not task.needs:
            add(
                place,
                "costs cycles, but the task unit needs no pool whose frequency would tell how long they take",
            )
        elif first is not None and first.frequency_hz is None:
            add(
                place,
                f'costs cycles, but pool "{first.name}" has no frequency: give it, or the cost as a time',
            )
    check_variation(place, service.variation, service.scv, add)


def _check_graph(model: RouterModel, add: Add) -> None:
    cycle = find_cycle(model.tasks)
    if cycle:
        add("task", f"the task graph has a cycle: {' → '.join([*cycle, cycle[0]])}; frames must only go on")
    reached = reachable_tasks(model)
    for index, task in enumerate(model.tasks):
        if task.name not in reached and any(port.entry in reached for port in model.ports):
            add(
                f"task[{index}]",
                f'"{task.name}" is never reached: no port enters it and no route leads there',
            )


def _known(place: str, got: str, allowed: Iterable[str], add: Add) -> bool:
    names = list(allowed)
    if got in names:
        return True
    add(place, f'got "{got}": {did_you_mean(str(got), names)}')
    return False


def _whole(place: str, got: object, highest: int, what: str, add: Add) -> bool:
    if isinstance(got, int) and not isinstance(got, bool) and 1 <= got <= highest:
        return True
    add(place, f"got {got}: {what} is a whole number from 1 to {highest}")
    return False


def _positive(place: str, got: float, what: str, add: Add) -> None:
    if not (math.isfinite(got) and got > 0.0):
        add(place, f"got {got}: {what} is a finite number > 0")


def _not_negative(place: str, got: float, add: Add) -> None:
    if not (math.isfinite(got) and got >= 0.0):
        add(place, f"got {got}: allowed is a finite number >= 0")
