"""Throughput of a router of threads at a load: the fluid fixed point of rates, shares of time and room ahead.

In each round, frames pass through the task graph as far as time and room ahead allow; each thread requests the time for
its arriving frames; the threads share the units (:mod:`routecast.evaluate.solve._scheduling_shares`); a thread that
gets less than it requests divides its time among its task units by turns. A node drops the frames that it cannot serve,
after earlier nodes have spent work on them. The fixed point holds for means: it takes rings to be so long that
fluctuation loses no frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from routecast.evaluate.solve._flow_propagation import NodeRates
from routecast.evaluate.solve._machine import ThreadMachine, is_kept, machine_of
from routecast.evaluate.solve._scheduling_shares import surface
from routecast.evaluate.solve.flow import Vector
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel

_UNLIMITED_S = 1e15
_TINY = 1e-300
_EVEN = 1e-9
_SLOPE = 5.0
# Random virtual routers and the shipped examples agree with the simulator for values from 0.3 to 0.4, not for 0 and 1.
_REVOKE_RATIO = 0.4
_MAX_ROUNDS = 200
_UNDAMPED_ROUNDS = 3
_SHORTEST_STEP = 0.02
_TOLERANCE = 1e-7
_ROUGH_TOLERANCE = 1e-4
_WAKES_DECAY = 0.7
_FREE_ROUNDS = 12
_FINE_TOLERANCE = 1e-4
_LOSS_RATIO = 1e-6
_FROZEN_ROUND = 22


def weights(machine: ThreadMachine, work_s: Vector, wanted: Vector, demand: Vector) -> Vector:
    """Return the weight of each thread: its share of full units, relative to the others of its level.

    Under a fair policy this is the configured weight, under round robin the length of its turns. A real-time thread of
    Linux runs until it has no more work, which is its queues and the arrivals during its run: ``Σ queue·work/(1 -
    load)``. A thread that never runs out of work leaves nothing to others of its level. Frames that arrive only while
    others of its level work do not count as arrivals during its run. NAPI releases its unit after each budget, so
    others of its level have turns.

    ``work_s``: seconds per frame by node; ``wanted``: rate that each node would serve, frames/s; ``demand``: units that
    each thread requests.
    """
    weight = machine.weight
    turns = np.isnan(weight)
    if not turns.any():
        return weight
    real_time = machine.real_time
    backlog_s = machine.sum_by_thread(machine.queue_frames * work_s)
    meanwhile = machine.sum_by_thread(np.where(machine.fed_within, 0.0, wanted * work_s)) / machine.max_grants
    longest = backlog_s / np.maximum(1.0 - meanwhile, 1e-12)
    turn_s = np.minimum(machine.sum_by_thread(machine.turn_frames * work_s), machine.quantum_s) * machine.max_grants
    chosen = np.where(real_time, np.minimum(longest, _UNLIMITED_S), turn_s)
    return np.where(turns, np.maximum(chosen, 1e-300), weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakes:
    """By thread: wakes per second, units spent on starts, and the least units spent on starts.

    A thread that wakes pays for a start (interrupt, notification, switch of the unit), serves the frames that wait and
    arrive during its work, and sleeps again: one wake per *batch*. With frames at rate λ, work rho and a start of h, a
    thread with its own units wakes ``ω = (1 - rho)/(1/λ + h)`` times per second for Poisson arrivals (M/G/1 with
    set-up, exact), and ``ω = min(λ, (1 - rho)/h)`` for frames at equal gaps: each frame wakes it until starts take all
    the time without work.

    Where threads share units, a thread that has used less than the running thread preempts it and is served at once,
    frame by frame. The thread that has used most, and threads that cannot preempt each other, wait while more frames
    arrive. Their starts take at most the time that the work of the same and more urgent levels leaves on every set of
    units, so batches grow with the load (the cycle of a polling system, ``Σh/(1 - Σrho)``; Takagi, Analysis of Polling
    Systems, 1986), at most until a queue is full.

    These are means for pinned threads; for other threads the number of moves is a guess.
    """

    per_s: Vector
    start: Vector
    least_start: Vector

    def towards(self, other: Wakes, step: float) -> Wakes:
        """Return the interpolation between this and the result of the next round."""
        return Wakes(
            per_s=self.per_s + step * (other.per_s - self.per_s),
            start=self.start + step * (other.start - self.start),
            least_start=self.least_start + step * (other.least_start - self.least_start),
        )


def wakes_of(
    machine: ThreadMachine,
    rate: Vector,
    work: Vector,
    demand: Vector,
    pressure: Vector,
    entitled: Vector,
    factor: Vector,
    before: Wakes,
) -> Wakes:
    """Return the wakes of all threads.

    ``rate``: frames/s that each thread serves; ``work``: units that these frames keep busy; ``demand``: units that all
    arriving frames would keep busy; ``pressure``: units that each thread would keep busy if nothing were lost or held
    back; ``entitled``: units that each thread would get if it requested more: batches grow as starts fill the rest of
    them; ``factor``: contention; ``before``: the result of the last round.
    """
    asleep_units = np.where(machine.polling | (demand > entitled * (1.0 + _EVEN)), 0.0, 1.0 - work / machine.max_grants)
    asleep_units = np.maximum(asleep_units, 0.0)
    if not machine.starts_cost:
        unhindered = _wakes_per_s(machine, rate, asleep_units, machine.start_s, 0.0)
        return Wakes(per_s=unhindered, start=np.zeros_like(rate), least_start=np.zeros_like(rate))
    busy = np.minimum(work + before.start, machine.max_grants)
    at_once, victims = _preemption(machine, busy, demand, pressure)
    interrupted = victims.sum(axis=1)
    start_s = machine.start_s * factor + _switch_s(machine, before.per_s, busy, demand + before.start, interrupted)
    fitting = np.maximum(entitled - demand, 0.0) / np.maximum(start_s, _TINY)
    unhindered = np.minimum(_wakes_per_s(machine, rate, asleep_units, start_s, 0.0), fitting)
    queue_limited = np.minimum(
        _wakes_per_s(machine, rate, asleep_units, start_s, _longest_wait_s(machine, rate)), unhindered
    )
    immediate = queue_limited + at_once * (unhindered - queue_limited)
    groups = machine.groups
    per_s = unhindered.copy()
    rest = groups.capacity.copy()
    for threads in machine.levels:
        used = np.zeros(groups.threads + 1)
        used[threads] = (work + immediate * start_s)[threads]
        wanted = np.zeros(groups.threads + 1)
        wanted[threads] = ((unhindered - immediate) * start_s)[threads]
        if groups.groups:
            room = rest - (groups.at_once * used[groups.member]).sum(axis=1)
            requested = (groups.at_once * wanted[groups.member]).sum(axis=1)
            scale = np.minimum(np.maximum(room / np.maximum(requested, _TINY), 0.0), 1.0)
            granted_ratio = np.ones(groups.threads + 1)
            np.minimum.at(granted_ratio, groups.member, scale[:, None])
            per_s[threads] = (immediate + (unhindered - immediate) * granted_ratio[:-1])[threads]
            used[threads] = (work + per_s * start_s)[threads]
            rest = np.maximum(rest - (groups.at_once * used[groups.member]).sum(axis=1), 0.0)
    # The interrupted thread pays for the switch back.
    switch_back = machine.switch_s * (per_s @ victims)
    return Wakes(per_s=per_s, start=per_s * start_s + switch_back, least_start=immediate * start_s + switch_back)


def _wakes_per_s(
    machine: ThreadMachine, rate: Vector, asleep_units: Vector, start_s: Vector, wait_s: Vector | float
) -> Vector:
    """Return the wakes per second of a thread that waits ``wait_s`` before it starts.

    Each frame from a less urgent thread on its unit wakes it, for that one runs only while it sleeps.
    """
    each = machine.from_below_ratio * rate
    other = np.maximum(rate - each - machine.from_itself_ratio * rate, 0.0)
    if machine.load.arrivals.kind == "cbr":
        left = np.maximum(asleep_units - each * start_s, 0.0)
        wakes = each + np.minimum(other, left / np.maximum(start_s + wait_s, _TINY))
        # At equal gaps a whole number of frames arrives during a start.
        whole_gaps = rate / np.maximum(np.ceil(rate * start_s / np.maximum(asleep_units, _TINY) - 1e-9), 1.0)
        wakes = np.where(machine.is_fed_by_one_port, np.minimum(whole_gaps, wakes), wakes)
    else:
        wakes = (each + other * asleep_units) / (1.0 + other * (start_s + wait_s))
    moderated: Vector = np.minimum(wakes, 1.0 / np.maximum(machine.moderation_s, _TINY))
    return moderated


def _longest_wait_s(machine: ThreadMachine, rate: Vector) -> Vector:
    """Return the time that an awake thread may wait for its unit before its queues are full, s."""
    room = machine.sum_by_thread(machine.queue_frames)
    wait_s: Vector = np.where(machine.shares_units, room / np.maximum(rate, _TINY), 0.0)
    return wait_s


def _preemption(machine: ThreadMachine, busy: Vector, demand: Vector, pressure: Vector) -> tuple[Vector, Vector]:
    """Return the share of wakes that get a unit at once, by thread, and the probability that they preempt each thread.

    Under Linux's fair scheduler a waking thread preempts the running thread if it has used less and if half a quantum,
    the most by which it can be behind, exceeds the wakeup granularity. Where work alone exceeds the units, rings are
    full before a thread is that far behind, and the room in the rings, one turn at a time, sets the pace. Without
    granularity, or where softirqs break the turns, threads take turns frame by frame then too.
    """
    used = np.divide(busy, machine.weight, out=np.zeros_like(busy), where=machine.fair)
    used_sum = used[:, None] + used[None, :]
    # Continuous where two threads have used the same, as the fixed point needs. With a granularity, two threads that
    # have used the same preempt each other only in a part of the cases.
    revoke_ratio = np.where(machine.granularity_s > 0.0, _REVOKE_RATIO, 1.0)[:, None]
    behind = revoke_ratio + _SLOPE * (used[None, :] - used[:, None]) / np.maximum(used_sum, _TINY)
    np.minimum(np.maximum(behind, 0.0, out=behind), 1.0, out=behind)
    behind *= machine.rivals
    # A thread that may use several units usually finds a unit free that the thread that has used most has left.
    at_once = behind.max(axis=1, initial=0.0) * machine.may_revoke * (machine.pinned_to == 1.0)
    if machine.groups.groups and (machine.granularity_s > 0.0).any():
        loads = machine.groups.load(pressure) / machine.groups.capacity
        fullest = np.zeros(machine.groups.threads + 1)
        np.maximum.at(fullest, machine.groups.member, loads[:, None])
        at_once *= np.where(
            machine.is_never_preempted & (machine.granularity_s > 0.0),
            np.minimum(np.maximum(1.0 - _SLOPE * (fullest[:-1] - 1.0), 0.0), 1.0),
            1.0,
        )
    running = behind * np.minimum(demand, machine.max_grants) / machine.pinned_to[:, None]
    running /= np.maximum(1.0 - busy, _TINY)[:, None]
    victims = running / np.maximum(running.sum(axis=1), 1.0)[:, None] * at_once[:, None]
    return at_once, victims


def _switch_s(machine: ThreadMachine, wakes: Vector, busy: Vector, demand: Vector, interrupted: Vector) -> Vector:
    """Return the mean cost of the switches and moves of a wake, s: to the thread, and back to the preempted one."""
    if not machine.switch_s.any() and not machine.migration_s.any():
        return np.zeros_like(wakes)
    on_unit = machine.on_unit
    lower_ratio = np.zeros_like(busy)
    below = np.zeros(on_unit.shape[0])
    for threads in reversed(machine.levels):
        # A less urgent thread with work runs whenever no more urgent thread runs.
        lower_ratio[threads] = (on_unit.T @ below)[threads]
        below = np.minimum(below + on_unit[:, threads] @ demand[threads], 1.0)
    lower_ratio = np.minimum(np.maximum(lower_ratio / np.maximum(1.0 - busy, _TINY), 0.0), 1.0)
    running_ratio = np.maximum(lower_ratio, interrupted)
    turns = on_unit.T @ (on_unit @ np.where(machine.borrows, 0.0, wakes))
    own_turns = (on_unit * on_unit).sum(axis=0) * wakes
    other_ratio = np.where(turns > 0.0, 1.0 - own_turns / np.maximum(turns, _TINY), 0.0)
    other_ratio = np.minimum(np.maximum(other_ratio, 0.0), 1.0)
    switch_ratio = running_ratio + (1.0 - running_ratio) * other_ratio
    cost: Vector = machine.switch_s * (switch_ratio + lower_ratio) + machine.migration_s * machine.moves * switch_ratio
    return cost


@value
class Steady:
    """The fixed point, as arrays in the machine's order."""

    machine: ThreadMachine
    intended_pps: float
    offered: Vector
    node_rates: NodeRates
    work_s: Vector = field("Seconds per frame by node, with contention")
    factor: Vector = field("Contention by thread")
    demand: Vector = field("Units that each thread requests for its arriving frames")
    granted: Vector = field("Units that each thread gets")
    busy: Vector = field("Units at work by thread, with the cost of wakes and switches")
    wakes: Wakes
    away_s: Vector
    """By thread: time that a polling thread is away from its unit at a stretch, while others have their turns, s."""
    rounds: int
    settled: bool

    @property
    def lost_pps(self) -> Vector:
        """Frames of the load that each node drops, without copies, frames/s."""
        node_rates = self.node_rates
        lost_ratio = 1.0 - node_rates.served / np.maximum(node_rates.arriving, _TINY)
        lost: Vector = np.maximum(node_rates.arriving - node_rates.copies, 0.0) * lost_ratio
        return lost


