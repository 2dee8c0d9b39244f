"""The report of a study of networks on chip: a section for each traffic and one for the flit level."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import cycle
from operator import attrgetter
from statistics import stdev

from routecast.noc._views.link_map import draw_link_map
from routecast.noc.study.document import FOUR_PHASE, SEARCH, StatedPower
from routecast.noc.study.run import BOUND, NO_DVFS, WHOLE_FLOWS, CaseResult, NocResult, closed_ratio, curve_name
from routecast.show.figures import CURVE_COLOURS, GREY, Axis, Figure, Line, Mark, Points
from routecast.show.page import Block, Drawing, Facts, Folded, Page, Section, Tile, Tiles
from routecast.show.tables import Column, Table, scaled, signed_percent
from routecast.study.result import READ_OFF, TerminalSummary, statements_section, statements_table

__all__ = ["page", "terminal_summary"]


def power_table(result: NocResult) -> Table:
    """Return the relative power of every policy at the highest load of every case."""
    return Table.of(
        _policies(result),
        Column.text("Policy", curve_name),
        *(_case_column(case, case.mean, ".4f") for case in result.cases),
        name="power",
        title="Power at the highest load",
        caption="Relative to NoDVFS (XY without scaling) at load 1. The bounds are proven: no policy needs less than "
        "the bound for split flows, and no allocation of whole flows needs less than either bound.",
    )


def factor_table(result: NocResult) -> Table:
    """Return the ratio of the power without scaling to that of every policy at the highest load of every case."""
    return Table.of(
        _policies(result),
        Column.text("Policy", curve_name),
        *(_case_column(case, case.factor, ".2f") for case in result.cases),
        name="factors",
        title="Times below no scaling, at the highest load",
        caption="Power of NoDVFS divided by that of the policy: 4 means a quarter of the power. No policy exceeds its "
        "bounds.",
    )


def _case_column(result: CaseResult, value: Callable[[str, float], float], form: str) -> Column[str]:
    load = max(result.loads)
    return Column(result.case.name, "", form, lambda curve: value(curve, load) if curve in result.curves else None)


def _policies(result: NocResult) -> tuple[str, ...]:
    """Return the names of all curves, the bounds last."""
    present = dict.fromkeys(curve for case in result.cases for curve in case.curves)
    bounds = [curve for curve in (WHOLE_FLOWS, BOUND) if curve in present]
    return (*(curve for curve in present if curve not in bounds), *bounds)


def curves_table(result: CaseResult) -> Table:
    """Return the relative power of every curve of a case at every load."""

    def power(curve: str) -> Column[float]:
        return Column(curve_name(curve), "", ".4f", lambda load: result.mean(curve, load))

    return Table.of(
        result.loads,
        Column("Load", "", "g", float),
        *map(power, result.curves),
        name=f"curves_{result.case.name}",
        title=result.case.title,
        caption="Power relative to no scaling at load 1.",
    )


def distance_table(result: NocResult) -> Table:
    """Return the share of the distance from Li's allocation to the bounds that routecast's allocation closes."""
    return Table.of(
        [case for case in result.cases if {SEARCH, FOUR_PHASE, BOUND} <= set(case.curves)],
        Column.text("Traffic", lambda row: row.case.name),
        Column(curve_name(FOUR_PHASE), "", ".2f", lambda row: row.factor(FOUR_PHASE, max(row.loads))),
        Column(curve_name(SEARCH), "", ".2f", lambda row: row.factor(SEARCH, max(row.loads))),
        Column(
            "At most", "", ".2f", lambda row: row.mean(NO_DVFS, max(row.loads)) / row.whole_flow_bound(max(row.loads))
        ),
        Column("Closed", "%", scaled(100.0, ".0f"), lambda row: closed_ratio(row, max(row.loads))),
        name="distance",
        title="From 2P-4PHASE to the proven limit",
        caption="Times below no scaling. At most: the proven limit for whole flows. Closed: the share of the power "
        "between 2P-4PHASE and this limit that the search saves.",
    )


def compared_table(result: NocResult) -> Table:
    """Return every stated power beside the computed one."""
    return Table.of(
        result.compared,
        Column.text("Traffic", lambda row: row.case),
        Column.text(
            "Policy", lambda row: curve_name(row.conditions.curve) + (", at most" if row.conditions.at_most else "")
        ),
        Column("Stated", "", ".3f", lambda row: row.stated),
        Column("Found", "", ".3f", lambda row: row.predicted),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio),
        Column("Stated", "times", ".2f", lambda row: row.conditions.load / row.stated),
        Column("Found", "times", ".2f", lambda row: row.conditions.load / row.predicted),
        Column.text("Where", lambda row: row.conditions.place, wrap=True, wide=True),
        name="compared",
        title="Stated and found",
        caption=f"Power relative to no scaling at load 1, and how many times below no scaling that is. {READ_OFF}",
    )


def own_table(result: NocResult) -> Table:
    """Return every criterion of the study that no source states, beside the result."""
    return Table.of(
        result.own,
        Column.text("Traffic", lambda row: row.case),
        Column.text("Policy", lambda row: curve_name(row.conditions.curve)),
        Column("At most", "", ".3f", lambda row: row.stated),
        Column("Found", "", ".3f", lambda row: row.predicted),
        Column.text("Why", lambda row: row.conditions.why, wrap=True, wide=True),
        name="own",
        title="Criteria of the study",
        caption="Power relative to no scaling at load 1. No source states these bounds.",
    )


def flits_table(result: NocResult) -> Table:
    """Return table 6.1: power at the flit level with and without scaling, Li's values beside the simulated ones."""
    return Table.of(
        result.dvfs_rows,
        Column("Load", "", "g", lambda row: row.load),
        Column("NoDVFS", "", ".3f", lambda row: row.without_dvfs.value, group="here"),
        Column("DVFS", "", ".4f", lambda row: row.with_dvfs.value, group="here"),
        Column("Ratio", "", ".3f", lambda row: row.ratio.value, group="here"),
        Column("±", "", ".3f", lambda row: row.ratio.half_width, group="here"),
        Column("NoDVFS", "", ".3f", lambda row: row.printed.without_dvfs, group="Li 2012"),
        Column("DVFS", "", ".4f", lambda row: row.printed.with_dvfs, group="Li 2012"),
        Column("Ratio", "", ".2f", lambda row: row.printed.ratio, group="Li 2012"),
        Column("Theory", "", ".2f", lambda row: row.theory),
        Column("Error", "%", signed_percent, lambda row: row.ratio.value / row.theory - 1.0),
        name="flits",
        title="Table 6.1: power flit by flit, XY, hot-spot",
        caption="Power relative to no scaling at load 1; 95 % half-widths from independent replications.",
    )


