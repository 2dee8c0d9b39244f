"""Which threads of a server go to which cores: the ways of pinning that are tried (thesis, fig. 3.12).

=============  =====================================================================================
``free``       every thread may use every core (1v2p on two cores)
``machines``   each machine's threads have cores of their own as far as there are enough, else machines share cores,
               the heavier ones with fewer others
``threads``    each thread has one core (1v1p, 2v2p), the loads of the cores as even as can be
``alone``      the heaviest machine has a core to itself, the others share the rest (the unbalanced mapping)
=============  =====================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from routecast.evaluate.solve.flow import flow_graph
from routecast.plan.placement.model import PinChoice, Rules
from routecast.plan.placement.server_view import SERVER, ServerView
from routecast.router.virtual.machines import Cores

__all__ = ["Pins", "fullest", "machine_in", "pins_tried", "thread_work"]

Pins = Mapping[str, Cores]


def machine_in(thread: str) -> str:
    """Return the element that a thread of a server's view belongs to."""
    return thread.split(" ", 1)[0]


def thread_work(view: ServerView) -> tuple[dict[str, float], list[float]]:
    """Return the work of each thread that can be pinned, and of all else by core: seconds for a frame of the load."""
    graph = flow_graph(view.model, view.load)
    visits = graph.arriving(graph.share, np.ones(graph.exit + 1)).sum(axis=1)
    units = view.model.pool(SERVER).units
    threads: dict[str, float] = {}
    fixed = [0.0] * units
    for index, task in enumerate(graph.tasks):
        if not any(need.pool == SERVER for need in task.needs):
            continue
        work = float(visits[index]) * task.service.mean_s(view.load.frames.mean_bytes, batch_frames=math.inf)
        if task.thread and not task.pin:
            threads[task.thread] = threads.get(task.thread, 0.0) + work
        else:
            for core in task.pin or range(units):
                fixed[core] += work / len(task.pin or range(units))
    return threads, fixed


def pins_tried(
    threads: Mapping[str, float], fixed: list[float], rules: Rules
) -> Iterator[tuple[PinChoice, Pins]]:
    """Yield ways of pinning the threads of a server; none where every thread must have a core and there are too few."""
    cores = len(fixed)
    if not rules.shared_cores:
        if len(threads) <= cores:
            yield "threads", _one_each(threads, fixed)
        return
    seen: set[tuple[tuple[str, Cores], ...]] = set()
    for choice in rules.pins:
        if choice == "free":
            if rules.cores_per_thread not in (None, cores):
                continue
            pins: Pins = {}
        elif rules.cores_per_thread == cores:
            continue
        else:
            made = _MAKERS[choice](threads, fixed)
            if made is None:
                continue
            pins = _widened(made, rules.cores_per_thread or 1, cores)
        key = tuple(sorted(pins.items()))
        if key not in seen:
            seen.add(key)
            yield choice, pins


def fullest(threads: Mapping[str, float], fixed: list[float], pins: Pins) -> float:
    """Return the least time that some core, or some thread, works for a frame of the load, whoever else slows it."""
    load = list(fixed)
    for thread, own in pins.items():
        if len(own) == 1:
            load[own[0]] += threads[thread]
    every = (sum(fixed) + sum(threads.values())) / len(fixed)
    return max([every, *load, *threads.values()])


def _widened(pins: Pins, wanted: int, cores: int) -> Pins:
    if wanted <= 1:
        return pins
    return {
        thread: tuple(sorted((own[0] + step) % cores for step in range(wanted)))
        for thread, own in pins.items()
    }


def _heaviest_first(work: Mapping[str, float]) -> list[str]:
    return sorted(work, key=lambda name: (-work[name], name))


def _one_each(threads: Mapping[str, float], fixed: list[float]) -> Pins:
    """Give each thread a core of its own, the heaviest the one with the least other work."""
    cores = sorted(range(len(fixed)), key=lambda core: (fixed[core], -core))
    return {thread: (core,) for thread, core in zip(_heaviest_first(threads), cores, strict=False)}


def _threads(threads: Mapping[str, float], fixed: list[float]) -> Pins:
    load = list(fixed)
    pins = {}
    for thread in _heaviest_first(threads):
        core = min(range(len(load)), key=lambda one: (load[one], -one))
        load[core] += threads[thread]
        pins[thread] = (core,)
    return pins


def _by_machine(threads: Mapping[str, float]) -> dict[str, float]:
    machines: dict[str, float] = {}
    for thread, work in threads.items():
        machines[machine_in(thread)] = machines.get(machine_in(thread), 0.0) + work
    return machines


def _machines(threads: Mapping[str, float], fixed: list[float]) -> Pins:
    machines = _by_machine(threads)
    if len(machines) >= len(fixed):
        return _shared(threads, machines, fixed, range(len(fixed)))
    cores = sorted(range(len(fixed)), key=lambda core: (fixed[core], -core))
    own: dict[str, list[int]] = {name: [] for name in _heaviest_first(machines)}
    for core in cores:
        needy = min(
            own, key=lambda name: (len(own[name]) / max(machines[name], 1e-30), -machines[name], name)
        )
        own[needy].append(core)
    pins: dict[str, Cores] = {}
    for name, mine in own.items():
        its = {thread: work for thread, work in threads.items() if machine_in(thread) == name}
        inner = _threads(its, [fixed[core] for core in mine])
        pins |= {thread: (mine[at[0]],) for thread, at in inner.items()}
    return pins


def _shared(
    threads: Mapping[str, float], machines: Mapping[str, float], fixed: list[float], cores: range
) -> Pins:
    load = {core: fixed[core] for core in cores}
    where = {}
    for name in _heaviest_first(machines):
        core = min(load, key=lambda one: (load[one], -one))
        load[core] += machines[name]
        where[name] = core
    return {thread: (where[machine_in(thread)],) for thread in threads}


def _alone(threads: Mapping[str, float], fixed: list[float]) -> Pins | None:
    machines = _by_machine(threads)
    if len(machines) < 2 or len(fixed) < 2:
        return None
    heaviest = _heaviest_first(machines)[0]
    last = len(fixed) - 1
    others = {name: work for name, work in machines.items() if name != heaviest}
    pins = dict(
        _shared(
            {thread: work for thread, work in threads.items() if machine_in(thread) != heaviest},
            others,
            fixed,
            range(last),
        )
    )
    return pins | {thread: (last,) for thread in threads if machine_in(thread) == heaviest}


_MAKERS: dict[PinChoice, Callable[[Mapping[str, float], list[float]], Pins | None]] = {
    "machines": _machines,
    "threads": _threads,
    "alone": _alone,
}