def steady_state(machine: ThreadMachine, intended_pps: float) -> Steady:
    """Return the fixed point at a load; of two steady states, the state that an idle router reaches."""
    propagation = machine.propagation
    offered = machine.graph.offered(intended_pps)
    intended_by_port = np.bincount(machine.graph.ingress, weights=intended_pps * machine.graph.share)
    offered_by_port = np.bincount(machine.graph.ingress, weights=offered)
    entering = propagation.entry(intended_pps, offered_by_port / np.maximum(intended_by_port, _TINY))
    costly = machine.costly
    threads, nodes = len(machine.threads), len(propagation.order)
    factor, copies = np.ones(threads), np.zeros(nodes)
    limit, served = machine.limit_pps, np.zeros(nodes)
    wakes = Wakes(per_s=np.zeros(threads), start=np.zeros(threads), least_start=np.zeros(threads))
    scale = max(float(offered.sum()), _TINY)
    unlimited = propagation.flow(entering, np.full(nodes, np.inf), copies)
    pressure = machine.sum_by_thread(unlimited.served * machine.busy_s)
    state = None
    tolerance = _ROUGH_TOLERANCE if machine.starts_cost else _TOLERANCE
    rounds, settled, step, last_residual, away = 0, False, 1.0, np.zeros(nodes), np.zeros(threads)
    while rounds < _MAX_ROUNDS and not settled:
        rounds += 1
        node_rates = propagation.flow(entering, limit, copies)
        work_s = machine.busy_s * np.append(factor, 1.0)[machine.thread]
        wanted = np.minimum(
            np.where(propagation.is_looked_ahead_to, node_rates.could_arrive, node_rates.arriving),
            node_rates.room_ahead,
        )
        work = machine.sum_by_thread(wanted * work_s)
        start_time, least_start = _start_time(machine, wakes, work)
        demand = np.minimum(work + start_time, machine.max_grants)
        requested = np.where(machine.polling, machine.max_grants, demand)
        weight = weights(machine, work_s, wanted, demand)
        granted = machine.groups.divide(requested, weight, machine.levels)
        entitled = machine.groups.entitled(requested, granted, weight, machine.levels, machine.max_grants)
        new_limit = _limits(machine, wanted, work_s, np.maximum(entitled - least_start, 0.0))
        if machine.upstream is not None:
            from routecast.evaluate.solve._busy_polling import kept_pps

            share, away = _shares_in_turns(machine, work, granted, work_s)
            coming = np.where(propagation.is_looked_ahead_to, node_rates.could_arrive, node_rates.arriving)
            ring_limit = kept_pps(machine.upstream, machine.thread, away, share, coming, machine.queue_frames)
            new_limit = np.minimum(new_limit, ring_limit)
        used = machine.sum_by_thread(node_rates.served * work_s)
        new_wakes = wakes
        if rounds < _FROZEN_ROUND:
            new_wakes = wakes_of(
                machine,
                machine.sum_by_thread(node_rates.served),
                used,
                work,
                pressure * factor,
                entitled,
                factor,
                wakes,
            )
        busy = np.minimum(used + wakes.start, machine.max_grants)
        new_factor = machine.contention.factor(busy)
        near_limit = 2.0 * node_rates.arriving
        residual = np.minimum(new_limit, near_limit) - np.minimum(limit, near_limit)
        change = max(
            float(np.abs(node_rates.served - served).max()) / scale,
            # A limit far above the arriving rate may still move; a limit near it matters in the next round.
            float(np.abs(residual).max()) / scale,
            float(np.abs(new_factor - factor).max()),
            # Wakes are an approximation, so a tenth of the precision is enough.
            0.1 * float(np.abs(new_wakes.start - wakes.start).max()),
            float(np.abs(node_rates.copies - copies).max()) / scale,
        )
        settled = rounds > 2 and change < tolerance
        state = (node_rates, work_s, factor, work + start_time, granted, busy)
        if settled:
            break
        step = _next_step(step, residual, last_residual) if rounds > _UNDAMPED_ROUNDS else 1.0
        last_residual = residual
        if rounds > 1:
            new_limit[costly] = limit[costly] + step * (new_limit[costly] - limit[costly])
        limit = new_limit
        factor = factor + step * (new_factor - factor)
        copies = copies + step * (node_rates.copies - copies)
        wakes = wakes.towards(new_wakes, _wakes_step(rounds))
        served = node_rates.served
    assert state is not None
    node_rates, work_s, factor, demand, granted, busy = state
    return Steady(
        machine=machine,
        intended_pps=intended_pps,
        offered=offered,
        node_rates=node_rates,
        work_s=work_s,
        factor=factor,
        demand=demand,
        granted=granted,
        busy=busy,
        wakes=wakes,
        away_s=away,
        rounds=rounds,
        settled=settled,
    )