def terminal_summary(result: NocResult) -> TerminalSummary:
    """Return the terminal's summary of a study of a network on chip."""
    return TerminalSummary.of(
        power_table(result),
        factor_table(result),
        distance_table(result),
        compared_table(result),
        own_table(result),
        flits_table(result),
        statements_table(result.statements, caption=result.study.source),
    )


COLOURS, WHOLE_FLOWS_COLOUR = CURVE_COLOURS[:-1], CURVE_COLOURS[-1]
"""Colours of the policies, in their order; greys are for the other curves."""
REFERENCE_COLOURS = {NO_DVFS: GREY, BOUND: "#4b5059", WHOLE_FLOWS: WHOLE_FLOWS_COLOUR}
EQUALITY_RATIO = 1e-6


def power_figure(result: CaseResult) -> Figure:
    """Return power against load of every curve of a case, with the stated values as crosses."""
    full = max(result.loads)
    best = best_curve(result, full)
    spread = _spread(result, best, full)
    sample = "random matrices" if result.case.traffic.pattern == "normal" else "random draws of the routings"
    matrices = f" Means of {result.case.matrices} {sample}{spread}." if result.case.matrices > 1 else ""
    crosses = " Crosses are what the source states." if _stated(result) else ""
    return Figure(
        name=f"power_{result.case.name}",
        title=result.case.title,
        caption=(
            "Power relative to no scaling at load 1; between loads the lines are straight. Dashed lines are the "
            f"proven bounds.{crosses}{matrices}"
        ),
        x=_load_axis(result),
        y=Axis(title="relative power", low=0.0),
        marks=_marks(result, result.mean, lambda stated: stated.relative_power),
    )


def saving_figure(result: CaseResult) -> Figure:
    """Return the ratio of the power without scaling to that of every curve of a case, against load."""
    return Figure(
        name=f"saving_{result.case.name}",
        title="How many times less",
        caption=(
            "Power without scaling divided by power with it, at the same load. At low load every plane runs at its "
            "lowest voltage under every allocation; high load separates them."
        ),
        x=_load_axis(result),
        y=Axis(title="times below no scaling", low=0.0),
        marks=_marks(result, result.factor, lambda stated: stated.load / stated.relative_power),
    )


def best_curve(result: CaseResult, load: float) -> str:
    """Return the policy of least power at a load, without the curves of no scaling and of the bounds."""
    powers = {curve: result.mean(curve, load) for curve in result.curves if curve not in REFERENCE_COLOURS}
    least = min((power for power in powers.values() if not math.isnan(power)), default=math.nan)
    # Powers that differ by rounding alone are equal: the first policy wins.
    return next((curve for curve, power in powers.items() if power <= least * (1 + EQUALITY_RATIO)), next(iter(powers)))


