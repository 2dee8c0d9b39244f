"""The tables of a mapping: who runs where, what is kept where, and other mappings beside it."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.plan.mapping.answer import Checked, MappingAnswer
from routecast.plan.mapping.loads import engine_loads, memory_loads
from routecast.plan.mapping.model import NEXT_NEIGHBOUR
from routecast.quantity import format_pps, format_ratio
from routecast.show.tables import Cell, Column, Table, percent

__all__ = ["headline", "mappings_table", "memories_table", "numbers", "stages_table", "troubles"]


def headline(answer: MappingAnswer) -> tuple[str, ...]:
    """Say what was found, and how good it surely is."""
    best, found, problem = answer.best, answer.found, answer.best.mapping.problem
    simulated = f", simulated {format_pps(best.simulated_pps)}" if best.simulated_pps is not None else ""
    surely = (
        "no mapping carries more"
        if found.is_optimal
        else f"no mapping carries more than {format_ratio(found.gap_ratio)} above that"
    )
    return (
        f"{problem.name} on {problem.processor.name}: {format_pps(best.predicted_pps)} on {best.mapping.engines} "
        f"of {problem.processor.engines.count} engines{simulated}",
        f"Frames of {problem.frame_bytes:g} B at line rate, {format_pps(answer.offered_pps)}; first limit: "
        f"{best.limit}; {surely} ({found.programs} integer program{'s' if found.programs > 1 else ''})",
    )


def mappings_table(answer: MappingAnswer) -> Table:
    """Return the mappings with what each forwards."""
    rows: list[tuple[Cell, ...]] = []
    for one in (answer.best, *answer.others):
        rows.append(
            (
                one.mapping.name,
                one.mapping.engines,
                None if one.trouble else one.predicted_pps / 1e6,
                None if one.solved_pps is None else one.solved_pps / 1e6,
                None if one.simulated_pps is None else one.simulated_pps / 1e6,
                one.limit or "does not fit",
            )
        )
    return Table(
        name="mappings",
        title="Mappings",
        caption=(
            "Bound: what engines, threads, memories and ports carry at most without dropping; closed form: threads that"
            " wait for each other counted in; simulated: packet by packet. Both are at line rate, where they may pass"
            " the bound: a full engine drops its part, and the others of its stage forward theirs."
        ),
        columns=(
            Column.text("Mapping"),
            Column("Engines", "", "d"),
            Column("Bound", "Mpps", ".3f"),
            Column("Closed form", "Mpps", ".3f"),
            Column("Simulated", "Mpps", ".3f"),
            Column.text("First limit", wrap=True),
        ),
        rows=tuple(rows),
        strong=frozenset({0}),
    )


def stages_table(answer: MappingAnswer) -> Table:
    """Return the stages of the best mapping."""
    mapping, pps = answer.best.mapping, answer.best.predicted_pps
    loads = engine_loads(mapping, pps)
    rows: list[tuple[Cell, ...]] = []
    for number, stage in enumerate(mapping.stages):
        mine = next(load for load in loads if load.engine == stage.engines[0] and load.stage == ", ".join(stage.blocks))
        rows.append(
            (
                ", ".join(stage.blocks),
                numbers(stage.engines),
                mine.threads,
                (stage.link.memory or NEXT_NEIGHBOUR) if number else "receive buffer",
                mine.busy_ratio,
                mine.threads_ratio,
            )
        )
    return Table(
        name="stages",
        title="Stages",
        caption="Blocks that a thread runs one after the other, and what that takes of each engine at the bound.",
        columns=(
            Column.text("Blocks", wrap=True),
            Column.text("Engines"),
            Column("Threads", "", "d"),
            Column.text("Fed by"),
            Column("Engine busy", "%", percent),
            Column("Threads used", "%", percent),
        ),
        rows=tuple(rows),
    )


def memories_table(answer: MappingAnswer) -> Table:
    """Return what is kept in which memory."""
    return Table.of(
        memory_loads(answer.best.mapping, answer.best.predicted_pps),
        Column.text("Memory", "memory"),
        Column.text("Holds", lambda load: ", ".join(load.holds) or "–", wrap=True),
        Column("Busy", "%", percent, "busy_ratio"),
        name="memories",
        title="Memories",
        caption="States and rings by memory, and how busy its channels are at the bound.",
    )


def numbers(engines: Sequence[int]) -> str:
    """Write numbers of engines, runs of them shortened: ``0-3, 6``."""
    runs: list[list[int]] = []
    for number in sorted(engines):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def troubles(checks: Sequence[Checked]) -> tuple[str, ...]:
    """Say why mappings do not fit."""
    return tuple(f"{one.mapping.name}: {one.trouble}" for one in checks if one.trouble)
