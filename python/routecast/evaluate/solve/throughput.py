"""What a router of threads forwards at a load: the fluid fixed point of rates, shares of time and room ahead.

Round by round: frames pass through the task graph as far as time and room ahead allow; each thread asks for the time
that what comes to it takes; units are divided among the threads (:mod:`routecast.evaluate.solve.grants`); a thread
that gets less than it asks for divides it among its task units by turns. What a node cannot serve is lost there, after
the work spent on it before. The fixed point is one of means: rings are long enough that fluctuation costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.grants import surface
from routecast.evaluate.solve.machine import Machine, machine_of
from routecast.evaluate.solve.passage import Flowing
from routecast.evaluate.solve.spinning import away_s, kept_pps
from routecast.evaluate.solve.wakes import Wakes, wakes_of
from routecast.evaluate.solve.weights import weights
from routecast.load.offered import OfferedLoad
from routecast.router.model import RouterModel

__all__ = ["Lossless", "Steady", "Throughput", "lossless_of", "steady_state", "throughput"]

_MOST_ROUNDS = 200
_UNDAMPED_ROUNDS = 3
_SHORTEST_STEP = 0.02
_TOLERANCE = 1e-7
_ROUGHLY = 1e-4
_WAKES_DECAY = 0.7
_FREE_ROUNDS = 12
_PRECISELY = 1e-4
_LOST = 1e-6
_FROZEN = 22
_LEAST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What a router forwards at a load.

    Parameters
    ----------
    intended_pps, offered_pps, forwarded_pps : float
        Intended by the tester, put on the links, sent out by a port or given up where a route says so.
    lossless_pps : float
        The greatest intended rate of this load that overloads nothing, fluctuation apart; NaN if it was not asked for.
    drops_pps : mapping
        Loss by place: task units by name, ports as ``"port 1 out"``.
    busy_ratio : mapping
        By thread: units of time at work per second, 1 for a thread that never rests.
    wakes_per_s : mapping
        By thread.
    settled : bool
        Whether the fixed point was found.
    """

    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    lossless_pps: float
    drops_pps: Mapping[str, float]
    busy_ratio: Mapping[str, float]
    wakes_per_s: Mapping[str, float]
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """The fixed point, as arrays in the machine's order.

    Parameters
    ----------
    flowing : Flowing
    work_s : array
        Seconds per frame by node, with contention.
    factor : array
        Contention by thread.
    demand, granted : array
        Units that each thread wants for what comes, and gets.
    busy : array
        Units at work by thread, what wakes and switches cost included.
    """

    machine: Machine
    intended_pps: float
    offered: Vector
    flowing: Flowing
    work_s: Vector
    factor: Vector
    demand: Vector
    granted: Vector
    busy: Vector
    wakes: Wakes
    away_s: Vector
    """By thread: how long one that polls is away from its unit at a time, while others have their turns."""
    rounds: int
    settled: bool

    @property
    def lost_pps(self) -> Vector:
        """Frames of the load that each node drops, copies apart."""
        flowing = self.flowing
        lost_ratio = 1.0 - flowing.served / np.maximum(flowing.arriving, _LEAST)
        lost: Vector = np.maximum(flowing.arriving - flowing.copies, 0.0) * lost_ratio
        return lost


def throughput(model: RouterModel, load: OfferedLoad, *, lossless: bool = False) -> Throughput:
    """Return what a router forwards at a load, from the fluid fixed point alone.

    This is what :class:`~routecast.evaluate.solve.Solve` answers for routers of threads, without latency, power and
    words: for searches that ask a thousand times.

    Parameters
    ----------
    lossless : bool
        Find the rate without loss too, which takes about as long again.
    """
    machine = machine_of(model, load)
    steady = steady_state(machine, load.rate_pps)
    passage, graph = machine.passage, machine.graph
    count = len(graph.tasks)
    lost = steady.lost_pps
    offered = float(steady.offered.sum())
    drops = {}
    for node, rate in enumerate(lost):
        if rate > 1e-9 * offered:
            number = int(passage.order[node])
            name = graph.tasks[number].name if number < count else f"{model.ports[number - count].name} out"
            drops[name] = float(rate)
    forwarded = float(steady.flowing.forwarded[passage.place[count:]].sum())
    names = [thread.name for thread in machine.threads]
    return Throughput(
        intended_pps=steady.intended_pps,
        offered_pps=offered,
        forwarded_pps=forwarded,
        lossless_pps=lossless_of(machine).rate_pps if lossless else float("nan"),
        drops_pps=drops,
        busy_ratio=dict(zip(names, map(float, steady.busy), strict=True)),
        wakes_per_s=dict(zip(names, map(float, steady.wakes.per_s), strict=True)),
        settled=steady.settled,
    )


