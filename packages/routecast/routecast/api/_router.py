"""Routers of the Python interface: read from a file or described, varied, shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.api._arguments import MAX_CELL_CHARACTERS, TWO_FRAMES, captioned, read_name, read_path, wrong_type
from routecast.api._file_values import LOAD_KEYS, written_entry
from routecast.errors import QuantityProblem
from routecast.load import FrameMix, OfferedLoad
from routecast.quantity.bounded_file import read_text
from routecast.quantity.toml_file import parse_toml
from routecast.router.files import build_router, router_table
from routecast.router.model import Port, ResourcePool, RouterModel
from routecast.router.variants import vary

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class Router:
    """A router and its file; evaluators take ``model``, and ``load`` is the load of the file."""

    document: Mapping[str, Any]
    subject: str = "router"
    folder: Path | None = None
    follows_cores: bool = False
    """Whether the flows follow the cores: as many crafted flows as fill cores and ports evenly, as in a sweep."""

    def __post_init__(self) -> None:
        if not isinstance(self.document, Mapping):
            raise wrong_type(self.document, "a router", "rc.read reads a file, and rc.multicore describes a router")

    @property
    def model(self) -> RouterModel:
        """The router as task units over pools of resources."""
        return self._built(None)[0]

    @property
    def load(self) -> OfferedLoad | None:
        """The load of the file; None if the file has no load."""
        return self._built(None)[1]

    @property
    def pools(self) -> tuple[ResourcePool, ...]:
        """The resource pools of the router, such as its cores."""
        return self.model.pools

    @property
    def ports(self) -> tuple[Port, ...]:
        """The ports of the router with their links."""
        return self.model.ports

    def varied(self, **changes: object) -> Router:
        """Return the router with changed fields: ``cores=8``, ``**{"service.per_packet": "400 ns"}``.

        Keys and values are those of ``sweep``, and so is the answer: with other ``cores`` the flows follow them.

        Raises
        ------
        routecast.errors.RoutecastError
            A field is unknown, or its value is not valid.
        """
        if "frame" in changes and "frames" in changes:
            raise QuantityProblem("", TWO_FRAMES)
        table = router_table(dict(self.document), self.subject)
        values = {
            path: written_entry(path, entry, table)
            for key, entry in changes.items()
            for path in [key if isinstance(entry, Mapping) else LOAD_KEYS.get(key, key)]
        }
        document = vary(self.document, values, subject=self.subject)
        if "cores" in values and "name" not in values:
            document = _named_by_cores(document, self.document.get("cores"))
        follows_cores = (self.follows_cores or "cores" in values) and "load.flows.count" not in values
        subject = document["name"] if self.subject == self.document.get("name") else self.subject
        router = replace(self, document=document, subject=subject, follows_cores=follows_cores)
        router._built(None)
        return router

    def to_polars(self) -> polars.DataFrame:
        """Return a row for each field of the file: the path that ``varied`` takes, and the value as text."""
        import polars as pl

        fields = list(_fields(self.document))
        return pl.DataFrame(
            {"field": [path for path, _ in fields], "value": [text for _, text in fields]},
            schema={"field": pl.String, "value": pl.String},
        )

    def _built(self, frames: FrameMix | None) -> tuple[RouterModel, OfferedLoad | None]:
        return build_router(self.document, subject=self.subject, folder=self.folder, frames=frames)

    def _repr_html_(self) -> str:
        from routecast.show.tables import Table, table_html  # imported only where a notebook shows a router

        rows = [
            (path, text if len(text) <= MAX_CELL_CHARACTERS else text[:MAX_CELL_CHARACTERS] + "…")
            for path, text in _fields(self.document)
        ]
        return captioned(table_html(Table.of_facts(rows, name="router", title="router")), repr(self))

    def __repr__(self) -> str:
        model = self.model
        pools = ", ".join(f"{pool.units} {pool.name}" for pool in model.pools)
        return f"Router({model.name!r}: {len(model.tasks)} task units, {pools}, {len(model.ports)} ports)"


def read(path: str | Path) -> Router:
    """Read a router file.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is not TOML, or is not valid. The error lists all faults with their places.
    """
    path = read_path(path, "a router file")
    router = Router(parse_toml(read_text(path, kind="router file"), str(path)), str(path), path.parent)
    router._built(None)
    return router


def multicore(
    cores: int, per_packet: str | float, per_byte: str | float = 0.0, *, name: str = "multicore", **fields: object
) -> Router:
    """Describe a multi-core router by its cores, the time or cycles per frame on a core, and other fields of its file.

    Raises
    ------
    routecast.errors.RoutecastError
        A field is unknown, or its value is not valid, or has no unit and is absurd in its base unit.

    Examples
    --------
    >>> from routecast import solve
    >>> router = multicore(4, "562 ns", link="10 Gbit/s", contention={"sigma": 0.056})
    >>> round(solve(router, "14 Mpps").forwarded_pps / 1e6, 2)
    6.09
    """
    service = {"per_packet": per_packet}
    if not isinstance(per_byte, Real) or isinstance(per_byte, bool) or per_byte != 0.0:
        service["per_byte"] = per_byte
    name = read_name(name, "a name", "write it as text")
    document = {"builder": "multicore", "name": name, "cores": cores, "service": service, **fields}
    table = router_table({"builder": "multicore"})
    router = Router({key: written_entry(key, entry, table) for key, entry in document.items()}, name)
    router._built(None)
    return router


def _named_by_cores(document: dict[str, Any], cores: object) -> dict[str, Any]:
    """Return a router whose name follows its cores, where it ended with the number of those it had."""
    name, ending = str(document.get("name", "")), f", {cores} cores"
    changed = document.get("cores")
    if not name.endswith(ending) or changed == cores:
        return document
    return {**document, "name": f"{name.removesuffix(ending)}, {changed} cores"}


def _fields(document: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Yield the path and the value of each field of a router file."""
    for key, entry in document.items():
        parts = [(f"{prefix}{key}", entry)]
        if isinstance(entry, list) and entry and all(isinstance(part, Mapping) for part in entry):
            parts = [(f"{prefix}{key}[{part.get('name', number)}]", part) for number, part in enumerate(entry)]
        for path, part in parts:
            if isinstance(part, Mapping):
                yield from _fields(part, f"{path}.")
            else:
                yield path, str(part).lower() if isinstance(part, bool) else str(part)
