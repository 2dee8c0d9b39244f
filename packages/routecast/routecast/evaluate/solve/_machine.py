"""A router under a load, prepared for repeated computation: threads, their work, and the units that they share."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from routecast.contention.laws import coherent_factor
from routecast.evaluate.solve._cost import Cost, costs_of
from routecast.evaluate.solve._flow_propagation import Propagation, propagation_of
from routecast.evaluate.solve._scheduling_shares import UnitGroup, UnitGroups, limiting_groups, pin_sets, served_at_once
from routecast.evaluate.solve.flow import FlowGraph, Vector, flow_graph
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.quantity.schema import field, value
from routecast.router.model import ResourcePool, RouterModel, TaskUnit

if TYPE_CHECKING:
    from routecast.evaluate.solve._busy_polling import Upstream

Index = NDArray[np.intp]

_MAX_KEPT_FLOWS = 4096


@value
class Contended:
    """Contention (S5) of all threads at once, in arrays: an entry for each thread and pool with contention.

    The law is that of :func:`~routecast.evaluate.solve._scheduling_shares.mean_contention`.
    """

    thread: Index
    pool: Index
    units: Vector
    max_units: Vector = field("Units that the thread can occupy")
    grant_units: Vector = field("Units of a grant")
    sigma: Vector = field("Serial share of the pool, by entry")
    kappa: Vector = field("Coherency cost of the pool, by entry")
    table: Vector = field(
        "Factors for 1, 2, … busy units by entry, the last step continued; shape (entries, most units + 2)"
    )
    has_table: NDArray[np.bool_]
    threads: int

    def factor(self, busy: Vector) -> Vector:
        """Return the factor on each thread's work when it keeps ``busy`` units busy."""
        factor = np.ones(self.threads)
        if not self.thread.size:
            return factor
        own_units = busy[self.thread] * self.grant_units
        total = np.bincount(self.pool, weights=own_units)[self.pool]
        own_ratio = np.minimum(own_units / self.max_units, 1.0)
        scatter = own_units * np.maximum(1.0 - own_ratio, 0.0)
        spread = np.maximum(np.bincount(self.pool, weights=scatter)[self.pool] - own_ratio * (1.0 - own_ratio), 0.0)
        k = np.maximum(np.maximum(np.minimum(1.0 + total - own_ratio, self.units), self.grant_units), 1.0)
        low = np.maximum(k, 2.0)
        bend = self._at(low + 1.0) - 2.0 * self._at(low) + self._at(low - 1.0)
        np.multiply.at(factor, self.thread, np.maximum(self._at(k) + 0.5 * spread * bend, 1e-9))
        return factor

    def _at(self, k: Vector) -> Vector:
        law = coherent_factor(k, self.sigma, self.kappa)
        if not self.has_table.any():
            return law
        step = np.minimum(k.astype(np.intp) - 1, self.table.shape[1] - 2)
        rows = np.arange(len(k))
        lower, upper = self.table[rows, step], self.table[rows, step + 1]
        factor_at: Vector = np.where(self.has_table, lower + (k - 1.0 - step) * (upper - lower), law)
        return factor_at


def contention_of(model: RouterModel, first_tasks: list[TaskUnit], max_grants: Vector) -> Contended:
    """Return the contention of threads that slow each other; ``first_tasks`` has one task unit of each."""
    pools = {pool.name: number for number, pool in enumerate(model.pools) if not pool.contention.is_none}
    entries = [
        (number, pools[need.pool], float(need.units))
        for number, task in enumerate(first_tasks)
        for need in task.needs
        if need.pool in pools
    ]
    widest = max((model.pools[pool].units for pool in pools.values()), default=1) + 2
    used = [model.pools[pool] for _, pool, _ in entries]
    steps = {
        number: [1.0] * widest
        if model.pools[number].contention.is_usl
        else model.pools[number].contention.factors(widest)
        for number in pools.values()
    }
    return Contended(
        thread=np.array([thread for thread, _, _ in entries], dtype=np.intp),
        pool=np.array([pool for _, pool, _ in entries], dtype=np.intp),
        units=np.array([float(pool.units) for pool in used]),
        max_units=np.array([max(float(max_grants[thread]) * units, 1.0) for thread, _, units in entries]),
        grant_units=np.array([units for _, _, units in entries]),
        sigma=np.array([pool.contention.sigma for pool in used]),
        kappa=np.array([pool.contention.kappa for pool in used]),
        table=np.array([steps[pool] for _, pool, _ in entries]).reshape(len(entries), widest),
        has_table=np.array([not pool.contention.is_usl for pool in used], dtype=bool),
        threads=len(first_tasks),
    )


