"""Tables of a validation and of the accuracy board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from routecast.calibrate.next_points import half_width_ratio
from routecast.calibrate.replay import DESIGNS, WITHIN_RATIO
from routecast.report.tables import Cell, Column, Table, percent, signed_percent
from routecast.study.tables.views import LIMITS

if TYPE_CHECKING:
    from routecast.calibrate.advice import Advice
    from routecast.calibrate.board import Board, Group
    from routecast.calibrate.replay import Replayed
    from routecast.calibrate.validate import Row, Validation

__all__ = ["advice_table", "board_remarks", "board_tables", "rows_table", "validation_tables"]


_BOARD = (
    "Each source is predicted with priors learnt from the others. Inside: share of the points in their 50, 80 and 95 % "
    "intervals. Width and score are of 95 % intervals, in natural logarithms: the score adds 40 times what a point "
    "misses its interval by. Best: the naive law with the smallest value on the same points."
)


def _whole_percent(ratio: float) -> str:
    return f"{100.0 * ratio:.0f}"


_INSIDE = Column(title="Inside", unit="%", form=_whole_percent)
_SCORE = Column(title="Score", form=".2f")
_SCORED = (
    "Inside: share of these points in their 95 % interval. Score: mean width of the intervals and 40 times the misses, "
    "as natural logarithms."
)


def validation_tables(validation: Validation) -> tuple[Table, ...]:
    """Return every row with its prediction, and the errors by series."""
    return rows_table(validation.rows), _errors(validation)


def rows_table(shown: Sequence[Row]) -> Table:
    """Return rows with their predictions."""
    several = len({row.point.series for row in shown}) > 1
    by_flows = any(row.point.flows is not None for row in shown)
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
    for row in shown:
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
        strong=frozenset(n for n, row in enumerate(shown) if row.role == "calibrate"),
    )


def _errors(validation: Validation) -> Table:
    summaries = [(series.name or "all", series.summary) for series in validation.series]
    if len(summaries) > 1:
        summaries.append(("all", validation.summary))
    names = (
        *("mean_abs_error_ratio", "median_abs_error_ratio", "p90_abs_error_ratio", "max_abs_error_ratio"),
        *("coverage_95_ratio", "interval_score"),
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
        rows=tuple((name, summary["held_out"], *(summary[each] for each in names)) for name, summary in summaries),
    )


def advice_table(found: Sequence[Advice]) -> Table:
    """Return what to measure next, by series, and how well the targets are known before and after each."""
    several = len(found) > 1
    rows: list[tuple[Cell, ...]] = []
    for each in found:
        for number, made in enumerate(each.points, start=1):
            point = made.point
            cells: list[Cell] = [each.series, number] if several else [number]
            frames = point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g}"
            before, after = (half_width_ratio(width) for width in (made.width_before, made.width_after))
            rows.append((*cells, point.cores, frames, before, after))
    return Table(
        name="next",
        title="What to measure next",
        caption=(
            "±: half the 95 % interval of what is to be known (root mean square) before the measurement and, expected, "
            "after it; each row goes on from the one before."
        ),
        columns=(
            *([Column(title="Series", align="left")] if several else []),
            Column(title="Next", form="d"),
            Column(title="Cores", form="d"),
            Column(title="Frame", unit="B"),
            Column(title="Before", unit="± %", form=percent),
            Column(title="After", unit="± %", form=percent),
        ),
        rows=tuple(rows),
    )


def board_tables(board: Board) -> tuple[Table, ...]:
    """Return one row per pack, and one per source, for all and for points at line rate."""
    packs = _judged(
        [pack.group for pack in board.packs],
        name="board",
        title=f"Accuracy at {board.held_out} held-out points that calibration has not seen",
        first="Pack",
        caption=_BOARD,
    )
    groups = _judged(
        board.groups,
        name="sources",
        title="The same by source",
        first="Source",
        caption="Points at the rate of a link or a card are not in the other rows: they are no test of a model.",
    )
    return packs, groups


def _judged(groups: Sequence[Group], *, name: str, title: str, first: str, caption: str) -> Table:
    error = "error in %"
    keys = ("median_abs_error_ratio", "mean_abs_error_ratio", "p90_abs_error_ratio")
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=(
            Column(title=first, align="left"),
            Column(title="Points", form="d"),
            Column(title="Median", form=percent, group=error),
            Column(title="Mean", form=percent, group=error),
            Column(title="90th", form=percent, group=error),
            Column(title="Inside", unit="%"),
            Column(title="Width", form=".2f"),
            Column(title="Score", form=".2f"),
            Column(title="Best median", unit="%"),
            Column(title="Best score"),
        ),
        rows=tuple(
            (
                each.name,
                len(each.scored),
                *(each.summary[key] for key in keys),
                " ".join(_whole_percent(each.summary[f"coverage_{level}_ratio"]) for level in (50, 80, 95)),
                each.summary["interval_log_width"],
                each.summary["interval_score"],
                _best(each, "median_abs_error_ratio"),
                _best(each, "interval_score"),
            )
            for each in groups
        ),
    )


def _best(group: Group, key: str) -> str:
    name, value = group.best_baseline(key)
    return f"{percent(value) if key.endswith('error_ratio') else format(value, '.2f')} {name}"


def replay_table(replayed: Replayed) -> Table:
    """Return how many measurements each design needed, by source."""
    return Table(
        name="replay",
        title=f"Measurements until nine of ten others are predicted within {percent(WITHIN_RATIO)} %",
        caption=(
            "Medians over starts at a random condition of a random series of six conditions or more. Next: what "
            "`routecast next` asks for; uniform: any at random; fixed: the first, the middle and the last, then any."
        ),
        columns=(
            Column(title="Source", align="left"),
            Column(title="Starts", form="d"),
            *(Column(title=design.capitalize(), form="g") for design in DESIGNS),
        ),
        rows=tuple(
            (name, int(medians["starts"]), *(medians[design] for design in DESIGNS))
            for name, medians in replayed.medians.items()
        ),
    )


def board_remarks(board: Board) -> tuple[str, ...]:
    """Say which goals a pack misses, and which errors have grown beyond their record."""
    goals = [
        f"{pack.name}: {_named(key)} is {percent(_reached(pack.group.summary, key))} %, the goal is {percent(limit)} %"
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
    return key.replace("_abs_error_ratio", " error").replace("max", "largest").replace("p90", "90th percentile of the")


def _reached(summary: Mapping[str, float], key: str) -> float:
    return summary["median_abs_error_ratio" if key == "half_of_best_baseline" else key]