def _marks(
    result: CaseResult, value: Callable[[str, float], float], stated: Callable[[StatedPower], float]
) -> tuple[Mark, ...]:
    """Return a line for every curve, and a cross in its colour for each stated value."""
    coloured = [curve for curve in result.curves if curve not in REFERENCE_COLOURS]
    colours = dict(zip(coloured, cycle(COLOURS), strict=False)) | REFERENCE_COLOURS
    marks: list[Mark] = []
    for curve in result.curves:
        pairs = [(load, power) for load in result.loads if math.isfinite(power := value(curve, load))]
        dashed = curve in (BOUND, WHOLE_FLOWS)
        marks.append(Line.of_pairs(pairs, name=curve_name(curve), colour=colours[curve], dashed=dashed))
    named: set[str] = set()
    for statement in _stated(result):
        name = "read off a figure" if statement.read_off else "stated"
        marks.append(
            Points(
                name=name,
                x=(statement.load,),
                y=(stated(statement),),
                colour=colours[statement.curve],
                symbol="cross",
                size_px=11,
                labels=(f"{curve_name(statement.curve)}: {statement.place}",),
                legend=name not in named,
            )
        )
        named.add(name)
    return tuple(marks)


def _stated(result: CaseResult) -> list[StatedPower]:
    """Return the stated values of curves; a limit belongs to the curve that it refers to."""
    return [stated for stated in result.case.stated if not stated.at_most]


def _load_axis(result: CaseResult) -> Axis:
    # The margin keeps stated values at the highest load off the edge.
    return Axis(title="normalised load", low=0.0, high=1.05 * max(result.loads))


def _spread(result: CaseResult, curve: str, load: float) -> str:
    values = [point.relative_power for point in result.at(curve, load)]
    if len(values) < 2 or stdev(values) < EQUALITY_RATIO:
        return ""
    return f", {curve_name(curve)} with a standard deviation of {stdev(values):.3f}"


def flit_figure(result: NocResult) -> Figure:
    """Return the ratio of power without to power with scaling at the flit level, over alpha squared (table 6.1)."""
    rows = result.dvfs_rows
    alpha_max = max(row.alpha for row in rows)
    steps = (0.02 * number for number in range(5, 51))
    squares = [(load, min(1.0 / load, alpha_max) ** 2) for load in steps]
    load = attrgetter("load")
    return Figure(
        name="flits",
        title="Flit by flit: what scaling saves",
        caption="Power without scaling over power with it; the line is alpha squared, the answer of the flow level.",
        x=Axis(title="normalised load", low=0.0, high=1.05),
        y=Axis(title="NoDVFS / DVFS", low=0.0),
        marks=(
            Line.of_pairs(squares, name="alpha squared", colour=GREY),
            Points.of(
                rows,
                load,
                attrgetter("ratio.value"),
                low=lambda row: row.ratio.value - row.ratio.half_width,
                high=lambda row: row.ratio.value + row.ratio.half_width,
                name="simulated",
                filled=False,
            ),
            Points.of(
                rows,
                load,
                attrgetter("printed.ratio"),
                name="Li 2012, table 6.1",
                colour=CURVE_COLOURS[1],
                symbol="cross",
            ),
        ),
    )


TERMS = (
    (
        "Load",
        "Traffic relative to capacity: at load 1 the most loaded link is full, over all compared routings or under XY "
        "on one plane.",
    ),
    (
        "Power",
        "Power of moving bits only: the sum over flows of rate times hops times the square of the voltage, relative to "
        "NoDVFS at load 1.",
    ),
    (
        "alpha",
        "The factor by which a plane lowers its voltage and clock. Its fullest link sets alpha: if that link is half "
        "full, alpha is 2 and power falls to a quarter. The largest alpha is V_max / V_min.",
    ),
    (
        "Times below no scaling",
        "Power of NoDVFS divided by that of a policy at the same load: 4 means a quarter of the power.",
    ),
)
CURVE_MEANINGS = {
    NO_DVFS: "XY on one plane at full voltage and clock: power is proportional to the load.",
    "xy": "Along the row, then along the column, on one plane with scaled voltage and clock.",
    "yx": "Along the column, then along the row.",
    "2p_es": "Half of each flow takes XY, half YX.",
    "2p_rs": "Each flow is divided between XY and YX at random.",
    "4p_es": "A quarter of each flow takes XY, a quarter YX, and two quarters go over a random router in between.",
    "adaptive": "Each flow, the heaviest first, takes the shortest path whose fullest link is the least loaded so far.",
    "balance": "Moves flows from one plane to the other while the other is less loaded.",
    "mini": "Concentrates heavy flows on one plane, so that the other plane can run slowly.",
    "four_phase": "Li's best algorithm: in four phases, flows move from one plane to the other while that saves power.",
    "search": "Routecast's own search: moves whole flows between planes and shortest paths while power falls.",
    WHOLE_FLOWS: "Proven lower bound for unsplit flows: a plane is at least as fast as its heaviest flow requires.",
    BOUND: "Proven lower bound, even for flows that are split over any paths and planes.",
}


