"""Virtualisation techniques as TOML files (``*.virtualisation.toml``): those that ship, and those that users write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from routecast.errors import FileProblem, Problem
from routecast.quantity.catalogue import Catalogue
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import Given, OrBase, field, key_of, merged, schema_of, value
from routecast.quantity.toml_file import parse_toml, validated
from routecast.router.model import ServiceCost
from routecast.virtual.technology import Mechanisms, Technology, Work

__all__ = [
    "CostTable",
    "TechnologyOrName",
    "functions_over",
    "parse_technology",
    "read_technology",
    "technologies",
    "technology",
    "technology_from",
    "technology_schema",
    "technology_sources",
]


@value
class TechnologyTable(Mechanisms):
    """The values of a virtualisation technique that differ from its base."""

    base: str = field(
        "Name of a technique that ships, or a *.virtualisation.toml file: it supplies missing values", default=""
    )


@value
class TechnologyFile(TechnologyTable):
    """A ``*.virtualisation.toml``: a technique and the source of each of its values."""

    name: str = field("Name of the technique")
    title: str = field("Description in one line", default="")
    reference: str = field("Machine that the work refers to: processor, clock, software")
    notes: tuple[str, ...] = field("Further notes", default=())
    source: dict[str, str | dict[str, str]] = field(
        "Source of the value of each key: a citation, or the assumption", default_factory=dict
    )


CostTable = Annotated[Mapping[str, Any], Given(Work)]
TechnologyOrName = Annotated[Mapping[str, Any], Given(TechnologyTable), OrBase()]
_FILE: Any = Annotated[Mapping[str, Any], Given(TechnologyFile)]


def _document(text: str, subject: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = validated(_FILE, parse_toml(text, subject), subject)
    return document


_TECHNIQUES = Catalogue(
    kind="virtualisation technique", folder="virtualisation", suffix=".virtualisation.toml", parse=_document
)
_UNSOURCED = ("name", "title", "reference", "notes", "base", "source", "functions")


def technologies() -> tuple[str, ...]:
    """Return the names of the virtualisation techniques that ship, in alphabetical order."""
    return _TECHNIQUES.names()


def technology(name: str) -> Technology:
    """Return a virtualisation technique that ships.

    Raises
    ------
    routecast.errors.FileProblem
        No technique of that name ships; the message suggests the nearest.

    Examples
    --------
    >>> technology("physical-linux").backend
    'none'
    """
    return read_technology(name)


def technology_sources(name: str) -> Mapping[str, str]:
    """Return the source of each value of a technique that ships, its bases' included, by key of the file.

    Raises FileProblem: as :func:`technology`.
    """
    document = _TECHNIQUES.read(name)
    below = technology_sources(document["base"]) if document.get("base") else {}
    return {**below, **_flat(document.get("source", {}))}


def read_technology(path: str | Path) -> Technology:
    """Read a virtualisation technique: one that ships by its name, or a ``*.virtualisation.toml``.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is not TOML, contains faults, or gives a value without a source; the error lists each
        fault with its place.
    """
    return _read(path, above=())


def parse_technology(text: str, *, subject: str = "virtualisation file", folder: Path | None = None) -> Technology:
    """Read a virtualisation technique from the text of its file.

    ``subject``: name of the text in messages; ``folder``: folder of a base that is a file. Raises FileProblem: as
    :func:`read_technology`.
    """
    return _from_document(_document(text, subject), subject=subject, folder=folder, above=())


def technology_from(table: Mapping[str, Any], *, name: str = "", folder: Path | None = None) -> Technology:
    """Return the technique of a table (:data:`TechnologyOrName`): its base, with the table's own values over it.

    ``name``: name of a technique without a base; ``folder``: folder of a base that is a file. Raises FileProblem: there
    is no such base, or its file contains faults.
    """
    return _merged(table, name=name, folder=folder, above=())


def technology_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of virtualisation files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema_of(TechnologyFile),
        "title": "routecast virtualisation file",
    }


def _read(name: str | Path, *, above: tuple[Path, ...], folder: Path | None = None) -> Technology:
    path = _TECHNIQUES.find(name, folder)
    if path in _TECHNIQUES.files().values():
        return _read_shipped(path)
    return _read_path(path, above=above)


@cache
def _read_shipped(path: Path) -> Technology:
    """Read a file that ships once: every server of every router of a study may rest on it."""
    return _read_path(path, above=())


def _read_path(path: Path, *, above: tuple[Path, ...]) -> Technology:
    subject = _TECHNIQUES.subject(path)
    if path.resolve() in above:
        raise FileProblem(subject, [Problem("base", "rests on itself: a base must be another file")])
    above = (*above, path.resolve())
    return _from_document(_TECHNIQUES.read(path), subject=subject, folder=path.parent, above=above)


def _from_document(
    document: Mapping[str, Any], *, subject: str, folder: Path | None, above: tuple[Path, ...]
) -> Technology:
    problems = list(_source_problems(document))
    merged = None
    try:
        merged = _merged(document, name=document["name"], folder=folder, above=above)
    except FileProblem as problem:
        problems += [Problem("base", f"{problem.subject}: {fault}") for fault in problem.problems]
    if problems or merged is None:
        raise FileProblem(subject, problems)
    return replace(merged, name=document["name"], title=document.get("title", ""))


def _merged(table: Mapping[str, Any], *, name: str, folder: Path | None, above: tuple[Path, ...]) -> Technology:
    values = dict(table)
    base_name = values.pop("base", "")
    base = _read(base_name, above=above, folder=folder) if base_name else Technology(name=name or "own")
    values["functions"] = {**base.functions, **functions_over(base.functions, values.get("functions", {}))}
    return merged(base, values)


def functions_over(base: Mapping[str, ServiceCost], costs: Mapping[str, Any]) -> dict[str, ServiceCost]:
    """Return the costs of the functions of a table; missing values are the base's, or 0."""
    return {function: merged(base.get(function, ServiceCost()), cost) for function, cost in costs.items()}


def _source_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the values without a source, and the sources without a value."""
    stated = [key_of(name) for name in document if name not in _UNSOURCED]
    stated += [f"functions.{function}" for function in document.get("functions", ())]
    sources = _flat(document.get("source", {}))
    for key in stated:
        if not sources.get(key, "").strip():
            yield Problem(f"source.{key}", f"is missing: say where the value of {key} comes from")
    # A value that has its source needs no other one: only the others may be meant.
    unsourced = [key for key in stated if not sources.get(key, "").strip()]
    for key in sources:
        if key not in stated:
            meant = did_you_mean(key, unsourced)
            remedy = meant if meant.startswith("did you mean") else f"give {key}, or leave its source out"
            yield Problem(f"source.{key}", f"is the source of a value that is not given: {remedy}")


def _flat(source: Mapping[str, str | dict[str, str]]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, entry in source.items():
        flat |= {key: entry} if isinstance(entry, str) else {f"{key}.{inner}": text for inner, text in entry.items()}
    return flat
