"""What limits a router in a trial: the fullest resource, and in windows what their frames wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from routecast.evaluate.trial import Bottleneck, Resource
from routecast.quantity import format_pps, format_ratio
from routecast.router.model import ResourcePool, RouterModel
from routecast.router.window import windows_of

__all__ = ["TIE", "bottleneck_of", "fullest_unit"]

TIE: Final = 2e-3
"""Shares of time that differ by less are the same, as far as a simulation can tell."""

_BUSY_MARGIN: Final = 0.02


def fullest_unit(
    model: RouterModel, nodes: Mapping[str, Any], used: Mapping[str, Mapping[str, float]], pool: ResourcePool
) -> tuple[int | None, float]:
    """Find the busiest unit of a pool: its number (None: any) and its utilisation.

    Where task units are pinned to one unit each, units differ; elsewhere they share the work.
    """
    pinned: dict[int, float] = {}
    for task in model.tasks:
        if task.needs and task.needs[0].pool == pool.name and len(task.pin) == 1:
            pinned[task.pin[0]] = pinned.get(task.pin[0], 0.0) + nodes[task.name]["working_units"]
    mean = sum(used[pool.name].values()) / pool.units
    unit = max(pinned, key=lambda one: pinned[one], default=None)
    if unit is None or pinned[unit] <= mean * (1.0 + TIE):
        return None, mean
    return unit, pinned[unit]


def bottleneck_of(
    resources: Sequence[Resource],
    drops_pps: Mapping[str, float],
    offered_pps: float,
    model: RouterModel,
    nodes: Mapping[str, Any],
    used: Mapping[str, Mapping[str, float]],
    down: set[str],
) -> Bottleneck:
    """Return the resource that limits, or would limit first; or the place where too few frames may wait.

    Parameters
    ----------
    resources : sequence of Resource
        The least margin first.
    drops_pps : mapping
        Frames lost per second, by task unit or link.
    offered_pps : float
        What comes in. Where every resource could carry that and frames are dropped, a queue limits.
    model : RouterModel
    nodes : mapping
        What the core says of each task unit and link.
    used : mapping
        Units in use, by pool and task unit.
    down : set of str
        Task units that were down for a while.
    """
    if not resources:
        return Bottleneck(name="load", kind="load", reason="nothing was busy")
    first = resources[0]
    held = {task.name: (task.thread, task.needs[0].pool) for task in model.tasks if task.needs}
    lost = ""
    # What is lost because it came to something that is down says nothing about what limits.
    elsewhere = " but where something was down" if down & set(drops_pps) else ""
    drops_pps = {place: rate for place, rate in drops_pps.items() if place not in down}
    if drops_pps:
        place = max(drops_pps, key=lambda name: drops_pps[name])
        lost = f'; "{place}" drops {format_pps(drops_pps[place])}'
        # Where frames are dropped, the resource that the place waits for limits, if it is as full as any.
        for one in resources:
            if one.name in (place, *held.get(place, ())) and one.margin_ratio <= _BUSY_MARGIN:
                first = one
                break
    first, busiest = _cause(first, resources, model)
    busy, share = _busy(first, busiest, model, nodes, used)
    if lost and share < 1.0 - _BUSY_MARGIN and first.capacity_pps >= offered_pps:
        return Bottleneck(
            name=place,
            kind="task" if any(task.name == place for task in model.tasks) else "link",
            reason=f"limits: it drops {format_pps(drops_pps[place])}, for too few frames may wait there; "
            f"{first.name}, the fullest, carries more than comes: {busy}",
        )
    if lost or share >= 1.0 - _BUSY_MARGIN:
        return Bottleneck(name=first.name, kind=first.kind, reason=f"limits: {busy}{lost}")
    return Bottleneck(
        name=first.name,
        kind=first.kind,
        reason=f"would limit first: {busy}, and nothing is dropped{elsewhere}",
    )


def _busy(
    first: Resource,
    busiest: Resource | None,
    model: RouterModel,
    nodes: Mapping[str, Any],
    used: Mapping[str, Mapping[str, float]],
) -> tuple[str, float]:
    """Say how busy a resource is, and return the share."""
    share = first.utilisation_ratio
    if any(window.pool == first.name for window in windows_of(model)) and first.kind == "pool":
        units = model.pool(first.name).units
        all_of = f"all its {units} units are" if units > 1 else "its unit is"
        inside = (
            f', while "{busiest.name}", the busiest that these frames wait for, is busy '
            f"{format_ratio(busiest.utilisation_ratio)}"
            if busiest is not None
            else ""
        )
        return f"{all_of} in the hands of frames {format_ratio(share)} of the time{inside}", share
    who = "it"
    if first.kind == "pool":
        unit, share = fullest_unit(model, nodes, used, model.pool(first.name))
        who = "it" if unit is None else f"unit {unit}"
    return f"{who} is busy {format_ratio(share)} of the time", share


def _cause(
    first: Resource, resources: Sequence[Resource], model: RouterModel
) -> tuple[Resource, Resource | None]:
    """Find why a window is full: a resource inside that is as full, else the window, for its frames wait for latencies.

    Returns that resource, and for a window the fullest one inside. What is no window is its own cause.
    """
    windows = [window for window in windows_of(model) if window.pool == first.name and first.kind == "pool"]
    if not windows:
        return first, None
    inside = {name for window in windows for name in window.inside}
    tasks = [task for task in model.tasks if task.name in inside]
    waited_for = {need.pool for task in tasks for need in task.needs} | {task.thread for task in tasks}
    others = [
        one
        for one in resources
        if one is not first and (one.name in waited_for or (one.kind == "task" and one.name in inside))
    ]
    busiest = others[0] if others else None
    if busiest is not None and busiest.margin_ratio <= _BUSY_MARGIN + first.margin_ratio:
        return _cause(busiest, resources, model)
    return first, busiest
