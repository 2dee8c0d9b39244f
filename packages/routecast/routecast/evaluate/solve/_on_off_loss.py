"""The loss of a queue that on-off sources feed: a finite queue whose arrival rate a Markov chain changes.

Each port is on or off by itself; while it is on, its frames come at the peak rate. With gaps of exponential length and
exponential services the queue is a finite quasi-birth-death process: levels are the frames inside, phases the number
of ports that are on (Neuts, Matrix-Geometric Solutions in Stochastic Models, 1981, ch. 3; for the fluid limit Anick,
Mitra and Sondhi, Bell System Technical Journal 61(8), 1982). Its stationary vector follows level by level::

    R_K = 0,  R_n = A0·(-(A1 + R_{n+1}·A2))^-1,  π_{n+1} = π_n·R_n

Gaps within a burst and services vary less, or more, than exponential times. Frames are therefore cut into ``m`` pieces
each, of which ``K·m`` find room: the variance of a sum of frames is then that of the real ones with
``m = 2/(gap's squared variation + service's)``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.arrivals import Arrivals
from routecast.load.offered import line_rate_pps
from routecast.quantity.schema import field, value

__all__ = ["Bursts", "burst_loss", "bursts_at", "phases_of"]

_MAX_LEVELS, _MAX_PIECES, _MIN_PIECES = 1024, 8.0, 0.25
_MAX_PORTS, _MAX_DIFFERENT = 16, 4
_SAME, _STEADY, _MIN_BURST_FRAMES, _LEAST = 1e-14, 1.001, 1.05, 1e-6
_LARGE = 1e100
_NOTHING = 1e-12
"""Share of a port's frames that are none but for rounding."""


@value
class Bursts:
    """Ports that send bursts, each on or off by itself, as one station sees them."""

    on_pps: tuple[float, ...] = field("Rate of the frames of each port for the station while it is on, frames/s")
    on_s: tuple[float, ...] = field("Mean length of a burst of each port, s")
    off_s: tuple[float, ...] = field("Mean length of a pause of each port, s")
    gap_scv: float = field("Squared variation of the gaps within a burst")


def has_bursts(arrivals: Arrivals) -> bool:
    """Whether on-off arrivals come in bursts of several frames above their mean rate."""
    return arrivals.burst_frames >= _MIN_BURST_FRAMES and arrivals.peak_ratio > _STEADY


def bursts_at(fluid: Fluid, index: int, *, undivided: bool = False, pace_pps: float = math.inf) -> Bursts | None:
    """Return the bursts of an on-off load at a task unit or port; None if stations on the way change them.

    ``undivided``: as if these stations took no time; ``pace_pps``: as if a server passed no more frames/s of all
    ports, first come, first served: a burst beside the mean rate of the other ports.
    """
    load, graph = fluid.load, fluid.graph
    if load.arrivals.kind != "on_off" or any(task.route.copies for task in graph.tasks):
        return None
    if not undivided and any(fluid.service_s[before] > 0.0 for before in graph.leading_to(index)):
        return None
    if not has_bursts(load.arrivals):
        return None
    # The exponential length with the tail of a geometric number of frames: (1 - 1/B)^n = e^-n/b.
    burst_frames = -1.0 / math.log1p(-1.0 / load.arrivals.burst_frames)
    rates = fluid.rates[index]
    whole, here = graph.by_port(fluid.offered), graph.by_port(rates)
    # A burst is of one flow: routes by flow take whole bursts, others a part of the frames of each.
    chosen = graph.by_port(np.where(rates > 0.0, fluid.offered, 0.0))
    on, on_s, off_s, variation = [], [], [], []
    for number, port in enumerate(fluid.model.ports):
        rate, part = float(whole[number]), float(here[number])
        if part <= _NOTHING * rate:
            continue
        sizes = load.frames.share_by_bytes.items()
        line_pps = 1.0 / sum(share / line_rate_pps(port.link_bps, size) for size, share in sizes)
        if math.isfinite(pace_pps):
            own_pps, others_pps = min(load.arrivals.peak_ratio * rate, line_pps), float(whole.sum()) - rate
            line_pps = max(min(line_pps, pace_pps * own_pps / max(own_pps + others_pps, pace_pps)), rate)
        peak_pps = min(load.arrivals.peak_ratio * rate, line_pps)
        of_frames, here_pps = part / float(chosen[number]), float(chosen[number])
        on.append(peak_pps * of_frames)
        on_s.append(
            burst_frames / peak_pps / max(1.0 - _merged(load.arrivals, rate, line_pps) * here_pps / rate, _LEAST)
        )
        off_s.append(on_s[-1] * max(peak_pps / here_pps - 1.0, _LEAST))
        variation.append(1.0 - of_frames)
    if not on:
        return None
    return Bursts(on_pps=tuple(on), on_s=tuple(on_s), off_s=tuple(off_s), gap_scv=max(variation))


def _merged(arrivals: Arrivals, rate_pps: float, line_pps: float) -> float:
    """Return the share of bursts that reach a link while the one before waits for it, and so follow it without a gap.

    A burst of n frames leaves ``n·(1/line - gap)`` of work when its last frame is due, and pauses are exponential: with
    exponential lengths that is the workload of M/M/1, and its load is the chance that a burst finds work.
    """
    gap_s = 1.0 / (arrivals.peak_ratio * rate_pps)
    return min(max((1.0 / line_pps - gap_s) / (1.0 / rate_pps - gap_s), 0.0), 1.0)