@value
class Thread:
    """Task units that form one thread for the resource managers, and the units of that thread."""

    name: str = field("Name of the thread, or of its only task unit")
    tasks: tuple[int, ...] = field("Positions of its task units in the propagation")
    pool: int = field("Number of its first pool; -1 for a thread with its own processor")
    units: frozenset[int] = field("Units of that pool that it may use")


def unit_groups(model: RouterModel, first_tasks: list[TaskUnit], threads: list[Thread]) -> tuple[list[UnitGroup], bool]:
    """Return every set of units that can be full, over all pools, and whether these are all sets."""
    pools = {pool.name: number for number, pool in enumerate(model.pools)}
    using: dict[int, list[tuple[int, frozenset[int], float]]] = {}
    for number, task in enumerate(first_tasks):
        for position, need in enumerate(task.needs):
            pool = pools[need.pool]
            units = threads[number].units if position == 0 else frozenset(range(model.pools[pool].units))
            using.setdefault(pool, []).append((number, units, float(need.units)))
    groups, complete = [], True
    for pool, users in using.items():
        sets, all_of_them = pin_sets([units for _, units, _ in users])
        complete = complete and all_of_them
        for unit_set in sets:
            members = tuple((number, units) for number, allowed, units in users if allowed <= unit_set)
            groups.append(UnitGroup(pool=pool, units=tuple(sorted(unit_set)), members=members))
    return groups, complete


def levels_of(model: RouterModel, first_tasks: list[TaskUnit], threads: list[Thread]) -> tuple[Index, ...]:
    """Return the threads by urgency, the most urgent first; in pools without priorities all are equally urgent."""
    urgent = {"linux", "priority", "preemptive"}
    urgency = [
        (max(task.priority, 0) if _policy(model, thread) == "linux" else task.priority)
        if _policy(model, thread) in urgent
        else 0
        for task, thread in zip(first_tasks, threads, strict=True)
    ]
    return tuple(
        np.flatnonzero(np.array(urgency) == level).astype(np.intp) for level in sorted(set(urgency), reverse=True)
    )


def _policy(model: RouterModel, thread: Thread) -> str:
    return model.pools[thread.pool].policy.kind if thread.pool >= 0 else ""


def fed_within(
    graph: FlowGraph, position: Index, threads: list[Thread], thread_of: Index, first_tasks: list[TaskUnit]
) -> NDArray[np.bool_]:
    """Return by node whether all its feeding threads have the level and the only unit of its own thread."""
    feeders: dict[int, list[int]] = {}
    for index, edges in enumerate(graph.edges):
        for node, _ in edges:
            feeders.setdefault(int(position[node]), []).append(int(thread_of[position[index]]))
    within = np.zeros(len(position), dtype=bool)
    entries = {int(position[node]) for node in graph.entry}
    for node, sources in feeders.items():
        own = int(thread_of[node])
        if own == len(threads) or node in entries or len(threads[own].units) != 1:
            continue
        within[node] = all(
            threads[source].pool == threads[own].pool
            and threads[source].units == threads[own].units
            and first_tasks[source].priority == first_tasks[own].priority
            for source in sources
        )
    return within


def never_interrupted(levels: tuple[Index, ...], on_unit: Vector) -> NDArray[np.bool_]:
    """Return by thread whether no more urgent thread uses its units."""
    is_never_preempted = np.ones(on_unit.shape[1], dtype=bool)
    taken = np.zeros(on_unit.shape[0], dtype=bool)
    for threads in levels:
        is_never_preempted[threads] = ~(on_unit[taken][:, threads] > 0.0).any(axis=0)
        taken |= (on_unit[:, threads] > 0.0).any(axis=1)
    return is_never_preempted