def _start_time(machine: ThreadMachine, wakes: Wakes, work: Vector) -> tuple[Vector, Vector]:
    """Return the time that starts take from work, and the least such time, by thread.

    A thread with its own units starts only when its work is done, so its starts take no time from its work.
    """
    room = np.where(machine.shares_units, np.inf, np.maximum(machine.max_grants - work, 0.0))
    least = np.minimum(wakes.least_start, room)
    return np.minimum(np.where(machine.last_level, least, wakes.start), room), least


def _shares_in_turns(machine: ThreadMachine, work: Vector, granted: Vector, work_s: Vector) -> tuple[Vector, Vector]:
    """Return each thread's share of a unit, and the time that a polling thread is off its unit at a stretch, s."""
    share = np.minimum(granted / machine.max_grants, 1.0)
    greedy = work > granted * (1.0 + _TOLERANCE)
    drain_s = machine.sum_by_thread(machine.queue_frames * work_s) / np.maximum(1.0 - work, _TINY)
    if not machine.polling.any():
        return share, np.zeros_like(share)
    from routecast.evaluate.solve._busy_polling import away_s

    # Threads that block soon take their time in pieces, not in turns. Threads with the same units share a column.
    uses, alike = np.unique(machine.on_unit > 0.0, axis=1, return_inverse=True)
    meet = uses.T.astype(np.int64) @ uses > 0
    blocking = np.bincount(alike, weights=np.where(machine.polling | greedy, 0.0, granted), minlength=uses.shape[1])
    in_pieces = (meet @ blocking)[alike]
    spins = machine.polling & machine.fair & (machine.max_grants - granted > in_pieces + _ROUGH_TOLERANCE)
    return share, away_s(spins, machine.rivals, machine.quantum_s, share, greedy, drain_s)


