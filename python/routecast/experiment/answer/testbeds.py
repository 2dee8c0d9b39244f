"""Test bed files as documents that levels can change, with the offered load beside them, and trials on them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.toml_file import parse_toml

if TYPE_CHECKING:
    from pydantic import BaseModel

    from routecast.evaluate.trial import Trial

__all__ = ["bed_document", "bed_table", "measured", "unknown_options"]


def bed_document(source: str | Mapping[str, Any], load: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a test bed file says, with the load as one more table.

    Parameters
    ----------
    source : str or mapping
        ``"namespaces"``, the name of a file in ``folder``, or what such a file says.
    load : mapping
        The table ``load`` as a router file would have it.
    folder : Path

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read or is no TOML.
    """
    from routecast.testbed.reading import BUILT_IN

    if not isinstance(source, str):
        return {**source, "load": dict(load)}
    if source == BUILT_IN:
        return {"name": BUILT_IN, "kind": "namespaces", "load": dict(load)}
    path = folder / source
    return {**parse_toml(read_text(path, kind="test bed"), str(path)), "load": dict(load)}


def bed_table(document: Mapping[str, Any]) -> type[BaseModel]:
    """Return what a test bed document may say, the load included.

    Raises
    ------
    routecast.errors.FileProblem
        The document does not say its kind.
    """
    kind = document.get("kind")
    if kind not in {"namespaces", "interfaces"}:
        raise FileProblem("test bed", [Problem("kind", 'write kind = "namespaces" or kind = "interfaces"')])
    return _with_load(str(kind))


@lru_cache(maxsize=2)
def _with_load(kind: str) -> type[BaseModel]:
    from pydantic import create_model

    from routecast.router.load_table import LoadTable
    from routecast.testbed.document import InterfacesFile, NamespacesFile

    base = NamespacesFile if kind == "namespaces" else InterfacesFile
    return create_model("MeasuredBed", __base__=base, load=(LoadTable, ...))


def measured(
    document: Mapping[str, Any], duration_s: float, *, seed: int, subject: str, folder: Path, over_time: bool = False
) -> Trial:
    """Run one trial on the wire; it may say how it went over time.

    Raises
    ------
    routecast.errors.RoutecastError
        The document is no test bed, or the machine lacks something.
    """
    import tomli_w

    from routecast.router.load_table import read_load
    from routecast.testbed import open_testbed

    bed = {key: value for key, value in document.items() if key != "load"}
    ports = len(bed.get("port", ())) or 2
    load = read_load(document["load"], ports=ports, subject=subject, folder=folder)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run.testbed.toml"
        path.write_text(tomli_w.dumps(bed), encoding="utf-8")
        try:
            with open_testbed(path, seed=seed, over_time=over_time) as evaluator:
                return evaluator.trial(load, duration_s)
        except FileProblem as problem:
            raise FileProblem(subject, problem.problems) from problem


def unknown_options(document: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return the options that a test bed gives and its device does not have, with the nearest names."""
    from routecast.testbed.devices import make_device

    table = document.get("dut", {})
    if not isinstance(table, dict):
        return ()
    options = {key: value for key, value in table.items() if key != "device"}
    try:
        make_device(str(table.get("device", "linux")), options)
    except FileProblem as wrong:
        return tuple(
            Problem(f"dut.{one.place}", one.message)
            for one in wrong.problems
            if one.message.startswith("no such option")
        )
    return ()
