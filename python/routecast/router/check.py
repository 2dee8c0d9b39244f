"""Whether a router model contradicts itself, with every fault at once.

Places are written as in a router file: ``task[2].service.per_byte_s``, ``pool[0].units``, ``port[1].entry``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check_numbers import (
    LINK_RATES_BPS,
    LONGEST_BYTE_S,
    LONGEST_S,
    MAX_FRAMES,
    MAX_UNITS,
    duration,
    known,
    not_negative,
    positive,
    whole,
    within,
)
from routecast.router.check_pool import check_pool
from routecast.router.check_route import Targets, check_route
from routecast.router.check_thread import check_polling, check_threads
from routecast.router.check_time import check_time, check_variation
from routecast.router.check_window import check_windows
from routecast.router.graph import find_cycle, reachable_tasks
from routecast.router.model import (
    Activation,
    ActivationKind,
    PollDiscipline,
    Port,
    ResourcePool,
    RouterModel,
    ServiceCost,
    TaskUnit,
)

__all__ = ["MAX_FRAMES", "MAX_UNITS", "check_model"]

_ACTIVATIONS: Final = get_args(ActivationKind)
_DISCIPLINES: Final = get_args(PollDiscipline)
_LONGEST: Final = {"per_packet": LONGEST_S, "per_byte": LONGEST_BYTE_S, "per_batch": LONGEST_S}
Add = Callable[[str, str], None]


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
    parallel_ok = whole(
        f"{place}.parallel", task.parallel, MAX_UNITS, "a number of frames served at once", add
    )
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
            f'the pin allows {allowed} of "{pool.name}"'
            if task.pin and index == 0
            else f'"{pool.name}" has {allowed}'
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
            add(
                f"task[{index}]",
                f'"{task.name}" is never reached: no port enters it and no route leads there',
            )
