"""Tables of a validation and of the accuracy board."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from routecast.calibration.next_points import half_width_ratio
from routecast.calibration.replay import DESIGNS, WITHIN_RATIO
from routecast.quantity.comparison import held_out
from routecast.show.page import Folded, Listing, Live, Page, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, signed_percent

if TYPE_CHECKING:
    from routecast.calibration import Prediction, Validation
    from routecast.calibration.advice import Advice
    from routecast.calibration.board import Board, Group
    from routecast.calibration.replay import Replayed
    from routecast.evaluate.points import Point

__all__ = [
    "LIMITS",
    "advice_table",
    "board_remarks",
    "board_tables",
    "replay_table",
    "rows_table",
    "validation_page",
    "validation_tables",
    "weakness_table",
]

LIMITS = {"cpu": "cores", "link": "links", "nic": "NIC", "shared": "shared", "link and cpu": "links, cores"}
"""Short names of the limits for the column of a table."""

_BOARD = (
    "Each source is predicted with weights of laws and scales learnt from the others; the priors of the laws' shapes "
    "and of the bus are the same for all, and were chosen in sight of the board. Inside: share of the points in their "
    "50, 80 and 95 % intervals. Width and score are of 95 % intervals, in natural logarithms: the score adds 40 times "
    "what a point misses its interval by. Best: the naive law with the smallest value on the same points."
)

_MAX_ROWS = 40


def validation_tables(validation: Validation) -> tuple[Table, ...]:
    """Return every row with its prediction, and the errors by series."""
    return rows_table(validation.rows), _errors(validation)


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
    rows, errors = validation_tables(validation)
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


def board_tables(board: Board) -> tuple[Table, ...]:
    """Return one row per pack, and one per source, for all and for points at line rate."""
    packs = _accuracy_table(
        [pack.group for pack in board.packs],
        name="board",
        title=f"Accuracy at {board.held_out} held-out points that calibration has not seen",
        first_column="Pack",
        caption=_BOARD,
    )
    groups = _accuracy_table(
        board.groups,
        name="sources",
        title="The same by source",
        first_column="Source",
        caption="Points at the rate of a link or a card are not in the other rows, because they do not test a model.",
    )
    return packs, groups


def weakness_table(board: Board) -> Table:
    """Return the packs on which the board misses its coverage or loses to the best single law."""
    return Table.of(
        board.weaknesses,
        Column.text("Pack", lambda row: row.pack),
        Column("Points", "", "d", lambda row: row.points),
        Column.text("Criterion", lambda row: row.criterion),
        Column("Value", getter=lambda row: _with_unit(row.value, row.is_ratio)),
        Column("Better", getter=lambda row: f"{_with_unit(row.reference, row.is_ratio)} {row.reference_name}"),
        Column("Repeats", "± %", getter=lambda row: _repeats(row.repeats_to_ratio, is_stated=row.is_stated)),
        name="weaknesses",
        title="Known weaknesses: where intervals miss their coverage or a single law is better",
        caption="Coverage and score are those of 95 % intervals; the coverage should be between 92 and 99 %, the score "
        "is in natural logarithms. Repeats: standard deviation of repeated measurements of the pack over their mean.",
    )


def _whole_percent(ratio: float) -> str:
    return f"{100.0 * ratio:.0f}"


def _with_unit(value: float, is_ratio: bool) -> str:
    return f"{percent(value)} %" if is_ratio else f"{value:.2f}"


def _repeats(ratio: float | None, *, is_stated: bool) -> str:
    if ratio is None:
        return "not known"
    return f"{percent(ratio)} stated" if is_stated else percent(ratio)


def _accuracy_table(groups: Sequence[Group], *, name: str, title: str, first_column: str, caption: str) -> Table:
    def summary(key: str) -> Callable[[Group], float]:
        return lambda group: group.summary[key]

    def inside(group: Group) -> str:
        return " ".join(_whole_percent(group.summary[f"coverage_{level}_ratio"]) for level in (50, 80, 95))

    error = "error in %"
    return Table.of(
        groups,
        Column.text(first_column, lambda group: group.name),
        Column("Points", "", "d", lambda group: len(group.rows)),
        Column("Median", "", percent, summary("median_abs_error_ratio"), group=error),
        Column("Mean", "", percent, summary("mean_abs_error_ratio"), group=error),
        Column("90th", "", percent, summary("p90_abs_error_ratio"), group=error),
        Column("Inside", "%", getter=inside),
        Column("Width", "", ".2f", summary("interval_log_width")),
        Column("Score", "", ".2f", summary("interval_score")),
        Column("Best median", "%", getter=lambda group: _best(group, "median_abs_error_ratio", percent)),
        Column("Best score", getter=lambda group: _best(group, "interval_score", "{:.2f}".format)),
        name=name,
        title=title,
        caption=caption,
    )


def _best(group: Group, key: str, format_value: Callable[[float], str]) -> str:
    name, value = group.best_baseline(key)
    return f"{format_value(value)} {name}"


def replay_table(replayed: Replayed) -> Table:
    """Return the number of measurements of each design, by source."""
    return Table.of(
        replayed.medians.items(),
        Column.text("Source", lambda row: row[0]),
        Column("Starts", "", "d", lambda row: int(row[1]["starts"])),
        *(Column(design.capitalize(), "", "g", _value(design)) for design in DESIGNS),
        name="replay",
        title=f"Measurements until nine of ten others are predicted within {percent(WITHIN_RATIO)} %",
        caption="Medians over starts at a random condition of a random series of six conditions or more. Next: the "
        "advice of `routecast next`; uniform: random; fixed: the first, the middle and the last, then random.",
    )


def board_remarks(board: Board) -> tuple[str, ...]:
    """Return remarks on missed goals of packs, and on errors beyond their record."""
    missed = [
        f"{pack.name}: {_key_title(key)} is {percent(_value_of(pack.group, key))} %, the goal is {percent(limit)} %"
        for pack in board.packs
        for key, (limit, kept) in pack.targets.items()
        if not kept
    ]
    grown = [
        f"{pack}: {_key_title(key)} has grown from {percent(recorded)} to {percent(now)} %"
        for pack, keys in board.worse().items()
        for key, (now, recorded) in keys.items()
    ]
    return (*missed, *grown)


def _key_title(key: str) -> str:
    if key == "half_of_best_baseline":
        return "median error (goal: half of the best baseline's)"
    return key.replace("_abs_error_ratio", " error").replace("max", "largest").replace("p90", "90th percentile of the")


def _value_of(group: Group, key: str) -> float:
    return group.summary["median_abs_error_ratio" if key == "half_of_best_baseline" else key]
