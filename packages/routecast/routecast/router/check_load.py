"""Check that a router has the ports that the flows of a load name."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.errors import ModelProblem, Problem
from routecast.load.offered import OfferedLoad
from routecast.router.events import Event, Reroute
from routecast.router.model import RouterModel

__all__ = ["check_load"]

_SHOWN_PROBLEMS = 5


def check_load(model: RouterModel, load: OfferedLoad, events: Sequence[Event] = ()) -> None:
    """Check that every flow enters by a port of the router and can leave by the port that it names.

    The routes of ``events`` count too. Raises ModelProblem: a flow names a port number that the router does not have,
    or a port that an egress route leaves out; it lists at most five flows.
    """
    ports = [port.name for port in model.ports]
    routes = [(task.name, task.route) for task in model.tasks]
    routes += [(event.task, event.route) for event in events if isinstance(event, Reroute)]
    # Builders give many task units the same route. Each route is checked once for all flows of an egress port.
    distinct = {route.to: name for name, route in reversed(routes) if route.kind == "egress"}
    egress_routes = [(name, frozenset(to)) for to, name in reversed(distinct.items())]
    excluded_by: dict[int, str] = {}
    by_egress = any(route.kind in {"egress", "by_egress"} for _, route in routes)
    port_range = f"the router has {len(ports)} port{'s' if len(ports) != 1 else ''}, numbered from 0"
    problems: list[Problem] = []
    for index, flow in enumerate(load.flows.flows):
        if flow.ingress >= len(ports):
            problems.append(Problem(f"flows[{index}].ingress", f"names port {flow.ingress}: {port_range}"))
        if by_egress and flow.egress >= len(ports):
            problems.append(Problem(f"flows[{index}].egress", f"names port {flow.egress}: {port_range}"))
        elif egress_routes:
            if flow.egress not in excluded_by:
                port = ports[flow.egress]
                names = [name for name, allowed in egress_routes if port not in allowed]
                excluded_by[flow.egress] = names[0] if names else ""
            if name := excluded_by[flow.egress]:
                message = f'wants "{ports[flow.egress]}", which the egress route of "{name}" leaves out'
                problems.append(Problem(f"flows[{index}].egress", message))
        if len(problems) >= _SHOWN_PROBLEMS:
            break
    if problems:
        raise ModelProblem(f"load {load.flows.name!r} on router {model.name!r}", problems)
