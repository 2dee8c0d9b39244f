"""Failures and planned absences of a router's elements as events of a trial.

They apply wherever a router chooses among several paths (round robin, by hash), not only at balancers: once a failure
is known, the router leaves out the paths that lead to the element that is down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import pairwise

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.router.events import Event, Outage, Reroute
from routecast.router.model import Route, RouterModel, TaskUnit

__all__ = [
    "DRAIN_S",
    "TAKEOVER_S",
    "Absence",
    "balancers",
    "elements",
    "events_of",
    "failed",
    "failover",
    "planned_absence",
    "switched",
    "tasks_of",
    "with_takeovers",
]

DRAIN_S = 10e-3
"""Time that an element that is switched off by plan has to send its queued frames.

An assumption: 1000 frames, about the total length of the queues and rings of a machine, at 100 kpps.
"""

TAKEOVER_S = 5.5 * 40e-3
"""Time until a load balancer has taken over from another, s: five calls without an answer, 40 ms apart.

That of the routers that ``routecast multistage`` makes: in the mean the first call comes half an interval after the
failure.
"""

_SEGMENT = "segment"
_CHOICES = ("round_robin", "rss", "per_flow", "random")
_THREAD = re.compile(r"(.+) (?:vcpu \d+|backend(?: \d+)?)")
_TASK = re.compile(r"(.+?) (?:(?:balance|return|forward|filter)(?: on vcpu \d+)?|(?:receive|send) \d+(?: to .+)?)")


@value
class Absence:
    """The absence of an element: when it is down, and when the others avoid it, in seconds since the trial's start."""

    element: str
    down_s: float = field("Time from which the element takes no frames")
    up_s: float = field("Time from which it takes frames again; infinite: it does not come back")
    # Later than ``down_s`` for a failure, which must be detected; earlier for an element that is switched off by plan.
    avoided_s: float = field("Time from which the other elements send it nothing")
    used_s: float = field("Time from which the other elements send to it again")


def failover(
    model: RouterModel, element: str, *, at_s: float, until_s: float = math.inf, detection_s: float
) -> tuple[Event, ...]:
    """Return the events of an element that fails; frames that others send to it before the detection are lost.

    ``detection_s`` after the failure, balancers send its frames to other elements; ``detection_s`` after its return
    they use it again. In a model of :func:`with_takeovers` another load balancer takes over the ports of a failed one.
    Where no other element is left, frames still go to it and are lost.

    Parameters
    ----------
    model : RouterModel
    element : str
        A machine (of :func:`elements`) or a task unit.
    at_s, until_s : float
        Start and end of the failure, seconds since the start of the trial.
    detection_s : float
        Time until the control plane has detected the failure and informed all balancers, s; infinite: never.

    Raises
    ------
    routecast.errors.ModelProblem
        With all problems: an unknown element, an invalid time.
    """
    return events_of(model, (failed(element, at_s=at_s, until_s=until_s, detection_s=detection_s),))


def switched(
    model: RouterModel, element: str, *, off_s: float, on_s: float = math.inf, drain_s: float = DRAIN_S
) -> tuple[Event, ...]:
    """Return the events of an element that is switched off by plan and on again without loss of frames.

    The other elements send it nothing from ``off_s`` on; it switches off ``drain_s`` later, when it has sent its
    frames. The others use it again from ``on_s`` on.

    Parameters
    ----------
    model : RouterModel
    element : str
        As for :func:`failover`.
    off_s, on_s : float
        Instants of switching off and on, seconds since the start of the trial. ``on_s`` infinite: it stays off.
    drain_s : float
        Time for which it continues to send its queued frames.

    Raises
    ------
    routecast.errors.ModelProblem
        As :func:`failover`.
    """
    return events_of(model, (planned_absence(element, off_s=off_s, on_s=on_s, drain_s=drain_s),))


def failed(element: str, *, at_s: float, until_s: float = math.inf, detection_s: float) -> Absence:
    """Return the absence of an element that fails, with the times of :func:`failover`."""
    return Absence(
        element=element, down_s=at_s, up_s=until_s, avoided_s=at_s + detection_s, used_s=until_s + detection_s
    )


def planned_absence(element: str, *, off_s: float, on_s: float = math.inf, drain_s: float = DRAIN_S) -> Absence:
    """Return the absence of an element that is switched off and on, with the times of :func:`switched`."""
    return Absence(element=element, down_s=off_s + drain_s, up_s=on_s, avoided_s=off_s, used_s=on_s)


