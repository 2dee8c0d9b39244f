"""Tables and the page of a validation, and the table of the next measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from routecast.calibration.next_points import half_width_ratio
from routecast.quantity.comparison import held_out
from routecast.show.page import Folded, Listing, Live, Page, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, scaled, signed_percent

if TYPE_CHECKING:
    from routecast.calibration import Prediction, Validation
    from routecast.calibration.advice import Advice
    from routecast.calibration.latency import LatencyPrediction
    from routecast.evaluate.points import Point

__all__ = ["LIMITS", "advice_table", "rows_table", "validation_page", "validation_tables"]

LIMITS = {"cpu": "cores", "link": "links", "nic": "NIC", "shared": "shared", "link and cpu": "links, cores"}
"""Short names of the limits for the column of a table."""

_MAX_ROWS = 40


def validation_tables(validation: Validation) -> tuple[Table, ...]:
    """Return every row with its prediction, and the errors by series; then the same of latencies that were measured."""
    rates = rows_table(validation.rows), _errors(validation)
    return (*rates, *latency_tables(validation))


def latency_tables(validation: Validation) -> tuple[Table, ...]:
    """Return every latency with its prediction, and the errors by statistic; nothing where none was measured."""
    if not validation.latencies:
        return ()
    return _latencies(validation.latencies), *([_latency_errors(validation)] if validation.latency_summaries else [])


def validation_page(
    validation: Validation, points: Sequence[Point], *, live: Live | None, source: str, command: str
) -> Page:
    """Return the page of a validation with its errors at held-out points; ``live`` is the live panel."""
    summary = validation.summary
    held_out_rows = held_out(validation.rows)
    inside = sum(row.is_covered for row in held_out_rows)
    count = sum(row.role == "calibrate" for row in validation.rows)
    answer = f"Calibrated from {count} measurement{'s' if count != 1 else ''}, with no held-out points to validate it."
    tiles: tuple[Tile, ...] = ()
    if held_out_rows:
        answer = (
            f"Calibrated from **{count}** measurements, routecast predicts {len(held_out_rows)} others within "
            f"**{summary['mean_abs_error_ratio']:.1%}** on average; {inside} of them are inside their 95 % interval."
        )
        tiles = (
            Tile(f"{summary['mean_abs_error_ratio']:.2%}", "mean absolute error, held out"),
            Tile(f"{summary['max_abs_error_ratio']:.2%}", "largest"),
            Tile(f"{inside} of {len(held_out_rows)}", "inside their 95 % interval"),
        )
    rows, errors, *latencies = validation_tables(validation)
    notes = tuple(f"{note[0].upper()}{note[1:]}." for note in validation.notes)
    facts = tuple(f"{fact.text}." for fact in validation.facts)
    sections = [
        Section.of(
            "errors",
            "Accuracy of the predictions",
            "",
            bool(tiles) and Tiles(tiles),
            rows if len(validation.rows) <= _MAX_ROWS else Folded(summary="All rows", table=rows),
            bool(held_out_rows) and errors,
        ),
        *([Section.of("latencies", "Accuracy of the latencies", "", *latencies)] if latencies else []),
        Section.of(
            "known",
            "Before you rely on it",
            "",
            bool(facts) and Listing(title="Ask first", entries=facts),
            Listing(title="Notes", entries=notes),
        ),
    ]
    names = list(dict.fromkeys(point.series for point in points))
    if live is not None:
        sections.insert(0, Section(anchor="explore", title="", blocks=(live,), is_listed=False))
    return Page(
        title=names[0] or "Validation" if len(names) == 1 else f"{len(names)} series",
        question="How well is this router known?",
        answer=answer,
        sections=tuple(sections),
        provenance=(("Measurements", source), ("Command", f"`{command}`")),
    )


def rows_table(rows: Sequence[Prediction]) -> Table:
    """Return rows with their predictions."""
    has_flows = any(row.point.flows is not None for row in rows)
    has_predicted = any(row.role == "predicted" for row in rows)
    return Table.of(
        rows,
        len({row.point.series for row in rows}) > 1 and Column.text("Series", lambda row: row.point.series),
        Column("Cores", "", "d", lambda row: row.point.cores),
        has_flows and Column("Flows", "", "d", lambda row: row.point.flows),
        Column("Frame", "B", "g", lambda row: row.point.frame_bytes),
        Column("Measured", "Mpps", "#.4g", lambda row: row.measured / 1e6),
        Column("Predicted", "Mpps", "#.4g", lambda row: row.predicted / 1e6),
        Column("95 % interval", "Mpps", getter=_interval),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio),
        Column.text("Limit", lambda row: LIMITS.get(row.limit, row.limit)),
        name="rows",
        title="Measured and predicted",
        caption="Shaded rows calibrate; the others were held out."
        + " Rows without a measured rate are predicted only." * has_predicted,
        strong=lambda row: row.role == "calibrate",
    )


def _interval(row: Prediction) -> str | None:
    return f"{row.low / 1e6:#.4g}–{row.high / 1e6:#.4g}" if math.isfinite(row.low) else None


def _latencies(rows: Sequence[LatencyPrediction]) -> Table:
    in_us = scaled(1e6, ".4g")
    has_calibrating = any(row.role == "calibrate" for row in rows)
    by_which = (
        "Shaded rows calibrate; the others were held out."
        if has_calibrating
        else "Each is predicted from the rows of other loads or conditions."
    )
    return Table.of(
        rows,
        len({row.conditions.series for row in rows}) > 1 and Column.text("Series", lambda row: row.conditions.series),
        Column("Cores", "", "d", lambda row: row.conditions.cores),
        len({row.conditions.frame_bytes for row in rows}) > 1
        and Column("Frame", "B", "g", lambda row: row.conditions.frame_bytes),
        Column("Load", "%", percent_of_load, lambda row: row.load_ratio),
        Column.text("Of", lambda row: row.statistic),
        Column("Measured", "us", in_us, lambda row: row.measured),
        Column("Predicted", "us", in_us, _latency_predicted),
        Column("95 % interval", "us", getter=_latency_interval),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio),
        Column.text("Inside", _inside),
        name="latencies",
        title="Latency, measured and predicted",
        caption=f"{by_which} Load: share of the predicted capacity. Beyond 95 % of it nothing is stated without a row "
        "there. The least and the greatest are as measured, never predicted.",
        strong=lambda row: row.role == "calibrate",
    )


def percent_of_load(ratio: float) -> str:
    """Write a load in percent of the capacity."""
    return f"{100.0 * ratio:.3g}"


def _latency_predicted(row: LatencyPrediction) -> float | str:
    return "not stated" if math.isfinite(row.ring_s[1]) else row.predicted


def _latency_interval(row: LatencyPrediction) -> str | None:
    low_s, middle_s, high_s = row.ring_s
    if math.isfinite(middle_s):
        return f"full ring: about {1e6 * middle_s:.0f}, {1e6 * low_s:.0f}–{1e6 * high_s:.0f}"
    return f"{1e6 * row.low:#.4g}–{1e6 * row.high:#.4g}" if row.intervals else None


def _inside(row: LatencyPrediction) -> str:
    if row.conditions.disturbed:
        return "disturbed"
    return "" if not row.intervals else "yes" if row.is_covered else "no"


def _latency_errors(validation: Validation) -> Table:
    return Table.of(
        validation.latency_summaries.items(),
        Column.text("Latency", lambda row: row[0]),
        Column("Rows", "", "g", _value("held_out")),
        Column("Mean", "%", percent, _value("mean_abs_error_ratio")),
        Column("Median", "%", percent, _value("median_abs_error_ratio")),
        Column("Largest", "%", percent, _value("max_abs_error_ratio")),
        Column("Inside", "%", _whole_percent, _value("coverage_95_ratio")),
        Column("Score", "", ".2f", _value("interval_score")),
        name="latency_errors",
        title="Absolute errors of the latencies",
        caption="Of the rows that are predicted; the last two columns as above.",
    )


def _value(key: str) -> Callable[[tuple[str, Mapping[str, float]]], float]:
    """Return the getter of a column from a name and a summary."""
    return lambda row: row[1][key]


def _errors(validation: Validation) -> Table:
    summaries = [(series.name or "all", series.summary) for series in validation.series]
    if len(summaries) > 1:
        summaries.append(("all", validation.summary))
    return Table.of(
        summaries,
        Column.text("Series", lambda row: row[0]),
        Column("Points", "", "g", _value("held_out")),
        Column("Mean", "%", percent, _value("mean_abs_error_ratio")),
        Column("Median", "%", percent, _value("median_abs_error_ratio")),
        Column("90th", "%", percent, _value("p90_abs_error_ratio")),
        Column("Largest", "%", percent, _value("max_abs_error_ratio")),
        Column("Inside", "%", _whole_percent, _value("coverage_95_ratio")),
        Column("Score", "", ".2f", _value("interval_score")),
        name="errors",
        title="Absolute errors at the held-out points",
        caption="Inside: share of these points in their 95 % interval. Score: mean width of the intervals and 40 times "
        "the misses, as natural logarithms.",
    )


def advice_table(advice: Sequence[Advice]) -> Table:
    """Return the next measurements by series, and the precision of the targets before and after each."""
    rows = [(series.series, rank, point) for series in advice for rank, point in enumerate(series.points, start=1)]
    return Table.of(
        rows,
        len(advice) > 1 and Column.text("Series", lambda row: row[0]),
        Column("Next", "", "d", lambda row: row[1]),
        Column("Cores", "", "d", lambda row: row[2].point.cores),
        Column("Frame", "B", getter=lambda row: _frames(row[2].point)),
        Column("Before", "± %", percent, lambda row: half_width_ratio(row[2].width_before)),
        Column("After", "± %", percent, lambda row: half_width_ratio(row[2].width_after)),
        name="next",
        title="What to measure next",
        caption="±: half the 95 % interval of the target rates (root mean square), before the measurement and as "
        "expected after it; each row follows the measurement of the row above.",
    )


def _frames(point: Point) -> str:
    return point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g}"


def _whole_percent(ratio: float) -> str:
    return f"{100.0 * ratio:.0f}"
