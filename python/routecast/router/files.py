"""Reading routers from TOML files (``*.router.toml``): every fault at once, each with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from routecast.errors import FileProblem, ModelProblem, Problem, RoutecastError
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.toml_file import parse_toml, shown, validated
from routecast.router.check_load import check_load
from routecast.router.file_models import ExplicitRouter, LoadTable, MulticoreRouter, SoftirqRouter
from routecast.router.from_tables import (
    activation,
    contention,
    interruptions,
    random_time,
    resource_pool,
    service_cost,
    task_unit,
)
from routecast.router.model import Port, RouterModel
from routecast.router.multicore import multicore
from routecast.router.multistage.reading import MultistageRouter, multistage_from
from routecast.router.network_processor.file_models import NetworkProcessorRouter
from routecast.router.network_processor.reading import network_processor_from
from routecast.router.power_tables import power_draw
from routecast.router.softirq import softirq
from routecast.router.virtual.catalogue import ParallelRouter, VirtualRouter
from routecast.router.virtual.reading import parallel_from, virtual_from

__all__ = [
    "RouterTable",
    "build_router",
    "parse_router",
    "read_load",
    "read_router",
    "read_router_and_load",
    "router_schema",
    "router_table",
]

RouterTable = (
    ExplicitRouter
    | MulticoreRouter
    | SoftirqRouter
    | VirtualRouter
    | ParallelRouter
    | MultistageRouter
    | NetworkProcessorRouter
)
"""What a router file may say, by its builder."""

_BUILDERS: dict[str, type[RouterTable]] = {
    "multicore": MulticoreRouter,
    "softirq": SoftirqRouter,
    "virtual": VirtualRouter,
    "parallel": ParallelRouter,
    "multistage": MultistageRouter,
    "network_processor": NetworkProcessorRouter,
}
_UNIT_SUFFIX = re.compile(
    r"_(?:bytes_per_s|bps|pps|frames|hz|cycles|(?<!cycles_)ratio|bytes|w|j|v|s)\b"  # files say cycles_ratio, too
)


def read_router(path: str | Path) -> RouterModel:
    """Read a router model from a ``*.router.toml`` file.

    Raises
    ------
    FileProblem
        The file cannot be read, is no TOML, or says something wrong; all faults with their places.
    """
    return read_router_and_load(path)[0]


def read_router_and_load(path: str | Path, *, frames: FrameMix | None = None) -> tuple[RouterModel, OfferedLoad | None]:
    """Read a router model and the load that its file suggests, None where it suggests none.

    Parameters
    ----------
    path : path
    frames : FrameMix or None
        What will be offered instead of the file's frames: buffers of a network processor are counted in them.

    Raises
    ------
    FileProblem
        As :func:`read_router`.
    """
    path = Path(path)
    text = read_text(path, kind="router file")
    return build_router(parse_toml(text, str(path)), subject=str(path), folder=path.parent, frames=frames)


def parse_router(
    text: str, *, subject: str = "router file", folder: Path | None = None
) -> tuple[RouterModel, OfferedLoad | None]:
    """Read a router model and its load, if any, from the text of a router file.

    Parameters
    ----------
    text : str
    subject : str
        What to call the text in messages; its stem names a router without a name.
    folder : Path or None
        Where traces are looked for.

    Raises
    ------
    FileProblem
        As :func:`read_router`.

    Examples
    --------
    >>> router, load = parse_router('''
    ... builder = "multicore"
    ... cores = 4
    ... service = { per_packet = "550 ns" }
    ... ''')
    >>> len(router.tasks)
    5
    """
    return build_router(parse_toml(text, subject), subject=subject, folder=folder)


def build_router(
    document: Mapping[str, Any],
    *,
    subject: str = "router file",
    folder: Path | None = None,
    frames: FrameMix | None = None,
) -> tuple[RouterModel, OfferedLoad | None]:
    """Build a router model and its load, if any, from what a router file says, as plain data.

    Parameters
    ----------
    document : mapping
        As :func:`~routecast.quantity.toml_file.parse_toml` returns it, or :func:`routecast.router.variants.vary`.
    subject, folder
        As :func:`parse_router`.
    frames
        As :func:`read_router_and_load`.

    Raises
    ------
    FileProblem
        As :func:`read_router`.
    """
    router = validated(router_table(document, subject), document, subject)
    name = router.name or Path(subject).name.removesuffix(".router.toml")
    problems: list[Problem] = []
    model = load = None
    try:
        model = _built(router, name, folder, frames)
    except ModelProblem as problem:
        problems += [Problem(_UNIT_SUFFIX.sub("", one.place), one.message) for one in problem.problems]
    if router.load is not None:
        try:
            load = _load(router.load, max(min(_ports(router, model), 1024), 1), folder)
            if model is not None:
                check_load(model, load)
        except ModelProblem as problem:
            problems += [Problem("load." + _UNIT_SUFFIX.sub("", one.place), one.message) for one in problem.problems]
        except RoutecastError as problem:
            problems.append(Problem("load.arrivals.trace", str(problem)))
    if problems or model is None:
        raise FileProblem(subject, problems)
    return model, load


def read_load(
    table: Mapping[str, Any], *, ports: int, subject: str = "load", folder: Path | None = None
) -> OfferedLoad:
    """Return the load that a table ``load`` says, as router files have one, for so many ports.

    Raises
    ------
    FileProblem
        The table says something wrong; all faults with their places.
    """
    try:
        return _load(validated(LoadTable, table, subject), ports, folder)
    except ModelProblem as problem:
        raise FileProblem(subject, problem.problems) from problem


def router_table(document: Mapping[str, Any], subject: str = "router file") -> type[RouterTable]:
    """Return the table that says what a router file may say: that of its builder, or of ports, pools and task units.

    Raises
    ------
    FileProblem
        There is no such builder, or neither a builder nor any of the tables.
    """
    if "builder" not in document:
        if not {"port", "task", "pool"} & document.keys():
            known = ", ".join(f'"{name}"' for name in _BUILDERS)
            message = f"is missing: name one of {known}, or give the tables [[port]], [[pool]] and [[task]]"
            raise FileProblem(subject, [Problem("builder", message)])
        return ExplicitRouter
    builder = document["builder"]
    if not isinstance(builder, str) or builder not in _BUILDERS:
        message = f"got {shown(builder)}: {did_you_mean(str(builder), _BUILDERS)}"
        raise FileProblem(subject, [Problem("builder", message)])
    return _BUILDERS[builder]


def router_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of router files, with units and meanings as descriptions."""
    schema = TypeAdapter(RouterTable).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routecast router file",
        "description": "A router: ports, pools and task units, or a builder with its parameters.",
        **schema,
    }


