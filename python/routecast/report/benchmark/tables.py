"""The tables that RFC 2544 sec. 26 and its updates ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from routecast.benchmark.result import (
    BackToBackResult,
    FrameLossResult,
    LatencyResult,
    RecoveryResult,
    ResetResult,
    Spread,
    ThroughputResult,
)
from routecast.report.benchmark.texts import frames_per_second, percent_of, time
from routecast.report.tables import Cell, Column, Table

__all__ = [
    "FRAME",
    "STREAM",
    "Row",
    "back_to_back_table",
    "frame_loss_table",
    "known",
    "latency_statistics_table",
    "latency_table",
    "rate_column",
    "reasons",
    "recovery_table",
    "reset_table",
    "throughput_table",
]


# What the tables of a benchmark share: columns, reasons beneath, columns left out where nothing is known.


class Row(Protocol):
    """What every row of a procedure has."""

    @property
    def stream(self) -> str:
        """Name of the stream."""
        ...

    @property
    def frame_bytes(self) -> int:
        """Frame size, FCS included."""
        ...

    @property
    def reason(self) -> str:
        """Why there is no figure; empty where there is one."""
        ...


STREAM = Column.text("Stream")
FRAME = Column("Frame", "B", "d")
STATE = Column.text("")


def rate_column(title: str, group: str = "") -> Column:
    """Return a column of rates in frames/s, written in full as RFC 2544 wants them."""
    return Column(title, "frames/s", frames_per_second, group=group)


def reasons(rows: Sequence[Row]) -> tuple[str, ...]:
    """Say for each row without a figure why there is none."""
    several = len({row.stream for row in rows}) > 1
    named = (f"{row.frame_bytes} B{f', {row.stream}' if several else ''}: {row.reason}." for row in rows if row.reason)
    return tuple(dict.fromkeys(named))


def sentences(*parts: str) -> str:
    """Join what there is of some sentences."""
    return " ".join(part for part in parts if part)


def known(table: Table) -> Table:
    """Leave out the columns in which nothing is known."""
    kept = [number for number in range(len(table.columns)) if any(_is_known(row[number]) for row in table.rows)]
    if not table.rows or len(kept) == len(table.columns):
        return table
    return replace(
        table,
        columns=tuple(table.columns[number] for number in kept),
        rows=tuple(tuple(row[number] for number in kept) for row in table.rows),
    )


def _is_known(cell: Cell) -> bool:
    return cell not in (None, "") and not (isinstance(cell, float) and math.isnan(cell))


def same(values: Iterable[float]) -> float | None:
    """Return the value that all have; None if they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def throughput_table(result: ThroughputResult) -> Table:
    """Sec. 26.1: every stream, size and goal, with the theoretical limit."""
    words = {"found": "", "maximum": "maximum", "below": "not even the least rate", "undetermined": "not determined"}
    repeated = any(row.repeats_pps.repeats > 1 for row in result.rows)
    columns = [
        STREAM,
        FRAME,
        Column.text("Goal"),
        rate_column("Throughput"),
        rate_column("Theoretical"),
        Column("Share", "", percent_of),
        rate_column("Upper bound"),
        Column("Frames", "Gbit/s", ".3f"),
        Column("Wire", "Gbit/s", ".3f"),
        Column("Power", "W"),
        Column("Packet", "uJ"),
    ]
    if repeated:
        columns += [Column("Searches", "", "d"), Column("sd", "", percent_of)]
    columns += [Column("Trials", "", "d"), STATE]
    rows: list[tuple[Cell, ...]] = []
    for row in result.rows:
        cells: list[Cell] = [
            row.stream,
            row.frame_bytes,
            row.goal,
            row.throughput_pps,
            row.theoretical_pps,
            row.of_theoretical_ratio,
            row.upper_pps,
            row.l2_bps / 1e9,
            row.l1_bps / 1e9,
            row.power.mean_w if row.power else math.nan,
            1e6 * row.power.packet_j if row.power else math.nan,
        ]
        if repeated:
            cells += [row.repeats_pps.repeats, _relative(row.repeats_pps)]
        rows.append((*cells, row.trials, words[row.outcome]))
    lengths = sorted({row.final_trial_s for row in result.rows if math.isfinite(row.final_trial_s)})
    final = f"Final trials took {' or '.join(map(time, lengths))}." if lengths else ""
    table = Table(
        name="throughput",
        title="Throughput",
        caption=sentences(
            "RFC 2544 sec. 26.1. Rates count all ports together. Theoretical: the medium's maximum for the size (sec. "
            "20). Upper bound: the least rate that failed, at the end of the search. Bit rates: of the frames, and "
            "with the 20 bytes that each takes on the wire besides.",
            final,
            result.watts,
        ),
        columns=tuple(columns),
        rows=tuple(rows),
    )
    return known(table)


