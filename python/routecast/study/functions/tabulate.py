"""The tables of a study of functions, for the terminal and for the report alike."""

from __future__ import annotations

import math
from collections.abc import Iterable

from routecast.report.tables import Cell, Column, Table, percent
from routecast.study.functions.result import FunctionResult, FunctionRow
from routecast.study.result import ErrorSummary
from routecast.study.shown import Shown

__all__ = ["function_table", "hand_table", "shown", "summary_table"]


def _whole_percent(ratio: float) -> str:
    return f"{100.0 * ratio:+.0f}"


def function_table(result: FunctionResult, title: str, *, shortest: bool = False) -> Table:
    """Return the points of one function, or only those with its smallest frames: estimated, refined, measured."""
    rows = [row for row in result.rows if row.point.title == title]
    if shortest:
        smallest = min(row.point.frame_bytes for row in rows)
        rows = [row for row in rows if row.point.frame_bytes == smallest]
    return Table(
        name=f"function-{title.replace(' ', '-')}",
        title=title,
        caption="Throughput of one core; the marked rows refined the estimate. Spread is the range of the repeats.",
        columns=(
            Column(title="Tables", align="left"),
            Column(title="Found in", align="left"),
            Column(title="Traffic", align="left"),
            Column(title="Frame", unit="B", form="d"),
            Column(title="Measured", unit="ns", form=".1f"),
            Column(title="Measured", unit="Mpps", form=".2f"),
            Column(title="Spread", unit="%", form=percent, wide=True),
            Column(title="Estimate", unit="Mpps", form=".2f", group="from the probe"),
            Column(title="Error", unit="%", form=_whole_percent, group="from the probe"),
            Column(title="Refined", unit="Mpps", form=".2f", group="refined"),
            Column(title="Error", unit="%", form=_whole_percent, group="refined"),
        ),
        rows=tuple(_cells(row) for row in rows),
        strong=frozenset(number for number, row in enumerate(rows) if row.point.refines),
    )


def _cells(row: FunctionRow) -> tuple[Cell, ...]:
    return (
        row.point.size,
        row.found_in,
        row.point.traffic,
        row.point.frame_bytes,
        1e9 / row.measured_pps,
        row.measured_pps / 1e6,
        row.spread_ratio,
        row.estimated_pps / 1e6,
        row.error_ratio,
        row.refined_pps / 1e6,
        row.refined_error_ratio,
    )


def summary_table(result: FunctionResult) -> Table:
    """Return how far the estimates are off, by function and over all points."""
    rows: list[tuple[Cell, ...]] = []
    for title in (*result.titles, "all"):
        chosen = [row for row in result.rows if title in ("all", row.point.title)]
        before = _sizes(row.error_ratio for row in chosen)
        after = _sizes(row.refined_error_ratio for row in chosen if not row.point.refines)
        rows.append((title, len(chosen), *before, *after))
    return Table(
        name="errors",
        title="Error of the estimated throughput",
        caption="Absolute relative errors; the points that refined are left out of the refined errors.",
        columns=(
            Column(title="Function", align="left"),
            Column(title="Points", form="d"),
            Column(title="Median", unit="%", form=percent, group="from the probe"),
            Column(title="90th pct", unit="%", form=percent, group="from the probe"),
            Column(title="Median", unit="%", form=percent, group="refined"),
            Column(title="90th pct", unit="%", form=percent, group="refined"),
        ),
        rows=tuple(rows),
        strong=frozenset({len(rows) - 1}),
    )


def _sizes(errors: Iterable[float]) -> tuple[float, float]:
    summary = ErrorSummary.of(errors)
    return summary.median_abs_error_ratio, summary.p90_abs_error_ratio


def hand_table(result: FunctionResult) -> Table | None:
    """Return functions beside the best hand loop for their lookup, None where none was run."""
    rows = [row for row in result.rows if math.isfinite(row.hand.frames_s)]
    if not rows:
        return None
    return Table(
        name="hand-loops",
        title="Functions beside hand-written loops",
        caption=(
            "The hand loop does the same lookup on the same frames in one fused loop; the lookup alone has its keys "
            "ready. The lines of the tables alone cost what the last columns say, as the probe found it."
        ),
        columns=(
            Column(title="Function", align="left"),
            Column(title="Tables", align="left"),
            Column(title="Found in", align="left", wide=True),
            Column(title="Function", unit="ns", form=".1f"),
            Column(title="Hand loop", unit="ns", form=".1f"),
            Column(title="Ratio", form=".2f"),
            Column(title="Lookup alone", unit="ns", form=".1f"),
            Column(title="Batched", unit="ns", form=".1f", group="lines of tables alone"),
            Column(title="One by one", unit="ns", form=".1f", group="lines of tables alone"),
        ),
        rows=tuple(
            (
                row.point.title,
                row.point.size,
                row.found_in,
                1e9 / row.measured_pps,
                1e9 * row.hand.frames_s,
                1.0 / (row.measured_pps * row.hand.frames_s),
                1e9 * row.hand.lookup_s,
                1e9 * row.hand.bound_s,
                1e9 * row.hand.one_by_one_s,
            )
            for row in rows
        ),
    )


def shown(result: FunctionResult) -> Shown:
    """Return what a terminal shows of a study of functions."""
    tables = [function_table(result, title, shortest=True) for title in result.titles]
    hand = hand_table(result)
    tables += [hand] if hand else []
    return Shown(tables=(*tables, summary_table(result)), notes=result.notes)
