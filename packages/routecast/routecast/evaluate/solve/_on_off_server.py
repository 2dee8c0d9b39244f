"""The loss of a queue that on-off sources feed, before one server that is interrupted, wakes up or varies much.

The queue is a finite quasi-birth-death process as in :mod:`routecast.evaluate.solve._on_off_loss`: levels are the
pieces of frames inside, phases are those of the ports and of the server::

    level 0            level 1 … K
    lingers ── asleep    set-up ──► serves 1 ⇄ interrupted
       │         │         ▲        serves 2 ⇄ interrupted
       └─────────┴── a frame ┘

A service with a squared variation above 2 has two phases with balanced means; other services are cut into pieces.
Durations of interruptions and set-ups are phase-type with the first two moments of theirs (Erlang with up to
``_MAX_STAGES`` stages below a squared variation of 1, hyperexponential above; Tijms, A First Course in Stochastic
Models, 2003, app. B). During a set-up nothing is in service, so that one frame less has room. The stationary vector
follows from ``R_n = A0·(-(A1 + R_{n+1}·A2))^-1`` (Neuts, Matrix-Geometric Solutions in Stochastic Models, 1981, ch. 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from routecast.evaluate._general_queues import ServiceMix
from routecast.evaluate._server_vacations import sorted_points
from routecast.evaluate.solve._burst_bounds import most_contention
from routecast.evaluate.solve._on_off_loss import Bursts, phases_of
from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.quantity.schema import field, value
from routecast.router.model import RandomTime

__all__ = ["ServerPhases", "Spread", "bounds_at_server", "burst_loss_of_server"]

_MAX_STAGES = 3
_TWO_PHASES = 2.0
"""Greatest squared variation of services that pieces of frames stand for."""
_MAX_PIECES, _MIN_PIECES = 8.0, 0.25
_MAX_WORK, _MIN_LEVELS, _MAX_LEVELS = 2.5e6, 64, 1024
"""Levels times the cube of the phases, and levels."""
_SAME = 1e-12
_SAME_TAIL = 0.02
"""Difference of what a random time and its phases last beyond another time, as a share of their mean."""


@value
class Spread:
    """Mean and squared variation of a random time."""

    mean_s: float
    scv: float


@value
class ServerPhases:
    """One server: its services without interruptions, what interrupts it, and how it wakes."""

    service: Spread = field("Service of a frame without interruptions")
    interruptions_hz: float = field("Interruptions a second of work", default=0.0)
    interruption: Spread = field("Length of an interruption", default=Spread(mean_s=0.0, scv=0.0))
    set_up: Spread = field("Time from a frame that wakes it to its service", default=Spread(mean_s=0.0, scv=0.0))
    linger_s: float = field("Time without frames before it sleeps", default=0.0)


@dataclass(frozen=True, slots=True)
class _Phases:
    """A phase-type time: chance to begin in each phase, rates between phases, rates of its end."""

    begin: Vector
    change: Vector
    end: Vector


@dataclass(frozen=True, slots=True)
class _Chain:
    """What the server does at levels from 1 on."""

    change: Vector
    serves: Vector
    next: Vector
    """Chance of each phase as a service begins."""
    woken: Vector
    """Chance of each phase as a frame wakes the server."""
    waking: Vector
    """1 in phases of the set-up."""


@lru_cache(maxsize=256)
def burst_loss_of_server(bursts: Bursts, server: ServerPhases, queue_frames: float) -> float:
    """Return the share of the frames that find the queue full; NaN for more ports than are computed.

    ``queue_frames``: frames that wait at most, the one in service aside.

    Examples
    --------
    >>> always = Bursts(on_pps=(2.0,), on_s=(1e9,), off_s=(1e-6,), gap_scv=1.0)
    >>> served = ServerPhases(service=Spread(mean_s=1.0, scv=1.0))
    >>> round(burst_loss_of_server(always, served, 49), 4)  # M/M/1/50 at load 2
    0.5
    """
    ports = phases_of(bursts)
    if ports is None or queue_frames < 0.0:
        return math.nan
    ports_change, arriving = ports
    scv = server.service.scv
    is_mixed = scv > _TWO_PHASES
    pieces = 1.0 if is_mixed else 2.0 / max(bursts.gap_scv + scv, 1e-9)
    room = queue_frames + 1.0
    size = len(arriving)
    chain = _chain_of(server, pieces, bursts.gap_scv, is_mixed=is_mixed)
    most = min(max(_MAX_WORK / (size * len(chain.serves)) ** 3, _MIN_LEVELS), _MAX_LEVELS)
    least = 1.0 / room if not is_mixed else 0.0
    if not is_mixed:
        pieces = max(min(max(min(pieces, _MAX_PIECES), _MIN_PIECES), most / room), least)
        chain = _chain_of(server, pieces, bursts.gap_scv, is_mixed=is_mixed)
    elif room > most:
        pieces = most / room  # frames stand for several; their sum varies less
        chain = _chain_of(server, pieces, bursts.gap_scv, is_mixed=is_mixed)
    levels = max(round(room * pieces), 1)
    awake_from = max(round(queue_frames * pieces), 1)  # from this level on a set-up has no room
    return _loss(ports_change, arriving * pieces, chain, server.linger_s, levels, awake_from)


def bounds_at_server(
    fluid: Fluid, index: int, bursts: Bursts, whole: Bursts, mix: ServiceMix
) -> tuple[float, float] | None:
    """Return bounds of the loss of bursts at one server: between no contention and the greatest, and between its rooms.

    The bursts come as ``bursts``, at the pace of a server before it, or undivided as ``whole``. None where absences
    without a law decide what is lost.

    A batch, or a gated poll, of b frames frees b places at once: what is inside when the queue is full for the
    first time is between its own places and those of a batch more, less what the batch has served by then.
    """
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    if cost.sleep_states or cost.moderation_s > 0.0 or cost.batch_s > 0.0 or len(fluid.uses[index]) > 1:
        return None
    interruptions = fluid.model.pool(task.needs[0].pool).interruptions if task.needs else None
    if interruptions is not None and task.needs[0].units > 1:
        return None
    pools = [part.pool for part, _ in fluid.uses[index]]
    factor = float(fluid.factor[index])
    bare_s = mix.mean_s / cost.stretch / factor
    scv = replace(mix, scv=task.service.squared_cv, completion=None).squared_cv
    wakeup, start_s = task.activation.wakeup, cost.interrupt_s
    set_up_s = start_s + (wakeup.average_s if wakeup is not None else 0.0)
    spread_s2 = wakeup.squared_cv * wakeup.average_s**2 if wakeup is not None else 0.0
    stopped = interruptions.duration if interruptions is not None else None
    fill_s = [task.queue_frames / pps for pps in (math.fsum(whole.on_pps), min(bursts.on_pps))]
    laws = [law for law in (wakeup, stopped) if law is not None]
    if not all(_fits_phases(law, longer_s) for law in laws for longer_s in fill_s):
        return None
    served = ServerPhases(
        service=Spread(mean_s=bare_s, scv=scv),
        interruptions_hz=interruptions.rate_hz if interruptions is not None else 0.0,
        interruption=Spread(
            mean_s=stopped.average_s if stopped is not None else 0.0,
            scv=stopped.squared_cv if stopped is not None else 0.0,
        ),
        set_up=Spread(mean_s=set_up_s, scv=spread_s2 / set_up_s**2 if set_up_s > 0.0 else 0.0),
        linger_s=cost.linger_s,
    )
    least = min((pool.contention.least_factor(pool.units) for pool in pools), default=1.0)
    most = max(map(most_contention, pools), default=1.0)
    places = float(task.queue_frames)
    roomier = places
    if cost.batch_frames > 1 and not cost.exhaustive:
        left = max(1.0 - 1.0 / (math.fsum(bursts.on_pps) * bare_s * least), 0.0)
        roomier += min(cost.batch_frames, task.queue_frames) * left
    slow, fast = (replace(served, service=Spread(mean_s=bare_s * x, scv=scv)) for x in (most, least))
    high = burst_loss_of_server(whole, slow, places)
    is_known = most == least and roomier == places and bursts == whole
    low = high if is_known else burst_loss_of_server(bursts, fast, roomier)
    # A faster server sleeps more often: with set-ups it may lose more.
    return None if math.isnan(low + high) else (min(low, high), max(low, high))


def _fits_phases(time: RandomTime, longer_s: float) -> bool:
    """Whether the phases of a random time last as long beyond another time as it does, in the mean.

    Examples
    --------
    >>> _fits_phases(RandomTime(mean_s=1.0, variation="exponential"), 2.0)
    True
    >>> _fits_phases(RandomTime(mean_s=1.0, variation="deterministic"), 1.0)
    False
    """
    if time.average_s <= 0.0:
        return True
    points, _ = sorted_points(time)
    beyond_s = float(np.maximum(points - longer_s, 0.0).mean())
    phases = _phase_type(Spread(mean_s=time.average_s, scv=time.squared_cv))
    rates = -np.diag(phases.change)
    if time.squared_cv > 1.0 + 1e-9:
        of_phases_s = float((phases.begin / rates) @ np.exp(-rates * longer_s))
    else:
        stages, far = len(rates), float(rates[0]) * longer_s
        terms = (math.exp(-far) * far**j / math.factorial(j) * (stages - j) for j in range(stages))
        of_phases_s = math.fsum(terms) / float(rates[0])
    return abs(beyond_s - of_phases_s) <= _SAME_TAIL * time.average_s


def _phase_type(time: Spread) -> _Phases:
    """Return a phase-type time with these moments, or with the least variation of ``_MAX_STAGES`` stages."""
    if time.scv > 1.0 + 1e-9:
        first = 0.5 * (1.0 + math.sqrt((time.scv - 1.0) / (time.scv + 1.0)))
        begin = np.array([first, 1.0 - first])
        end = 2.0 * begin / time.mean_s
        return _Phases(begin, -np.diag(end), end)
    stages = min(max(round(1.0 / max(time.scv, 1e-9)), 1), _MAX_STAGES)
    rate = stages / time.mean_s
    change = rate * (np.diag(np.ones(stages - 1), 1) - np.eye(stages))
    return _Phases(np.eye(stages)[0], change, rate * np.eye(stages)[-1])


def _chain_of(server: ServerPhases, pieces: float, gap_scv: float, *, is_mixed: bool) -> _Chain:
    if is_mixed:
        # Gaps of pieces vary as random ones, more than those of frames: services take up the difference.
        scv = max(1.0 + (server.service.scv + gap_scv - 2.0) * pieces, 1.0)
        service = _phase_type(Spread(mean_s=server.service.mean_s / pieces, scv=scv))
        begin, serving = service.begin, service.end
    else:
        begin, serving = np.ones(1), np.array([pieces / server.service.mean_s])
    count = len(serving)
    hz, stop = server.interruptions_hz, server.interruption
    stopped = _phase_type(stop) if hz > 0.0 and stop.mean_s > 0.0 else None
    stops = len(stopped.begin) if stopped is not None else 0
    wake = _phase_type(server.set_up) if server.set_up.mean_s > 0.0 else None
    wakes = len(wake.begin) if wake is not None else 0
    total = count * (1 + stops) + wakes
    change, serves, start, woken, waking = (np.zeros(total) for _ in range(5))
    matrix = np.zeros((total, total))
    start[:count], serves[:count] = begin, serving
    if stopped is not None:
        for phase in range(count):
            here = count + phase * stops
            matrix[phase, here : here + stops] = hz * stopped.begin
            matrix[here : here + stops, here : here + stops] += stopped.change - np.diag(np.diag(stopped.change))
            matrix[here : here + stops, phase] = stopped.end
    if wake is not None:
        here = count * (1 + stops)
        matrix[here:, here:] += wake.change - np.diag(np.diag(wake.change))
        matrix[here:, :count] = np.outer(wake.end, begin)
        woken[here:], waking[here:] = wake.begin, 1.0
    else:
        woken[:] = start
    change = matrix - np.diag(matrix.sum(axis=1) + serves)
    return _Chain(change=change, serves=serves, next=start, woken=woken, waking=waking)


def _loss(
    ports_change: Vector, arriving: Vector, chain: _Chain, linger_s: float, levels: int, awake_from: int
) -> float:
    size, count = len(arriving), len(chain.serves)
    ports_eye, eye = np.eye(size), np.eye(count)
    inner = np.kron(ports_change, eye) + np.kron(ports_eye, chain.change)
    coming = np.kron(arriving, np.ones(count))
    admitted_late = np.kron(arriving, 1.0 - chain.waking)
    down = np.kron(ports_eye, np.outer(chain.serves, chain.next))
    above: Vector = np.zeros((size * count, size * count))
    weights: list[Vector] = [above] * levels
    for level in range(levels, 1, -1):  # the rates from ``level - 1`` up to ``level``
        into = np.diag(admitted_late if level > awake_from else coming)
        onward = np.zeros_like(coming) if level == levels else (admitted_late if level + 1 > awake_from else coming)
        block = inner - np.diag(onward)
        if level < levels:
            block = block + above @ down
        weight = into @ np.linalg.inv(-block)
        is_settled = level < awake_from and float(np.abs(weight - above).max()) < _SAME
        weights[level - 1] = above = weight
        if is_settled:
            weights[1:level] = [weight] * (level - 1)
            above = weight
            break
    # Level 0: asleep, or lingering before that.
    idle = np.kron(ports_change - np.diag(arriving), np.eye(2))
    if linger_s > 0.0:
        idle = idle + np.kron(ports_eye, np.array([[-1.0, 1.0], [0.0, 0.0]]) / linger_s)
    up = np.kron(np.diag(arriving), np.vstack([chain.next, chain.woken]))
    after = np.array([1.0, 0.0]) if linger_s > 0.0 else np.array([0.0, 1.0])
    back = np.kron(ports_eye, np.outer(chain.serves, after))
    onward = np.zeros_like(coming) if levels == 1 else (admitted_late if awake_from < 2 else coming)
    block = inner - np.diag(onward)
    if levels > 1:
        block = block + weights[1] @ down
    first = up @ np.linalg.inv(-block)
    balance = idle + first @ back
    if linger_s <= 0.0:  # the lingering states do not occur
        keep = np.arange(1, 2 * size, 2)
        balance, first = balance[np.ix_(keep, keep)], first[keep]
    states = len(balance)
    system = np.vstack([balance.T, np.ones(states)])
    row = np.maximum(np.linalg.lstsq(system, np.append(np.zeros(states), 1.0), rcond=None)[0], 0.0)
    of_idle = np.kron(arriving, np.ones(2)) if linger_s > 0.0 else arriving
    offered = float(row @ of_idle)
    row, lost = row @ first, 0.0
    for level in range(1, levels + 1):
        if level > 1:
            row = row @ weights[level - 1]
        offered += float(row @ coming)
        if level == levels:
            lost += float(row @ coming)
        elif level >= awake_from:
            lost += float(row @ (coming - admitted_late))
        largest = float(row.max())
        if largest > 1e100:
            row, offered, lost = row / largest, offered / largest, lost / largest
    return lost / offered
