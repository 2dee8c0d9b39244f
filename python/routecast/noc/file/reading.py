"""From a file of a network on chip to the grid, its traffic at load 1, its routings and planes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from routecast.errors import FileProblem, Problem, RoutecastError
from routecast.noc.case import NocCase, Progress, policy_name
from routecast.noc.file.contradictions import contradictions
from routecast.noc.file.document import MOST_SEEDS, NocFile
from routecast.noc.file.fields import Simulated, parse_loads
from routecast.noc.file.traffic import traffic_of
from routecast.noc.power.router_table import RouterTable
from routecast.noc.power.router_table_file import ROUTER_TABLES, router_table
from routecast.noc.power.scaling import Scaling
from routecast.noc.routing.model import Routes
from routecast.noc.routing.policies import POLICIES, routes
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic.model import Traffic
from routecast.noc.traffic.normalised import normalised
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["NocChange", "noc_case", "noc_schema", "parse_noc", "read_noc"]

COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True, kw_only=True)
class NocChange:
    """What a command line puts in the place of what the file says; None leaves that.

    Attributes
    ----------
    load
        Loads, as ``"0.5"`` or ``"0.2, 0.5"``.
    routings
        Names of routings to compare, with commas between.
    simulated
        Names of routings to simulate.
    seed
        Of everything that draws.
    """

    load: str | None = None
    routings: str | None = None
    seed: int | None = None
    simulated: str | None = None


def read_noc(
    path: str | Path, *, change: NocChange | None = None, progress: Progress | None = None
) -> NocCase:
    """Read a file of a network on chip and the matrices that it names.

    Parameters
    ----------
    path : str or Path
    change : NocChange, optional
        In the place of parts of the file.
    progress : callable, optional
        Told how many routings are made, of how many, and which is next: on large grids they take their time.

    Raises
    ------
    FileProblem
        The file or one that it names cannot be read, or says something wrong; all faults with their places.
    RoutecastError
        A value of the command line is wrong.
    """
    path = Path(path)
    text = read_text(path, kind="file of a network on chip")
    return parse_noc(text, subject=str(path), folder=path.parent, change=change, progress=progress)


def parse_noc(
    text: str,
    *,
    subject: str = "network on chip",
    folder: Path | None = None,
    change: NocChange | None = None,
    progress: Progress | None = None,
) -> NocCase:
    """Read a network on chip from the text of its file; ``folder`` is where the files that it names lie.

    Raises
    ------
    FileProblem, RoutecastError
        As :func:`read_noc`.
    """
    file = validated(NocFile, parse_toml(text, subject), subject)
    changed = _changed(file, change or NocChange())
    return noc_case(changed, subject=subject, folder=folder, progress=progress)


def noc_case(
    file: NocFile,
    *,
    subject: str = "network on chip",
    folder: Path | None = None,
    progress: Progress | None = None,
) -> NocCase:
    """Return what a checked file describes.

    Raises
    ------
    FileProblem
        Parts of it contradict one another, or a matrix cannot be read.
    """
    problems = contradictions(file)
    if problems:
        raise FileProblem(subject, problems)
    topology = Topology(
        kind=TopologyKind(file.topology.kind),
        columns=file.topology.columns,
        rows=file.topology.rows,
        concentration=file.topology.concentration,
    )
    raw = traffic_of(file.traffic, topology, subject=subject, folder=folder or Path())
    demand = raw.between_routers(topology)
    found: dict[str, Routes] = {}
    count = len(file.routing.policies)
    for number, policy in enumerate(file.routing.policies):
        if progress is not None:
            progress(number, count, f"paths of {policy_name(policy)}")
        try:
            found[policy] = routes(policy, topology, demand=demand, seed=file.routing.seed)
        except RoutecastError as problem:
            raise FileProblem(subject, [Problem(f"routing.policies[{number}]", str(problem))]) from problem
    xy = found["xy"] if "xy" in found else routes("xy", topology)
    return NocCase(
        subject=subject,
        name=file.name or Path(subject).name.removesuffix(".noc.toml"),
        sources=tuple(dict.fromkeys(filter(None, (file.source,)))),
        topology=topology,
        traffic=_at_load_1(raw, file.traffic.normalised_by, tuple(found.values()), xy, subject),
        loads=tuple(sorted(set(file.traffic.load))),
        normalised_by=file.traffic.normalised_by,
        routings=tuple(found.values()),
        xy=xy,
        scaling=Scaling(alpha_max=file.power.alpha_max),
        widths=_widths(file),
        planes=file.planes,
        optimum=file.optimum,
        simulation=file.simulation,
        power=file.power,
        table=_table(file, subject, folder or Path()),
        seed=file.routing.seed,
    )


def noc_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of files of networks on chip, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routecast network on chip",
        "description": "A network on chip: grid, traffic, routings, power, planes, optimum, simulation.",
        **NocFile.model_json_schema(),
    }


def _at_load_1(
    raw: Traffic, normalised_by: str, compared: tuple[Routes, ...], xy: Routes, subject: str
) -> Traffic:
    if normalised_by == "none":
        return raw
    try:
        return normalised(raw, compared if normalised_by == "compared" else (xy,), 1.0)
    except RoutecastError as problem:
        raise FileProblem(subject, [Problem("traffic", str(problem))]) from problem


def _table(file: NocFile, subject: str, folder: Path) -> RouterTable | None:
    name = file.power.table
    if name is None:
        return None
    try:
        return router_table(folder / name if name not in ROUTER_TABLES else name)
    except FileProblem:
        raise
    except RoutecastError as problem:
        raise FileProblem(subject, [Problem("power.table", str(problem))]) from problem


def _widths(file: NocFile) -> tuple[float, ...]:
    if file.planes is None:
        return (1.0,)
    return file.planes.widths or (1.0,) * (file.planes.count or 2)


def _changed(file: NocFile, change: NocChange) -> NocFile:
    traffic, routing, simulation = file.traffic, file.routing, file.simulation
    if change.load is not None:
        try:
            loads = parse_loads(change.load)
        except RoutecastError as problem:
            raise FileProblem(COMMAND_LINE, [Problem("--load", str(problem))]) from problem
        traffic = traffic.model_copy(update={"load": loads})
        simulation = simulation and simulation.model_copy(update={"loads": None})
    if change.routings is not None:
        routing = routing.model_copy(update={"policies": _names(change.routings, POLICIES)})
    if change.simulated is not None and simulation is not None:
        names = _names(change.simulated, get_args(Simulated))
        simulation = simulation.model_copy(update={"routing": names})
    if change.seed is not None and not 0 <= change.seed < MOST_SEEDS:
        what = f"got {change.seed}: seeds are 0 to {MOST_SEEDS - 1}"
        raise FileProblem(COMMAND_LINE, [Problem("--seed", what)])
    if change.seed is not None:
        routing = routing.model_copy(update={"seed": change.seed})
        simulation = simulation and simulation.model_copy(update={"seed": change.seed})
    return file.model_copy(update={"traffic": traffic, "routing": routing, "simulation": simulation})


def _names(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    problems = [
        Problem("--routing", f'got "{name}": {did_you_mean(name, known)}')
        for name in dict.fromkeys(names)
        if name not in known
    ]
    problems += [
        Problem("--routing", f'"{name}" stands there twice')
        for number, name in enumerate(names)
        if name in known and name in names[:number]
    ]
    if problems:
        raise FileProblem(COMMAND_LINE, problems)
    return names
