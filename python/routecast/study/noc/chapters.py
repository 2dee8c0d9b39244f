"""The report of a study of a network on chip: a section for every traffic, the flits, and the thesis beside them."""

from __future__ import annotations

from routecast.quantity import format_duration
from routecast.report.noc.link_map import draw_link_map
from routecast.report.page import Block, Drawing, Folded, Page, Section, Tile, Tiles
from routecast.study.noc.judged import OURS, closed_ratio
from routecast.study.noc.plots import flit_figure, power_figure
from routecast.study.noc.point import BOUND, NO_DVFS, WHOLE, curve_name
from routecast.study.noc.result import CaseResult, NocResult
from routecast.study.noc.tabulate import (
    compared_table,
    curves_table,
    factor_table,
    flits_table,
    power_table,
    statements_table,
)
from routecast.study.result import Criterion

__all__ = ["noc_page"]


def noc_page(result: NocResult) -> Page:
    """Return the page of a study of a network on chip."""
    study, made = result.study, result.made
    sections = [_summary(result), *(_case(result, one) for one in result.cases)]
    if result.dvfs_rows:
        sections.append(
            Section(
                anchor="flits",
                title="Flit by flit",
                lead="Packets of 5 to 10 flits, routers with virtual output queues, the fabric's clock slowed down.",
                blocks=(flit_figure(result), flits_table(result)),
            )
        )
    if result.statements:
        sections.append(
            Section(
                anchor="thesis",
                title="The thesis beside it",
                lead="What it says in words, and the same quantities here.",
                blocks=(statements_table(result),),
            )
        )
    return Page(
        title=study.title,
        question=study.question,
        answer=_answer(result),
        sections=tuple(sections),
        made=(
            ("Command", f"`{made.command}`"),
            ("Matrices", f"{made.trials}, of which {made.resumed_trials} were there from a run before"),
            ("Criteria", "; ".join(_told(one) for one in result.criteria) or "none"),
            ("Took", format_duration(float(f"{made.elapsed_s:.2g}"))),
            ("Versions", ", ".join(f"{name} {number}" for name, number in made.versions.items())),
        ),
        source=study.source,
    )


def _told(criterion: Criterion) -> str:
    mark = "met" if criterion.is_met else "MISSED"
    return f"{criterion.name} {criterion.reached:.3g}, allowed {criterion.bound:.3g}: {mark}"


def _best(result: NocResult, one: CaseResult) -> str:
    load = max(one.loads)
    return min(
        (curve for curve in one.curves if curve not in (NO_DVFS, BOUND, WHOLE)),
        key=lambda curve: one.mean(curve, load),
    )


def _answer(result: NocResult) -> str:
    parts = []
    for one in result.cases:
        load = max(one.loads)
        best = _best(result, one)
        bound = f", of {one.factor(BOUND, load):.2f} times possible" if BOUND in one.curves else ""
        parts.append(
            f"{one.case.name}: **{curve_name(best)}** saves **{one.factor(best, load):.2f} times**{bound}"
        )
    return "Against no scaling at full load. " + "; ".join(parts) + "."


def _summary(result: NocResult) -> Section:
    tiles = []
    for one in result.cases:
        load = max(one.loads)
        best = _best(result, one)
        beside = ""
        if OURS in one.curves and BOUND in one.curves:
            beside = f"closes {100 * closed_ratio(one, load):.0f} % of 2P-4PHASE's distance to the bound"
        elif BOUND in one.curves:
            beside = (
                f"{100 * (one.mean(best, load) / one.mean(BOUND, load) - 1):.1f} % above the proven bound"
            )
        tiles.append(
            Tile(
                value=f"{one.factor(best, load):.2f} times",
                meaning=f"less power on {one.case.name} traffic with {curve_name(best)}",
                beside=beside,
            )
        )
    blocks: list[Block] = [Tiles(tuple(tiles)), power_table(result), factor_table(result)]
    if result.compared:
        blocks.append(compared_table(result))
    return Section(
        anchor="summary",
        title="How much scaling saves",
        lead="Every policy at the highest load, beside the least power that any routing could reach.",
        blocks=tuple(blocks),
    )


def _case(result: NocResult, one: CaseResult) -> Section:
    blocks: list[Block] = [power_figure(result, one)]
    blocks += [
        Drawing(svg=draw_link_map(drawn), caption=f"{drawn.title}. {drawn.caption}") for drawn in one.maps
    ]
    blocks.append(Folded(summary="Every load", table=curves_table(result, one)))
    return Section(anchor=one.case.name, title=one.case.title, lead="", blocks=tuple(blocks))
