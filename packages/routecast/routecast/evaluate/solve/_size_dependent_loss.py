"""Frames that a full queue admits: behind a busy link more of the large frames, which arrive after long gaps.

A link spaces frames: before the last bit of a frame of ``L`` seconds on the wire there are at least L seconds without
another frame. A full queue gets a free place at every end of service, so a free place is the more probable, the longer
the gap before a frame. Large frames are therefore lost less, and as they also take longer, fewer frames pass.

The model follows the number of free places and the remaining time of the service under way. In a gap services end, each
of which frees a place, and others begin; an arriving frame takes a place or is lost. As the frames of a port see it,
this is a Markov chain, solved on a grid of remaining times; the admitted mix is a fixed point. The model assumes that
the served sizes follow each other at random, that several servers work like one fast server, and that the queue never
runs empty.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from routecast.evaluate._bisection import halved
from routecast.evaluate._general_queues import ServiceMix
from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.offered import line_rate_pps

_GRID = 48
_MAX_PLACES = 24
_MAX_STEPS = 400
_MAX_ROUNDS = 12
_POINTS = 6

Points = tuple[tuple[float, float], ...]
"""Pairs of weight and value that represent a distribution."""
Steps = tuple[tuple[tuple[float, int, float], ...], ...]
"""A cycle of the port's frames; each step is a mixture of (weight, number of the size, share that comes here)."""


def admitted_by_size(
    fluid: Fluid, port: int, rate_pps: float, mix: ServiceMix, *, servers: int, room: int
) -> tuple[float, ...]:
    """Return the probability that an overloaded queue admits a frame, by frame size (smallest first).

    Valid where the queue is full nearly all the time and its frames come from one port without other delays. The
    forwarding rate is within 0.8 % of packet simulations (IMIX and a genome, links half full to overfull, Poisson
    arrivals and equal gaps); equal loss for all sizes is up to 24 % off there.

    ``rate_pps``: arriving rate at the queue; the other frames of the port, chosen independently, go elsewhere; ``mix``:
    service time by frame size.
    """
    graph, load = fluid.graph, fluid.load
    intended = fluid.intended_pps * sum(
        float(share) for share, entry in zip(graph.share, graph.ingress, strict=True) if entry == port
    )
    offered = sum(float(rate) for rate, entry in zip(fluid.offered, graph.ingress, strict=True) if entry == port)
    wire_s = [1.0 / line_rate_pps(fluid.model.ports[port].link_bps, size) for size in load.frames.share_by_bytes]
    if intended > offered * (1.0 + 1e-9):
        gaps: list[Points] = [((1.0, gap_s),) for gap_s in wire_s]
    elif load.arrivals.kind == "cbr":
        gaps = [((1.0, gap),) for gap in _even_gaps(wire_s, mix.shares, 1.0 / offered)]
    else:
        gaps = _poisson_gaps(wire_s, mix.shares, offered)
    steps = _steps(fluid, mix, min(rate_pps / offered, 1.0))
    return _admission(steps, tuple(gaps), mix, servers, min(room - servers, _MAX_PLACES))


def _even_gaps(wire_s: list[float], shares: tuple[float, ...], period_s: float) -> list[float]:
    """Gap before each size where equal gaps are stretched by frames that last longer: ``max(L, z)`` with mean gap P."""

    def is_short(least_s: float) -> bool:
        return sum(share * max(gap, least_s) for share, gap in zip(shares, wire_s, strict=True)) <= period_s

    least_s, _ = halved(is_short, 0.0, period_s, 60)
    return [max(gap_s, least_s) for gap_s in wire_s]


def _poisson_gaps(wire_s: list[float], shares: tuple[float, ...], rate_pps: float) -> list[Points]:
    """Gap before each size behind a link with Poisson arrivals, as weighted points.

    ``gap = L + idle`` with ``P(idle > t | L) = (1 - rho)·e^{-λL}/E[e^{-λL}]·e^{-λt}``: a frame finds the link idle with
    probability 1 - rho (M/G/1). The probability falls with the length of the frame, which arrives with its last bit.
    """
    no_arrival = sum(share * math.exp(-rate_pps * gap) for share, gap in zip(shares, wire_s, strict=True))
    free = max(1.0 - rate_pps * sum(share * gap for share, gap in zip(shares, wire_s, strict=True)), 0.0)
    idle = [-math.log1p(-(number + 0.5) / _POINTS) for number in range(_POINTS)]
    mean = sum(idle) / _POINTS
    points: list[Points] = []
    for gap_s in wire_s:
        chance = free * math.exp(-rate_pps * gap_s) / no_arrival
        later = [(chance / _POINTS, gap_s + pause / mean / rate_pps) for pause in idle] if chance > 0.0 else []
        points.append(((1.0 - chance, gap_s), *later))
    return points


