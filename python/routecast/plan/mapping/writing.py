"""A mapping as a router file: the file that was mapped, with the stages and memories that were found."""

from __future__ import annotations

from collections.abc import Mapping as Table
from typing import Any

from routecast.plan.mapping.model import Mapping
from routecast.quantity.toml_file import toml_string

__all__ = ["router_document", "router_text"]

_OF_ORGANISATIONS = ("engines", "threads", "parallel", "stage", "organisation")


def router_document(mapping: Mapping, document: Table[str, Any]) -> dict[str, Any]:
    """Return what the router file of a mapping says.

    Parameters
    ----------
    document : mapping
        What the file said that was mapped.
    """
    said = {key: value for key, value in document.items() if key not in _OF_ORGANISATIONS}
    said["name"] = f"{mapping.problem.name}, {mapping.name}"
    said["organisation"] = "staged"
    blocks = [
        {key: value for key, value in dict(block).items() if key not in ("engines", "threads")}
        for block in document.get("block", [])
    ]
    said["block"] = [block for block in blocks if len(block) > 1]
    kept = {state["name"]: dict(state) for state in document.get("state", [])}
    said["state"] = [{**kept.get(state.name, {"name": state.name}), "memory": state.memory} for state in mapping.states]
    stages = []
    for number, stage in enumerate(mapping.stages):
        one: dict[str, Any] = {"blocks": list(stage.blocks), "engines": list(stage.engines)}
        if stage.threads:
            one["threads"] = stage.threads
        if number:
            one["link"] = {"memory": stage.link.memory}
        stages.append(one)
    said["stage"] = stages
    return {key: value for key, value in said.items() if value not in ([], {})}


def router_text(mapping: Mapping, document: Table[str, Any]) -> str:
    """Return the router file of a mapping as TOML."""
    said = router_document(mapping, document)
    problem = mapping.problem
    lines = [
        f"# {problem.name} on {problem.processor.name}: what carries most frames of {problem.frame_bytes:g} B.",
        f"# Predicted: {mapping.expectation().pps:.6g} frames a second, limited by {mapping.expectation().limit.name}.",
    ]
    tables = [(key, value) for key, value in said.items() if _is_tables(value)]
    lines += [f"{key} = {_value(value)}" for key, value in said.items() if not _is_tables(value)]
    for key, entries in tables:
        for entry in entries:
            lines += ["", f"[[{key}]]", *(f"{_key(name)} = {_value(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else toml_string(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, Table):
        return "{ " + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return repr(value)