def events_of(model: RouterModel, absences: Sequence[Absence]) -> tuple[Event, ...]:
    """Return the events of several absences together, in order of time.

    Absences of the same element must not overlap. Raises ModelProblem: as :func:`failover`.
    """
    _check(model, absences)
    outages = [
        Outage(task=task, from_s=absence.down_s, until_s=absence.up_s)
        for absence in absences
        for task in tasks_of(model, absence.element)
    ]
    instants = {absence.avoided_s for absence in absences} | {absence.used_s for absence in absences}
    reroutes: list[Reroute] = []
    takeovers = _Takeovers(model)
    now = {task.name: task.route for task in model.tasks if task.route.kind in _CHOICES or takeovers.reroutes(task)}
    for at_s in sorted(instant for instant in instants if math.isfinite(instant)):
        away = {absence.element for absence in absences if absence.avoided_s <= at_s < absence.used_s}
        avoided = {task for element in away for task in tasks_of(model, element)}
        lost = _leading_down(model, avoided)
        for task in model.tasks:
            if task.name in now and task.name not in avoided:
                takes_over = takeovers.reroutes(task)
                route = takeovers.route(task, away) if takes_over else _without(task.route, lost)
                if route != now[task.name]:
                    reroutes.append(Reroute(task=task.name, at_s=at_s, route=route))
                    now[task.name] = route
    events: list[Event] = [*outages, *reroutes]
    return tuple(sorted(events, key=lambda event: event.from_s if isinstance(event, Outage) else event.at_s))


def balancers(model: RouterModel) -> tuple[str, ...]:
    """Return the names of a multistage router's load balancers that have outer ports, in the order of the ports."""
    return tuple(dict.fromkeys(_balancers_of_ports(model).values()))


def with_takeovers(model: RouterModel) -> RouterModel:
    """Return a multistage router whose load balancers take over from each other; itself if it has not several.

    ::

        port 0 ─► port 0 segment ─► lb 1 ─►
                        └ ─ ─ ─ ─ ► lb 2 ─►      once the failure of lb 1 is detected

    Each outer port ends in a segment, which takes no time and which all load balancers share. While a load balancer is
    avoided, the next one in the order of the ports receives and sends the frames of its ports, with its own card. This
    needs the events of :func:`events_of` for this model.
    """
    owners = _balancers_of_ports(model)
    if len(set(owners.values())) < 2:
        return model
    segments = tuple(
        TaskUnit(name=f"{port.name} {_SEGMENT}", route=Route(to=(port.entry,)))
        for port in model.ports
        if port.name in owners
    )
    ports = tuple(
        replace(port, entry=f"{port.name} {_SEGMENT}") if port.name in owners else port for port in model.ports
    )
    return replace(model, tasks=(*model.tasks, *segments), ports=ports)


def _balancers_of_ports(model: RouterModel) -> dict[str, str]:
    """Return the load balancer that receives the frames of each port."""
    tasks = {task.name: task for task in model.tasks}
    with_return = {match[1] for name in tasks if (match := re.match(r"(.+) return\b", name))}
    owners = {}
    for port in model.ports:
        name = port.entry
        while name in tasks and not _element(tasks[name]) and tasks[name].route.to:
            name = tasks[name].route.to[0]
        if name in tasks and _element(tasks[name]) in with_return:
            owners[port.name] = _element(tasks[name])
    return owners


class _Takeovers:
    """The routes of a model of :func:`with_takeovers` while load balancers are away."""

    def __init__(self, model: RouterModel) -> None:
        tasks = {task.name: task for task in model.tasks}
        segments = {port.name: f"{port.name} {_SEGMENT}" for port in model.ports}
        self._entries = {segment: tasks[segment].route.to[0] for segment in segments.values() if segment in tasks}
        self._segments = [segments[port.name] for port in model.ports]
        owners = _balancers_of_ports(model) if self._entries else {}
        self._owners = [owners.get(port.name, "") for port in model.ports]

    def reroutes(self, task: TaskUnit) -> bool:
        """Return whether a takeover changes the route of a task unit."""
        return bool(self._entries) and (task.name in self._entries or task.route.kind == "by_egress")

    def route(self, task: TaskUnit, away: Set[str]) -> Route:
        """Return the route of a task unit while elements are away."""
        if task.name in self._entries:
            port = self._serving(self._segments.index(task.name), away)
            return replace(task.route, to=(self._entries[self._segments[port]],))
        serving = (self._serving(port, away) for port in range(len(task.route.to)))
        return replace(task.route, to=tuple(task.route.to[port] for port in serving))

    def _serving(self, port: int, away: Set[str]) -> int:
        """Return the port whose load balancer serves a port; the port itself if none is left."""
        order = list(dict.fromkeys(self._owners))
        first = order.index(self._owners[port])
        for name in order[first:] + order[:first]:
            if name and name not in away:
                # Each load balancer has the same number of ports, and serves each with the port at the same place.
                own = [number for number, owner in enumerate(self._owners) if owner == self._owners[port]]
                theirs = [number for number, owner in enumerate(self._owners) if owner == name]
                return theirs[own.index(port) % len(theirs)]
        return port


