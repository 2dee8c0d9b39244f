"""The report of a study of a network on chip: a section for every traffic, the flits, and the thesis beside them."""

from __future__ import annotations

from routecast.report.noc.link_map import draw_link_map
from routecast.report.page import Block, Drawing, Folded, Page, Section, Tile, Tiles
from routecast.study.noc.glossary import glossary
from routecast.study.noc.judged import BEFORE, OURS, closed_ratio
from routecast.study.noc.plots import best_curve, flit_figure, power_figure, saving_figure
from routecast.study.noc.point import BOUND, NO_DVFS, WHOLE, curve_name
from routecast.study.noc.result import CaseResult, NocResult
from routecast.study.noc.tabulate import (
    STATED_IN,
    compared_table,
    curves_table,
    distance_table,
    factor_table,
    flits_table,
    power_table,
)
from routecast.study.stated import statements_table

__all__ = ["noc_page"]

ON_MAPS = (
    "Numbers are parts of what a link carries at full clock. The fullest link of a plane (blue rim) decides by how "
    "much, alpha, the whole plane is slowed down."
)


def noc_page(result: NocResult) -> Page:
    """Return the page of a study of a network on chip."""
    study, made = result.study, result.made
    sections = [_summary(result), *(_case(one) for one in result.cases)]
    if result.dvfs_rows:
        sections.append(
            Section(
                anchor="flits",
                title="Flit by flit",
                lead=(
                    "Simulated packets of 5 to 10 flits through routers with virtual output queues need the power that "
                    "the flow level says: slowing the clock by alpha divides it by alpha squared."
                ),
                blocks=(flit_figure(result), flits_table(result)),
            )
        )
    if result.statements:
        sections.append(
            Section(
                anchor="thesis",
                title="The thesis beside it",
                lead="What it says in words, and the same quantities here.",
                blocks=(statements_table(result.statements, caption=STATED_IN),),
            )
        )
    return Page(
        title=study.title,
        question=study.question,
        answer=_answer(result),
        sections=tuple(sections),
        made=made.rows(
            ("Matrices", f"{made.trials}, of which {made.resumed_trials} were there from a run before"),
            ("Criteria", "; ".join(one.told for one in result.criteria) or "none"),
        ),
        source=study.source,
    )


def _answer(result: NocResult) -> str:
    parts = []
    for one in result.cases:
        load = max(one.loads)
        best = best_curve(one, load)
        parts.append(f"{one.case.name} **{one.factor(best, load):.2f}** ({curve_name(best)}{_most(one, best, load)})")
    return f"How many times less power than without scaling, at the highest load: {', '.join(parts)}."


def _most(one: CaseResult, curve: str, load: float) -> str:
    """Return the most that is proven to be possible: of whole flows for an allocation, of split ones for a routing."""
    if BOUND not in one.curves:
        return ""
    bound = one.least(load) if curve not in one.case.routing.policies else one.mean(BOUND, load)
    return f"; {one.mean(NO_DVFS, load) / bound:.2f} is the most"


def _summary(result: NocResult) -> Section:
    tiles = []
    for one in result.cases:
        load = max(one.loads)
        best = best_curve(one, load)
        beside = ""
        if {OURS, BEFORE, BOUND} <= set(one.curves):
            beside = f"closes {100 * closed_ratio(one, load):.0f} % of 2P-4PHASE's distance to the bounds"
        elif BOUND in one.curves:
            above = 100 * (one.mean(best, load) / one.mean(BOUND, load) - 1)
            beside = f"{abs(above):.1f} % above the proven bound"
        tiles.append(
            Tile(
                value=f"{one.factor(best, load):.2f} times",
                meaning=f"less power on {one.case.name} traffic with {curve_name(best)}",
                beside=beside,
            )
        )
    blocks: list[Block] = [Tiles(tuple(tiles)), factor_table(result), power_table(result)]
    distances = distance_table(result)
    blocks += [distances] if distances.rows else []
    blocks += [compared_table(result)] if result.compared else []
    return Section(
        anchor="summary",
        title="How much scaling saves",
        lead="Every policy at the highest load, beside the least power that any could reach.",
        blocks=(*blocks, glossary(result)),
    )


def _case(one: CaseResult) -> Section:
    blocks: list[Block] = []
    if len(one.loads) > 1:
        blocks.append(power_figure(one))
        blocks += [saving_figure(one)] if WHOLE in one.curves else []
    blocks += [
        Drawing(svg=draw_link_map(drawn), caption=f"{drawn.title}. {drawn.caption} {ON_MAPS}") for drawn in one.maps
    ]
    table = curves_table(one)
    blocks.append(Folded(summary="Every load", table=table) if len(one.loads) > 1 else table)
    return Section(anchor=f"case-{one.case.name}", title=one.case.title, lead=_lead(one), blocks=tuple(blocks))


def _lead(one: CaseResult) -> str:
    load = max(one.loads)
    best = best_curve(one, load)
    saves = f"At load {load:g}, {curve_name(best)} needs {one.factor(best, load):.2f} times less power than no scaling"
    policies = [*one.case.routing.policies, BEFORE]
    others = [
        f"{curve_name(curve)} {one.factor(curve, load):.2f}"
        for curve in dict.fromkeys(policies)
        if curve in one.curves and curve != best
    ]
    return saves + (f"; {', '.join(others)}." if others else ".")