def _relative(spread: Spread) -> float:
    return spread.sd / spread.mean if spread.mean else math.nan


def latency_table(result: LatencyResult) -> Table:
    """Sec. 26.2: size, rate, media, latency per type of stream."""
    rows = result.rows
    share, repeats = same(row.rate_ratio for row in rows), same(row.latency_s.repeats for row in rows)
    return known(
        Table(
            name="latency",
            title="Latency",
            caption=sentences(
                "RFC 2544 sec. 26.2: the average over "
                + ("the repetitions" if repeats is None else f"{repeats} repetitions")
                + (", at the stated rate." if share is None else f", at {percent_of(share)} of the throughput.")
            ),
            columns=(
                FRAME,
                STREAM,
                rate_column("Rate"),
                Column("Of throughput", "", percent_of),
                Column.text("Media"),
                Column("Latency", "average", time),
                Column("Least", "", time, group="of the repetitions"),
                Column("Most", "", time, group="of the repetitions"),
                Column("Number", "", "d", group="of the repetitions"),
                Column("Loss", "", percent_of),
            ),
            rows=tuple(
                (
                    row.frame_bytes,
                    row.stream,
                    row.rate_pps,
                    row.rate_ratio if share is None else None,
                    result.medium,
                    row.latency_s.mean,
                    row.latency_s.least,
                    row.latency_s.most,
                    row.latency_s.repeats if repeats is None else None,
                    row.loss_ratio,
                )
                for row in rows
            ),
        )
    )


def latency_statistics_table(result: LatencyResult) -> Table:
    """RFC 8219 sec. 7.2 and 7.3: typical and worst case, delay variation."""
    share = same(row.rate_ratio for row in result.rows)
    return known(
        Table(
            name="latency-statistics",
            title="Latency in percentiles, and its variation",
            caption="RFC 8219 sec. 7.2: typical is the median of the medians, worst the median of the 99.9th "
            "percentiles. Sec. 7.3: PDV is the 99.9th percentile less the least delay, IPDV the difference from frame "
            "to frame.",
            columns=(
                FRAME,
                STREAM,
                Column("Of throughput", "", percent_of),
                Column("Least", "", time),
                Column("1 %", "", time, group="percentiles"),
                Column("50 %", "typical", time, group="percentiles"),
                Column("99 %", "", time, group="percentiles"),
                Column("99.9 %", "worst", time, group="percentiles"),
                Column("Most", "", time),
                Column("PDV", "", time),
                Column("Least", "", time, group="IPDV"),
                Column("Median", "", time, group="IPDV"),
                Column("Most", "", time, group="IPDV"),
            ),
            rows=tuple(
                (
                    row.frame_bytes,
                    row.stream,
                    row.rate_ratio if share is None else None,
                    row.min_s,
                    row.p1_s,
                    row.typical_s,
                    row.p99_s,
                    row.worst_s,
                    row.max_s,
                    row.pdv_s,
                    *row.ipdv_s,
                )
                for row in result.rows
            ),
        )
    )