def steady_state(machine: Machine, intended_pps: float) -> Steady:
    """Find the fixed point at a load, from an idle router on.

    Starting idle matters where there are two steady states: the one reached from low load is found.
    """
    passage = machine.passage
    offered = machine.graph.offered(intended_pps)
    wanted_in = np.bincount(machine.graph.ingress, weights=intended_pps * machine.graph.share)
    taken_in = np.bincount(machine.graph.ingress, weights=offered)
    entering = passage.entry(intended_pps, taken_in / np.maximum(wanted_in, _LEAST))
    costly = machine.costly
    threads, nodes = len(machine.threads), len(passage.order)
    factor, copies = np.ones(threads), np.zeros(nodes)
    limit, served = machine.limit_pps, np.zeros(nodes)
    wakes = Wakes(per_s=np.zeros(threads), start=np.zeros(threads), least_start=np.zeros(threads))
    scale = max(float(offered.sum()), _LEAST)
    unlimited = passage.flow(entering, np.full(nodes, np.inf), copies)
    pressure = machine.by(unlimited.served * machine.busy_s)
    state = None
    tolerance = _ROUGHLY if machine.starts_cost else _TOLERANCE
    rounds, settled, step, last, away = 0, False, 1.0, np.zeros(nodes), np.zeros(threads)
    while rounds < _MOST_ROUNDS and not settled:
        rounds += 1
        flowing = passage.flow(entering, limit, copies)
        work_s = machine.busy_s * np.append(factor, 1.0)[machine.thread]
        wanted = np.minimum(
            np.where(passage.held_towards, flowing.could_arrive, flowing.arriving), flowing.room_ahead
        )
        work = machine.by(wanted * work_s)
        hard, least_start = _hard(machine, wakes, work)
        demand = np.minimum(work + hard, machine.most)
        asked = np.where(machine.polling, machine.most, demand)
        weight = weights(machine, work_s, wanted, demand)
        granted = machine.rows.divide(asked, weight, machine.levels)
        entitled = machine.rows.entitled(asked, granted, weight, machine.levels, machine.most)
        new_limit = _limits(machine, wanted, work_s, np.maximum(entitled - least_start, 0.0))
        if machine.feeding is not None:
            share, away = _turns(machine, work, granted, work_s)
            coming = np.where(passage.held_towards, flowing.could_arrive, flowing.arriving)
            kept = kept_pps(machine.feeding, machine.thread, away, share, coming, machine.queue_frames)
            new_limit = np.minimum(new_limit, kept)
        used = machine.by(flowing.served * work_s)
        new_wakes = wakes
        if rounds < _FROZEN:
            new_wakes = wakes_of(
                machine, machine.by(flowing.served), used, work, pressure * factor, entitled, factor, wakes
            )
        busy = np.minimum(used + wakes.start, machine.most)
        new_factor = machine.contended.factor(busy)
        near = 2.0 * flowing.arriving
        residual = np.minimum(new_limit, near) - np.minimum(limit, near)
        moved = max(
            float(np.abs(flowing.served - served).max()) / scale,
            # A limit far above what comes may still move; one that comes near it matters next.
            float(np.abs(residual).max()) / scale,
            float(np.abs(new_factor - factor).max()),
            # Wakes are approximate anyway.
            0.1 * float(np.abs(new_wakes.start - wakes.start).max()),
            float(np.abs(flowing.copies - copies).max()) / scale,
        )
        settled = rounds > 2 and moved < tolerance
        state = (flowing, work_s, factor, work + hard, granted, busy)
        if settled:
            break
        step = _next_step(step, residual, last) if rounds > _UNDAMPED_ROUNDS else 1.0
        last = residual
        if rounds > 1:
            new_limit[costly] = limit[costly] + step * (new_limit[costly] - limit[costly])
        limit = new_limit
        factor = factor + step * (new_factor - factor)
        copies = copies + step * (flowing.copies - copies)
        wakes = wakes.towards(new_wakes, _wakes_step(rounds))
        served = flowing.served
    assert state is not None
    flowing, work_s, factor, demand, granted, busy = state
    return Steady(
        machine=machine,
        intended_pps=intended_pps,
        offered=offered,
        flowing=flowing,
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


def _hard(machine: Machine, wakes: Wakes, work: Vector) -> tuple[Vector, Vector]:
    """Return what starts take from work by thread: all of them where others are less urgent, and the least.

    A thread that has its units to itself starts only when its work is done, so its starts take nothing from that.
    """
    room = np.where(machine.shares_units, np.inf, np.maximum(machine.most - work, 0.0))
    least = np.minimum(wakes.least_start, room)
    return np.minimum(np.where(machine.last_level, least, wakes.start), room), least


def _turns(machine: Machine, work: Vector, granted: Vector, work_s: Vector) -> tuple[Vector, Vector]:
    """Return the share of a unit that each thread has, and how long one that polls is away from it at a time."""
    share = np.minimum(granted / machine.most, 1.0)
    greedy = work > granted * (1.0 + _TOLERANCE)
    drain_s = machine.by(machine.queue_frames * work_s) / np.maximum(1.0 - work, _LEAST)
    # What blocks soon takes its time in pieces, not in turns.
    uses = (machine.on_unit > 0.0).astype(np.float64)
    in_pieces = np.minimum(uses.T @ uses, 1.0) @ np.where(machine.polling | greedy, 0.0, granted)
    spins = machine.polling & machine.fair & (machine.most - granted > in_pieces + _ROUGHLY)
    return share, away_s(spins, machine.rivals, machine.quantum_s, share, greedy, drain_s)


def _next_step(step: float, residual: Vector, last: Vector) -> float:
    """How far to go: less where what is missing changes its sign from round to round, more where it does not."""
    turn = float(residual @ last) / max(float(np.linalg.norm(residual) * np.linalg.norm(last)), _LEAST)
    if turn < -0.2:
        return max(0.6 * step, _SHORTEST_STEP)
    return min(1.2 * step, 1.0) if turn > 0.2 else step


def _step(rounds: int) -> float:
    """How far to go: all the way at first, then half, then less and less where that goes round in circles."""
    if rounds <= _UNDAMPED_ROUNDS:
        return 1.0
    return 0.5 if rounds <= 60 else 30.0 / rounds


def _wakes_step(rounds: int) -> float:
    """How far wakes go: they may have several steady states, so slowly, and in the end they stay what they are."""
    return 1.0 if rounds <= 2 else 0.4 * _WAKES_DECAY ** max(rounds - _FREE_ROUNDS, 0)


def _limits(machine: Machine, wanted: Vector, work_s: Vector, entitled: Vector) -> Vector:
    """Frames per second that each task unit could serve: equal turns, and what others of its thread do not use."""
    table = machine.by_thread
    turn_s = np.append(machine.turn_frames * work_s, 0.0)[table]
    want = np.append(wanted * work_s, 0.0)[table]
    spare = entitled - want.sum(axis=1)
    highest = np.divide(want, turn_s, out=np.zeros_like(want), where=turn_s > 0.0).max(axis=1)
    height = np.where(spare >= 0.0, highest, 0.0)
    over = spare < 0.0
    if over.any():
        height[over] = surface(want[over], turn_s[over], entitled[over])
    by_turns = np.append(height, 0.0)[machine.thread] * machine.turn_frames
    if_free = wanted + np.append(np.maximum(spare, 0.0), 0.0)[machine.thread] / np.maximum(work_s, _LEAST)
    could = np.where(np.append(over, False)[machine.thread], by_turns, np.maximum(by_turns, if_free))
    limits: Vector = np.where(machine.costly, could, machine.limit_pps)
    return limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Lossless:
    """The greatest intended rate of a load that overloads nothing, and what it asks for.

    Parameters
    ----------
    rate_pps : float
    visits : array
        Frames that each node serves for each frame intended, copies included.
    demand : array
        Units that each thread works at that rate.
    first_lost : int
        The node that loses frames first, where no work is too much but turns of threads that poll are too long; or -1.
    """

    rate_pps: float
    visits: Vector
    demand: Vector
    first_lost: int = -1


def lossless_of(machine: Machine) -> Lossless:
    """Return the greatest intended rate of a load that overloads nothing.

    At a rate, every set of units must carry the work of the threads that may use no others, every thread must fit in
    the units that it may have at once, every link must carry its frames. Where threads that poll share units, they take
    theirs whatever they need, so the rate is that from which on the fixed point loses frames.
    """
    passage = machine.passage
    intended = np.bincount(machine.graph.ingress, weights=machine.graph.share, minlength=machine.graph.ports)
    entering = passage.entry(1.0, np.ones(machine.graph.ports))
    nodes = len(passage.order)
    unlimited, copies = np.full(nodes, np.inf), np.zeros(nodes)
    visits = passage.flow(entering, unlimited, copies)
    copies = visits.copies
    rate_of = visits.forwarded + copies
    links = np.where(
        np.isfinite(machine.limit_pps),
        rate_of / np.where(np.isfinite(machine.limit_pps), machine.limit_pps, 1.0),
        0.0,
    )
    best = 1.0 / max(float(links.max()), float((intended / machine.graph.ingress_cap).max()), _LEAST)
    frames, threads = machine.by(rate_of), len(machine.threads)
    factor = np.ones(threads)
    demand = np.zeros(threads)
    tolerance = 0.1 * _ROUGHLY if machine.starts_cost else 1e-9
    wakes = Wakes(per_s=np.zeros(threads), start=np.zeros(threads), least_start=np.zeros(threads))
    rate = best
    for rounds in range(1, 200):
        work_s = machine.busy_s * np.append(factor, 1.0)[machine.thread]
        unit_work = machine.by(rate_of * work_s)
        hard, _ = _hard(machine, wakes, unit_work * rate)
        demand = unit_work + hard / max(rate, _LEAST)
        fullest = float((demand / machine.most).max(initial=0.0))
        if len(machine.rows.rows):
            fullest = max(fullest, float((machine.rows.load(demand) / machine.rows.capacity).max()))
        new_rate = min(best, 1.0 / max(fullest, _LEAST))
        settled = rounds > 2 and abs(new_rate - rate) <= tolerance * rate
        step = _step(rounds)
        rate = rate + step * (new_rate - rate)
        if settled:
            break
        work = np.minimum(unit_work * rate, machine.most)
        new_wakes = wakes_of(machine, frames * rate, work, work, work, machine.most, factor, wakes)
        new_factor = machine.contended.factor(np.minimum(work + new_wakes.start, machine.most))
        factor = factor + step * (new_factor - factor)
        wakes = wakes.towards(new_wakes, _wakes_step(rounds))
    if machine.feeding is None:
        return Lossless(rate_pps=rate, visits=rate_of, demand=demand * rate)
    turned, first_lost = _before_loss(machine, rate)
    return Lossless(rate_pps=turned, visits=rate_of, demand=demand * turned, first_lost=first_lost)


def _before_loss(machine: Machine, most_pps: float) -> tuple[float, int]:
    """Return the greatest rate up to ``most_pps`` without loss in the fixed point, and the node that loses first."""
    low, high, first_lost, rate = 0.0, most_pps, -1, most_pps
    while high - low > _PRECISELY * high and high > _PRECISELY * most_pps:
        steady = steady_state(machine, rate)
        lost = steady.lost_pps
        if float(lost.sum()) > _LOST * rate:
            high, first_lost = rate, int(np.argmax(lost))
        else:
            low = rate
            if first_lost < 0:
                break
        rate = 0.5 * (low + high)
    return low, first_lost
