"""The report of a study of curves: a section for every figure, and the source beside it."""

from __future__ import annotations

from routecast.quantity import format_duration, format_pps
from routecast.report.page import Block, Folded, Page, Section, Tile, Tiles
from routecast.study.curves.plots import curves_figure
from routecast.study.curves.result import CurveResult, FigureResult
from routecast.study.curves.tabulate import (
    calibrated_table,
    compared_table,
    curves_table,
    passed_table,
    threads_table,
)
from routecast.study.stated import statements_table

__all__ = ["curves_page"]


def curves_page(result: CurveResult) -> Page:
    """Return the page of a study of curves."""
    study, made = result.study, result.made
    sections = [_summary(result), *(_figure(one) for one in result.figures)]
    if result.passed:
        sections.append(
            Section(
                anchor="flows",
                title="What each flow passes",
                lead="Flows that share a machine's cores lose differently.",
                blocks=(passed_table(result),),
            )
        )
    if result.statements:
        sections.append(
            Section(
                anchor="source",
                title="The source beside it",
                lead="What it says in words, and the same here.",
                blocks=(statements_table(result.statements, caption=study.source),),
            )
        )
    return Page(
        title=study.title,
        question=study.question,
        answer=_answer(result),
        sections=tuple(sections),
        made=made.rows(
            ("Points", f"{made.trials} asked for, of which {made.resumed_trials} were there already"),
            ("Simulated time of each", format_duration(study.run.duration)),
            ("Criteria", "; ".join(one.told for one in result.criteria) or "none"),
        ),
        source=study.source,
    )


def _answer(result: CurveResult) -> str:
    met = sum(one.is_met for one in result.criteria)
    calibrated = sum(one.stated.calibrates is not None for one in result.compared)
    return (
        f"**{met} of {len(result.criteria)}** criteria are met: {len(result.compared)} stated rates, of which "
        f"{calibrated} calibrate, and {len(result.statements)} statements in words."
    )


def _summary(result: CurveResult) -> Section:
    tiles = [
        Tile(
            value=format_pps(max(one.peak_pps(name) for name in one.curves)),
            meaning=f"is the best of {one.figure.title}",
            beside=max(one.curves, key=one.peak_pps),
        )
        for one in result.figures
    ]
    blocks: list[Block] = [Tiles(tuple(tiles[:6]))]
    blocks += [compared_table(result)] if result.compared else []
    blocks += [calibrated_table(result)] if result.calibrated else []
    return Section(
        anchor="summary",
        title="Stated and found",
        lead="Every rate that the source states, beside the simulated one.",
        blocks=tuple(blocks),
    )


def _figure(one: FigureResult) -> Section:
    return Section(
        anchor=f"figure-{one.figure.name}",
        title=one.figure.title,
        lead=f"Frames of {one.figure.traffic.frame} B.",
        blocks=(
            curves_figure(one),
            threads_table(one),
            Folded(summary="Every load", table=curves_table(one)),
        ),
    )