@lru_cache(maxsize=256)
def burst_loss(bursts: Bursts, service_s: float, service_scv: float, servers: int, room_frames: int) -> float:
    """Return the share of the frames that find the queue full; NaN for more ports than are computed.

    ``room_frames``: frames that wait or are in service at most.

    Examples
    --------
    >>> always = Bursts(on_pps=(2.0,), on_s=(1e9,), off_s=(1e-6,), gap_scv=1.0)
    >>> round(burst_loss(always, 1.0, 1.0, 1, 50), 4)  # M/M/1/50 at load 2
    0.5
    """
    chain = phases_of(bursts)
    if chain is None or room_frames < 1:
        return math.nan
    change, arriving = chain
    pieces = min(max(2.0 / max(bursts.gap_scv + service_scv, 1e-9), _MIN_PIECES), _MAX_PIECES)
    pieces = max(min(pieces, _MAX_LEVELS / room_frames), 1.0 / room_frames)
    levels = max(round(room_frames * pieces), 1)
    arriving = arriving * pieces
    leaving = [min(level / pieces, float(servers)) / service_s * pieces for level in range(levels + 1)]
    if len(arriving) == 2:
        return _loss_of_one_port(float(change[0, 1]), float(change[1, 0]), float(arriving[1]), leaving)
    return _loss_of_phases(change, arriving, leaving)


def phases_of(bursts: Bursts) -> tuple[Vector, Vector] | None:
    """Return the rates of change between phases, and the arrival rate in each; None for too many different ports."""
    ports = len(bursts.on_pps)
    is_alike = len(set(zip(bursts.on_pps, bursts.on_s, bursts.off_s, strict=True))) == 1
    if is_alike and ports <= _MAX_PORTS:
        on = np.arange(ports + 1, dtype=np.float64)
        jumps = np.diag((ports - on[:-1]) / bursts.off_s[0], 1) + np.diag(on[1:] / bursts.on_s[0], -1)
        return jumps - np.diag(jumps.sum(axis=1)), on * bursts.on_pps[0]
    if ports > _MAX_DIFFERENT:
        return None
    change, arriving = np.zeros((1, 1)), np.zeros(1)
    for on_pps, on_s, off_s in zip(bursts.on_pps, bursts.on_s, bursts.off_s, strict=True):
        source = np.array([[-1.0 / off_s, 1.0 / off_s], [1.0 / on_s, -1.0 / on_s]])
        change = np.asarray(np.kron(change, np.eye(2)) + np.kron(np.eye(len(change)), source), dtype=np.float64)
        here = np.kron(arriving, np.ones(2)) + np.kron(np.ones(len(arriving)), np.array([0.0, on_pps]))
        arriving = np.asarray(here, dtype=np.float64)
    return change, arriving


def _loss_of_one_port(begins: float, ends: float, arriving: float, leaving: list[float]) -> float:
    """Return the loss where one port sends, which ``begins`` and ``ends`` its bursts so many times a second.

    Frames arrive in one phase only, so ``R_n`` is a row. As many frames come to a level as leave it, ``R_n·1·leaving =
    arriving``: its entries then follow without a difference of numbers. ``passed`` is the inverse of the sum over the
    levels from ``n`` on in parts of level n, for which the loss is known like that of Erlang's formula.
    """
    loss, passed, falls, above = 1.0, 1.0, 0.0, 0.0
    for level in range(len(leaving) - 1, 0, -1):
        served = leaving[level]
        turns = ends + falls * above
        rate = arriving / (served * (served + begins + turns))
        falls, stays = rate * turns, rate * (served + begins)
        loss *= stays / (stays + passed)
        passed /= stays + passed
        above = served
    return loss


def _loss_of_phases(change: Vector, arriving: Vector, leaving: list[float]) -> float:
    """Return the loss where several ports send.

    ``sums``: by phase of a level, the frames that arrive in the highest level and in all from it on, to one scale.
    """
    levels, identity = len(leaving) - 1, np.eye(len(arriving))
    weight, rising = np.zeros_like(change), np.diag(arriving)
    counted, sums = arriving, np.column_stack([arriving, arriving])
    outward, is_settled = -change, False
    for level in range(levels, 0, -1):
        served = leaving[level]
        is_even = level < levels and served == leaving[level + 1]
        if not (is_settled and is_even):
            inner = outward + served * identity
            if level < levels:
                inner += rising
                inner -= weight * leaving[level + 1]
            above, weight = weight, arriving[:, None] * np.linalg.inv(inner)
            is_settled = is_even and bool((np.abs(weight - above) <= _SAME * weight).all())
        sums = weight @ sums
        sums[:, 1] += counted
        largest = float(sums[:, 1].max())
        if largest > _LARGE:
            sums, counted = sums / largest, counted / largest
    outward += rising - weight * leaving[1]
    system = np.vstack([-outward.T, np.ones(len(arriving))])
    first: Vector = np.linalg.lstsq(system, np.append(np.zeros(len(arriving)), 1.0), rcond=None)[0]
    lost, total = np.maximum(first, 0.0) @ sums
    return float(lost) / float(total)
