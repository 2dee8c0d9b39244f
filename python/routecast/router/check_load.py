"""Whether a load fits a router: flows need the ports that they name."""

from __future__ import annotations

from routecast.errors import ModelProblem, Problem
from routecast.load.offered import OfferedLoad
from routecast.router.model import RouterModel

__all__ = ["check_load"]

_SHOWN_PROBLEMS = 5


def check_load(model: RouterModel, load: OfferedLoad) -> None:
    """Check that every flow enters by a port that there is and can leave by the one that it wants.

    Raises
    ------
    ModelProblem
        A flow names a port number that the router does not have, or a port that an egress route leaves out.
        At most five flows are listed.
    """
    ports = [port.name for port in model.ports]
    egress_routes = [task for task in model.tasks if task.route.kind == "egress"]
    by_egress = any(task.route.kind in {"egress", "by_egress"} for task in model.tasks)
    there = f"the router has {len(ports)} port{'s' if len(ports) != 1 else ''}, numbered from 0"
    problems: list[Problem] = []
    for index, flow in enumerate(load.flows.flows):
        if flow.ingress >= len(ports):
            problems.append(Problem(f"flows[{index}].ingress", f"names port {flow.ingress}: {there}"))
        if by_egress and flow.egress >= len(ports):
            problems.append(Problem(f"flows[{index}].egress", f"names port {flow.egress}: {there}"))
        elif egress_routes:
            for task in egress_routes:
                if ports[flow.egress] not in task.route.to:
                    message = (
                        f'wants "{ports[flow.egress]}", which the egress route of "{task.name}" leaves out'
                    )
                    problems.append(Problem(f"flows[{index}].egress", message))
                    break
        if len(problems) >= _SHOWN_PROBLEMS:
            break
    if problems:
        raise ModelProblem(f"load {load.flows.name!r} on router {model.name!r}", problems)
