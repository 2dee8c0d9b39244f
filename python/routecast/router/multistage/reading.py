"""Multistage routers from what router files say."""

from __future__ import annotations

import re
from pathlib import Path

from routecast.errors import ModelProblem, Problem
from routecast.router.model import RouterModel
from routecast.router.multistage.builder import multistage_router
from routecast.router.multistage.control import Control
from routecast.router.multistage.file_models import MultistageRouter
from routecast.router.multistage.interconnect import Interconnect
from routecast.router.virtual.places import at_technology
from routecast.router.virtual.reading import further_problems, machine_from, servers_from

__all__ = ["multistage_from"]

_NUMBERED = re.compile(r"\b(server|balancer|router)s(?=\[)")


def multistage_from(router: MultistageRouter, name: str, folder: Path | None = None) -> RouterModel:
    """Build the multistage router that a file says.

    Parameters
    ----------
    router : MultistageRouter
    name : str
    folder : Path or None
        Where techniques that are files are looked for.

    Raises
    ------
    routecast.errors.ModelProblem
        With all faults, their places those of the file.
    """
    servers, problems = servers_from(router.server, router.technology, folder)
    between, control = router.interconnect, router.control
    model = None
    try:
        model = multistage_router(
            servers,
            [machine_from(table, servers) for table in router.balancer],
            [machine_from(table, servers) for table in router.router],
            interconnect=Interconnect(
                kind=between.kind,
                tag_s=between.tag,
                filtered_by=between.filtered_by,
                joined=between.joined,
                link_bps=between.link,
                links=between.links,
                link_queue_frames=between.link_queue,
                switch_bps=between.switch,
            ),
            balancing=router.balancing,
            ports_per_balancer=router.ports_per_balancer,
            link_bps=router.link,
            tx_ring_frames=router.tx_ring,
            control=Control(rate_pps=control.rate, message_s=control.message) if control else None,
            name=name,
        )
    except ModelProblem as problem:
        found = at_technology([_placed(one) for one in problem.problems], router.server)
        problems += further_problems(found, problems, servers)
    if problems or model is None:
        raise ModelProblem(name, problems)
    return model


def _placed(problem: Problem) -> Problem:
    """Return a problem with the places of a file."""
    place, message = (_NUMBERED.sub(r"\1", text) for text in problem)
    return Problem(
        place.removesuffix("s") if place in {"servers", "balancers", "routers"} else place, message
    )
