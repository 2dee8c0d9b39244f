"""Polling threads that share a unit: each takes its turns, with or without work, and its rings fill between turns.

A polling thread never blocks, so under Linux's fair scheduler ``n`` of them on one unit get ``1/n`` of it each, in
turns of a quantum q. A thread of the share f is away for ``T = q·max(1, (1 - f)/f)`` at a time (equal weights: for the
quanta of all the others), once in ``T/(1 - f)``. While it is away, only its ring of K frames takes arriving frames. So
if frames arrive at the rate λ, a part ``a`` of them while the thread is away, it serves at most
``λ·(1 - a) + K·(1 - f)/T`` and loses none up to ``K·(1 - f)/(a·T)``. Where frames arrive at any time, ``a = 1 - f`` and
the limit is ``K/T``.

Frames that arrive only from threads that poll on the same unit arrive while the thread is away (``a = 1``); frames from
its own task units never do. Frames that went through other threads with turns arrive in bursts. As the phases of these
turns are unknown, all of them count as arriving while the thread is away, which is the worst case.

The module leaves out two effects: bursts that a thread sends in its turn may overflow the next ring even if the thread
behind that ring is never away, and the order of the turns decides whose frames a ring takes. Turns must be long against
the service time of a frame.
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
    """The threads that frames pass through before each node."""

    own_only: NDArray[np.bool_] = field("By node: whether all its frames come directly from its own thread")
    # Whether some frames went through another thread before the node, shape (nodes, threads).
    threads_before: NDArray[np.bool_]


def upstream_of(graph: FlowGraph, position: Index, thread_of: Index, threads: int) -> Upstream:
    """Return the threads before each node, along the edges of the task graph from the ports on."""
    nodes = len(position)
    order = np.argsort(position)
    threads_before = np.zeros((nodes, threads + 1), dtype=bool)
    direct: Mapping[int, set[int]] = {node: set() for node in range(nodes)}
    for port in set(map(int, graph.ingress)):
        direct[int(position[graph.entry[port]])].add(-1)
    # Positions are ordered so that frames only move forward.
    for position_here, number in enumerate(map(int, order)):
        if number >= len(graph.edges):
            continue
        own_thread = int(thread_of[position_here])
        for node, _ in graph.edges[number]:
            position_after = int(position[node])
            threads_before[position_after] |= threads_before[position_here]
            threads_before[position_after, own_thread] = True
            # A node without a thread hands frames on at once.
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
    """Return the time that each polling thread is off its unit at a stretch, s; 0 where it does not share the unit.

    ``spins``: by thread: never blocks; ``rivals``: whether two threads may use the same unit, shape (threads, threads);
    ``share``: each thread's share of its unit; ``greedy``: by thread: requests more than it gets; ``drain_s``: time
    that a thread works until its rings are empty and it blocks, s.
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
    """Return the rate of frames that are queued or served on arrival, by node, frames/s; infinite without turns.

    ``thread``: thread by node; ``away``: time that each thread is away at a stretch, s; ``share``: its share of a unit.
    """
    thread_away_s = np.append(away, 0.0)[thread]
    thread_share = np.append(share, 1.0)[thread]
    is_bursty = (upstream.threads_before & (away > 0.0)).any(axis=1)
    away_arrivals_ratio = np.where(upstream.own_only, 0.0, np.where(is_bursty, 1.0, 1.0 - thread_share))
    ring_pps = queue_frames * (1.0 - thread_share) / np.maximum(thread_away_s, _TINY)
    kept: Vector = np.where(thread_away_s > 0.0, arriving * (1.0 - away_arrivals_ratio) + ring_pps, np.inf)
    return kept
