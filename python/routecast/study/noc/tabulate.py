"""The tables of a study of a network on chip, for the terminal and for the report alike."""

from __future__ import annotations

from collections.abc import Callable

from routecast.report.tables import Cell, Column, Table, signed_percent
from routecast.study.noc.judged import BEFORE, OURS, closed_ratio
from routecast.study.noc.point import BOUND, NO_DVFS, WHOLE, curve_name
from routecast.study.noc.result import CaseResult, NocResult
from routecast.study.shown import Shown
from routecast.study.stated import statements_table

__all__ = [
    "STATED_IN",
    "compared_table",
    "curves_table",
    "distance_table",
    "factor_table",
    "flits_table",
    "power_table",
    "shown",
]

STATED_IN = "N. Li 2012, chapters 6 and 7."


def power_table(result: NocResult) -> Table:
    """Return the relative power of every policy at the highest load of every case."""
    return Table(
        name="power",
        title="Power at the highest load",
        caption=(
            "Relative to NoDVFS (XY without scaling) at load 1. Bounds are proven: what splits flows over paths and "
            "planes needs at least the one for split flows, what keeps flows whole needs at least both."
        ),
        columns=_by_case(result, ".4f"),
        rows=_rows(result, CaseResult.mean),
    )


def factor_table(result: NocResult) -> Table:
    """Return how many times below no scaling every policy is at the highest load of every case."""
    return Table(
        name="factors",
        title="Times below no scaling, at the highest load",
        caption="Power of NoDVFS over a policy's: 4 is a quarter of the power. No policy is above its bounds.",
        columns=_by_case(result, ".2f"),
        rows=_rows(result, CaseResult.factor),
    )


def _by_case(result: NocResult, form: str) -> tuple[Column, ...]:
    return (
        Column(title="Policy", align="left"),
        *(Column(title=one.case.name, form=form) for one in result.cases),
    )


def _rows(result: NocResult, value: Callable[[CaseResult, str, float], float]) -> tuple[tuple[Cell, ...], ...]:
    policies = dict.fromkeys(curve for one in result.cases for curve in one.curves if curve not in (WHOLE, BOUND))
    return tuple(
        (
            curve_name(curve),
            *(value(one, curve, max(one.loads)) if curve in one.curves else None for one in result.cases),
        )
        for curve in (*policies, *_bounds(result))
    )


def _bounds(result: NocResult) -> tuple[str, ...]:
    there = {curve for one in result.cases for curve in one.curves}
    return tuple(curve for curve in (WHOLE, BOUND) if curve in there)


def curves_table(one: CaseResult) -> Table:
    """Return the relative power of every curve of a case at every load."""
    loads = one.loads
    return Table(
        name=f"curves_{one.case.name}",
        title=one.case.title,
        caption="Power relative to no scaling at load 1.",
        columns=(
            Column(title="Load", form="g"),
            *(Column(title=curve_name(curve), form=".4f") for curve in one.curves),
        ),
        rows=tuple((load, *(one.mean(curve, load) for curve in one.curves)) for load in loads),
    )


def distance_table(result: NocResult) -> Table:
    """Return how much of the thesis' distance to the bounds our allocation closes, of cases that have all of them."""
    cases = [one for one in result.cases if {OURS, BEFORE, BOUND} <= set(one.curves)]
    rows = []
    for one in cases:
        load = max(one.loads)
        most = one.mean(NO_DVFS, load) / one.least(load)
        before, ours = one.factor(BEFORE, load), one.factor(OURS, load)
        rows.append((one.case.name, before, ours, most, closed_ratio(one, load)))
    return Table(
        name="distance",
        title="From 2P-4PHASE to the most that is possible",
        caption=(
            "Times below no scaling; the most is proven for whole flows. Closed is the part of the distance in power "
            "between 2P-4PHASE and that bound that our search saves."
        ),
        columns=(
            Column(title="Traffic", align="left"),
            Column(title=curve_name(BEFORE), form=".2f"),
            Column(title=curve_name(OURS), form=".2f"),
            Column(title="At most", form=".2f"),
            Column(title="Closed", unit="%", form=lambda ratio: f"{100.0 * ratio:.0f}"),
        ),
        rows=tuple(rows),
    )


def compared_table(result: NocResult) -> Table:
    """Return every stated power beside ours."""
    return Table(
        name="compared",
        title="Stated and found",
        caption="Power relative to no scaling at load 1, and how many times below no scaling that is.",
        columns=(
            Column(title="Traffic", align="left"),
            Column(title="Policy", align="left"),
            Column(title="Stated", form=".3f"),
            Column(title="Found", form=".3f"),
            Column(title="Error", unit="%", form=signed_percent),
            Column(title="Stated", unit="times", form=".2f"),
            Column(title="Found", unit="times", form=".2f"),
            Column(title="Where", align="left", wrap=True, wide=True),
        ),
        rows=tuple(
            (
                one.case,
                curve_name(one.stated.curve) + (", at most" if one.stated.at_most else ""),
                one.stated.relative_power,
                one.found,
                one.error_ratio,
                one.stated.load / one.stated.relative_power,
                one.stated.load / one.found,
                one.stated.where,
            )
            for one in result.compared
        ),
    )


def flits_table(result: NocResult) -> Table:
    """Return table 6.1: power at the flit level with and without scaling, the thesis' beside ours."""
    return Table(
        name="flits",
        title="Table 6.1: power flit by flit, XY, hot-spot",
        caption="Power relative to no scaling at load 1; 95 % half-widths from independent replications.",
        columns=(
            Column(title="Load", form="g"),
            Column(title="NoDVFS", form=".3f", group="here"),
            Column(title="DVFS", form=".4f", group="here"),
            Column(title="Ratio", form=".3f", group="here"),
            Column(title="±", form=".3f", group="here"),
            Column(title="NoDVFS", form=".3f", group="thesis"),
            Column(title="DVFS", form=".4f", group="thesis"),
            Column(title="Ratio", form=".2f", group="thesis"),
            Column(title="Theory", form=".2f"),
            Column(title="Error", unit="%", form=signed_percent),
        ),
        rows=tuple(
            (
                row.load,
                row.without_dvfs.value,
                row.with_dvfs.value,
                row.ratio.value,
                row.ratio.half_width,
                row.thesis.without_dvfs,
                row.thesis.with_dvfs,
                row.thesis.ratio,
                row.theory,
                row.ratio.value / row.theory - 1.0,
            )
            for row in result.dvfs_rows
        ),
    )


def shown(result: NocResult) -> Shown:
    """Return what a terminal shows of a study of a network on chip."""
    tables = [power_table(result), factor_table(result)]
    distances = distance_table(result)
    tables += [distances] if distances.rows else []
    tables += [compared_table(result)] if result.compared else []
    tables += [flits_table(result)] if result.dvfs_rows else []
    tables += [statements_table(result.statements, caption=STATED_IN)] if result.statements else []
    return Shown(tables=tuple(tables))
