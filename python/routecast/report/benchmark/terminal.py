"""Tables of a benchmark on a terminal: the RFCs' columns, rates in frames/s beside the medium's maximum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from routecast.quantity import format_duration
from routecast.report.tables import Cell, Column, Table, percent

if TYPE_CHECKING:
    from routecast.benchmark.result import BenchmarkResult

__all__ = ["benchmark_tables", "plan_table"]


def benchmark_tables(result: BenchmarkResult) -> Iterator[Table]:
    """Yield a table for each procedure that has a result, then what was left out, then the deviations."""
    several = len(result.setup.streams) > 1
    for name in result.procedures:
        yield _TABLES[name](getattr(result, name), several)
    if result.not_run:
        yield _not_run(result)
    if result.compliance.deviations:
        yield _deviations(result)


def plan_table(rows: Sequence[tuple[str, int, int, float]]) -> Table:
    """Return what a run is expected to take: procedure, stages, trials, seconds."""
    total = sum(seconds for *_, seconds in rows)
    trials = sum(row[2] for row in rows)
    body: list[tuple[Cell, ...]] = [
        (name.replace("_", " "), stages, trials, hours(seconds)) for name, stages, trials, seconds in rows
    ]
    return Table(
        name="plan",
        title="Expected on the wire",
        caption="Searches depend on what they find.",
        columns=(Column.text("Procedure"), Column("Stages", "", ",d"), Column("Trials", "", ",d"), Column("Time")),
        rows=(*body, ("all", sum(row[1] for row in rows), trials, hours(total))),
        strong=frozenset({len(body)}),
    )


def hours(seconds: float) -> str:
    """Write a span of seconds to hours for people who wait.

    Examples
    --------
    >>> hours(45.2), hours(3700.0)
    ('45 s', '1 h 2 min')
    """
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(seconds / 60.0)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _time(value: float) -> str:
    return ("−" if value < 0.0 else "") + format_duration(abs(value)) if value else "0 s"


_STREAM = Column.text("Stream", "stream")
_FRAME = Column("Frame", "B", "d", "frame_bytes")
_PPS = ",.0f"


def _of(rows: Sequence[Any], several: bool, *columns: Column, name: str, title: str, caption: str) -> Table:
    """Return a procedure's table, with the stream where there is more than one."""
    shown = (_STREAM, *columns) if several else columns
    return Table.of(rows, *shown, name=name, title=title, caption=caption)


def _reasons(rows: Sequence[Any]) -> str:
    named = (f"{row.frame_bytes} B: {row.reason}." for row in rows if row.reason)
    return " ".join(dict.fromkeys(named))


def _throughput(result: Any, several: bool) -> Table:
    watts = (
        Column("Power", "W", getter=lambda row: row.power.mean_w if row.power else math.nan),
        Column("Packet", "uJ", getter=lambda row: 1e6 * row.power.packet_j if row.power else math.nan),
    )
    return _of(
        result.rows,
        several,
        _FRAME,
        Column.text("Goal", "goal"),
        Column("Throughput", "frames/s", _PPS, "throughput_pps"),
        Column("Upper bound", "frames/s", _PPS, "upper_pps"),
        Column("Theoretical", "frames/s", _PPS, "theoretical_pps"),
        Column("Of it", "%", percent, "of_theoretical_ratio"),
        *(watts if result.watts else ()),
        name="throughput",
        title="Throughput (RFC 2544 sec. 26.1)",
        caption=" ".join(filter(None, (f"By {result.search}.", result.watts, _reasons(result.rows)))),
    )


