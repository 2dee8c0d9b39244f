"""The report of a study of functions: what operations alone tell, what runs, and how far apart they are."""

from __future__ import annotations

from routecast.quantity import format_bytes, format_duration, format_frequency
from routecast.report.page import Block, Facts, Folded, Listing, Page, Section, Tile, Tiles
from routecast.report.tables import percent
from routecast.study.functions.plots import agreement_figure, function_figure
from routecast.study.functions.result import FunctionResult
from routecast.study.functions.tabulate import function_table, hand_table, summary_table

__all__ = ["functions_page"]


def functions_page(result: FunctionResult) -> Page:
    """Return the page of a study of functions."""
    study, made = result.study, result.made
    errors, refined = result.errors(), result.refined_errors()
    sections = [_overview(result), *(_function(result, title) for title in result.titles)]
    hand = hand_table(result)
    if hand:
        sections.append(
            Section(
                anchor="hand",
                title="How fast the functions are",
                lead="A function that is made from operations pays little for it, if its stages keep the memory busy.",
                blocks=(hand,),
            )
        )
    sections.append(_host(result))
    return Page(
        title=study.title,
        question=study.question,
        answer=(
            f"From a probe of the host and no measurement of any function, the throughput of {len(result.titles)} "
            f"functions at {errors.points} points is estimated within "
            f"**{percent(errors.median_abs_error_ratio)} %** (median; 90th percentile "
            f"{percent(errors.p90_abs_error_ratio)} %). After a few measurements of each function the median error of "
            f"the others is **{percent(refined.median_abs_error_ratio)} %**."
        ),
        sections=tuple(sections),
        made=made.rows(
            ("Runs", f"{made.trials}, {made.resumed_trials} kept from an interrupted study"),
            ("Length of a run", format_duration(study.run.duration)),
            ("Seed", str(made.seed)),
        ),
        source="Baldi & Sapio 2018, Network Function Modeling and Performance Estimation, IJECE 8(5)",
    )


def _overview(result: FunctionResult) -> Section:
    errors, refined = result.errors(), result.refined_errors()
    tiles = (
        Tile(
            value=f"{percent(errors.median_abs_error_ratio)} %",
            meaning="median error from the probe alone",
            beside=f"90th percentile {percent(errors.p90_abs_error_ratio)} %",
        ),
        Tile(
            value=f"{percent(refined.median_abs_error_ratio)} %",
            meaning="median error after refining",
            beside=f"90th percentile {percent(refined.p90_abs_error_ratio)} %",
        ),
        Tile(value=str(errors.points), meaning="points", beside=f"of {len(result.titles)} functions"),
    )
    blocks: list[Block] = [Tiles(tiles), agreement_figure(result), summary_table(result)]
    if result.notes:
        blocks.append(Listing(title="To be read with care", entries=result.notes))
    return Section(
        anchor="answer",
        title="What operations alone tell",
        lead="Each estimate is a sum of operations and of lines of memory, none of it fitted to the function.",
        blocks=tuple(blocks),
    )


def _function(result: FunctionResult, title: str) -> Section:
    return Section(
        anchor=title.replace(" ", "-"),
        title=title,
        blocks=(
            function_figure(result, title),
            Folded(summary=f"All points of {title}", table=function_table(result, title)),
        ),
    )


def _host(result: FunctionResult) -> Section:
    host = result.hardware
    rows = [("Processor", host.cpu.name), ("Clock", format_frequency(host.cpu.frequency_hz))]
    rows += [
        (
            level.name,
            (f"{format_bytes(level.size_bytes)}, " if level.size_bytes < float("inf") else "")
            + f"{level.dependent_cycles:.0f} cycles one after the other, {level.batched_cycles:.1f} in batches",
        )
        for level in host.levels
    ]
    return Section(
        anchor="host",
        title="The host",
        lead="",
        blocks=(Facts(title="As it was probed", rows=tuple(rows)),),
    )