def _next_step(step: float, residual: Vector, last: Vector) -> float:
    """Return the step: shorter where the residual changes its sign from round to round, longer where it does not."""
    turn = float(residual @ last) / max(float(np.linalg.norm(residual) * np.linalg.norm(last)), _TINY)
    if turn < -0.2:
        return max(0.6 * step, _SHORTEST_STEP)
    return min(1.2 * step, 1.0) if turn > 0.2 else step


def _step(rounds: int) -> float:
    """Return the step: full at first, then half, then shorter and shorter where it oscillates."""
    if rounds <= _UNDAMPED_ROUNDS:
        return 1.0
    return 0.5 if rounds <= 60 else 30.0 / rounds


def _wakes_step(rounds: int) -> float:
    """Return the step of the wakes: short, since the wakes may have several steady states, and in the end near zero."""
    return 1.0 if rounds <= 2 else 0.4 * _WAKES_DECAY ** max(rounds - _FREE_ROUNDS, 0)


def _limits(machine: ThreadMachine, wanted: Vector, work_s: Vector, entitled: Vector) -> Vector:
    """Return the rate that each task unit could serve with equal turns and the spare time of its thread, frames/s."""
    table = machine.by_thread
    turn_s = np.append(machine.turn_frames * work_s, 0.0)[table]
    wanted_time = np.append(wanted * work_s, 0.0)[table]
    spare = entitled - wanted_time.sum(axis=1)
    highest = np.divide(wanted_time, turn_s, out=np.zeros_like(wanted_time), where=turn_s > 0.0).max(axis=1)
    level_height = np.where(spare >= 0.0, highest, 0.0)
    is_over = spare < 0.0
    if is_over.any():
        level_height[is_over] = surface(wanted_time[is_over], turn_s[is_over], entitled[is_over])
    by_turns = np.append(level_height, 0.0)[machine.thread] * machine.turn_frames
    rate_if_free = wanted + np.append(np.maximum(spare, 0.0), 0.0)[machine.thread] / np.maximum(work_s, _TINY)
    served = np.where(np.append(is_over, False)[machine.thread], by_turns, np.maximum(by_turns, rate_if_free))
    limits: Vector = np.where(machine.costly, served, machine.limit_pps)
    return limits


