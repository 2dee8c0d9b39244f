"""How often threads wake, and what waking and switching cost.

A thread that wakes pays its start (interrupt, notification, switch of the unit), serves what waits and comes meanwhile,
and sleeps again: one wake for a *batch*. With frames at rate λ, work rho and a start of h, a thread with units of its
own wakes ``ω = (1 - rho)/(1/λ + h)`` times a second for Poisson arrivals (M/G/1 with set-up, exact), and
``ω = min(λ, (1 - rho)/h)`` for frames at equal gaps: each frame wakes it until starts fill what work leaves.

Where threads share units, one that has used less than the one that runs revokes it and is served at once, frame by
frame; the one that has used most, and threads of which none can revoke another, wait while more comes: their starts
take no more than work of the same and more urgent levels leaves of every set of units, so batches grow with the load
(the cycle of a polling system, ``Σh/(1 - Σrho)``; Takagi, Analysis of Polling Systems, 1986), at most until a queue is
full.

These are means for pinned threads; for threads that are free to move, how often they do is a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.machine import Machine

__all__ = ["Wakes", "wakes_of"]

_LEAST = 1e-300
_EVEN = 1e-9
_SLOPE = 5.0
# Chosen: random virtual routers and the shipped examples agree with the simulator from 0.3 to 0.4, at 0 and 1 not.
_NOW_AND_THEN = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakes:
    """By thread: wakes per second, units spent on starts, and the part of that which no load makes go away."""

    per_s: Vector
    start: Vector
    least_start: Vector

    def towards(self, other: Wakes, step: float) -> Wakes:
        """Go a part of the way to what was found next."""
        return Wakes(
            per_s=self.per_s + step * (other.per_s - self.per_s),
            start=self.start + step * (other.start - self.start),
            least_start=self.least_start + step * (other.least_start - self.least_start),
        )


def wakes_of(
    machine: Machine,
    rate: Vector,
    work: Vector,
    demand: Vector,
    pressure: Vector,
    entitled: Vector,
    factor: Vector,
    before: Wakes,
) -> Wakes:
    """Return how often threads wake.

    Parameters
    ----------
    rate : array
        Frames per second that each thread serves.
    work : array
        Units that these keep busy.
    demand : array
        Units that each thread would keep busy with what comes to it.
    pressure : array
        Units that each thread would keep busy if nothing were lost or held back.
    entitled : array
        Units that each thread would get if it wanted more: as starts fill what is left of it, batches grow.
    factor : array
        Contention.
    before : Wakes
        What the last round found.
    """
    asleep = np.where(machine.polling | (demand > entitled * (1.0 + _EVEN)), 0.0, 1.0 - work / machine.most)
    asleep = np.maximum(asleep, 0.0)
    if not machine.starts_cost:
        freely = _woken(machine, rate, asleep, machine.start_s, 0.0)
        return Wakes(per_s=freely, start=np.zeros_like(rate), least_start=np.zeros_like(rate))
    busy = np.minimum(work + before.start, machine.most)
    at_once, victims = _at_once(machine, busy, demand, pressure)
    interrupted = victims.sum(axis=1)
    start_s = machine.start_s * factor + _switch_s(
        machine, before.per_s, busy, demand + before.start, interrupted
    )
    fits = np.maximum(entitled - demand, 0.0) / np.maximum(start_s, _LEAST)
    freely = np.minimum(_woken(machine, rate, asleep, start_s, 0.0), fits)
    late = np.minimum(_woken(machine, rate, asleep, start_s, _longest_wait_s(machine, rate)), freely)
    least = late + at_once * (freely - late)
    rows = machine.rows
    per_s = freely.copy()
    rest = rows.capacity.copy()
    for threads in machine.levels:
        here = np.zeros(rows.threads + 1)
        here[threads] = (work + least * start_s)[threads]
        wanted = np.zeros(rows.threads + 1)
        wanted[threads] = ((freely - least) * start_s)[threads]
        if len(rows.rows):
            room = rest - (rows.at_once * here[rows.member]).sum(axis=1)
            asked = (rows.at_once * wanted[rows.member]).sum(axis=1)
            scale = np.clip(room / np.maximum(asked, _LEAST), 0.0, 1.0)
            lowest = np.ones(rows.threads + 1)
            np.minimum.at(lowest, rows.member, np.broadcast_to(scale[:, None], rows.member.shape))
            per_s[threads] = (least + (freely - least) * lowest[:-1])[threads]
            here[threads] = (work + per_s * start_s)[threads]
            rest = np.maximum(rest - (rows.at_once * here[rows.member]).sum(axis=1), 0.0)
    # Who is interrupted pays for the switch back.
    back = machine.switch_s * (per_s @ victims)
    return Wakes(per_s=per_s, start=per_s * start_s + back, least_start=least * start_s + back)


def _woken(machine: Machine, rate: Vector, asleep: Vector, start_s: Vector, wait_s: Vector | float) -> Vector:
    """Wakes per second of a thread that waits ``wait_s`` before it starts."""
    if machine.load.arrivals.kind == "cbr":
        woken = np.minimum(rate, asleep / np.maximum(start_s + wait_s, _LEAST))
        # At equal gaps whole frames come during a start.
        whole = rate / np.maximum(np.ceil(rate * start_s / np.maximum(asleep, _LEAST) - 1e-9), 1.0)
        woken = np.where(machine.fresh, np.minimum(whole, woken), woken)
    else:
        woken = asleep / (1.0 / np.maximum(rate, _LEAST) + start_s + wait_s)
    often: Vector = np.minimum(woken, 1.0 / np.maximum(machine.moderation_s, _LEAST))
    return often


def _longest_wait_s(machine: Machine, rate: Vector) -> Vector:
    """How long a thread that woke may wait for its unit before its queues are full."""
    room = machine.by(machine.queue_frames)
    wait_s: Vector = np.where(machine.shares_units, room / np.maximum(rate, _LEAST), 0.0)
    return wait_s


def _at_once(machine: Machine, busy: Vector, demand: Vector, pressure: Vector) -> tuple[Vector, Vector]:
    """Return how far each thread gets its unit as soon as it wakes, and the chance that it interrupts each other then.

    Under Linux's fair scheduler a thread that has used less than the one that runs revokes it, if half a quantum, the
    most by which it can be behind, is more than the wakeup granularity. Where work alone is more than the units carry,
    rings are full before it comes to that, and rooms, a turn at a time, set the pace; but without granularity, or where
    softirqs break the turns, threads take turns frame by frame then too.
    """
    used = np.divide(busy, machine.weight, out=np.zeros_like(busy), where=machine.fair)
    both = used[:, None] + used[None, :]
    # Continuous where two have used alike, as the fixed point needs.
    # Where a lead must be more than the granularity, two that have used alike revoke each other only now and then.
    alike = np.where(machine.granularity_s > 0.0, _NOW_AND_THEN, 1.0)[:, None]
    behind = np.clip(alike + _SLOPE * (used[None, :] - used[:, None]) / np.maximum(both, _LEAST), 0.0, 1.0)
    behind *= machine.rivals
    # One that may use several units finds one free, as a rule, that the one that has used most leaves.
    at_once = behind.max(axis=1, initial=0.0) * machine.may_revoke * (machine.pinned_to == 1.0)
    if len(machine.rows.rows) and (machine.granularity_s > 0.0).any():
        loads = machine.rows.load(pressure) / machine.rows.capacity
        fullest = np.zeros(machine.rows.threads + 1)
        np.maximum.at(
            fullest, machine.rows.member, np.broadcast_to(loads[:, None], machine.rows.member.shape)
        )
        at_once *= np.where(
            machine.calm & (machine.granularity_s > 0.0),
            np.clip(1.0 - _SLOPE * (fullest[:-1] - 1.0), 0.0, 1.0),
            1.0,
        )
    running = behind * np.minimum(demand, machine.most) / machine.pinned_to[:, None]
    running /= np.maximum(1.0 - busy, _LEAST)[:, None]
    victims = running / np.maximum(running.sum(axis=1), 1.0)[:, None] * at_once[:, None]
    return at_once, victims


def _switch_s(machine: Machine, wakes: Vector, busy: Vector, demand: Vector, interrupted: Vector) -> Vector:
    """Mean cost of the switches and moves that a wake brings: to the thread, and back to the one that it revokes."""
    if not machine.switch_s.any() and not machine.migration_s.any():
        return np.zeros_like(wakes)
    on_unit = machine.on_unit
    lower = np.zeros_like(busy)
    below = np.zeros(on_unit.shape[0])
    for threads in reversed(machine.levels):
        # Whoever is less urgent runs whenever nobody else does, if there is work for it.
        lower[threads] = (on_unit.T @ below)[threads]
        below = np.minimum(below + on_unit[:, threads] @ demand[threads], 1.0)
    lower = np.clip(lower / np.maximum(1.0 - busy, _LEAST), 0.0, 1.0)
    runs = np.maximum(lower, interrupted)
    turns = on_unit.T @ (on_unit @ np.where(machine.borrows, 0.0, wakes))
    own = (on_unit * on_unit).sum(axis=0) * wakes
    other = np.clip(np.where(turns > 0.0, 1.0 - own / np.maximum(turns, _LEAST), 0.0), 0.0, 1.0)
    taken = runs + (1.0 - runs) * other
    cost: Vector = machine.switch_s * (taken + lower) + machine.migration_s * machine.moves * taken
    return cost
