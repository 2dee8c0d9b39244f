"""Tables of a validation and of the accuracy board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from routecast.report.tables import Cell, Column, Table, percent, signed_percent
from routecast.study.tabulate import LIMITS

if TYPE_CHECKING:
    from routecast.calibrate.board import Board
    from routecast.calibrate.validate import Validation

__all__ = ["board_remarks", "board_table", "validation_tables"]


_INSIDE = Column(title="Inside", unit="%", form=lambda ratio: f"{100.0 * ratio:.0f}")
_SCORE = Column(title="Score", form=".2f")
_SCORED = (
    "Inside: share of these points in their 95 % interval. Score: mean width of the intervals and 40 times the misses, "
    "as natural logarithms."
)


def validation_tables(validation: Validation) -> tuple[Table, ...]:
    """Return every row with its prediction, and the errors by series."""
    return _rows(validation), _errors(validation)


def _rows(validation: Validation) -> Table:
    several = len(validation.series) > 1
    by_flows = any(row.point.flows is not None for row in validation.rows)
    columns = [Column(title="Series", align="left")] if several else []
    columns += [Column(title="Cores", form="d")]
    columns += [Column(title="Flows", form="d")] if by_flows else []
    columns += [
        Column(title="Frame", unit="B", form="g"),
        Column(title="Measured", unit="Mpps", form="#.4g"),
        Column(title="Predicted", unit="Mpps", form="#.4g"),
        Column(title="95 % interval", unit="Mpps"),
        Column(title="Error", unit="%", form=signed_percent),
        Column(title="Limit", align="left"),
    ]
    rows: list[tuple[Cell, ...]] = []
    for row in validation.rows:
        made, point = row.prediction, row.point
        cells: list[Cell] = [point.series] if several else []
        cells += [point.cores, point.flows] if by_flows else [point.cores]
        cells += [
            point.frame_bytes,
            point.throughput_pps / 1e6,
            made.throughput_pps / 1e6,
            f"{made.low_pps / 1e6:#.4g}–{made.high_pps / 1e6:#.4g}" if made.low_pps == made.low_pps else None,
            row.error_ratio,
            LIMITS.get(made.limit, made.limit),
        ]
        rows.append(tuple(cells))
    return Table(
        name="rows",
        title="Measured and predicted",
        caption="Shaded rows calibrate; the others were held out.",
        columns=tuple(columns),
        rows=tuple(rows),
        strong=frozenset(n for n, row in enumerate(validation.rows) if row.role == "calibrate"),
    )


def _errors(validation: Validation) -> Table:
    summaries = [(series.name or "all", series.summary) for series in validation.series]
    if len(summaries) > 1:
        summaries.append(("all", validation.summary))
    names = (
        *("mean_abs_error_ratio", "median_abs_error_ratio", "p90_abs_error_ratio", "max_abs_error_ratio"),
        *("interval_coverage_ratio", "interval_score"),
    )
    return Table(
        name="errors",
        title="Absolute errors at the held-out points",
        caption=_SCORED,
        columns=(
            Column(title="Series", align="left"),
            Column(title="Points", form="g"),
            Column(title="Mean", unit="%", form=percent),
            Column(title="Median", unit="%", form=percent),
            Column(title="90th", unit="%", form=percent),
            Column(title="Largest", unit="%", form=percent),
            _INSIDE,
            _SCORE,
        ),
        rows=tuple(
            (name, summary["held_out"], *(summary[each] for each in names)) for name, summary in summaries
        ),
    )


def board_table(board: Board) -> Table:
    """Return one row per pack: our errors at its held-out points, the best baseline's median, and the coverage."""
    group = "routecast, error in %"
    return Table(
        name="board",
        title=f"Accuracy at {board.held_out} held-out points that calibration has not seen",
        caption=(
            "Each source is predicted with priors learnt from the others. Best baseline: the naive law with the "
            f"smallest median error on the same points. {_SCORED}"
        ),
        columns=(
            Column(title="Pack", align="left"),
            Column(title="Points", form="d"),
            Column(title="Median", unit="%", form=percent, group=group),
            Column(title="Mean", unit="%", form=percent, group=group),
            Column(title="90th", unit="%", form=percent, group=group),
            Column(title="Largest", unit="%", form=percent, group=group),
            Column(title="Best", unit="baseline", align="left"),
            Column(title="Median", unit="%", form=percent, group="baseline"),
            _INSIDE,
            _SCORE,
        ),
        rows=tuple(
            (
                pack.name,
                pack.held_out,
                pack.summary["median_abs_error_ratio"],
                pack.summary["mean_abs_error_ratio"],
                pack.summary["p90_abs_error_ratio"],
                pack.summary["max_abs_error_ratio"],
                pack.best_baseline[0],
                pack.best_baseline[1],
                pack.coverage_ratio,
                pack.interval_score,
            )
            for pack in board.packs
        ),
    )


def board_remarks(board: Board) -> tuple[str, ...]:
    """Say which goals a pack misses, and which errors have grown beyond their record."""
    goals = [
        f"{pack.name}: {_named(key)} is {percent(_reached(pack.summary, key))} %, the goal is {percent(limit)} %"
        for pack in board.packs
        for key, (limit, kept) in pack.targets.items()
        if not kept
    ]
    grown = [
        f"{pack}: {_named(key)} has grown from {percent(recorded)} to {percent(now)} %"
        for pack, keys in board.worse().items()
        for key, (now, recorded) in keys.items()
    ]
    return (*goals, *grown)


def _named(key: str) -> str:
    if key == "half_of_best_baseline":
        return "median error (goal: half of the best baseline's)"
    return (
        key.replace("_abs_error_ratio", " error")
        .replace("max", "largest")
        .replace("p90", "90th percentile of the")
    )


def _reached(summary: Mapping[str, float], key: str) -> float:
    return summary["median_abs_error_ratio" if key == "half_of_best_baseline" else key]
