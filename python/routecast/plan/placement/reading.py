"""From a placement file to what is to be placed: a problem for each frame size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.load.frames import FrameMix
from routecast.plan.placement.contradictions import contradictions
from routecast.plan.placement.document import ElementTable, PlacementFile, ServersTable
from routecast.plan.placement.model import (
    Chain,
    ElementGroup,
    Goal,
    Joined,
    PlacementProblem,
    Rules,
    ServerGroup,
)
from routecast.quantity.bounded_file import read_text
from routecast.quantity.toml_file import parse_toml, validated
from routecast.router.model import ServiceCost
from routecast.router.virtual.catalogue import cost_over, technology_from
from routecast.router.virtual.technology import Technology

__all__ = ["PlacementCase", "parse_placement", "placement_schema", "read_placement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementCase:
    """A placement file, read.

    Parameters
    ----------
    name : str
    problems : tuple of PlacementProblem
        One for each frame size.
    currency : str
    """

    name: str
    problems: tuple[PlacementProblem, ...]
    currency: str = "$"


def read_placement(
    path: str | Path,
    *,
    frames: tuple[FrameMix, ...] = (),
    offered_pps: float | None = None,
    seconds: float | None = None,
) -> PlacementCase:
    """Read a placement file.

    Parameters
    ----------
    path : str or Path
    frames : tuple of FrameMix
        In the place of the file's frame sizes.
    offered_pps, seconds : float, optional
        In the place of the file's.

    Raises
    ------
    FileProblem
        The file cannot be read or says something wrong; all faults with their places.
    """
    path = Path(path)
    return parse_placement(
        read_text(path, kind="placement file"),
        subject=str(path),
        folder=path.parent,
        frames=frames,
        offered_pps=offered_pps,
        seconds=seconds,
    )


def parse_placement(
    text: str,
    *,
    subject: str = "placement file",
    folder: Path | None = None,
    frames: tuple[FrameMix, ...] = (),
    offered_pps: float | None = None,
    seconds: float | None = None,
) -> PlacementCase:
    """Read a placement from the text of its file; ``folder`` is where technologies are looked for.

    Raises
    ------
    FileProblem
        As :func:`read_placement`.
    """
    file = validated(PlacementFile, parse_toml(text, subject), subject)
    problems: list[Problem] = []
    servers = tuple(
        _server(table, _technology(file, number, folder, problems))
        for number, table in enumerate(file.server)
    )
    elements = tuple(_element(table) for table in file.element)
    chains = _chains(file)
    problems += contradictions(file, servers, elements, chains)
    if problems:
        raise FileProblem(subject, list(dict.fromkeys(problems)))
    name = file.name or Path(subject).name.removesuffix(".placement.toml")
    mixes = frames or (
        file.traffic.frames if isinstance(file.traffic.frames, tuple) else (file.traffic.frames,)
    )
    rules, plan = file.rules, file.plan
    load_pps = offered_pps or file.traffic.offered
    return PlacementCase(
        name=name,
        currency=plan.currency,
        problems=tuple(
            PlacementProblem(
                name=name,
                servers=servers,
                elements=elements,
                chains=chains,
                frames=mix,
                offered_pps=load_pps,
                outer_bps=file.traffic.port,
                balancing=file.traffic.balancing,
                joined=Joined(
                    by=file.interconnect.by,
                    link_bps=file.interconnect.link,
                    between=tuple((*cable.between, cable.link) for cable in file.interconnect.cable),
                ),
                rules=Rules(
                    together=rules.together,
                    apart=rules.apart,
                    on={name: (one,) if isinstance(one, str) else one for name, one in rules.on.items()},
                    most_servers=rules.most_servers,
                    shared_cores=rules.shared_cores,
                    cores_per_thread=rules.cores_per_thread,
                    pins=rules.pins,
                ),
                goal=Goal(
                    objective=plan.objective,
                    throughput=plan.throughput,
                    target_pps=plan.target,
                    latency_s=plan.latency,
                    seconds=seconds or plan.seconds,
                    gap_ratio=plan.gap,
                    runners_up=plan.runners_up,
                ),
            )
            for mix in mixes
        ),
    )


def placement_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of placement files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **PlacementFile.model_json_schema(),
        "title": "routecast placement file",
        "description": "Elements of chains to be placed on servers and cores: what there is, rules, what is best.",
    }


def _technology(file: PlacementFile, number: int, folder: Path | None, problems: list[Problem]) -> Technology:
    table = file.server[number].technology or file.technology
    place = f"server[{number}].technology" if file.server[number].technology else "technology"
    if table is None:
        message = "is missing: say what the machines run on, here or for all servers; e.g. kvm-vhost-2012"
        problems.append(Problem(f"server[{number}].technology", message))
        return Technology(name="none")
    try:
        return technology_from(table, folder=folder)
    except FileProblem as problem:
        problems += [Problem(place, str(problem))]
        return Technology(name="none")


def _server(table: ServersTable, technology: Technology) -> ServerGroup:
    return ServerGroup(
        name=table.name,
        number=table.number,
        cores=table.cores,
        technology=technology,
        speed_ratio=table.speed,
        idle_w=table.idle_power,
        busy_w=table.idle_power if table.busy_power is None else table.busy_power,
        price=table.price,
        memory_bytes=table.memory,
        slots=table.slots,
        interrupt_cores=table.interrupt_cores,
        switch_cores=table.switch_cores,
    )


def _element(table: ElementTable) -> ElementGroup:
    return ElementGroup(
        name=table.name,
        kind=table.kind,
        count=table.count,
        function=table.function,
        functions={name: cost_over(ServiceCost(), cost) for name, cost in table.cost.items()},
        vcpus=table.vcpus,
        interfaces=table.interfaces,
        ports=table.ports,
        memory_bytes=table.memory or 0.0,
        cores=table.cores,
    )


def _chains(file: PlacementFile) -> tuple[Chain, ...]:
    if file.chain:
        return tuple(Chain(name=one.name, stages=one.stages, share=one.share) for one in file.chain)
    balancers = [one.name for one in file.element if one.kind == "balancer"]
    routers = [one.name for one in file.element if one.kind == "router"]
    if len(balancers) == 1 and len(routers) == 1:
        return (Chain(name="multistage", stages=(balancers[0], routers[0], balancers[0])),)
    return ()