def glossary(result: NocResult) -> Facts:
    """Return the meanings of load, power, alpha and the curves of a result."""
    present = {curve for case in result.cases for curve in case.curves}
    curves = tuple((curve_name(curve), meaning) for curve, meaning in CURVE_MEANINGS.items() if curve in present)
    return Facts(title="What the names mean", rows=(*TERMS, *curves))


MAP_CAPTION = (
    "Numbers are link loads in capacities at full clock. The fullest link of a plane (blue rim) sets alpha, the "
    "slowdown of the whole plane."
)


def page(result: NocResult) -> Page:
    """Return the page of a study of a network on chip."""
    provenance = result.provenance
    return result.page(
        _answer_sentence(result),
        (
            _summary_section(result),
            *map(_case_section, result.cases),
            bool(result.dvfs_rows) and _flits_section(result),
            statements_section(
                result.statements,
                "Statements of the source, beside the same quantities here.",
                caption=result.study.source,
            ),
        ),
        ("Matrices", f"{provenance.trials}, of which {provenance.resumed_trials} come from an earlier run"),
        result.criteria_row,
    )


def _flits_section(result: NocResult) -> Section:
    return Section.of(
        "flits",
        "Flit by flit",
        "Simulated packets of 5 to 10 flits through routers with virtual output queues need the power that "
        "the flow level gives: slowing the clock by alpha divides it by alpha squared.",
        flit_figure(result),
        flits_table(result),
    )


def _answer_sentence(result: NocResult) -> str:
    parts = []
    for case in result.cases:
        load = max(case.loads)
        best = best_curve(case, load)
        parts.append(
            f"{case.case.name} **{case.factor(best, load):.2f}** ({curve_name(best)}{_proven_limit(case, best, load)})"
        )
    return f"How many times less power than without scaling, at the highest load: {', '.join(parts)}."


def _proven_limit(result: CaseResult, curve: str, load: float) -> str:
    """Return the proven limit as text: of whole flows for an allocation, of split flows for a routing."""
    if BOUND not in result.curves:
        return ""
    bound = result.whole_flow_bound(load) if curve not in result.case.routing.policies else result.mean(BOUND, load)
    return f"; {result.mean(NO_DVFS, load) / bound:.2f} is the most"


def _summary_section(result: NocResult) -> Section:
    tiles = []
    for case in result.cases:
        load = max(case.loads)
        best = best_curve(case, load)
        distance = ""
        if {SEARCH, FOUR_PHASE, BOUND} <= set(case.curves):
            distance = f"closes {100 * closed_ratio(case, load):.0f} % of 2P-4PHASE's distance to the bounds"
        elif BOUND in case.curves:
            above = 100 * (case.mean(best, load) / case.mean(BOUND, load) - 1)
            distance = f"{abs(above):.1f} % above the proven bound"
        tiles.append(
            Tile(
                f"{case.factor(best, load):.2f} times",
                f"less power on {case.case.name} traffic with {curve_name(best)}",
                distance,
            )
        )
    distances, compared, own = distance_table(result), compared_table(result), own_table(result)
    return Section.of(
        "summary",
        "How much scaling saves",
        "Every policy at the highest load, beside the proven bounds.",
        Tiles(tuple(tiles)),
        factor_table(result),
        power_table(result),
        bool(distances.rows) and distances,
        bool(compared.rows) and compared,
        bool(own.rows) and own,
        glossary(result),
    )


def _case_section(result: CaseResult) -> Section:
    blocks: list[Block] = []
    if len(result.loads) > 1:
        blocks.append(power_figure(result))
        blocks += [saving_figure(result)] if WHOLE_FLOWS in result.curves else []
    blocks += [
        Drawing(svg=draw_link_map(link_map), caption=f"{link_map.title}. {link_map.caption} {MAP_CAPTION}")
        for link_map in result.maps
    ]
    table = curves_table(result)
    blocks.append(Folded(summary="Every load", table=table) if len(result.loads) > 1 else table)
    return Section(anchor=f"case-{result.case.name}", title=result.case.title, lead=_lead(result), blocks=tuple(blocks))


def _lead(result: CaseResult) -> str:
    load = max(result.loads)
    best = best_curve(result, load)
    sentence = (
        f"At load {load:g}, {curve_name(best)} needs {result.factor(best, load):.2f} times less power than no scaling"
    )
    policies = [*result.case.routing.policies, FOUR_PHASE]
    others = [
        f"{curve_name(curve)} {result.factor(curve, load):.2f}"
        for curve in dict.fromkeys(policies)
        if curve in result.curves and curve != best
    ]
    return sentence + (f"; {', '.join(others)}." if others else ".")
