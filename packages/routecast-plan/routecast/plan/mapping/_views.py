"""Shows mappings: tables, a figure of the load by engine, a page, and a folder of files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path

from routecast.plan.mapping.answer import MappingAnswer, MappingCheck
from routecast.plan.mapping.model import NEXT_NEIGHBOUR, engine_loads, memory_loads
from routecast.plan.mapping.reading import router_text
from routecast.quantity import format_pps, format_ratio
from routecast.quantity.whole_file import unfinished, write_whole
from routecast.show.drawing import draw
from routecast.show.figures import Axis, Figure, Mark, Points, Stack, palette
from routecast.show.page import Listing, Page, Prose, Section, render_page
from routecast.show.tables import Cell, Column, Table, percent


def headline(answer: MappingAnswer) -> tuple[str, ...]:
    """Return the answer in two lines: the best mapping, and its distance to the optimum."""
    best, optimum, problem = answer.best, answer.optimum, answer.best.mapping.problem
    simulated = f", simulated {format_pps(best.simulated_pps)}" if best.simulated_pps is not None else ""
    optimality = (
        "no mapping carries more"
        if optimum.is_optimal
        else f"no mapping carries more than {format_ratio(optimum.gap_ratio)} above that"
    )
    return (
        f"{problem.name} on {problem.processor.name}: {format_pps(best.predicted_pps)} on {best.mapping.engines} "
        f"of {problem.processor.engines.count} engines{simulated}",
        f"Frames of {problem.frame_bytes:g} B at line rate, {format_pps(answer.offered_pps)}; first limit: "
        f"{best.limit}; {optimality} ({optimum.programs} integer program{'s' if optimum.programs > 1 else ''})",
    )


def mappings_table(answer: MappingAnswer) -> Table:
    """Return the table of the mappings and their throughput."""
    rows: list[tuple[Cell, ...]] = []
    for check in (answer.best, *answer.others):
        rows.append(
            (
                check.mapping.name,
                check.mapping.engines,
                None if check.trouble else check.predicted_pps / 1e6,
                None if check.solved_pps is None else check.solved_pps / 1e6,
                None if check.simulated_pps is None else check.simulated_pps / 1e6,
                check.limit or "does not fit",
            )
        )
    return Table(
        name="mappings",
        title="Mappings",
        caption=(
            "Bound: the most that engines, threads, memories and ports carry without loss. Closed form: the forwarded"
            " rate with waits of threads for each other. Simulated: the forwarded rate, packet by packet. The last two"
            " are at line rate, where a mapping may forward more than its bound: a full engine drops frames while other"
            " engines of its stage forward theirs."
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
    """Return the table of the best mapping's stages."""
    mapping, pps = answer.best.mapping, answer.best.predicted_pps
    loads = engine_loads(mapping, pps)
    rows: list[tuple[Cell, ...]] = []
    for number, stage in enumerate(mapping.stages):
        stage_load = next(
            load for load in loads if load.engine == stage.engines[0] and load.stage == ", ".join(stage.blocks)
        )
        rows.append(
            (
                ", ".join(stage.blocks),
                describe_engines(stage.engines),
                stage_load.threads,
                (stage.link.memory or NEXT_NEIGHBOUR) if number else "receive buffer",
                stage_load.busy_ratio,
                stage_load.threads_ratio,
            )
        )
    return Table(
        name="stages",
        title="Stages",
        caption="The blocks that a thread runs one after the other, and their load on each engine at the bound.",
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
    """Return the table of the memories: content and load."""
    return Table.of(
        memory_loads(answer.best.mapping, answer.best.predicted_pps),
        Column.text("Memory", lambda load: load.memory),
        Column.text("Holds", lambda load: ", ".join(load.holds) or "–", wrap=True),
        Column("Busy", "%", percent, lambda load: load.busy_ratio),
        name="memories",
        title="Memories",
        caption="The states and rings in each memory, and the utilisation of its channels at the bound.",
    )


def describe_engines(engines: Sequence[int]) -> str:
    """Return the numbers of engines as text, with ranges: ``0-3, 6``."""
    runs: list[list[int]] = []
    for number in sorted(engines):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def misfits(checks: Sequence[MappingCheck]) -> tuple[str, ...]:
    """Return a line for each mapping that does not fit the processor, with the reason."""
    return tuple(f"{check.mapping.name}: {check.trouble}" for check in checks if check.trouble)


_SYMBOLS = ("circle", "square", "diamond", "cross")


def engines_figure(answer: MappingAnswer) -> Figure:
    """Return the figure of the utilisation of each engine, at the bound of the best mapping, for all mappings."""
    mapping, pps = answer.best.mapping, answer.best.predicted_pps
    count = mapping.problem.processor.engines.count
    engines = tuple(float(number) for number in range(count))
    loads = engine_loads(mapping, pps)
    stages = list(dict.fromkeys(load.stage for load in loads))
    colours = palette(max(len(stages), 2), ordered=False)
    marks: list[Mark] = []
    for stage, colour in zip(stages, colours, strict=False):
        busy = {load.engine: 100.0 * load.busy_ratio for load in loads if load.stage == stage}
        marks.append(
            Stack(name=stage, x=engines, y=tuple(busy.get(int(engine), 0.0) for engine in engines), colour=colour)
        )
    for number, other in enumerate(other for other in answer.others if not other.trouble):
        busy_percent = dict.fromkeys(range(count), 0.0)
        for load in engine_loads(other.mapping, pps):
            busy_percent[load.engine] += 100.0 * load.busy_ratio
        marks.append(
            Points(
                name=other.mapping.name,
                x=engines,
                y=tuple(busy_percent[int(engine)] or math.nan for engine in engines),
                filled=False,
                symbol=_SYMBOLS[number % len(_SYMBOLS)],  # type: ignore[arg-type]  # one of the symbols, by number
            )
        )
    return Figure(
        name="engines",
        title=f"Load by engine: {mapping.problem.name}",
        caption=f"At {format_pps(pps)}. A mapping with an engine above 100 % cannot carry this rate.",
        x=Axis(title="engine", ticks=engines, labels=tuple(str(int(engine)) for engine in engines)),
        y=Axis(title="busy, %", low=0.0),
        marks=tuple(marks),
    )


def mapping_page(answer: MappingAnswer) -> Page:
    """Return the report page of a mapping."""
    first, *rest = headline(answer)
    misfit_lines = misfits(answer.others)
    return Page(
        title="Mapping",
        question="Which blocks share which engines, for the greatest throughput?",
        answer=first,
        sections=(
            Section.of(
                "mapping",
                "The mapping",
                "",
                Prose(tuple(rest)),
                engines_figure(answer),
                mappings_table(answer),
                stages_table(answer),
                memories_table(answer),
                bool(misfit_lines) and Listing(title="Mappings that do not fit", entries=misfit_lines),
            ),
        ),
    )


def write_mapping(answer: MappingAnswer, out: Path) -> None:
    """Write ``mapping.json``, ``mapping.router.toml``, ``engines.csv``, ``engines.svg`` and ``report.html``."""
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out / "mapping.json", text)
    write_whole(out / "mapping.router.toml", router_text(answer.best.mapping, answer.document))
    with unfinished(out / "engines.csv") as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["mapping", "engine", "stage", "threads", "busy_ratio", "threads_ratio"])
        for check in (answer.best, *answer.others):
            if not check.trouble:
                for load in engine_loads(check.mapping, check.predicted_pps):
                    writer.writerow(
                        [
                            check.mapping.name,
                            load.engine,
                            load.stage,
                            load.threads,
                            f"{load.busy_ratio:.6g}",
                            f"{load.threads_ratio:.6g}",
                        ]
                    )
    write_whole(out / "engines.svg", draw(engines_figure(answer), has_heading=True))
    write_whole(out / "report.html", render_page(mapping_page(answer)))
