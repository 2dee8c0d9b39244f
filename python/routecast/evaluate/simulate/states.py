"""What the units of each pool and each task unit did, from the compiled core's outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from routecast.evaluate.energy import UnitStates
from routecast.evaluate.trial import TaskActivity
from routecast.router.model import RouterModel, TaskUnit

__all__ = ["activity_of", "states_of", "used_units"]


def used_units(
    model: RouterModel, nodes: Mapping[str, Any], pools: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, float]]:
    """Units of each pool in use, on average, by task unit that they work for.

    Units that frames carry on (windows) are in use as long as a frame has them; they stand under the name of the pool.
    """
    used: dict[str, dict[str, float]] = {pool.name: {} for pool in model.pools}
    for task in model.tasks:
        for need in task.needs:
            if not need.until:
                used[need.pool][task.name] = nodes[task.name]["working_units"] * need.units
    for pool, outcome in zip(model.pools, pools, strict=True):
        if held := outcome.get("held_units", 0.0):
            used[pool.name][pool.name] = held
    return used


def states_of(
    model: RouterModel, nodes: Mapping[str, Any], pools: Sequence[Mapping[str, Any]]
) -> list[UnitStates]:
    """Return how many units of each pool were in which state, on average after the transient."""
    states = []
    used = used_units(model, nodes, pools)
    for pool, rest in zip(model.pools, pools, strict=True):
        working = math.fsum(used[pool.name].values())
        spinning = math.fsum(
            _spinning(model, task, nodes[task.name]) * need.units
            for task in model.tasks
            for need in task.needs
            if need.pool == pool.name
        )
        states.append(
            UnitStates(
                pool=pool,
                active_units=min(working + spinning, pool.units),
                asleep_units=tuple(rest["asleep_units"]),
                waking_units=rest["waking_units"],
                wakes_per_s=tuple(rest["wakes_per_s"]),
            )
        )
    return states


def activity_of(model: RouterModel, nodes: Mapping[str, Any]) -> tuple[TaskActivity, ...]:
    """Return what each task unit did; polls are counted where events run them: batches, and after interrupts."""
    return tuple(
        TaskActivity(
            name=task.name,
            busy_ratio=min(nodes[task.name]["working_units"] / _grants(task, model), 1.0),
            interrupts_per_s=nodes[task.name]["interrupts_per_s"],
            polls_per_s=nodes[task.name]["polls_per_s"] if _polls_in_batches(task) else math.nan,
            copies_per_s=nodes[task.name]["copied_pps"],
            copies_lost_per_s=nodes[task.name]["copies_lost_pps"],
        )
        for task in model.tasks
    )


def _polls_in_batches(task: TaskUnit) -> bool:
    kind = task.activation.kind
    return kind in {"interrupt", "thread"} or (
        kind == "polling" and (task.batch_frames > 1 or bool(task.thread))
    )


def _spinning(model: RouterModel, task: TaskUnit, node: Mapping[str, Any]) -> float:
    """Grants held without work. Where units are never revoked, a polling task unit holds its own for good."""
    revoked = any(model.pool(need.pool).policy.kind not in {"fifo", "priority"} for need in task.needs)
    if task.activation.kind == "polling" and not task.thread and not (node["by_events"] and revoked):
        return max(task.parallel - float(node["working_units"]), 0.0)
    return float(node["spinning_units"])


def _grants(task: TaskUnit, model: RouterModel) -> int:
    """Grants that a task unit may have at once."""
    if task.request == "frame" and task.needs:
        return len(task.pin) or model.pool(task.needs[0].pool).units
    return task.parallel