def _steps(fluid: Fluid, mix: ServiceMix, here_ratio: float) -> Steps:
    """Return the order of the frame sizes: a single mixed step if they are drawn at random, else a step per size."""
    frames = fluid.load.frames
    if frames.order == "random":
        return (tuple((share, number, here_ratio) for number, share in enumerate(mix.shares)),)
    number_of = {size: number for number, size in enumerate(frames.share_by_bytes)}
    if len(frames.sequence_bytes) > _MAX_STEPS:
        return (tuple((share, number, here_ratio) for number, share in enumerate(mix.shares)),)
    return tuple(((1.0, number_of[size], here_ratio),) for size in frames.sequence_bytes)


@lru_cache(maxsize=64)
def _admission(steps: Steps, gaps: tuple[Points, ...], mix: ServiceMix, servers: int, places: int) -> tuple[float, ...]:
    times = np.array(mix.times_s) / servers
    quanta = [(quantile_s, share) for share, quantile_s in _quantiles(mix)]
    unit_s = max(quantum for quantum, _ in quanta) * max(float(times.max()), 1e-300) / _GRID
    state: Vector = np.zeros((max(places, 1) + 1, _GRID + 1))
    state[0, _GRID // 2] = 1.0
    ratio = np.ones(len(times))
    mean_s = 0.0
    for _ in range(_MAX_ROUNDS):
        inside = np.array(mix.shares) * ratio / float(np.array(mix.shares) @ ratio)
        previous, mean_s = mean_s, float(inside @ times)
        if abs(mean_s - previous) < 1e-4 * mean_s:
            break
        law = [
            (float(share * weight), float(quantum * time) / unit_s)
            for share, time in zip(inside, times, strict=True)
            for quantum, weight in quanta
        ]
        passing = [_passing(points, law, unit_s, len(state)) for points in gaps]
        for _ in range(max(_MAX_STEPS // len(steps), 2)):
            before, admitted, offered = state, np.zeros(len(times)), np.zeros(len(times))
            for step in steps:
                after = np.zeros_like(state)
                for weight, size, here_ratio in step:
                    moved = _moved(state, passing[size])
                    taken = np.zeros_like(moved)
                    taken[:-1] = moved[1:]
                    admitted[size] += weight * here_ratio * float(taken.sum())
                    offered[size] += weight * here_ratio
                    taken[0] += moved[0]
                    after += weight * (here_ratio * taken + (1.0 - here_ratio) * moved)
                state = after
            if float(np.abs(state - before).sum()) < 1e-5:
                break
        ratio = np.divide(admitted, offered, out=np.ones_like(admitted), where=offered > 0.0)
    return tuple(float(size_ratio) for size_ratio in ratio)


def _quantiles(mix: ServiceMix) -> Points:
    """Return weighted points of the distribution of the service time of one size around 1."""
    if mix.scv <= 0.0:
        return ((1.0, 1.0),)
    # Two points with the right mean and variance; for the exponential distribution the lower point is 0.
    deviation = min(math.sqrt(mix.scv), 1.0)
    return ((0.5, 1.0 - deviation), (0.5, 1.0 + deviation))


def _moved(state: Vector, passing: list[Vector]) -> Vector:
    """Return the state after a gap: ``passing[k]`` maps the rest of a service to the rest of one k services later."""
    moved = np.zeros_like(state)
    top = len(state) - 1
    for count, matrix in enumerate(passing):
        shifted = state @ matrix
        if count <= top:
            moved[count:] += shifted[: top + 1 - count]
            moved[top] += shifted[top + 1 - count :].sum(axis=0)
        else:
            moved[top] += shifted.sum(axis=0)
    return moved


def _passing(points: Points, law: list[tuple[float, float]], unit_s: float, most: int) -> list[Vector]:
    """Return, by the number of services that end in the gap, the matrix from the rest before to the rest after."""
    longest = max(gap for _, gap in points) / unit_s
    zero = math.ceil(longest) + 1
    width = zero + _GRID + 3
    at = np.zeros((_GRID + 1, width))
    rows = np.arange(_GRID + 1)
    for weight, gap_s in points:
        place = zero + 1 + rows - gap_s / unit_s
        whole = np.floor(place).astype(int)
        at[rows, whole] += weight * (1.0 - (place - whole))
        at[rows, whole + 1] += weight * (place - whole)
    passing = []
    for _ in range(most + 1):
        passing.append(at[:, zero + 1 : zero + _GRID + 2].copy())
        late = at[:, : zero + 1]
        if float(late.sum()) < 1e-9:
            break
        at = np.zeros_like(at)
        for weight, length in law:
            whole = int(length)
            for shift, part in ((whole, 1.0 - (length - whole)), (whole + 1, length - whole)):
                if part > 0.0:
                    at[:, shift : shift + zero + 1] += weight * part * late
    return passing
