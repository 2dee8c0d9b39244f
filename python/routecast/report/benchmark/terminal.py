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
        columns=(
            Column(title="Procedure", align="left"),
            Column(title="Stages", form=",d"),
            Column(title="Trials", form=",d"),
            Column(title="Time"),
        ),
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


_FRAME = Column(title="Frame", unit="B", form="d")
_PPS = ",.0f"


def _columns(several: bool, *columns: Column) -> tuple[Column, ...]:
    return ((Column(title="Stream", align="left"),) if several else ()) + columns


def _rows(
    rows: Sequence[Any],
    several: bool,
    cells: Callable[[Any], tuple[Cell, ...]],
) -> tuple[tuple[Cell, ...], ...]:
    return tuple(((row.stream,) if several else ()) + cells(row) for row in rows)


def _reasons(rows: Sequence[Any]) -> str:
    named = (f"{row.frame_bytes} B: {row.reason}." for row in rows if row.reason)
    return " ".join(dict.fromkeys(named))


def _throughput(result: Any, several: bool) -> Table:
    watts = (Column(title="Power", unit="W"), Column(title="Packet", unit="uJ")) if result.watts else ()
    return Table(
        name="throughput",
        title="Throughput (RFC 2544 sec. 26.1)",
        caption=" ".join(filter(None, (f"By {result.search}.", result.watts, _reasons(result.rows)))),
        columns=_columns(
            several,
            _FRAME,
            Column(title="Goal", align="left"),
            Column(title="Throughput", unit="frames/s", form=_PPS),
            Column(title="Upper bound", unit="frames/s", form=_PPS),
            Column(title="Theoretical", unit="frames/s", form=_PPS),
            Column(title="Of it", unit="%", form=percent),
            *watts,
        ),
        rows=_rows(
            result.rows,
            several,
            lambda row: (
                row.frame_bytes,
                row.goal,
                row.throughput_pps,
                row.upper_pps,
                row.theoretical_pps,
                row.of_theoretical_ratio,
                *((row.power.mean_w, 1e6 * row.power.packet_j) if row.power else watts and (math.nan, math.nan)),
            ),
        ),
    )


def _latency(result: Any, several: bool) -> Table:
    return Table(
        name="latency",
        title="Latency (RFC 2544 sec. 26.2; RFC 8219 sec. 7)",
        caption=f"Mean: {_repeats(row.latency_s.repeats for row in result.rows)}. {_reasons(result.rows)}".strip(),
        columns=_columns(
            several,
            _FRAME,
            Column(title="Rate", unit="frames/s", form=_PPS),
            Column(title="Mean", form=_time),
            Column(title="Median", form=_time),
            Column(title="p99.9", form=_time),
            Column(title="PDV", form=_time),
            Column(title="Loss", unit="%", form=percent),
        ),
        rows=_rows(
            result.rows,
            several,
            lambda row: (
                row.frame_bytes,
                row.rate_pps,
                row.latency_s.mean,
                row.typical_s,
                row.worst_s,
                row.pdv_s,
                row.loss_ratio,
            ),
        ),
    )


def _frame_loss(result: Any, several: bool) -> Table:
    return Table(
        name="frame_loss",
        title="Frame loss rate (RFC 2544 sec. 26.3)",
        caption=_reasons(result.rows),
        columns=_columns(
            several,
            _FRAME,
            Column(title="Of maximum", unit="%", form=percent),
            Column(title="Offered", unit="frames/s", form=_PPS),
            Column(title="Forwarded", unit="frames/s", form=_PPS),
            Column(title="Loss", unit="%", form=percent),
        ),
        rows=_rows(
            result.rows,
            several,
            lambda row: (row.frame_bytes, row.rate_ratio, row.offered_pps, row.forwarded_pps, row.loss_ratio),
        ),
    )


def _back_to_back(result: Any, several: bool) -> Table:
    return Table(
        name="back_to_back",
        title="Back-to-back frames (RFC 9004)",
        caption=f"{_repeats(row.burst_frames.repeats for row in result.rows)}. {_reasons(result.rows)}".strip(),
        columns=_columns(
            several,
            _FRAME,
            Column(title="Burst", unit="frames", form=_PPS),
            Column(title="Least", unit="frames", form=_PPS),
            Column(title="Most", unit="frames", form=_PPS),
            Column(title="sd", unit="frames", form=",.1f"),
            Column(title="Corrected buffer", form=_time),
        ),
        rows=_rows(
            result.rows,
            several,
            lambda row: (
                row.frame_bytes,
                row.burst_frames.mean,
                row.burst_frames.least,
                row.burst_frames.most,
                row.burst_frames.sd,
                row.corrected_buffer_s,
            ),
        ),
    )


def _recovery(result: Any, several: bool) -> Table:
    return Table(
        name="recovery",
        title="System recovery (RFC 2544 sec. 26.5)",
        caption=(
            "Last lost frame after the end of the overload; below zero: the last loss came before. "
            + _reasons(result.rows)
        ).strip(),
        columns=_columns(
            several,
            _FRAME,
            Column(title="Overload", unit="frames/s", form=_PPS),
            Column(title="Then", unit="frames/s", form=_PPS),
            Column(title="Recovery", form=_time),
            Column(title="Least", form=_time),
            Column(title="Most", form=_time),
        ),
        rows=_rows(
            result.rows,
            several,
            lambda row: (
                row.frame_bytes,
                row.overload_pps,
                row.recovery_pps,
                row.recovery_s.mean,
                row.recovery_s.least,
                row.recovery_s.most,
            ),
        ),
    )


def _reset(result: Any, several: bool) -> Table:
    return Table(
        name="reset",
        title="Reset (RFC 6201)",
        caption=_reasons(result.rows),
        columns=_columns(
            several,
            Column(title="Reset", align="left"),
            _FRAME,
            Column(title="Rate", unit="frames/s", form=_PPS),
            Column(title="Lost", unit="frames", form=_PPS),
            Column(title="Time", form=_time),
            Column(title="Trials", form="d"),
        ),
        rows=_rows(
            result.rows,
            several,
            lambda row: (
                row.kind,
                row.frame_bytes,
                row.rate_pps,
                row.lost_frames.mean,
                row.reset_s.mean,
                row.reset_s.repeats,
            ),
        ),
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
    return Table(
        name="not_run",
        title="Not run",
        caption="",
        columns=(
            Column(title="Section", align="left"),
            Column(title="What", align="left"),
            Column(title="Why", align="left"),
        ),
        rows=tuple((one.section, one.what, one.reason) for one in result.not_run),
    )


def _deviations(result: BenchmarkResult) -> Table:
    return Table(
        name="deviations",
        title="Deviations",
        caption="",
        columns=(
            Column(title="Section", align="left"),
            Column(title="", align="left"),
            Column(title="Wanted", align="left"),
            Column(title="Done", align="left"),
        ),
        rows=tuple(
            (f"{one.document} sec. {one.section}", one.requirement, one.wanted, one.done)
            for one in result.compliance.deviations
        ),
    )
