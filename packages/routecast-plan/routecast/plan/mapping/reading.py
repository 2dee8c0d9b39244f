"""Reads mapping problems from router files of ``builder = "network_processor"``, and writes mappings as such files."""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.flows import FlowSet
from routecast.load.offered import OfferedLoad
from routecast.plan.mapping.model import NEXT_NEIGHBOUR, Mapping, MappingProblem
from routecast.plan.network_processor.check import parts_problems
from routecast.plan.network_processor.model import Link
from routecast.plan.network_processor.reading import NetworkProcessorRouter, Parts, StageTable, parts_of, place_in_file
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml, toml_string, validated
from routecast.router.files import router_table
from routecast.router.load_table import read_load

__all__ = ["MappingCase", "mapping_case", "read_mapping", "router_document", "router_text"]


def router_document(mapping: Mapping, document: Table[str, Any]) -> dict[str, Any]:
    """Return the content of a mapping's router file; ``document`` is the content of the original file."""
    result = {
        key: value
        for key, value in document.items()
        if key not in ("engines", "threads", "parallel", "stage", "organisation")
    }
    result["name"] = f"{mapping.problem.name}, {mapping.name}"
    result["organisation"] = "staged"
    blocks = [
        {key: value for key, value in dict(block).items() if key not in ("engines", "threads")}
        for block in document.get("block", [])
    ]
    result["block"] = [block for block in blocks if len(block) > 1]
    file_states = {state["name"]: dict(state) for state in document.get("state", [])}
    result["state"] = [
        {**file_states.get(state.name, {"name": state.name}), "memory": state.memory} for state in mapping.states
    ]
    stages = []
    for number, stage in enumerate(mapping.stages):
        table: dict[str, Any] = {"blocks": list(stage.blocks), "engines": list(stage.engines)}
        if stage.threads:
            table["threads"] = stage.threads
        if number:
            table["link"] = {"memory": stage.link.memory}
        stages.append(table)
    result["stage"] = stages
    return {key: value for key, value in result.items() if value not in ([], {})}


