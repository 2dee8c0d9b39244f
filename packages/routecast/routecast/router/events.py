"""Events of a trial: task units that fail and come back, and routes that change.

Events belong to the question, not to the model: what happens at this load during this time *if* something fails? The
simulator answers it; the closed form has no transients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.quantity import format_duration
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, field_faults, value
from routecast.router.check import (
    ROUTES_WITHOUT_FLOW,
    Add,
    Targets,
    check_route,
    check_window_paths,
    copied_window_message,
)
from routecast.router.graph import find_cycle
from routecast.router.model import Route, RouterModel, TaskUnit

__all__ = ["Event", "Outage", "Reroute", "check_events"]


@value
class Outage:
    """A task unit is down: it loses the frames that wait, are in service, or arrive until it is up again.

    These frames count as dropped at the task unit (S12). A task unit that is down requests no resources.
    """

    task: str
    from_s: float = field("Seconds since the start of the trial")
    until_s: float = field("Seconds since the start of the trial; infinite: down until its end", default=math.inf)


@value
class Reroute:
    """A task unit sends its served frames along another route from an instant on."""

    task: str
    at_s: float = field("Seconds since the start of the trial")
    route: Route = field("Route to task units and ports of the model, without a cycle")


Event = Outage | Reroute


def check_events(model: RouterModel, events: Sequence[Event], duration_s: float) -> None:
    """Check all events of a trial of a router together.

    A frame can meet the old route of one task unit and the new route of another. All routes together, even those that
    are never in force at the same time, must therefore form no cycle and lead out of no window.

    Raises ModelProblem with all faults and their places, such as ``events[2].from_s``.
    """
    problems: list[Problem] = []

    def add(place: str, message: str) -> None:
        problems.append(Problem(place, message))

    tasks = {task.name: task for task in model.tasks}
    targets = Targets.of(model)
    for index, event in enumerate(events):
        place = f"events[{index}]"
        if event.task not in tasks:
            add(f"{place}.task", f'"{event.task}" is no task unit: {did_you_mean(event.task, tasks)}')
        if isinstance(event, Outage):
            if _within(f"{place}.from_s", event.from_s, duration_s, add) and not event.until_s > event.from_s:
                began = f"the outage begins at {event.from_s:g} s"
                add(f"{place}.until_s", f"got {event.until_s:g} s, but {began}: give a later time")
            continue
        _within(f"{place}.at_s", event.at_s, duration_s, add)
        faults = field_faults(event.route, f"{place}.route")
        problems += faults
        if not faults:
            check_route(f"{place}.route", event.route, targets, add)
        holds_back = event.task in tasks and tasks[event.task].holds_back
        if holds_back and event.route.kind in ROUTES_WITHOUT_FLOW and len(event.route.to) > 1:
            add(
                f"{place}.route.kind",
                f'is {event.route.kind}, but "{event.task}" holds frames back: use a route that the flow decides',
            )
        for position, name in enumerate(event.route.copies):
            if name in tasks and any(need.until for need in tasks[name].needs):
                add(f"{place}.route.copies[{position}]", copied_window_message(name))
    all_routes = _with_all_routes(model, events)
    cycle = find_cycle(all_routes)
    if cycle:
        cycle_text = " → ".join([*cycle, cycle[0]])
        add("events", f"all routes together make a cycle: {cycle_text}; frames must only go forward")
    elif any(isinstance(event, Reroute) for event in events):
        check_window_paths(all_routes, lambda _: "events", add)
    if problems:
        raise ModelProblem(f"events of router {model.name!r}", problems)


def _within(place: str, at_s: float, duration_s: float, add: Add) -> bool:
    if math.isfinite(at_s) and 0.0 <= at_s < duration_s:
        return True
    add(place, f"got {at_s:g} s: give a time within the trial, 0 to {format_duration(duration_s)}")
    return False


def _with_all_routes(model: RouterModel, events: Sequence[Event]) -> list[TaskUnit]:
    """Return the task units with the targets of all their routes."""
    to = {task.name: list(task.route.to) for task in model.tasks}
    for event in events:
        if isinstance(event, Reroute) and event.task in to:
            to[event.task].extend(event.route.to)
    return [replace(task, route=Route(to=tuple(to[task.name]))) for task in model.tasks]
