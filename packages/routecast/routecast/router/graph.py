"""The task graph: cycles, reachable task units, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from routecast.router.parts import TaskUnit

if TYPE_CHECKING:
    from routecast.router.model import RouterModel


__all__ = ["find_cycle", "reachable_tasks", "topological_order"]


def find_cycle(tasks: Sequence[TaskUnit]) -> tuple[str, ...]:
    """Return the names along a cycle of the task graph, without repeating the first; empty without a cycle."""
    following = _following(tasks)
    done: set[str] = set()
    for start in tuple(following):
        if start in done:
            continue
        path: list[str] = [start]
        on_path = {start}
        pending = [iter(following[start])]
        while pending:
            name = next(pending[-1], None)
            if name is None:
                pending.pop()
                finished = path.pop()
                on_path.discard(finished)
                done.add(finished)
            elif name in on_path:
                return tuple(path[path.index(name) :])
            elif name not in done:
                path.append(name)
                on_path.add(name)
                pending.append(iter(following[name]))
    return ()


def reachable_tasks(model: RouterModel) -> set[str]:
    """Return the names of the task units that frames of some port, or copies of them, can reach."""
    following = _following(model.tasks, copies=True)
    reached: set[str] = set()
    pending = [port.entry for port in model.ports if port.entry in following]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(following[name])
    return reached


def _following(tasks: Sequence[TaskUnit], *, copies: bool = False) -> dict[str, tuple[str, ...]]:
    """Return the task units that each task unit leads to; equal lists of targets are filtered once."""
    names = {task.name for task in tasks}
    filtered: dict[tuple[str, ...], tuple[str, ...]] = {}
    following = {}
    for task in tasks:
        to = task.route.to + task.route.copies if copies else task.route.to
        if to not in filtered:
            filtered[to] = tuple(name for name in to if name in names)
        following[task.name] = filtered[to]
    return following


def topological_order(tasks: Sequence[TaskUnit]) -> tuple[TaskUnit, ...]:
    """Return the task units in an order where every route leads forward; the graph must have no cycle."""
    named = {task.name: task for task in tasks}
    incoming = dict.fromkeys(named, 0)
    for task in tasks:
        for to in set(task.route.to):
            if to in incoming:
                incoming[to] += 1
    ready = [name for name, count in reversed(incoming.items()) if count == 0]
    order: list[TaskUnit] = []
    while ready:
        task = named[ready.pop()]
        order.append(task)
        for to in reversed(dict.fromkeys(task.route.to)):
            if to in incoming:
                incoming[to] -= 1
                if incoming[to] == 0:
                    ready.append(to)
    return tuple(order)
