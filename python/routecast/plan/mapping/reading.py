"""A mapping problem from a router file of ``builder = "network_processor"``."""

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
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml, validated
from routecast.router.files import router_table
from routecast.router.load_table import read_load
from routecast.router.network_processor.check import parts_problems
from routecast.router.network_processor.model import Link
from routecast.router.network_processor.reading import NetworkProcessorRouter, Parts, StageTable, in_the_file, parts_of

__all__ = ["MappingCase", "problem_of", "read_mapping"]

_ANY_STAGES: dict[str, Any] = {
    "organisation": "staged",
    "stage": (StageTable(blocks=("first",)), StageTable(blocks=("second",))),
}


@value
class MappingCase:
    """What a router file asks for."""

    problem: MappingProblem
    own: Mapping | None = field("The one that the file itself says, where that is one")
    trouble: str = field("Why it is none", default="")
    load: OfferedLoad = field(
        "Frames and flows to check mappings with; where the file has no load, frames of 64 B between all ports"
    )
    document: dict[str, Any] = field("What the file says")


def read_mapping(
    path: str | Path, *, rings: Sequence[str] = (), keep: Sequence[str] = (), keep_all: bool = False
) -> MappingCase:
    """Read what is to be mapped.

    Parameters
    ----------
    path : str or Path
        A router file.
    rings : sequence of str
        Memories for rings, "next neighbour" for registers; none: the file's ring and, where there are such memories,
        ``scratch`` and ``sram``.
    keep : sequence of str
        States that stay where they are.
    keep_all : bool
        Whether all stay.

    Raises
    ------
    FileProblem
        The file is none of a network processor, or is wrong.
    """
    where = Path(path)
    document = parse_toml(read_text(where, kind="router file"), where.name)
    return problem_of(document, subject=where.name, folder=where.parent, rings=rings, keep=keep, keep_all=keep_all)


def problem_of(
    document: Table[str, Any],
    *,
    subject: str,
    folder: Path | None = None,
    rings: Sequence[str] = (),
    keep: Sequence[str] = (),
    keep_all: bool = False,
) -> MappingCase:
    """Make the problem of a document; see :func:`read_mapping`."""
    if document.get("builder") != "network_processor":
        raise FileProblem(
            subject,
            [Problem("builder", 'is not "network_processor": only blocks on a network processor can be mapped')],
        )
    table: NetworkProcessorRouter = validated(router_table(document), document, subject)
    trouble = ""
    try:
        parts = parts_of(table, folder)
    except ModelProblem as wrong:
        # What is to be mapped need not be a router yet: its own stages may be too many.
        try:
            parts = parts_of(replace(table, **_ANY_STAGES), folder)
        except ModelProblem:
            raise FileProblem(subject, wrong.problems) from wrong
        trouble = str(wrong.problems[0])
    processor = parts.processor
    problems = _faults(parts, table)
    links = [stage.link for stage in parts.stages[1:]]
    ring = links[0] if links else Link()
    memories = [memory.name for memory in processor.memories]
    if ring.memory and ring.memory not in memories:
        problems.append(Problem("ring.memory", f'"{ring.memory}" is no memory: {did_you_mean(ring.memory, memories)}'))
    chosen: list[str] = []
    for name in rings:
        if name != NEXT_NEIGHBOUR and name not in memories:
            problems.append(
                Problem("--ring", f'"{name}" is no memory: {did_you_mean(name, [NEXT_NEIGHBOUR, *memories])}')
            )
        chosen.append("" if name == NEXT_NEIGHBOUR else name)
    if not rings:
        chosen = [ring.memory, *(name for name in ("scratch", "sram") if name in memories)]
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
        rings=tuple(dict.fromkeys(chosen)),
        movable=frozenset(states) - frozenset(kept),
        frame_bytes=parts.frame_bytes,
        port_queue_frames=parts.port_queue_frames,
    )
    own = None
    if not trouble:
        own = Mapping(name="as in the file", problem=problem, stages=parts.stages, states=parts.states)
    ports, load = processor.ports, None
    if "load" in document:
        load = read_load(document["load"], ports=ports, subject=subject, folder=folder)
    if load is None:
        load = OfferedLoad(rate_pps=1e6, flows=FlowSet.meshed(ports * ports, ports=ports))
    return MappingCase(problem=problem, own=own, trouble=trouble, load=load, document=dict(document))


def _faults(parts: Parts, table: NetworkProcessorRouter) -> list[Problem]:
    """Return what no mapping can mend: parts that are wrong by themselves, and blocks that are none."""
    found = [in_the_file(one, table, parts, ()) for one in parts_problems(parts.processor, parts.blocks, parts.states)]
    if not any(block.cycles or block.cycles_per_byte or block.references for block in parts.blocks):
        what = "there is nothing to map: no block is left that works for a frame (present, stub)"
        found.append(Problem("block", what))
    return found