def frame_loss_table(result: FrameLossResult) -> Table:
    """Sec. 26.3: loss at every share of the maximum rate."""
    return Table(
        name="frame-loss",
        title="Frame loss rate",
        caption=sentences(
            f"RFC 2544 sec. 26.3, in steps of {percent_of(result.step_ratio)} of the maximum rate for the size."
        ),
        columns=(
            STREAM,
            FRAME,
            Column("Input rate", "% of theoretical", lambda ratio: f"{100.0 * ratio:.1f}"),
            rate_column("Offered"),
            rate_column("Forwarded"),
            Column("Loss", "%", lambda ratio: f"{100.0 * ratio:.4g}"),
        ),
        rows=tuple(
            (row.stream, row.frame_bytes, row.rate_ratio, row.offered_pps, row.forwarded_pps, row.loss_ratio)
            for row in result.rows
        ),
    )


def back_to_back_table(result: BackToBackResult) -> Table:
    """Sec. 26.4 as RFC 9004 has it."""
    words = {"found": "", "limit": "the longest allowed", "skipped": "not tested", "undetermined": "not determined"}
    table = Table.of(
        result.rows,
        replace(FRAME, getter="frame_bytes"),
        replace(STREAM, getter="stream"),
        Column("Average", "frames", ",.1f", "burst_frames.mean", group="length of burst"),
        Column("Least", "frames", ",.0f", "burst_frames.least", group="length of burst"),
        Column("Most", "frames", ",.0f", "burst_frames.most", group="length of burst"),
        Column("sd", "frames", ",.1f", "burst_frames.sd", group="length of burst"),
        Column("Tests", "", "d", "burst_frames.repeats"),
        Column("Step", "frames", "d", "resolution_frames"),
        Column("Implied", "", time, "implied_buffer_s", group="buffer time"),
        Column("Corrected", "", time, "corrected_buffer_s", group="buffer time"),
        replace(STATE, getter=lambda row: words[row.outcome]),
        name="back-to-back",
        title="Back-to-back frames",
        caption=sentences(
            "RFC 9004 sec. 6: longest bursts at the maximum rate without loss, and the buffer that explains them."
        ),
    )
    return known(table)


def recovery_table(result: RecoveryResult) -> Table:
    """Sec. 26.5: size, rate used as throughput, recovery time."""
    words = {"found": "", "no overload": "the overload was none", "undetermined": "not determined"}
    table = Table(
        name="recovery",
        title="System recovery",
        caption=sentences("RFC 2544 sec. 26.5. Below zero: the last loss came before the rate was cut."),
        columns=(
            FRAME,
            STREAM,
            rate_column("As throughput", "rates"),
            rate_column("Overload", "rates"),
            rate_column("Then", "rates"),
            Column("Recovery", "average", time),
            Column("Most", "", time),
            Column("Tests", "", "d"),
            Column("Loss", "in the overload", percent_of),
            STATE,
        ),
        rows=tuple(
            (
                row.frame_bytes,
                row.stream,
                row.throughput_pps,
                row.overload_pps,
                row.recovery_pps,
                row.recovery_s.mean,
                row.recovery_s.most,
                row.recovery_s.repeats,
                row.overload_loss_ratio,
                words[row.outcome],
            )
            for row in result.rows
        ),
    )
    return known(table)


def reset_table(result: ResetResult) -> Table:
    """Return RFC 6201's figures by kind of reset."""
    table = Table(
        name="reset",
        title="Reset",
        caption=sentences(f"RFC 6201, {result.method}."),
        columns=(
            Column.text("Reset"),
            Column.text("RFC 6201 sec."),
            FRAME,
            STREAM,
            rate_column("Rate"),
            Column("Rate", "Mbit/s", ",.1f"),
            Column("Lost", "frames, average", ",.0f"),
            Column("Reset time", "average", time),
            Column("Least", "", time),
            Column("Most", "", time),
            Column("Trials", "", "d"),
        ),
        rows=tuple(
            (
                row.kind,
                row.section,
                row.frame_bytes,
                row.stream,
                row.rate_pps,
                row.l2_bps / 1e6,
                row.lost_frames.mean,
                row.reset_s.mean,
                row.reset_s.least,
                row.reset_s.most,
                row.reset_s.repeats,
            )
            for row in result.rows
        ),
    )
    return known(table)
