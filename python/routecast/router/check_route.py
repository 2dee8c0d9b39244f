"""Whether a route of a task unit makes sense: its own, or one that it gets during a trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self, get_args

from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.model import Route, RouteKind, RouterModel

__all__ = ["INDIRECTION_ENTRIES", "Targets", "check_route"]

INDIRECTION_ENTRIES: Final = 128
"""Length of an RSS indirection table."""

_KINDS: Final = get_args(RouteKind)
Add = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What the routes of a model may lead to, by name and in order: made once, looked up for every route.

    Parameters
    ----------
    tasks, ports, both : mapping of str to None
    port_count : int
        Ports, those of one name too.
    """

    tasks: Mapping[str, None]
    ports: Mapping[str, None]
    both: Mapping[str, None]
    port_count: int

    @classmethod
    def of(cls, model: RouterModel) -> Self:
        """Return the names of a model's task units and ports."""
        tasks = dict.fromkeys(task.name for task in model.tasks)
        ports = dict.fromkeys(port.name for port in model.ports)
        return cls(tasks=tasks, ports=ports, both=tasks | ports, port_count=len(model.ports))


def check_route(place: str, route: Route, targets: Targets, add: Add) -> None:
    """Report targets, weights, table entries and copies of a route that cannot be."""
    if route.kind not in _KINDS:
        add(f"{place}.kind", f'got "{route.kind}": {did_you_mean(str(route.kind), _KINDS)}')
        return
    _check_copies(place, route, targets, add)
    known = targets.ports if route.kind == "egress" else targets.both
    for index, name in enumerate(route.to):
        if name in known:
            continue
        if name in targets.tasks:
            add(
                f"{place}.to[{index}]",
                f'"{name}" is a task unit: an egress route leads to ports, {did_you_mean("", known)}',
            )
        else:
            add(
                f"{place}.to[{index}]", f'"{name}" is neither task unit nor port: {did_you_mean(name, known)}'
            )
    if route.kind == "single" and len(route.to) > 1:
        add(
            f"{place}.to", f"has {len(route.to)} targets: kind single has one; use rss, round_robin or random"
        )
    if route.kind != "single" and not route.to:
        add(f"{place}.to", f"is empty: kind {route.kind} needs targets to choose from")
    elif route.kind == "by_egress" and len(route.to) != targets.port_count:
        add(
            f"{place}.to",
            f"has {len(route.to)} targets for {targets.port_count} ports: by_egress needs one for each port",
        )
    if route.kind == "random":
        if len(route.weights) != len(route.to):
            add(
                f"{place}.weights",
                f"has {len(route.weights)} entries for {len(route.to)} targets: give one for each",
            )
        for index, weight in enumerate(route.weights):
            if not (math.isfinite(weight) and weight >= 0.0):
                add(f"{place}.weights[{index}]", f"got {weight}: allowed is a finite number >= 0")
        if route.weights and all(weight == 0.0 for weight in route.weights):
            add(f"{place}.weights", "are all 0: at least one target needs a chance")
    elif route.weights:
        add(f"{place}.weights", f"are given, but kind {route.kind} does not use them: only random does")
    if route.indirection and route.kind != "rss":
        add(f"{place}.indirection", f"is given, but kind {route.kind} does not use it: only rss does")
    elif route.indirection:
        if len(route.indirection) != INDIRECTION_ENTRIES:
            add(
                f"{place}.indirection", f"has {len(route.indirection)} entries: RSS has {INDIRECTION_ENTRIES}"
            )
        for index, entry in enumerate(route.indirection):
            if not isinstance(entry, int) or not 0 <= entry < max(len(route.to), 1):
                add(
                    f"{place}.indirection[{index}]",
                    f"got {entry}: there are {len(route.to)} targets, numbered from 0",
                )
                break


def _check_copies(place: str, route: Route, targets: Targets, add: Add) -> None:
    named: set[str] = set()
    for index, name in enumerate(route.copies):
        at = f"{place}.copies[{index}]"
        if name in targets.ports:
            add(at, f'"{name}" is a port: copies go to task units and end there; name task units')
        elif name not in targets.tasks:
            add(at, f'"{name}" is no task unit: {did_you_mean(name, targets.tasks)}')
        elif name in named:
            add(at, f'"{name}" is named twice: a task unit gets one copy of a frame')
        named.add(name)
