"""Windows: units that a frame holds over several task units (:attr:`~routecast.router.model.Need.until`).

::

    ┌───────┐   ┌─────────┐   ┌────────┐   ┌─────────┐   ┌──────┐
    │ enter │──►│ compute │──►│ memory │──►│ compute │──►│ last │──►
    └───────┘   └─────────┘   └────────┘   └─────────┘   └──────┘
        └──────── a frame has a unit of "threads" ──────────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel, TaskUnit

__all__ = ["Window", "windows_among", "windows_of"]

_Way: TypeAlias = "tuple[str, _Way | None]"


@value
class Window:
    """Units of a pool that each frame carries from one task unit to another."""

    pool: str
    units: int = field("Units that one frame carries")
    enter: str = field("The task unit that asks for them")
    until: str = field("The task unit that gives them back")
    # Task units after ``enter``, up to and with ``until``, in the order in which they are found.
    inside: tuple[str, ...]
    # It ends at a port, or at the task unit that lets frames leave the router.
    leak: tuple[str, ...] = field(
        "One way from ``enter`` on which ``until`` is missed, empty if there is none", default=()
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
    # Each name with the one before it: ways have most of their steps in common.
    start: _Way = (enter.name, None)
    pending: list[_Way] = [(to, start) for to in reversed(enter.route.to)]
    while pending:
        way = pending.pop()
        name = way[0]
        if name in inside:
            continue
        if name in tasks:
            inside[name] = None
        if name == until:
            continue
        following = tasks[name].route.to if name in tasks else ()
        pending.extend((to, way) for to in reversed(following))
        if not following and not leak:
            leak = _steps(way)
    return tuple(inside), leak


def _steps(way: _Way) -> tuple[str, ...]:
    names: list[str] = []
    step: _Way | None = way
    while step is not None:
        names.append(step[0])
        step = step[1]
    return tuple(reversed(names))
