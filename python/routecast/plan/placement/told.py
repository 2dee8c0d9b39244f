"""What sharing costs and which link is fullest: the figures behind the words of an answer (thesis, sec. 3.4.1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routecast.plan.placement.classes import Classes
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.prediction import Prediction
from routecast.plan.placement.server_load import ServerLoads
from routecast.plan.placement.stages import stages_of
from routecast.plan.placement.whole import Placement
from routecast.router.model import RouterModel
from routecast.router.virtual.machines import Cores

__all__ = ["LinkUse", "Seat", "Sharing", "links_of", "seats_of", "sharing_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where an element is, and what sharing costs it.

    Parameters
    ----------
    element, server : str
    threads : mapping of str to Cores
        Cores of its threads, ``()`` for all.
    shares_server : tuple of str
        Other elements on the server.
    shares_cores : tuple of str
        Those of them that may run on a core of its own.
    carries_pps : float
        What the element itself takes when its server is full: its part of the load.
    alone_pps : float
        The same if it were alone on the server; NaN where it cannot be.
    """

    element: str
    server: str
    threads: Mapping[str, Cores]
    shares_server: tuple[str, ...]
    shares_cores: tuple[str, ...]
    carries_pps: float
    alone_pps: float

    @property
    def cost_ratio(self) -> float:
        """Part of what it would carry alone that sharing costs."""
        return 1.0 - self.carries_pps / self.alone_pps if self.alone_pps > 0.0 else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """What elements on one server cost each other.

    Parameters
    ----------
    server : str
    elements : tuple of str
    share_cores : bool
        Whether any two of them may run on the same core.
    carries_pps : float
        Load of the whole system that the server carries.
    apart_pps : float
        What it would be if each were alone on a server like it; NaN where they cannot be.
    """

    server: str
    elements: tuple[str, ...]
    share_cores: bool
    carries_pps: float
    apart_pps: float

    @property
    def cost_ratio(self) -> float:
        """Part of the load that sharing the server costs."""
        return 1.0 - self.carries_pps / self.apart_pps if self.apart_pps > 0.0 else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUse:
    """A link between servers.

    Parameters
    ----------
    name : str
    used_ratio : float
        At the load.
    capacity_pps : float
        Load of the whole system that fills it.
    """

    name: str
    used_ratio: float
    capacity_pps: float


def seats_of(
    problem: PlacementProblem,
    classes: Classes,
    loads: ServerLoads,
    placement: Placement,
    choices: Mapping[str, str],
    model: RouterModel,
) -> tuple[Seat, ...]:
    """Return where each element is and what it shares; threads of each server pinned in the way chosen for it."""
    host_of = {name: group for group in problem.servers for name in group.names}
    threads = _threads(model, placement)
    seats = []
    for group in problem.elements:
        for name in group.names:
            server = placement.servers[name]
            host = host_of[server].name
            mates = tuple(one for one in placement.on(server) if one != name)
            here: dict[str, int] = {}
            for one in placement.on(server):
                own = next(some.name for some in problem.elements if one in some.names)
                here[own] = here.get(own, 0) + 1
            whole_pps = loads.pinned_pps(host, _in_order(problem, here), choices.get(server, ""))
            alone_pps = math.nan
            if problem.balancing != "local":
                alone_pps = loads.carries(host, {group.name: 1}).capacity_pps * _share(
                    problem, group.name, {group.name: 1}
                )
            used = _cores(threads.get(name, {}), host_of[server].cores)
            seats.append(
                Seat(
                    element=name,
                    server=server,
                    threads=threads.get(name, {}),
                    shares_server=mates,
                    shares_cores=tuple(
                        one for one in mates if used & _cores(threads.get(one, {}), host_of[server].cores)
                    ),
                    carries_pps=whole_pps * _share(problem, group.name, here),
                    alone_pps=alone_pps,
                )
            )
    return tuple(seats)


def sharing_of(
    problem: PlacementProblem,
    loads: ServerLoads,
    placement: Placement,
    choices: Mapping[str, str],
    seats: Sequence[Seat],
) -> tuple[Sharing, ...]:
    """Return what sharing costs on each server with several elements, the dearest first."""
    group_of = {name: group.name for group in problem.elements for name in group.names}
    found = []
    for host in problem.servers:
        for server in host.names:
            here = placement.on(server)
            if len(here) < 2:
                continue
            counts = _in_order(problem, Counter(group_of[name] for name in here))
            apart_pps = math.nan
            if problem.balancing != "local":
                apart_pps = min(loads.carries(host.name, {name: 1}).capacity_pps for name in counts)
            found.append(
                Sharing(
                    server=server,
                    elements=here,
                    share_cores=any(seat.shares_cores for seat in seats if seat.server == server),
                    carries_pps=loads.pinned_pps(host.name, counts, choices.get(server, "")),
                    apart_pps=apart_pps,
                )
            )
    return tuple(sorted(found, key=lambda one: one.carries_pps))


def links_of(prediction: Prediction, problem: PlacementProblem) -> tuple[LinkUse, ...]:
    """Return the links between servers, the fullest first."""
    servers = {name for group in problem.servers for name in group.names}
    found = [
        LinkUse(name=one.name, used_ratio=one.utilisation_ratio, capacity_pps=one.capacity_pps)
        for one in prediction.resources
        if one.kind == "pool" and one.name not in servers
    ]
    return tuple(sorted(found, key=lambda one: one.capacity_pps))


def _in_order(problem: PlacementProblem, here: Mapping[str, int]) -> dict[str, int]:
    return {group.name: here[group.name] for group in problem.elements if group.name in here}


def _share(problem: PlacementProblem, group: str, here: Mapping[str, int]) -> float:
    """Return the frames that an element takes for each of the whole load, once however often it passes."""
    total = 0.0
    for chain, share in zip(problem.chains, problem.shares, strict=True):
        stages = stages_of(problem, chain, share, here)
        inner = stages[:-1] if chain.returns else stages
        total += sum(stage.arrival for stage in inner if stage.group == group)
    return total


def _threads(model: RouterModel, placement: Placement) -> dict[str, dict[str, Cores]]:
    found: dict[str, dict[str, Cores]] = {name: {} for name in placement.servers}
    for task in model.tasks:
        for name, own in found.items():
            if task.thread.startswith(f"{name} "):
                own[task.thread.removeprefix(f"{name} ")] = task.pin
    return found


def _cores(threads: Mapping[str, Cores], cores: int) -> set[int]:
    return {core for pin in threads.values() for core in pin or range(cores)}
