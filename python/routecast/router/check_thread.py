"""Whether task units that poll, share a thread, sleep as threads or hold frames back contradict themselves."""

from __future__ import annotations

from collections.abc import Callable

from routecast.router.model import RouterModel, TaskUnit

__all__ = ["check_polling", "check_threads"]

_BY_TURN = {"round_robin", "random"}
_KINDS = {"thread", "polling"}


def check_threads(model: RouterModel, add: Callable[[str, str], None]) -> None:
    """Report what is wrong with the threads of a model, through ``add(place, message)``."""
    leaders: dict[str, TaskUnit] = {}
    linux = {pool.name for pool in model.pools if pool.policy.kind == "linux"}
    for index, task in enumerate(model.tasks):
        _check_alone(f"task[{index}]", task, add)
        if task.priority < 0 and any(need.pool in linux for need in task.needs):
            add(
                f"task[{index}].priority",
                f"got {task.priority}: under linux 0 is the fair share and more is real time; use the weight",
            )
        if task.thread:
            _check_together(f"task[{index}]", task, leaders.setdefault(task.thread, task), add)


def check_polling(model: RouterModel, add: Callable[[str, str], None]) -> None:
    """Report pools whose units polling task units hold for good, so that others never get one.

    Under ``linux`` nothing is held for good: even a thread that spins is cut off when its slice is over.
    """
    held_units = {pool.name: 0 for pool in model.pools if pool.policy.kind != "linux"}
    waiting: dict[str, str] = {}
    threads: set[tuple[str, str]] = set()
    for task in model.tasks:
        needed_units: dict[str, int] = {}
        for need in task.needs:
            if need.pool in held_units:
                needed_units[need.pool] = needed_units.get(need.pool, 0) + need.units
        for pool_name, units in needed_units.items():
            if units and task.activation.kind == "polling":
                # Task units of one thread hold the same units.
                if (pool_name, task.thread) not in threads:
                    held_units[pool_name] += units * task.parallel
                if task.thread:
                    threads.add((pool_name, task.thread))
            elif units:
                waiting.setdefault(pool_name, task.name)
    for index, pool in enumerate(model.pools):
        if pool.policy.kind == "linux":
            continue
        held = held_units[pool.name]
        if held > pool.units:
            add(
                f"pool[{index}].units",
                f'polling task units hold {held} units, but "{pool.name}" has {pool.units}',
            )
        elif pool.name in waiting and held == pool.units:
            add(
                f"pool[{index}].units",
                f'polling task units hold all {held}, so "{waiting[pool.name]}" never gets one',
            )


def _check_alone(place: str, task: TaskUnit, add: Callable[[str, str], None]) -> None:
    kind = task.activation.kind
    is_thread = kind == "thread" or bool(task.thread)
    what = "a thread" if is_thread else "one that holds back"
    if (is_thread or task.holds_back) and task.parallel != 1:
        add(
            f"{place}.parallel",
            f"got {task.parallel}: {what} serves one frame at a time; give several task units",
        )
    if (is_thread or task.holds_back) and task.request != "task":
        add(f"{place}.request", f"is {task.request}: {what} asks for its units itself; leave it out")
    if task.thread and kind not in _KINDS:
        add(
            f"{place}.activation.kind",
            f'is {kind}, but task units that share a thread ("{task.thread}") are thread or polling',
        )
    elif task.holds_back and kind not in _KINDS:
        add(
            f"{place}.activation.kind",
            f"is {kind}, but only task units that are thread or polling can wait for room and hold frames back",
        )
    if kind == "thread" and task.batch_frames != 1:
        add(
            f"{place}.batch_frames",
            f"got {task.batch_frames}: a thread takes batches of its budget_frames; leave it out",
        )
    if task.holds_back and task.route.kind in _BY_TURN and len(task.route.to) > 1:
        add(
            f"{place}.route.kind",
            f"is {task.route.kind}, but a task unit that holds back must know where the next frame goes before it "
            "takes it: use a route that the flow decides",
        )
    if task.holds_back and not task.route.to:
        add(
            f"{place}.holds_back",
            "is true, but frames leave the router here, where there is always room: leave it out",
        )


def _check_together(place: str, task: TaskUnit, leader: TaskUnit, add: Callable[[str, str], None]) -> None:
    kind = task.activation.kind
    pairs = (
        ("needs", task.needs, leader.needs),
        ("pin", task.pin, leader.pin),
        ("priority", task.priority, leader.priority),
        ("weight", task.weight, leader.weight),
        *([("activation.kind", kind, leader.activation.kind)] if kind in _KINDS else []),
    )
    for name, own, theirs in pairs:
        if own != theirs:
            add(
                f"{place}.{name}",
                f'differs from that of "{leader.name}", but both are thread "{task.thread}": give them the same',
            )