def rivals_of(fair: NDArray[np.bool_], pool_of: Index, on_unit: Vector) -> NDArray[np.bool_]:
    """Return whether two threads of Linux's fair level may use the same unit."""
    rivals = np.zeros((len(fair), len(fair)), dtype=bool)
    for pool in np.unique(pool_of[fair]):
        mine = np.flatnonzero(fair & (pool_of == pool))
        # Threads that may use the same units are one column.
        uses, alike = np.unique(on_unit[:, mine] > 0.0, axis=1, return_inverse=True)
        meet = uses.T.astype(np.int64) @ uses > 0
        together = meet[np.ix_(alike, alike)]
        rivals[np.ix_(mine, mine)] = together & ~np.eye(len(mine), dtype=bool)
    return rivals


def fed_by_one_port(graph: FlowGraph, position: Index, threads: list[Thread]) -> NDArray[np.bool_]:
    """Return by thread whether it gets the frames of one port directly, and no other frames."""
    used = set(graph.ingress)
    entries = [int(position[node]) for port, node in enumerate(graph.entry) if port in used]
    fed = {int(position[node]) for edges in graph.edges for node, _ in edges}
    return np.array(
        [
            len(thread.tasks) == 1 and thread.tasks[0] not in fed and entries.count(thread.tasks[0]) == 1
            for thread in threads
        ]
    )


def fed_by_level(
    graph: FlowGraph, position: Index, threads: list[Thread], thread_of: Index, levels: tuple[Index, ...]
) -> tuple[Vector, Vector]:
    """Return by thread the share of its frames that less urgent threads on its only unit pass on, and itself.

    The first come while it sleeps, and each wakes it; the second never do.
    """
    urgency = np.zeros(len(threads), dtype=np.intp)
    for level, members in enumerate(levels):
        urgency[members] = level
    rates = graph.arriving(graph.share, np.ones(len(graph.tasks)))
    below, own, total = (np.zeros(len(threads) + 1) for _ in range(3))
    np.add.at(total, thread_of[position], rates.sum(axis=1))
    for index, edges in enumerate(graph.edges):
        source = int(thread_of[position[index]])
        for node, fraction in edges:
            thread = int(thread_of[position[node]])
            if len(threads) in {source, thread}:
                continue
            passed_on = float(rates[index] @ fraction)
            place, other = threads[thread], threads[source]
            if source == thread:
                own[thread] += passed_on
            elif len(place.units) == 1 and place.units == other.units and place.pool == other.pool:
                below[thread] += passed_on if urgency[source] > urgency[thread] else 0.0
    shares = np.maximum(total, 1e-300)
    return (below / shares)[:-1], (own / shares)[:-1]


def time_on_units(model: RouterModel, threads: list[Thread]) -> Vector:
    """Return the share of its time that each thread spends on each unit if it uses all its units equally."""
    first = np.concatenate([[0], np.cumsum([pool.units for pool in model.pools], dtype=np.intp)])
    table = np.zeros((int(first[-1]), len(threads)))
    for number, thread in enumerate(threads):
        for unit in thread.units:
            table[int(first[thread.pool]) + unit, number] = 1.0 / len(thread.units)
    return table


def sharing(threads: list[Thread]) -> NDArray[np.bool_]:
    """Return by thread whether other threads may use its units."""
    users: dict[tuple[int, int], int] = {}
    for thread in threads:
        for unit in thread.units:
            users[thread.pool, unit] = users.get((thread.pool, unit), 0) + 1
    return np.array([any(users[thread.pool, unit] > 1 for unit in thread.units) for thread in threads])