def _ports(router: RouterTable, model: RouterModel | None) -> int:
    if isinstance(router, ExplicitRouter):
        return len(router.port)
    if isinstance(router, NetworkProcessorRouter):  # as many as the processor has
        return len(model.ports) if model is not None else 1
    return router.ports


def _built(router: RouterTable, name: str, folder: Path | None, frames: FrameMix | None = None) -> RouterModel:
    if isinstance(router, MulticoreRouter):
        return _multicore(router, name)
    if isinstance(router, SoftirqRouter):
        return _softirq(router, name)
    if isinstance(router, VirtualRouter):
        return virtual_from(router, name, folder)
    if isinstance(router, ParallelRouter):
        return parallel_from(router, name, folder)
    if isinstance(router, MultistageRouter):
        return multistage_from(router, name, folder)
    if isinstance(router, NetworkProcessorRouter):
        return network_processor_from(router, name, folder, frames)
    return _explicit(router, name)


def _explicit(router: ExplicitRouter, name: str) -> RouterModel:
    return RouterModel(
        name=name,
        ports=tuple(
            Port(name=port.name, link_bps=port.link, tx_ring_frames=port.tx_ring, entry=port.entry)
            for port in router.port
        ),
        tasks=tuple(task_unit(task) for task in router.task),
        pools=tuple(resource_pool(pool) for pool in router.pool),
    )


def _multicore(router: MulticoreRouter, name: str) -> RouterModel:
    return multicore(
        router.cores,
        service_cost(router.service),
        queue_frames=router.queue,
        ports=router.ports,
        link_bps=router.link,
        tx_ring_frames=router.tx_ring,
        distribution=router.distribution,
        contention=contention(router.contention),
        interruptions=interruptions(router.interruptions),
        frequency_hz=router.frequency,
        power=power_draw(router.power),
        activation=activation(router.activation),
        batch_frames=router.batch,
        nic_cap_pps=router.nic_cap,
        bus_bytes_per_s=router.bus,
        units=router.units,
        name=name,
    )


def _softirq(router: SoftirqRouter, name: str) -> RouterModel:
    return softirq(
        per_packet_s=router.per_packet,
        cores=router.cores,
        per_byte_s=router.per_byte,
        work_iterations=router.work_iterations,
        work_s_per_iteration=router.work_per_iteration,
        rules=router.rules,
        rule_s=router.rule,
        variation=router.variation,
        scv=router.scv,
        ring_frames=router.ring,
        budget_frames=router.budget,
        interrupt_cost_s=router.interrupt_cost,
        linger_s=router.linger,
        wakeup=random_time(router.wakeup),
        interruptions=interruptions(router.interruptions),
        contention=contention(router.contention),
        distribution=router.distribution,
        ports=router.ports,
        link_bps=router.link,
        tx_ring_frames=router.tx_ring,
        power=power_draw(router.power),
        name=name,
    )


@lru_cache(maxsize=4)
def _flow_set(kind: str, count: int, seed: int, ports: int) -> FlowSet:
    """Make flows, once for all the runs of an experiment that have the same."""
    if kind == "random":
        return FlowSet.random(count, seed=seed, ports=ports)
    return FlowSet.meshed(count, ports=ports) if kind == "meshed" else FlowSet.crafted(count, ports=ports)


def _load(load: LoadTable, ports: int, folder: Path | None) -> OfferedLoad:
    flows = _flow_set(load.flows.kind, load.flows.count, load.flows.seed, ports)
    if load.arrivals.kind == "trace":
        if not load.arrivals.trace:
            missing = Problem("arrivals.trace", "is missing: name the CSV file of the trace")
            raise ModelProblem("load", [missing])
        arrivals = Arrivals.from_trace((folder or Path()) / load.arrivals.trace)
    else:
        try:
            arrivals = Arrivals(
                kind=load.arrivals.kind,
                burst_frames=float(load.arrivals.burst),
                peak_ratio=load.arrivals.peak,
            )
        except ModelProblem as problem:
            placed = [Problem(f"arrivals.{one.place}", one.message) for one in problem.problems]
            raise ModelProblem(problem.subject, placed) from problem
    return OfferedLoad(rate_pps=load.rate, frames=load.frames, flows=flows, arrivals=arrivals)
