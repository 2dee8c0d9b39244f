"""Routers from TOML files (``*.router.toml``). An error lists every fault with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union

from routecast.errors import FileProblem, ModelProblem, Problem, RoutecastError
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import extended, field, key_of, schema_of, value
from routecast.quantity.toml_file import format_value, parse_toml, validated
from routecast.router.check_load import check_load
from routecast.router.load_table import LoadTable, load_of
from routecast.router.model import Port, ResourcePool, RouterModel, TaskUnit
from routecast.wings import EXTRAS, extra_of, not_installed, wings

__all__ = ["build_router", "parse_router", "read_router", "read_router_and_load", "router_schema", "router_table"]


@value
class Explicit:
    """A router given by its ports, pools and task units."""

    name: str = field("Name of the router; without it the file's", default="")
    ports: tuple[Port, ...] = field("The interfaces", key="port")
    pools: tuple[ResourcePool, ...] = field("The resource pools", default=(), key="pool")
    tasks: tuple[TaskUnit, ...] = field("The task units", key="task")

    def model(self) -> RouterModel:
        """Return the router."""
        return RouterModel(name=self.name, ports=self.ports, tasks=self.tasks, pools=self.pools)


_LOAD = ("load", LoadTable | None, field("Load to evaluate with by default", default=None))
_EXPLICIT = extended(Explicit, (_LOAD,))
_BUILDERS: Mapping[str, str] = {"multicore": "multicore:Multicore", "softirq": "softirq:Softirq"}
"""Module and class that read the router of each builder; the module is imported when a file names the builder."""


@cache
def _builders() -> Mapping[str, str]:
    """Return the module and the class of each builder: those of this room, then those of wings as EXTRAS lists them."""
    own = {name: f"routecast.router.{target}" for name, target in _BUILDERS.items()}
    added = {name: f"{wing.package}.{target}" for wing in wings() for name, target in wing.builders.items()}
    listed = [name for names in EXTRAS.values() for name in names["builders"]]
    return own | {name: added[name] for name in dict.fromkeys((*listed, *added)) if name in added}


@cache
def _kind(builder: str) -> type:
    module, _, name = _builders()[builder].partition(":")
    kind: type = getattr(import_module(module), name)
    return extended(kind, (("builder", Literal[builder], field("Name of the builder")), _LOAD))


def read_router(path: str | Path) -> RouterModel:
    """Read a router model from a ``*.router.toml`` file.

    Raises FileProblem: the file cannot be read, is not TOML, or contains faults; the error lists all with their places.
    """
    return read_router_and_load(path)[0]


def read_router_and_load(path: str | Path, *, frames: FrameMix | None = None) -> tuple[RouterModel, OfferedLoad | None]:
    """Read a router model and the load that its file suggests, or None.

    ``frames`` replace the file's frames: a load in bit/s refers to them, and the buffers of a network processor are
    counted in them. Raises FileProblem as :func:`read_router`.
    """
    path = Path(path)
    text = read_text(path, kind="router file")
    return build_router(parse_toml(text, str(path)), subject=str(path), folder=path.parent, frames=frames)


def parse_router(
    text: str, *, subject: str = "router file", folder: Path | None = None
) -> tuple[RouterModel, OfferedLoad | None]:
    """Read a router model and its load, if any, from the text of a router file.

    ``subject`` is the name of the text in messages, and its stem names a router without a name; ``folder`` holds the
    traces. Raises FileProblem as :func:`read_router`.

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
    """Build a router model and its load, if any, from the plain data of a router file.

    ``document`` comes from :func:`~routecast.quantity.toml_file.parse_toml` or :func:`routecast.router.variants.vary`;
    ``subject`` and ``folder`` are those of :func:`parse_router`, ``frames`` those of :func:`read_router_and_load`.
    Raises FileProblem as :func:`read_router`.
    """
    router: Any = validated(router_table(document, subject), document, subject)
    router = replace(router, name=router.name or Path(subject).name.removesuffix(".router.toml"))
    problems: list[Problem] = []
    model = load = None
    try:
        model = router.model_in(folder, frames) if hasattr(router, "model_in") else router.model()
    except ModelProblem as problem:
        problems += [Problem(key_of(fault.place), fault.message) for fault in problem.problems]
    if router.load is not None:
        try:
            ports = len(model.ports) if model is not None else getattr(router, "ports", 1)
            count = max(min(ports if isinstance(ports, int) else len(ports), 1024), 1)
            load = load_of(router.load, count, folder, frames=frames)
            if model is not None:
                check_load(model, load)
        except ModelProblem as problem:
            problems += [Problem("load." + key_of(fault.place), fault.message) for fault in problem.problems]
        except RoutecastError as problem:
            problems.append(Problem("load.arrivals.trace", str(problem)))
    if problems or model is None:
        raise FileProblem(subject, problems)
    return model, load


def router_table(document: Mapping[str, Any], subject: str = "router file") -> type:
    """Return the class that reads a router file: that of its builder, or that of ports, pools and task units.

    Raises FileProblem: the builder is unknown, or the file has neither a builder nor any of these tables;
    EnvironmentProblem: the builder is of a package that is not installed.
    """
    if "builder" not in document:
        if not {"port", "task", "pool"} & document.keys():
            known = ", ".join(f'"{name}"' for name in _builders())
            message = f"is missing: name one of {known}, or give the tables [[port]], [[pool]] and [[task]]"
            raise FileProblem(subject, [Problem("builder", message)])
        return _EXPLICIT
    builder = document["builder"]
    if not isinstance(builder, str) or builder not in _builders():
        if extra := extra_of("builders", str(builder)):
            raise not_installed(f'{subject}: builder = "{builder}"', extra)
        message = f"got {format_value(builder)}: {did_you_mean(str(builder), _builders())}"
        raise FileProblem(subject, [Problem("builder", message)])
    return _kind(builder)


def router_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of router files, with units and meanings as descriptions."""
    schema = schema_of(Union[_EXPLICIT, *map(_kind, _builders())])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routecast router file",
        "description": "A router: ports, pools and task units, or a builder with its parameters.",
        **schema,
    }