@value
class Lossless:
    """The greatest intended rate of a load without overload, and its demand."""

    rate_pps: float
    visits: Vector = field("Frames that each node serves for each frame intended, copies included")
    demand: Vector = field("Units that each thread works at that rate")
    # The node that loses frames first because the turns of polling threads are too long; -1 where work limits.
    first_lost: int = -1


def lossless_of(machine: ThreadMachine) -> Lossless:
    """Return the greatest intended rate of a load without overload, which is the same at every rate."""
    return _kept_lossless(machine.model, machine.load) if is_kept(machine.load) else _lossless_of(machine)


@lru_cache(maxsize=8)
def _kept_lossless(model: RouterModel, load: OfferedLoad) -> Lossless:
    return _lossless_of(machine_of(model, load))


def _lossless_of(machine: ThreadMachine) -> Lossless:
    """Find the greatest intended rate of a load without overload.

    Every set of units must carry the work of the threads that may use no other units, every thread must fit in the
    units that it may have at once, and every link must carry its frames. Polling threads that share units take their
    share whether they have frames or not; the result is then the greatest rate at which the fixed point loses none.
    """
    propagation = machine.propagation
    intended = np.bincount(machine.graph.ingress, weights=machine.graph.share, minlength=machine.graph.ports)
    entering = propagation.entry(1.0, np.ones(machine.graph.ports))
    nodes = len(propagation.order)
    unlimited, copies = np.full(nodes, np.inf), np.zeros(nodes)
    visits = propagation.flow(entering, unlimited, copies)
    copies = visits.copies
    rate_of = visits.forwarded + copies
    links = np.where(
        np.isfinite(machine.limit_pps), rate_of / np.where(np.isfinite(machine.limit_pps), machine.limit_pps, 1.0), 0.0
    )
    best = 1.0 / max(float(links.max()), float((intended / machine.graph.ingress_cap).max()), _TINY)
    frames, threads = machine.sum_by_thread(rate_of), len(machine.threads)
    factor = np.ones(threads)
    demand = np.zeros(threads)
    tolerance = 0.1 * _ROUGH_TOLERANCE if machine.starts_cost else 1e-9
    wakes = Wakes(per_s=np.zeros(threads), start=np.zeros(threads), least_start=np.zeros(threads))
    rate = best
    for rounds in range(1, 200):
        work_s = machine.busy_s * np.append(factor, 1.0)[machine.thread]
        unit_work = machine.sum_by_thread(rate_of * work_s)
        start_time, _ = _start_time(machine, wakes, unit_work * rate)
        demand = unit_work + start_time / max(rate, _TINY)
        fullest = float((demand / machine.max_grants).max(initial=0.0))
        if machine.groups.groups:
            fullest = max(fullest, float((machine.groups.load(demand) / machine.groups.capacity).max()))
        new_rate = min(best, 1.0 / max(fullest, _TINY))
        settled = rounds > 2 and abs(new_rate - rate) <= tolerance * rate
        step = _step(rounds)
        rate = rate + step * (new_rate - rate)
        if settled:
            break
        work = np.minimum(unit_work * rate, machine.max_grants)
        new_wakes = wakes_of(machine, frames * rate, work, work, work, machine.max_grants, factor, wakes)
        new_factor = machine.contention.factor(np.minimum(work + new_wakes.start, machine.max_grants))
        factor = factor + step * (new_factor - factor)
        wakes = wakes.towards(new_wakes, _wakes_step(rounds))
    if machine.upstream is None:
        return Lossless(rate_pps=rate, visits=rate_of, demand=demand * rate)
    turned, first_lost = _greatest_without_loss(machine, rate)
    return Lossless(rate_pps=turned, visits=rate_of, demand=demand * turned, first_lost=first_lost)


def _greatest_without_loss(machine: ThreadMachine, most_pps: float) -> tuple[float, int]:
    """Return the greatest rate up to ``most_pps`` without loss in the fixed point, and the node that loses first."""
    low, high, first_lost, rate = 0.0, most_pps, -1, most_pps
    while high - low > _FINE_TOLERANCE * high and high > _FINE_TOLERANCE * most_pps:
        steady = steady_state(machine, rate)
        lost = steady.lost_pps
        if float(lost.sum()) > _LOSS_RATIO * rate:
            high, first_lost = rate, int(np.argmax(lost))
        else:
            low = rate
            if first_lost < 0:
                break
        rate = 0.5 * (low + high)
    return low, first_lost
