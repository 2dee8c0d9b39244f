"""Tables of the accuracy board, of the replayed measurements, and of the judged counts of cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from routecast.replications.accuracy.board import Board, Group
from routecast.replications.accuracy.latency import LatencyBoard, LatencyBoardResult
from routecast.replications.accuracy.replay import DESIGNS, WITHIN_RATIO, Replayed
from routecast.replications.accuracy.sizing import SizeBoard
from routecast.show.tables import Column, Table, percent

__all__ = [
    "board_remarks",
    "board_tables",
    "latency_board_tables",
    "latency_remarks",
    "replay_table",
    "size_board_table",
    "weakness_table",
]

_BOARD = (
    "Each source is predicted with weights of laws and scales learnt from the others; the priors of the laws' shapes "
    "and of the bus are the same for all, and were chosen in sight of the board. Inside: share of the points in their "
    "50, 80 and 95 % intervals. Width and score are of 95 % intervals, in natural logarithms: the score adds 40 times "
    "what a point misses its interval by. Best: the naive law with the smallest value on the same points."
)


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


def weakness_table(board: Board | LatencyBoard) -> Table:
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


def _value(key: str) -> Callable[[tuple[str, Mapping[str, float]]], float]:
    """Return the getter of a column from a name and a summary."""
    return lambda row: row[1][key]


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


def latency_board_tables(board: LatencyBoard) -> tuple[Table, ...]:
    """Return a table for each source: rows given, loads predicted, errors beside simpler rules, and intervals."""

    def error(name: str) -> Callable[[LatencyBoardResult], float]:
        return lambda result: result.score.errors[name]

    errors = "median error in %"
    return tuple(
        Table.of(
            results,
            Column.text("Statistic", lambda result: result.statistic),
            Column("Given", "%", getter=lambda result: _loads(result.question.given)),
            Column("Predicted", "%", getter=lambda result: _band(result.question.low, result.question.high)),
            Column("Rows", "", "d", lambda result: result.score.predictions),
            Column("Curve", "", percent, error("ours"), group=errors),
            *(
                Column(name.capitalize() if name.islower() else name, "", percent, error(name), group=errors)
                for name in results[0].score.errors
                if name != "ours"
            ),
            Column("95", "", _whole_percent, lambda result: result.score.held_95, group="inside, %"),
            Column("80", "", _whole_percent, lambda result: result.score.held_80, group="inside, %"),
            Column("Score", "", ".2f", lambda result: result.score.winkler),
            name=f"latency-{source}",
            title=f"Latencies of {source} at loads that were not given",
            caption="The prior has not seen the source. Loads are shares of the capacity; each rule is given the same "
            "rows. Score: width of the 95 % interval in natural logarithms, and 40 times what a row misses it by.",
        )
        for source, results in board.sources.items()
    )


def latency_remarks(board: LatencyBoard) -> tuple[str, ...]:
    """Return remarks on values beyond their record."""
    return tuple(
        f"{name}: {_key_title(key)} has grown from {_with_unit(recorded, is_ratio)} to {_with_unit(now, is_ratio)}"
        for name, keys in board.worse().items()
        for key, (now, recorded) in keys.items()
        for is_ratio in (key.endswith("_ratio"),)
    )


def _loads(ratios: Sequence[float]) -> str:
    return ", ".join(f"{100.0 * ratio:g}" for ratio in ratios)


def _band(low_ratio: float, high_ratio: float) -> str:
    return f"{100.0 * low_ratio:g}-{100.0 * high_ratio:g}"


def _key_title(key: str) -> str:
    if key == "half_of_best_baseline":
        return "median error (goal: half of the best baseline's)"
    if key == "interval_score":
        return "score of the 95 % intervals"
    return key.replace("_abs_error_ratio", " error").replace("max", "largest").replace("p90", "90th percentile of the")


def _value_of(group: Group, key: str) -> float:
    return group.summary["median_abs_error_ratio" if key == "half_of_best_baseline" else key]


def size_board_table(board: SizeBoard) -> Table:
    """Return the table of the accuracy of sizing on published measurements of routers."""
    summary = board.summary
    return Table.of_facts(
        (
            ("Targets", f"{summary['asked']:.0f}"),
            ("with a certain count", f"{summary['answered']:.0f}"),
            ("with a best count of 80 % or more", f"{summary['with_best_count']:.0f}"),
            *(
                (
                    f"of them stated from {low} to {high} %: stated, met",
                    f"{summary[f'from_{low}_to_{high}']:.0f}: {summary[f'from_{low}_to_{high}_stated_ratio']:.1%}, "
                    f"{summary[f'from_{low}_to_{high}_met_ratio']:.1%}",
                )
                for low, high in ((80, 90), (90, 95), (95, 97))
            ),
            ("their stated probability, mean", f"{summary['stated_ratio']:.1%}"),
            ("met by the measurement", f"{summary['met_ratio']:.1%}"),
            ("of these with a stated probability below 97 %", f"{summary['near']:.0f}"),
            ("stated, mean", f"{summary['near_stated_ratio']:.1%}"),
            ("met", f"{summary['near_met_ratio']:.1%}"),
            ("of all at held-out points", f"{summary['held_out']:.0f}"),
            ("stated, mean", f"{summary['held_out_stated_ratio']:.1%}"),
            ("met", f"{summary['held_out_met_ratio']:.1%}"),
            ("cores over the least that would have sufficed, median", f"{summary['cores_over_least']:.2f}"),
        ),
        name="size-board",
        title="Counts of cores with a probability of 95 %, judged by measurements",
        caption="Targets: half, two thirds and all of the largest measured rate of each series and frames; counts to "
        "choose from: those that were measured; priors without the series' source.",
    )
