"""Recorded frames at polling threads that have their units to themselves: poll by poll.

A thread that polls several queues takes up to ``budget`` frames of the first queue in its turn that has any, serves
them one after the other, and turns to the next queue; where none has any it spins and serves what comes at once. So
nothing but the frames decides when each is served. Frames may come back to the thread that served them before
(a vSwitch on the way in and out), so all threads are followed together, in the order of time::

    queue a ─┐
    queue b ─┼─► thread on a unit of its own ──► queue c ──► another thread ─┐
    queue d ─┘                                                              │
       ▲────────────────────────────────────────────────────────────────────┘

Ends of polls come before arrivals of the same instant, further down the graph first, and arrivals in the order of their
numbers (S3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from routecast.evaluate.solve._recording import Numbers
from routecast.evaluate.solve._scheduling_shares import served_at_once
from routecast.evaluate.solve.fluid import Fluid

__all__ = ["Served", "Turns", "turns_of"]

_MAX_FRAMES = 1 << 18
"""Longer traces are only bounded: a frame takes some 20 us to follow."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Task units that are followed together, which lie from ``first`` to ``last`` in the order of the graph.

    ``threads``: members of each thread in the order of their turns.
    """

    first: int
    last: int
    threads: tuple[tuple[int, ...], ...]

    def __contains__(self, index: int) -> bool:
        return self.first <= index <= self.last


@dataclass(slots=True)
class Served:
    """What became of the frames at a task unit: number, arrival, start and end of service; arrivals without room."""

    frames: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    lost_at: list[int] = field(default_factory=list)


def turns_of(fluid: Fluid, frames: int) -> Turns | None:
    """Return the polling threads with several queues and the task units between them; None if they do not suffice.

    ``frames``: length of the trace.
    """
    threads: dict[str, list[int]] = {}
    for index, task in enumerate(fluid.graph.tasks):
        threads.setdefault(task.thread or task.name, []).append(index)
    polled = [index for members in threads.values() if len(members) > 1 for index in members]
    if not polled or fluid.windows is not None or frames > _MAX_FRAMES:
        return None
    first, last = min(polled), max(polled)
    followed: list[tuple[int, ...]] = []
    for members in threads.values():
        inside = [index for index in members if first <= index <= last]
        if not inside or all(_is_passed_at_once(fluid, index) for index in inside):
            continue
        if not all(_is_alone(fluid, index, members) for index in members):
            return None
        followed.append(tuple(sorted(members, key=lambda index: fluid.graph.order[index])))
    for index in range(first, last + 1):
        if any(((share > 0.0) & (share < 1.0)).any() for _, share in fluid.graph.edges[index]):
            return None
    return Turns(first, last, tuple(followed))


def _is_passed_at_once(fluid: Fluid, index: int) -> bool:
    task = fluid.graph.tasks[index]
    return not task.needs and fluid.costs[index].busy_s <= 0.0 and task.activation.kind == "dedicated"


def _is_alone(fluid: Fluid, index: int, members: Sequence[int]) -> bool:
    """Whether the frames alone decide when a task unit serves each, given its thread's members."""
    task, cost, uses = fluid.graph.tasks[index], fluid.costs[index], fluid.uses[index]
    if task.activation.kind not in {"polling", "dedicated"} or (len(members) > 1 and task.activation.kind != "polling"):
        return False
    if task.holds_back or task.route.copies or task.queue_frames < 1 or len(task.needs) > 1:
        return False
    if task.service.squared_cv > 0.0 or cost.batch_s > 0.0 or cost.sleep_states or cost.scatter_s > 0.0:
        return False
    if not uses:
        return task.parallel == 1
    part, units = uses[0]
    pool = part.pool
    is_plain = pool.contention.is_none and pool.interruptions is None
    pays = task.activation.kind == "dedicated" and pool.switch_cost_s + pool.migration_cost_s > 0.0
    are_alone = {member for member, _ in part.members} <= set(members)
    return is_plain and not pays and are_alone and served_at_once(task, len(part.units) // units) == 1


def serve_in_turns(
    turns: Turns,
    fluid: Fluid,
    arrivals: Sequence[tuple[int, int, int]],
    flow: Numbers,
    work_ps: Mapping[int, Sequence[int]],
    place_of: Sequence[int],
    stream_of_flow: Numbers,
) -> tuple[dict[int, Served], dict[int, list[int]], dict[int, int]]:
    """Return what became of the frames at each task unit, the frames that reach each later node, and when they do.

    ``arrivals``: instant, frame, node; ``flow``: flow of each frame; ``work_ps``: by task unit, service of each frame
    size; ``place_of``: by frame, the place of its size.
    """
    next_of = _next_nodes(turns, fluid, stream_of_flow)
    flows = flow.tolist()
    served = {index: Served() for members in turns.threads for index in members}
    thread_of = {index: number for number, members in enumerate(turns.threads) for index in members}
    queues: dict[int, deque[tuple[int, int]]] = {index: deque() for index in served}
    left: dict[int, list[int]] = {}
    left_at: dict[int, int] = {}
    turn, is_idle = [0] * len(turns.threads), [True] * len(turns.threads)
    # Instant, kind (-1: frame of the same thread, 0: end of a poll, 1: other frame), frame or order, node or thread.
    coming: list[tuple[int, int, int, int]] = []
    pending: list[tuple[int, int, int, int]] = []

    def poll(thread: int, now: int) -> None:
        members = turns.threads[thread]
        for place in (*range(turn[thread], len(members)), *range(turn[thread])):
            index = members[place]
            queue = queues[index]
            if queue:
                break
        else:
            is_idle[thread] = True
            return
        turn[thread], is_idle[thread] = (place + 1) % len(members), False
        part, work, way = served[index], work_ps[index], next_of[index]
        for _ in range(min(max(fluid.graph.tasks[index].batch_frames, 1), len(queue))):
            at, frame = queue.popleft()
            end = now + work[place_of[frame]]
            part.frames.append(frame)
            part.at.append(at)
            part.starts.append(now)
            part.ends.append(end)
            now, following = end, way[flows[frame]]
            if following in queues:
                heappush(pending, (end, -1 if following in members else 1, frame, following))
            else:
                left.setdefault(following, []).append(frame)
                left_at[frame] = end
        heappush(pending, (now, 0, -index, thread))

    for at, frame, node in arrivals:
        first = node if node in queues else next_of[node][flows[frame]]
        if first in queues:
            coming.append((at, 1, frame, first))
        else:
            left.setdefault(first, []).append(frame)
            left_at[frame] = at
    coming.sort(reverse=True)
    while coming or pending:
        is_inside = not coming or (pending and pending[0] < coming[-1])
        now, kind, frame, place = heappop(pending) if is_inside else coming.pop()
        if not kind:
            poll(place, now)
            continue
        queue = queues[place]
        if len(queue) >= fluid.graph.tasks[place].queue_frames:
            served[place].lost_at.append(now)
            continue
        queue.append((now, frame))
        thread = thread_of[place]
        if is_idle[thread]:
            turn[thread] = turns.threads[thread].index(place)
            poll(thread, now)
    return served, left, left_at


def _next_nodes(turns: Turns, fluid: Fluid, stream_of_flow: Numbers) -> dict[int, list[int]]:
    """Return by task unit where the frames of each flow wait or leave next, past those that serve them at once."""
    following: dict[int, Numbers] = {}
    stops = {index for members in turns.threads for index in members}
    for index in range(turns.last, turns.first - 1, -1):
        nodes = np.full(len(stream_of_flow), fluid.graph.exit)
        for node, share in fluid.graph.edges[index]:
            reached = share[stream_of_flow] > 0.0
            nodes[reached] = following[node][reached] if node in turns and node not in stops else node
        following[index] = nodes
    return {index: nodes.tolist() for index, nodes in following.items()}
