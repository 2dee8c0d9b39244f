"""Windows: units that a frame holds over several task units (:attr:`~routecast.router.model.Need.until`).

::

    ┌───────┐   ┌─────────┐   ┌────────┐   ┌─────────┐   ┌──────┐
    │ enter │──►│ compute │──►│ memory │──►│ compute │──►│ last │──►
    └───────┘   └─────────┘   └────────┘   └─────────┘   └──────┘
        └──────── a frame has a unit of "threads" ──────────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from routecast.quantity.schema import field, value
from routecast.router.parts import TaskUnit

if TYPE_CHECKING:
    from routecast.router.model import RouterModel


__all__ = ["Window", "windows_among", "windows_of"]

_Path: TypeAlias = "tuple[str, _Path | None]"


@value
class Window:
    """Units of a pool that each frame holds from one task unit to another."""

    pool: str
    units: int = field("Units that each frame holds")
    enter: str = field("Task unit that requests the units")
    until: str = field("Task unit that releases the units")
    # Task units after ``enter`` up to and including ``until``, in the order of the search.
    inside: tuple[str, ...]
    # The path ends at a port, or at the task unit where frames leave the router.
    leak: tuple[str, ...] = field(
        "Path from ``enter`` that misses ``until``; empty if every path passes it", default=()
    )


def windows_of(model: RouterModel) -> tuple[Window, ...]:
    """Return the windows of a router, in the order of its task units."""
    return windows_among(model.tasks)


def windows_among(tasks: Sequence[TaskUnit]) -> tuple[Window, ...]:
    """Return the windows of task units whose routes may be wrong."""
    named = {task.name: task for task in tasks}
    windows = []
    for task in tasks:
        for need in task.needs:
            if need.until:
                inside, leak = _follow(task, need.until, named)
                windows.append(
                    Window(
                        pool=need.pool, units=need.units, enter=task.name, until=need.until, inside=inside, leak=leak
                    )
                )
    return tuple(windows)


def _follow(enter: TaskUnit, until: str, tasks: Mapping[str, TaskUnit]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the task units from ``enter`` to ``until``, and a path that misses ``until``."""
    leak: tuple[str, ...] = () if enter.route.to else (enter.name,)
    inside: dict[str, None] = {}
    # Each name with the name before it, because paths have most of their steps in common.
    start: _Path = (enter.name, None)
    pending: list[_Path] = [(to, start) for to in reversed(enter.route.to)]
    while pending:
        path = pending.pop()
        name = path[0]
        if name in inside:
            continue
        if name in tasks:
            inside[name] = None
        if name == until:
            continue
        following = tasks[name].route.to if name in tasks else ()
        pending.extend((to, path) for to in reversed(following))
        if not following and not leak:
            leak = _steps(path)
    return tuple(inside), leak


def _steps(path: _Path) -> tuple[str, ...]:
    names: list[str] = []
    step: _Path | None = path
    while step is not None:
        names.append(step[0])
        step = step[1]
    return tuple(reversed(names))
