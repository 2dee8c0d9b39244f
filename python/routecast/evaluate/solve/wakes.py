"""How often threads wake, and what waking and switching cost.

A thread that wakes pays its start (interrupt, notification, switch of the unit), serves what waits and comes meanwhile,
and sleeps again: one wake for a *batch*. With frames at rate λ, work rho and a start of h, a thread with units of its
own wakes ``ω = (1 - rho)/(1/λ + h)`` times a second for Poisson arrivals (M/G/1 with set-up, exact), and
``ω = min(λ, (1 - rho)/h)`` for frames at equal gaps: each frame wakes it until starts fill what work leaves.

Where threads share units, a thread that wakes may have to wait, while more comes: starts take no more than work of the
same and more urgent levels leaves of every set of units, so batches grow with the load (the cycle of a polling system,
``Σh/(1 - Σrho)``; Takagi, Analysis of Polling Systems, 1986). The wait is at most what makes a thread revoke another:
it ends after the wakeup granularity, or when a queue is full.

Valid for means within about a factor of two where threads of several levels and pins meet: they decide
utilisation below overload and the cost of urgent threads, not what full units carry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.machine import Machine

__all__ = ["Wakes", "wakes_of"]

Flags = NDArray[np.bool_]
_LEAST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakes:
    """By thread: wakes per second, units spent on starts, and the part of that which no load makes go away."""

    per_s: Vector
    start: Vector
    least_start: Vector


def wakes_of(
    machine: Machine, rate: Vector, work: Vector, short: Flags, factor: Vector, before: Vector
) -> Wakes:
    """Return how often threads wake.

    Parameters
    ----------
    rate : array
        Frames per second that each thread serves.
    work : array
        Units that these keep busy.
    short : array of bool
        Threads that get less time than they want, which never sleep.
    factor : array
        Contention.
    before : array
        Wakes per second found in the last round.
    """
    start_s = machine.start_s * factor + _switch_s(machine, before, work)
    asleep = np.where(short | machine.polling, 0.0, np.maximum(machine.most - work, 0.0)) / machine.most
    freely = _woken(machine, rate, asleep, start_s, 0.0)
    at_least = np.minimum(_woken(machine, rate, asleep, start_s, _longest_wait_s(machine, rate)), freely)
    if not start_s.any():
        return Wakes(per_s=freely, start=np.zeros_like(rate), least_start=np.zeros_like(rate))
    rows = machine.rows
    per_s, least = freely.copy(), at_least
    rest = rows.capacity.copy()
    for threads in machine.levels:
        here = np.zeros(rows.threads + 1)
        here[threads] = work[threads]
        wanted = np.zeros(rows.threads + 1)
        wanted[threads] = (freely * start_s)[threads]
        if len(rows.rows):
            room = rest - (rows.at_once * here[rows.member]).sum(axis=1)
            asked = (rows.at_once * wanted[rows.member]).sum(axis=1)
            scale = np.clip(room / np.maximum(asked, _LEAST), 0.0, 1.0)
            lowest = np.ones(rows.threads + 1)
            np.minimum.at(lowest, rows.member, np.broadcast_to(scale[:, None], rows.member.shape))
            per_s[threads] = np.maximum((freely * lowest[:-1])[threads], least[threads])
            here[threads] += (per_s * start_s)[threads]
            rest = np.maximum(rest - (rows.at_once * here[rows.member]).sum(axis=1), 0.0)
    return Wakes(per_s=per_s, start=per_s * start_s, least_start=least * start_s)


def _woken(machine: Machine, rate: Vector, asleep: Vector, start_s: Vector, wait_s: Vector | float) -> Vector:
    """Wakes per second of a thread that waits ``wait_s`` before it starts."""
    if machine.load.arrivals.kind == "cbr":
        woken = np.minimum(rate, asleep / np.maximum(start_s + wait_s, _LEAST))
    else:
        woken = asleep / (1.0 / np.maximum(rate, _LEAST) + start_s + wait_s)
    often: Vector = np.minimum(woken, 1.0 / np.maximum(machine.moderation_s, _LEAST))
    return often


def _longest_wait_s(machine: Machine, rate: Vector) -> Vector:
    """How long a thread that woke may wait for its unit: until it may revoke another, or its queues are full."""
    room = np.bincount(machine.thread, weights=machine.queue_frames, minlength=len(machine.threads) + 1)[:-1]
    longest = np.minimum(room / np.maximum(rate, _LEAST), machine.granularity_s)
    wait_s: Vector = np.where(machine.shares_units, longest, 0.0)
    return wait_s


def _switch_s(machine: Machine, wakes: Vector, work: Vector) -> Vector:
    """Mean cost of the switches that a wake brings: to the thread, and back to one of lower level that it revokes."""
    if not machine.switch_s.any() and not machine.migration_s.any():
        return np.zeros_like(wakes)
    on_unit = machine.on_unit
    turns = on_unit.T @ (on_unit @ wakes)
    own = (on_unit * on_unit).sum(axis=0) * wakes
    other = np.where(turns > 0.0, 1.0 - own / np.maximum(turns, _LEAST), 0.0)
    cost: Vector = machine.switch_s * np.clip(other, 0.0, 1.0)
    used = on_unit @ work
    full = np.clip(on_unit.T @ used, 0.0, 1.0)
    cost += machine.migration_s * machine.moves * full
    for number, threads in enumerate(machine.levels[:-1]):
        lower = np.zeros_like(work)
        for below in machine.levels[number + 1 :]:
            lower[below] = work[below]
        cost[threads] += (machine.switch_s * np.clip(on_unit.T @ (on_unit @ lower), 0.0, 1.0))[threads]
    return cost
