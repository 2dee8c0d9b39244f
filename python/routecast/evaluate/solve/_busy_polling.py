"""Polling threads that share a unit: each takes its turns, with or without work, and its rings fill in between.

A polling thread never blocks, so under Linux's fair scheduler ``n`` of them on one unit get ``1/n`` of it each, in
turns of a quantum q. A thread of the share f is away for ``T = q·max(1, (1 - f)/f)`` at a time (equal weights: for the
quanta of all the others), once in ``T/(1 - f)``. While it is away only its ring of K frames takes what comes. So of
frames that come at the rate λ, a part ``a`` of them while it is away, it serves at most ``λ·(1 - a) + K·(1 - f)/T``,
and loses none up to ``K·(1 - f)/(a·T)``: with ``a = 1 - f``, where frames come at any time, up to ``K/T``.

Frames that come only from threads that spin on the same unit come while it is away (``a = 1``), those of its own thread
never do. Those that went through other threads with turns come in bursts; as the phases of their turns are unknown,
they are taken to come while it is away too, which is the worst case.

Two things are left out: bursts that a thread sends on in its turn may overflow the next ring even if that one's thread
is never away, and whose frames a ring takes depends on the order of the turns. Turns must be long against the time for
a frame.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve.flow import FlowGraph, Vector
from routecast.quantity.schema import field, value

Index = NDArray[np.intp]
_TINY = 1e-300
_EVEN = 1e-9


@value
class Upstream:
    """The threads through which frames pass before a node."""

    own_only: NDArray[np.bool_] = field("By node: whether all its frames come directly from its own thread")
    # Whether some frames went through another thread at any time before, shape (nodes, threads).
    threads_before: NDArray[np.bool_]


def upstream_of(graph: FlowGraph, position: Index, thread_of: Index, threads: int) -> Upstream:
    """Return the threads before each node, along the edges of the task graph from the ports on."""
    nodes = len(position)
    order = np.argsort(position)
    threads_before = np.zeros((nodes, threads + 1), dtype=bool)
    direct: Mapping[int, set[int]] = {node: set() for node in range(nodes)}
    for port in set(map(int, graph.ingress)):
        direct[int(position[graph.entry[port]])].add(-1)
    # Places are in an order in which frames go only onwards.
    for position_here, number in enumerate(map(int, order)):
        if number >= len(graph.edges):
            continue
        own_thread = int(thread_of[position_here])
        for node, _ in graph.edges[number]:
            position_after = int(position[node])
            threads_before[position_after] |= threads_before[position_here]
            threads_before[position_after, own_thread] = True
            # A node that costs no thread time hands on at once.
            direct[position_after] |= {own_thread} if own_thread < threads else direct[position_here]
    own_only = np.array([direct[node] == {int(thread_of[node])} for node in range(nodes)])
    threads_before[np.arange(nodes), thread_of] = False
    return Upstream(own_only=own_only, threads_before=threads_before[:, :threads])


def away_s(
    spins: NDArray[np.bool_],
    rivals: NDArray[np.bool_],
    quantum_s: Vector,
    share: Vector,
    greedy: NDArray[np.bool_],
    drain_s: Vector,
) -> Vector:
    """Return for how long at a time each polling thread is off its unit, s; 0 where it does not share the unit.

    ``spins`` and ``greedy``: by thread: never blocks; wants more than it gets; ``rivals``: whether two threads may use
    the same unit, shape (threads, threads); ``share``: of the unit that each has; ``drain_s``: how long a thread works
    until its rings are empty: it blocks then.
    """
    turn_s = np.where(spins, quantum_s, np.where(greedy, np.minimum(quantum_s, drain_s), 0.0))
    longest_turn_s = np.zeros_like(turn_s)
    for length_s in np.unique(turn_s[turn_s > 0.0]):  # a few, in rising order
        longest_turn_s[rivals[:, turn_s == length_s].any(axis=1)] = length_s
    scale = np.maximum(1.0, (1.0 - share) / np.maximum(share, _TINY))
    away: Vector = np.where(spins & (share < 1.0 - _EVEN) & (longest_turn_s > 0.0), longest_turn_s * scale, 0.0)
    return away


def kept_pps(
    upstream: Upstream, thread: Index, away: Vector, share: Vector, arriving: Vector, queue_frames: Vector
) -> Vector:
    """Return the rate of the frames that are queued or served on arrival, by node, frames/s; infinite without turns.

    ``thread``: by node; ``away`` and ``share``: by thread: time away at a stretch, part of a unit.
    """
    thread_away_s = np.append(away, 0.0)[thread]
    thread_share = np.append(share, 1.0)[thread]
    is_bursty = (upstream.threads_before & (away > 0.0)).any(axis=1)
    away_arrivals_ratio = np.where(upstream.own_only, 0.0, np.where(is_bursty, 1.0, 1.0 - thread_share))
    ring_pps = queue_frames * (1.0 - thread_share) / np.maximum(thread_away_s, _TINY)
    kept: Vector = np.where(thread_away_s > 0.0, arriving * (1.0 - away_arrivals_ratio) + ring_pps, np.inf)
    return kept