@value
class ThreadMachine:
    """The threads of a router under a load.

    Arrays by node are in the order of the propagation (tasks, then ports and exit).
    """

    model: RouterModel
    load: OfferedLoad
    graph: FlowGraph
    propagation: Propagation
    costs: tuple[Cost, ...]
    threads: tuple[Thread, ...]
    busy_s: Vector = field("Seconds of a unit per frame by node, in full batches, without contention")
    limit_pps: Vector = field("Rate limit by node, frames/s: that of the link; infinite for task units")
    costly: NDArray[np.bool_]
    """Whether frames take time of its thread, by node."""
    queue_frames: Vector = field("Queue capacity by node, frames")
    turn_frames: Vector = field("Frames before the thread turns to its next task unit, by node")
    thread: Index = field("Thread by node; the number of threads for nodes without one")
    by_thread: Index
    max_grants: Vector = field("Grants that a thread may have at once")
    # Work at the start of a busy period by thread: interrupt or notification, and the part of the batch cost that full
    # batches save.
    start_s: Vector
    moderation_s: Vector = field("Least time between two interrupts")
    weight: Vector = field(
        "Weight of the share by thread; NaN where turns decide, which depend on the work (see :func:`weights`)"
    )
    quantum_s: Vector = field("Longest grant by thread, infinite where none is cut off")
    # By thread: served in order of request until it blocks. NAPI is not: it releases its unit after each budget.
    real_time: NDArray[np.bool_]
    polling: NDArray[np.bool_]
    fed_within: NDArray[np.bool_] = field(
        "By node: whether frames arrive only while the only unit of its thread works for another task of its level"
    )
    levels: tuple[Index, ...] = field("Threads by urgency, over all pools, the most urgent first")
    last_level: NDArray[np.bool_]
    """By thread: whether no thread is less urgent."""
    groups: UnitGroups
    contention: Contended
    switch_s: Vector
    migration_s: Vector
    """By thread: cost of a switch to the thread, and of a move of the thread to another unit, s."""
    moves: Vector
    """Probability that a thread gets another unit than its last unit, if it uses all its units equally."""
    granularity_s: Vector
    """Lead of a running thread over a waking thread beyond which it is preempted, s; infinite without preemption."""
    is_fed_by_one_port: NDArray[np.bool_]
    """By thread: whether it gets the frames of one port directly, and no other frames."""
    from_below_ratio: Vector
    """By thread: share of its frames that less urgent threads on its only unit pass on, which it preempts at once."""
    from_itself_ratio: Vector
    """By thread: share of its frames that its own task units pass on."""
    is_never_preempted: NDArray[np.bool_]
    """By thread: whether no more urgent thread uses its units."""
    borrows: NDArray[np.bool_]
    """By thread: whether it is a softirq under Linux, which uses the interrupted thread's unit without a switch."""
    fair: NDArray[np.bool_]
    """By thread: whether it is in the level that Linux shares by weight."""
    rivals: NDArray[np.bool_]
    """Whether two threads of that level may use the same unit, shape (threads, threads)."""
    may_revoke: Vector
    """1 where a waking thread can be behind by more than the wakeup granularity, else 0."""
    pinned_to: Vector
    """Number of units that each thread may use, at least 1."""
    starts_cost: bool
    on_unit: Vector
    """Share of a thread's time on each unit if it uses all its units equally, shape (units of all pools, threads)."""
    pool_of: Index
    """Number of the pool by thread; -1 for none."""
    shares_units: NDArray[np.bool_]
    """By thread: whether other threads may use its units."""
    upstream: Upstream | None
    """Threads before each node, where polling threads share units with others; otherwise None."""
    complete: bool
    """Whether ``groups`` has all sets of units that can be full."""

    def sum_by_thread(self, values: Vector) -> Vector:
        """Return the sum over the task units of each thread."""
        sums: Vector = np.bincount(self.thread, weights=values, minlength=len(self.threads) + 1)[:-1].astype(
            np.float64, copy=False
        )
        return sums


def has_threads(model: RouterModel) -> bool:
    """Whether a model has threads with several queues, Linux schedulers, task units that hold back, or copies."""
    return any(pool.policy.kind == "linux" for pool in model.pools) or any(
        task.activation.kind == "thread" or task.thread or task.holds_back or task.route.copies for task in model.tasks
    )


def is_kept(load: OfferedLoad) -> bool:
    """Whether what holds for a load at every rate is kept for the next one: not for large sets and recordings."""
    return load.arrivals.trace is None and len(load.flows.flows) <= _MAX_KEPT_FLOWS


def machine_of(model: RouterModel, load: OfferedLoad) -> ThreadMachine:
    """Return a router under a load, whose rate does not count, prepared for computation."""
    return _kept_machine(model, load.at(1.0)) if is_kept(load) else _prepared(model, load)


@lru_cache(maxsize=4)
def _kept_machine(model: RouterModel, load: OfferedLoad) -> ThreadMachine:
    return _prepared(model, load)