def router_text(mapping: Mapping, document: Table[str, Any]) -> str:
    """Return the router file of a mapping as TOML."""
    content = router_document(mapping, document)
    problem = mapping.problem
    lines = [
        f"# {problem.name} on {problem.processor.name}: greatest throughput for frames of {problem.frame_bytes:g} B.",
        f"# Predicted: {mapping.expectation().pps:.6g} frames a second, limited by {mapping.expectation().limit.name}.",
    ]
    tables = [(key, value) for key, value in content.items() if _is_tables(value)]
    lines += [f"{key} = {_value(value)}" for key, value in content.items() if not _is_tables(value)]
    for key, entries in tables:
        for entry in entries:
            lines += ["", f"[[{key}]]", *(f"{_key(name)} = {_value(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else toml_string(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, Table):
        return "{ " + ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    return repr(value)


_PLACEHOLDER_STAGES: dict[str, Any] = {
    "organisation": "staged",
    "stage": (StageTable(blocks=("first",)), StageTable(blocks=("second",))),
}


@value
class MappingCase:
    """The mapping problem of a router file."""

    problem: MappingProblem
    file_mapping: Mapping | None = field("Mapping of the file; None where it does not fit the processor")
    trouble: str = field("Why the mapping of the file does not fit the processor", default="")
    load: OfferedLoad = field("Load of the trials; where the file has none, frames of 64 B between all ports")
    document: dict[str, Any] = field("Content of the file")


def read_mapping(
    path: str | Path, *, rings: Sequence[str] = (), keep: Sequence[str] = (), keep_all: bool = False
) -> MappingCase:
    """Read a mapping problem.

    Parameters
    ----------
    path : str or Path
        A router file.
    rings : sequence of str
        Memories allowed for rings, "next neighbour" for registers. Default: the memory of the file's ring, and
        ``scratch`` and ``sram`` where the processor has them.
    keep : sequence of str
        States that keep their memories.
    keep_all : bool
        Whether all states keep their memories.

    Raises
    ------
    FileProblem
        The file has another builder, or errors; the exception lists them all.
    """
    router_path = Path(path)
    document = parse_toml(read_text(router_path, kind="router file"), router_path.name)
    return mapping_case(
        document, subject=router_path.name, folder=router_path.parent, rings=rings, keep=keep, keep_all=keep_all
    )


def mapping_case(
    document: Table[str, Any],
    *,
    subject: str,
    folder: Path | None = None,
    rings: Sequence[str] = (),
    keep: Sequence[str] = (),
    keep_all: bool = False,
) -> MappingCase:
    """Return the mapping problem of a parsed router file; see :func:`read_mapping` for the parameters."""
    if document.get("builder") != "network_processor":
        raise FileProblem(
            subject,
            [Problem("builder", 'is not "network_processor": only blocks on a network processor can be mapped')],
        )
    table: NetworkProcessorRouter = validated(router_table(document), document, subject)
    parts, trouble = _parts_and_trouble(table, subject, folder)
    processor = parts.processor
    problems = _parts_problems(parts, table)
    file_rings = [stage.link for stage in parts.stages[1:]]
    ring = file_rings[0] if file_rings else Link()
    memories = [memory.name for memory in processor.memories]
    if ring.memory and ring.memory not in memories:
        problems.append(Problem("ring.memory", f'"{ring.memory}" is no memory: {did_you_mean(ring.memory, memories)}'))
    problems += [
        Problem("--ring", f'"{name}" is no memory: {did_you_mean(name, [NEXT_NEIGHBOUR, *memories])}')
        for name in rings
        if name != NEXT_NEIGHBOUR and name not in memories
    ]
    ring_memories = ["" if name == NEXT_NEIGHBOUR else name for name in rings]
    if not rings:
        ring_memories = [ring.memory, *(name for name in ("scratch", "sram") if name in memories)]
    states = [state.name for state in parts.states]
    problems += [
        Problem("--keep", f'"{name}" is no state: {did_you_mean(name, states)}') for name in keep if name not in states
    ]
    if parts.slices:
        problems.append(Problem("slice", "slices cannot be mapped: leave them out, and add them to the result"))
    if parts.line_card is not None:
        problems.append(Problem("line_card", "line cards cannot be mapped: leave them out, and add them to the result"))
    if problems:
        raise FileProblem(subject, problems)
    used = {reference.state for block in parts.blocks for reference in block.references}
    kept = states if keep_all else [*keep, *(name for name in states if name not in used)]
    problem = MappingProblem(
        name=table.name or subject.removesuffix(".router.toml"),
        processor=processor,
        blocks=parts.blocks,
        states=parts.states,
        ring=ring,
        rings=tuple(dict.fromkeys(ring_memories)),
        movable=frozenset(states) - frozenset(kept),
        frame_bytes=parts.frame_bytes,
        port_queue_frames=parts.port_queue_frames,
    )
    file_mapping = None
    if not trouble:
        file_mapping = Mapping(name="as in the file", problem=problem, stages=parts.stages, states=parts.states)
    load = _load_of(document, processor.ports, subject, folder)
    return MappingCase(problem=problem, file_mapping=file_mapping, trouble=trouble, load=load, document=dict(document))


def _parts_and_trouble(table: NetworkProcessorRouter, subject: str, folder: Path | None) -> tuple[Parts, str]:
    """Return the parts of a router, and why its own stages do not fit the processor; empty if they fit."""
    try:
        return parts_of(table, folder), ""
    except ModelProblem as error:
        # The file need not be a valid router: its own stages may not fit. So read the other parts with placeholders.
        try:
            parts = parts_of(replace(table, **_PLACEHOLDER_STAGES), folder)
        except ModelProblem:
            raise FileProblem(subject, error.problems) from error
        return parts, str(error.problems[0])


def _load_of(document: Table[str, Any], ports: int, subject: str, folder: Path | None) -> OfferedLoad:
    """Return the load of the file; without one, frames of 64 B between all ports."""
    load = read_load(document["load"], ports=ports, subject=subject, folder=folder) if "load" in document else None
    return load or OfferedLoad(rate_pps=1e6, flows=FlowSet.meshed(ports * ports, ports=ports))


def _parts_problems(parts: Parts, table: NetworkProcessorRouter) -> list[Problem]:
    """Return the problems that exclude any mapping: invalid parts, or no block that works for a frame."""
    problems = [
        place_in_file(problem, table, parts, ())
        for problem in parts_problems(parts.processor, parts.blocks, parts.states)
    ]
    if not any(block.cycles or block.cycles_per_byte or block.references for block in parts.blocks):
        message = "there is nothing to map: no block works for a frame; see the keys present and stub"
        problems.append(Problem("block", message))
    return problems
