"""Virtualisation techniques as TOML files (``*.virtualisation.toml``): those that ship, and those that users write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.shipped import shipped_files
from routecast.quantity.toml_file import parse_toml, validated
from routecast.router.from_tables import random_time
from routecast.router.model import ServiceCost
from routecast.router.virtual.file_models import CostTable, TechnologyFile, TechnologyTable
from routecast.router.virtual.technology import Technology

__all__ = [
    "cost_over",
    "parse_technology",
    "read_technology",
    "technologies",
    "technology",
    "technology_from",
    "technology_schema",
    "technology_sources",
]

_SUFFIX = ".virtualisation.toml"
_LARGEST_FILE_BYTES = 1_000_000
_TOLD = ("name", "title", "reference", "notes", "base", "source", "functions")

_FIELDS = {
    "nic_interrupt": "nic_interrupt_s",
    "nic_moderation": "nic_moderation_s",
    "nic_queues": "nic_queues",
    "nic_ring": "nic_ring_frames",
    "nic_budget": "nic_budget_frames",
    "backend": "backend",
    "backend_threads": "backend_threads",
    "queue": "queue_frames",
    "backend_budget": "backend_budget_frames",
    "backend_wake": "backend_wake_s",
    "backend_moderation": "backend_moderation_s",
    "guest": "guest",
    "guest_ring": "guest_ring_frames",
    "guest_queue": "guest_queue_frames",
    "guest_budget": "guest_budget_frames",
    "guest_wake": "guest_wake_s",
    "guest_backlog": "guest_backlog_frames",
    "holds_back": "holds_back",
    "switch_cost": "switch_cost_s",
    "migration_cost": "migration_cost_s",
    "smp_factor": "smp_factor",
}
_COSTS = ("nic_receive", "nic_send", "receive", "send", "switch", "guest_driver", "guest_interrupt")
_COST_FIELDS = {
    "per_packet": "per_packet_s",
    "per_byte": "per_byte_s",
    "per_batch": "per_batch_s",
    "variation": "variation",
    "scv": "scv",
}
_POLICY_FIELDS = {"kind": "kind", "quantum": "quantum_s", "wakeup_granularity": "wakeup_granularity_s"}


def technologies() -> tuple[str, ...]:
    """Return the names of the virtualisation techniques that ship, in alphabetical order."""
    return tuple(shipped_files("virtualisation", _SUFFIX))


def technology(name: str) -> Technology:
    """Return a virtualisation technique that ships.

    Raises
    ------
    routecast.errors.FileProblem
        There is none of that name; the message names the nearest.

    Examples
    --------
    >>> technology("physical-linux").backend
    'none'
    """
    return parse_technology(_shipped(name), subject=f"{name}{_SUFFIX}")


def technology_sources(name: str) -> Mapping[str, str]:
    """Return where each value of a technique that ships comes from, by its key in the file, its bases' included.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`technology`.
    """
    document = validated(TechnologyFile, parse_toml(_shipped(name), name), f"{name}{_SUFFIX}")
    below = technology_sources(document.base) if document.base else {}
    return {**below, **_flat(document.source)}


def read_technology(path: str | Path) -> Technology:
    """Read a virtualisation technique: one that ships by its name, or a ``*.virtualisation.toml``.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is no TOML, says something wrong, or gives a value without a source; all faults with
        their places.
    """
    return _read(path, above=())


def parse_technology(
    text: str, *, subject: str = "virtualisation file", folder: Path | None = None
) -> Technology:
    """Read a virtualisation technique from the text of its file.

    Parameters
    ----------
    text : str
    subject : str
        What to call the text in messages.
    folder : Path or None
        Where a base that is a file is looked for.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_technology`.
    """
    return _parse(text, subject=subject, folder=folder, above=())


def technology_from(table: TechnologyTable, *, name: str = "", folder: Path | None = None) -> Technology:
    """Return the technique that a table says: its base, with the table's own values over it.

    Parameters
    ----------
    table : TechnologyTable
    name : str
        Name of a technique that has no base.
    folder : Path or None
        Where a base that is a file is looked for.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such base, or its file says something wrong.
    """
    return _merged(table, name=name, folder=folder, above=())


def technology_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of virtualisation files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TechnologyFile.model_json_schema(),
        "title": "routecast virtualisation file",
    }


def _shipped(name: str) -> str:
    shipped = shipped_files("virtualisation", _SUFFIX)
    if name not in shipped:
        hint = f"is no virtualisation technique that ships: {did_you_mean(name, shipped)}"
        raise FileProblem(f'"{name}"', [Problem("", hint)])
    return shipped[name].read_text(encoding="utf-8")


def _read(path: str | Path, *, above: tuple[str, ...], folder: Path | None = None) -> Technology:
    name = str(path)
    if not name.endswith(".toml"):
        if name in above:
            circle = " on ".join(f'"{one}"' for one in (*above[above.index(name) :], name))
            raise FileProblem(name, [Problem("base", f"rests on itself: {circle}")])
        return _parse(_shipped(name), subject=f"{name}{_SUFFIX}", folder=None, above=(*above, name))
    file = (folder or Path()) / name
    known = str(file.resolve())
    if known in above:
        raise FileProblem(str(file), [Problem("base", "rests on itself: a base must be another file")])
    text = read_text(file, kind="virtualisation file", largest_bytes=_LARGEST_FILE_BYTES)
    return _parse(text, subject=str(file), folder=file.parent, above=(*above, known))


def _parse(text: str, *, subject: str, folder: Path | None, above: tuple[str, ...]) -> Technology:
    document = validated(TechnologyFile, parse_toml(text, subject), subject)
    problems = list(_source_problems(document))
    merged = None
    try:
        merged = _merged(document, name=document.name, folder=folder, above=above)
    except FileProblem as problem:
        problems += [Problem("base", f"{problem.subject}: {one}") for one in problem.problems]
    if problems or merged is None:
        raise FileProblem(subject, problems)
    return replace(merged, name=document.name, title=document.title)


def _merged(table: TechnologyTable, *, name: str, folder: Path | None, above: tuple[str, ...]) -> Technology:
    base = _read(table.base, above=above, folder=folder) if table.base else Technology(name=name or "own")
    changed: dict[str, Any] = {
        field: getattr(table, key) for key, field in _FIELDS.items() if getattr(table, key) is not None
    }
    for key in _COSTS:
        cost = getattr(table, key)
        if cost is not None:
            changed[key] = cost_over(getattr(base, key), cost)
    if table.functions:
        own = {
            function: cost_over(base.functions.get(function, ServiceCost()), cost)
            for function, cost in table.functions.items()
        }
        changed["functions"] = {**base.functions, **own}
    if table.interrupt_driven is not None:
        changed["interrupt_driven"] = tuple(table.interrupt_driven)
    if table.guest_wakeup is not None:
        changed["guest_wakeup"] = random_time(table.guest_wakeup)
    if table.policy is not None:
        given = {key: getattr(table.policy, key) for key in table.policy.model_fields_set}
        changed["policy"] = replace(
            base.policy, **{_POLICY_FIELDS[key]: value for key, value in given.items()}
        )
    if table.contention is not None:
        given = {key: getattr(table.contention, key) for key in table.contention.model_fields_set}
        if "table" in given:
            given["table"] = tuple(given["table"])
        changed["contention"] = replace(base.contention, **given)
    return replace(base, **changed)


def cost_over(base: ServiceCost, table: CostTable) -> ServiceCost:
    """Return a cost with what a table gives in the place of its own."""
    given = {
        field: getattr(table, key) for key, field in _COST_FIELDS.items() if getattr(table, key) is not None
    }
    return replace(base, **given)


def _source_problems(document: TechnologyFile) -> Iterator[Problem]:
    """Yield what has a value and no source, and sources of nothing."""
    given = [
        key for key in TechnologyTable.model_fields if key not in _TOLD and getattr(document, key) is not None
    ]
    given += [f"functions.{function}" for function in document.functions]
    sources = _flat(document.source)
    for key in given:
        if not sources.get(key, "").strip():
            yield Problem(f"source.{key}", f"is missing: say where the value of {key} comes from")
    for key in sources:
        if key not in given:
            meant = did_you_mean(key, given)
            yield Problem(f"source.{key}", f"is the source of a value that is not given: {meant}")


def _flat(source: Mapping[str, str | dict[str, str]]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, told in source.items():
        if isinstance(told, str):
            flat[key] = told
        else:
            flat |= {f"{key}.{inner}": text for inner, text in told.items()}
    return flat