def _prepared(model: RouterModel, load: OfferedLoad) -> ThreadMachine:
    graph = flow_graph(model, load)
    costs = costs_of(graph.tasks, model, load.frames.mean_bytes)
    propagation = propagation_of(graph)
    count = len(graph.tasks)
    nodes = graph.exit + 1
    position = propagation.position
    grouped, threads = _threads_of(model, graph, position)
    thread_of = np.full(nodes, len(grouped), dtype=np.intp)
    for number, members in enumerate(grouped):
        thread_of[position[members]] = number
    first_tasks = [graph.tasks[members[0]] for members in grouped]
    max_grants = np.array(
        [float(_at_once(task, thread, model)) for task, thread in zip(first_tasks, threads, strict=True)]
    )
    groups, complete = unit_groups(model, first_tasks, threads)
    busy_s, limit_pps = np.zeros(nodes), np.full(nodes, np.inf)
    queue_frames, turn_frames = np.ones(nodes), np.ones(nodes)
    for index, (task, cost) in enumerate(zip(graph.tasks, costs, strict=True)):
        at = position[index]
        busy_s[at], queue_frames[at] = cost.busy_s, task.queue_frames
        polls = task.activation.kind in {"interrupt", "thread"}
        turn_frames[at] = task.activation.budget_frames if polls else cost.batch_frames
        if task.request == "frame":
            turn_frames[at] = task.queue_frames
    for number, port in enumerate(model.ports):
        limit_pps[position[count + number]] = line_rate_pps(port.link_bps, load.frames.mean_bytes)
    start_s, moderation_s = _starts(graph, costs, grouped)
    pool_of = np.array([thread.pool for thread in threads], dtype=np.intp)
    weight, real_time = _weights(model, first_tasks, threads)
    own_pools = [model.pools[thread.pool] if thread.pool >= 0 else None for thread in threads]
    quantum_s = [pool.policy.quantum_s if pool and pool.policy.quantum_s else math.inf for pool in own_pools]
    shared = sharing(threads)
    borrows = np.array(
        [
            pool is not None and pool.policy.kind == "linux" and task.activation.kind == "interrupt"
            for task, pool in zip(first_tasks, own_pools, strict=True)
        ]
    )
    switch_s = np.array([pool.switch_cost_s if pool else 0.0 for pool in own_pools]) * ~borrows
    migration_s = np.array([pool.migration_cost_s if pool else 0.0 for pool in own_pools]) * ~borrows
    granularity_s = np.array([_granularity_s(task, pool) for task, pool in zip(first_tasks, own_pools, strict=True)])
    fair = np.isfinite(granularity_s)
    on_unit = time_on_units(model, threads)
    levels = levels_of(model, first_tasks, threads)
    from_below_ratio, from_itself_ratio = fed_by_level(graph, position, threads, thread_of, levels)
    preempts = np.array([pool is not None and pool.policy.kind in {"linux", "preemptive"} for pool in own_pools])
    polling = np.array([task.activation.kind == "polling" and bool(task.needs) for task in first_tasks])
    takes_turns = bool((polling & shared).any())
    upstream: Upstream | None = None
    if takes_turns:
        from routecast.evaluate.solve._busy_polling import upstream_of

        upstream = upstream_of(graph, position, thread_of, len(threads))
    return ThreadMachine(
        model=model,
        load=load,
        graph=graph,
        propagation=propagation,
        costs=costs,
        threads=tuple(threads),
        busy_s=busy_s,
        limit_pps=limit_pps,
        costly=busy_s > 0.0,
        queue_frames=queue_frames,
        turn_frames=turn_frames,
        thread=thread_of,
        by_thread=_padded([thread.tasks for thread in threads], nodes),
        max_grants=max_grants,
        start_s=start_s,
        moderation_s=moderation_s,
        weight=weight,
        quantum_s=np.array(quantum_s),
        real_time=real_time,
        polling=polling,
        fed_within=fed_within(graph, position, threads, thread_of, first_tasks),
        levels=levels,
        last_level=np.isin(np.arange(len(threads)), levels[-1]),
        groups=limiting_groups(groups, max_grants),
        contention=contention_of(model, first_tasks, max_grants),
        switch_s=switch_s * shared,
        migration_s=migration_s,
        moves=np.array([1.0 - 1.0 / max(len(thread.units), 1) for thread in threads]),
        granularity_s=granularity_s,
        from_below_ratio=from_below_ratio * preempts,
        from_itself_ratio=from_itself_ratio,
        is_never_preempted=never_interrupted(levels, on_unit),
        borrows=borrows,
        is_fed_by_one_port=fed_by_one_port(graph, position, threads),
        fair=fair,
        rivals=rivals_of(fair, pool_of, on_unit),
        may_revoke=np.where(granularity_s < 0.5 * np.array(quantum_s), 1.0, 0.0),
        pinned_to=np.array([max(len(thread.units), 1.0) for thread in threads]),
        starts_cost=bool(start_s.any() or (switch_s * shared).any() or migration_s.any()),
        on_unit=on_unit,
        pool_of=pool_of,
        shares_units=shared,
        upstream=upstream,
        complete=complete,
    )