def _latency(result: Any, several: bool) -> Table:
    return _of(
        result.rows,
        several,
        _FRAME,
        Column("Rate", "frames/s", _PPS, "rate_pps"),
        Column("Mean", "", _time, "latency_s.mean"),
        Column("Median", "", _time, "typical_s"),
        Column("p99.9", "", _time, "worst_s"),
        Column("PDV", "", _time, "pdv_s"),
        Column("Loss", "%", percent, "loss_ratio"),
        name="latency",
        title="Latency (RFC 2544 sec. 26.2; RFC 8219 sec. 7)",
        caption=f"Mean: {_repeats(row.latency_s.repeats for row in result.rows)}. {_reasons(result.rows)}".strip(),
    )


def _frame_loss(result: Any, several: bool) -> Table:
    return _of(
        result.rows,
        several,
        _FRAME,
        Column("Of maximum", "%", percent, "rate_ratio"),
        Column("Offered", "frames/s", _PPS, "offered_pps"),
        Column("Forwarded", "frames/s", _PPS, "forwarded_pps"),
        Column("Loss", "%", percent, "loss_ratio"),
        name="frame_loss",
        title="Frame loss rate (RFC 2544 sec. 26.3)",
        caption=_reasons(result.rows),
    )


def _back_to_back(result: Any, several: bool) -> Table:
    return _of(
        result.rows,
        several,
        _FRAME,
        Column("Burst", "frames", _PPS, "burst_frames.mean"),
        Column("Least", "frames", _PPS, "burst_frames.least"),
        Column("Most", "frames", _PPS, "burst_frames.most"),
        Column("sd", "frames", ",.1f", "burst_frames.sd"),
        Column("Corrected buffer", "", _time, "corrected_buffer_s"),
        name="back_to_back",
        title="Back-to-back frames (RFC 9004)",
        caption=f"{_repeats(row.burst_frames.repeats for row in result.rows)}. {_reasons(result.rows)}".strip(),
    )


def _recovery(result: Any, several: bool) -> Table:
    caption = "Last lost frame after the end of the overload; below zero: the last loss came before. "
    return _of(
        result.rows,
        several,
        _FRAME,
        Column("Overload", "frames/s", _PPS, "overload_pps"),
        Column("Then", "frames/s", _PPS, "recovery_pps"),
        Column("Recovery", "", _time, "recovery_s.mean"),
        Column("Least", "", _time, "recovery_s.least"),
        Column("Most", "", _time, "recovery_s.most"),
        name="recovery",
        title="System recovery (RFC 2544 sec. 26.5)",
        caption=(caption + _reasons(result.rows)).strip(),
    )


def _reset(result: Any, several: bool) -> Table:
    return _of(
        result.rows,
        several,
        Column.text("Reset", "kind"),
        _FRAME,
        Column("Rate", "frames/s", _PPS, "rate_pps"),
        Column("Lost", "frames", _PPS, "lost_frames.mean"),
        Column("Time", "", _time, "reset_s.mean"),
        Column("Trials", "", "d", "reset_s.repeats"),
        name="reset",
        title="Reset (RFC 6201)",
        caption=_reasons(result.rows),
    )


_TABLES: dict[str, Callable[[Any, bool], Table]] = {
    "throughput": _throughput,
    "latency": _latency,
    "frame_loss": _frame_loss,
    "back_to_back": _back_to_back,
    "recovery": _recovery,
    "reset": _reset,
}


def _repeats(numbers: Iterator[int]) -> str:
    fewest = min(numbers, default=0)
    return f"average of {fewest} repetitions" if fewest != 1 else "one repetition"


def _not_run(result: BenchmarkResult) -> Table:
    columns = (Column.text("Section", "section"), Column.text("What", "what"), Column.text("Why", "reason"))
    return Table.of(result.not_run, *columns, name="not_run", title="Not run")


def _deviations(result: BenchmarkResult) -> Table:
    return Table.of(
        result.compliance.deviations,
        Column.text("Section", lambda one: f"{one.document} sec. {one.section}"),
        Column.text("", "requirement"),
        Column.text("Wanted", "wanted"),
        Column.text("Done", "done"),
        name="deviations",
        title="Deviations",
    )