def elements(model: RouterModel) -> tuple[str, ...]:
    """Return the names of a router's machines, read from the names of its task units and threads."""
    return tuple(dict.fromkeys(name for name in map(_element, model.tasks) if name))


def tasks_of(model: RouterModel, element: str) -> tuple[str, ...]:
    """Return the task units of a machine's threads and, where it is physical, of its softirqs."""
    if not element:  # task units without a machine have the element ""
        return ()
    own_tasks = tuple(task.name for task in model.tasks if _element(task) == element)
    return own_tasks or tuple(task.name for task in model.tasks if task.name == element)


def _element(task: TaskUnit) -> str:
    """Return the name of a task unit's machine; '' for a wire, a card or a vSwitch."""
    for pattern, text in ((_THREAD, task.thread), (_TASK, task.name)):
        match = pattern.fullmatch(text)
        if match:
            return match.group(1)
    return ""


def _leading_down(model: RouterModel, down: Set[str]) -> set[str]:
    """Return the task units whose frames all reach a task unit that is down."""
    targets = {task.name: task.route.to for task in model.tasks}
    known = dict.fromkeys(down, True)

    def leads_down(name: str) -> bool:
        if name not in known:
            to = targets.get(name, ())
            known[name] = bool(to) and all(leads_down(target) for target in to)
        return known[name]

    return {name for name in targets if leads_down(name)}


def _without(route: Route, lost: Set[str]) -> Route:
    """Return a route without the targets in ``lost``; the route itself if it has none of them, or no others."""
    remaining = tuple(index for index, name in enumerate(route.to) if name not in lost)
    if len(remaining) in (0, len(route.to)):
        return route
    weights = tuple(route.weights[index] for index in remaining) if route.weights else ()
    to = tuple(route.to[index] for index in remaining)
    if route.indirection:
        # Entries of the remaining targets stay; entries of lost targets get the remaining targets in turn.
        place = {old: new for new, old in enumerate(remaining)}
        indirection = tuple(place.get(old, number % len(remaining)) for number, old in enumerate(route.indirection))
        return replace(route, to=to, indirection=indirection)
    return replace(route, to=to, weights=weights)


def _check(model: RouterModel, absences: Sequence[Absence]) -> None:
    problems = []
    known = elements(model)
    for absence in absences:
        if not tasks_of(model, absence.element):
            suggestion = did_you_mean(absence.element, known or [task.name for task in model.tasks])
            fault = f'"{absence.element}" is no element of the router' if absence.element.strip() else "is empty"
            problems.append(Problem("element", f"{fault}: {suggestion}"))
        first = min(absence.down_s, absence.avoided_s)
        if not (math.isfinite(first) and first >= 0.0):
            problems.append(Problem(absence.element, f"fails at {first} s: give a time from the start of the trial on"))
        if not absence.up_s > absence.down_s:
            message = f"is back at {absence.up_s:g} s, but goes down at {absence.down_s:g} s: give a later time"
            problems.append(Problem(absence.element, message))
        if math.isnan(absence.avoided_s) or absence.used_s < absence.up_s:
            problems.append(Problem(absence.element, "is used before it is back: a time to detect it is >= 0"))
    for before, after in pairwise(sorted(absences, key=lambda absence: (absence.element, absence.down_s))):
        if before.element == after.element and after.down_s < before.up_s:
            message = f"goes down at {after.down_s:g} s while it is down: one absence after the other"
            problems.append(Problem(after.element, message))
    if problems:
        raise ModelProblem(f"events of router {model.name!r}", problems)