def _threads_of(model: RouterModel, graph: FlowGraph, position: Index) -> tuple[list[list[int]], list[Thread]]:
    """Return the task units of each thread, and the threads; ``position``: places of the task units."""
    pools = {pool.name: number for number, pool in enumerate(model.pools)}
    grouped: dict[str, list[int]] = {}
    for index, task in enumerate(graph.tasks):
        grouped.setdefault(f"thread {task.thread}" if task.thread else f"task {task.name}", []).append(index)
    threads: list[Thread] = []
    for members in grouped.values():
        first = graph.tasks[members[0]]
        threads.append(
            Thread(
                name=first.thread or first.name,
                tasks=tuple(int(position[index]) for index in members),
                pool=pools[first.needs[0].pool] if first.needs else -1,
                units=frozenset(first.pin or range(model.pool(first.needs[0].pool).units))
                if first.needs
                else frozenset(),
            )
        )
    return [*grouped.values()], threads


def _starts(graph: FlowGraph, costs: tuple[Cost, ...], grouped: list[list[int]]) -> tuple[Vector, Vector]:
    """Return what the start of each thread costs and how long its interrupts are held back, s."""
    start_s, moderation_s = np.zeros(len(grouped)), np.zeros(len(grouped))
    for number, members in enumerate(grouped):
        for index in members:
            cost, task = costs[index], graph.tasks[index]
            batch_s = cost.batch_s * (1.0 - 1.0 / cost.batch_frames)
            interrupt_s = cost.interrupt_s
            if task.activation.kind == "thread":
                interrupt_s = task.activation.interrupt_cost_s * cost.slowdown
            start_s[number] = max(start_s[number], batch_s + interrupt_s)
            moderation_s[number] = max(moderation_s[number], cost.moderation_s)
    return start_s, moderation_s


def _at_once(task: TaskUnit, thread: Thread, model: RouterModel) -> int:
    if not task.needs:
        return task.parallel
    max_grants = [
        (len(thread.units) if position == 0 else model.pool(need.pool).units) // need.units
        for position, need in enumerate(task.needs)
    ]
    return max(served_at_once(task, min(max_grants)), 1)


def _weights(
    model: RouterModel, first_tasks: list[TaskUnit], threads: list[Thread]
) -> tuple[Vector, NDArray[np.bool_]]:
    weight, real_time = np.full(len(threads), np.nan), np.zeros(len(threads), dtype=bool)
    for number, (task, thread) in enumerate(zip(first_tasks, threads, strict=True)):
        if thread.pool < 0:
            weight[number] = 1.0
            continue
        kind = model.pools[thread.pool].policy.kind
        if kind == "linux" and task.priority > 0:
            real_time[number] = task.activation.kind != "interrupt"
        elif kind in {"linux", "fair"}:
            weight[number] = task.weight / task.needs[0].units
    return weight, real_time


def _granularity_s(task: TaskUnit, pool: ResourcePool | None) -> float:
    if pool is None or pool.policy.kind != "linux" or task.priority > 0:
        return math.inf
    return pool.policy.wakeup_granularity_s


def _padded(lists: list[tuple[int, ...]], padding: int) -> Index:
    width = max(len(entries) for entries in lists)
    table = np.full((len(lists), width), padding, dtype=np.intp)
    for number, entries in enumerate(lists):
        table[number, : len(entries)] = entries
    return table
