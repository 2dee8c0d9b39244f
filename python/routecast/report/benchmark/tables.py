"""The tables that RFC 2544 sec. 26 and its updates ask for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from routecast.benchmark.result import (
    BackToBackResult,
    BenchmarkResult,
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
    "back_to_back_table",
    "deviations_table",
    "frame_loss_table",
    "latency_statistics_table",
    "latency_table",
    "not_run_table",
    "recovery_table",
    "reset_table",
    "throughput_table",
    "trials_table",
]


class _Row(Protocol):
    @property
    def stream(self) -> str: ...
    @property
    def frame_bytes(self) -> int: ...
    @property
    def reason(self) -> str: ...


_STREAM = Column(title="Stream", align="left")
_FRAME = Column(title="Frame", unit="B", form="d")
_STATE = Column(title="", align="left")


def _pps(title: str, group: str = "") -> Column:
    return Column(title=title, unit="frames/s", form=frames_per_second, group=group)


def _why(rows: Sequence[_Row]) -> str:
    named = dict.fromkeys(f"{row.frame_bytes} B, {row.stream}: {row.reason}." for row in rows if row.reason)
    return " ".join(named)


def _sentence(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def throughput_table(result: ThroughputResult) -> Table:
    """Sec. 26.1: every stream, size and goal, with the theoretical limit."""
    words = {
        "found": "",
        "maximum": "all that the medium carries",
        "below": "not even the least rate",
        "undetermined": "not determined",
    }
    repeated = any(row.repeats_pps.repeats > 1 for row in result.rows)
    columns = [
        _STREAM,
        _FRAME,
        Column(title="Goal", align="left"),
        _pps("Throughput"),
        _pps("Theoretical"),
        Column(title="Of theoretical", form=percent_of),
        Column(title="Of frames", unit="Mbit/s", form=",.1f", group="bit rate"),
        Column(title="On the wire", unit="Mbit/s", form=",.1f", group="bit rate"),
        _pps("Lower", "last bounds of the search"),
        _pps("Upper", "last bounds of the search"),
    ]
    if repeated:
        columns += [
            Column(title="Searches", form="d", group="repetitions"),
            Column(title="sd", form=percent_of, group="repetitions"),
        ]
    columns += [Column(title="Final trial", form=time), Column(title="Trials", form="d"), _STATE]
    rows: list[tuple[Cell, ...]] = []
    for row in result.rows:
        cells: list[Cell] = [
            row.stream,
            row.frame_bytes,
            row.goal,
            row.throughput_pps,
            row.theoretical_pps,
            row.of_theoretical_ratio,
            row.l2_bps / 1e6,
            row.l1_bps / 1e6,
            row.lower_pps,
            row.upper_pps,
        ]
        if repeated:
            cells += [row.repeats_pps.repeats, _relative(row.repeats_pps)]
        rows.append((*cells, row.final_trial_s, row.trials, words[row.outcome]))
    return Table(
        name="throughput",
        title="Throughput",
        caption=_sentence(
            "RFC 2544 sec. 26.1. Rates count all ports together; theoretical is the medium's maximum for "
            "the size (sec. 20).",
            _why(result.rows),
        ),
        columns=tuple(columns),
        rows=tuple(rows),
    )


def _relative(spread: Spread) -> float:
    return spread.sd / spread.mean if spread.mean else math.nan


def latency_table(result: LatencyResult) -> Table:
    """Sec. 26.2: size, rate, media, latency per type of stream."""
    return Table(
        name="latency",
        title="Latency",
        caption=_sentence(
            "RFC 2544 sec. 26.2: the average over the repetitions, at the stated rate.", _why(result.rows)
        ),
        columns=(
            _FRAME,
            _STREAM,
            _pps("Rate"),
            Column(title="Of throughput", form=percent_of),
            Column(title="Media", align="left"),
            Column(title="Latency", unit="average", form=time),
            Column(title="Least", form=time, group="of the repetitions"),
            Column(title="Most", form=time, group="of the repetitions"),
            Column(title="Number", form="d", group="of the repetitions"),
            Column(title="Loss", form=percent_of),
        ),
        rows=tuple(
            (
                row.frame_bytes,
                row.stream,
                row.rate_pps,
                row.rate_ratio,
                result.medium,
                row.latency_s.mean,
                row.latency_s.least,
                row.latency_s.most,
                row.latency_s.repeats,
                row.loss_ratio,
            )
            for row in result.rows
        ),
    )


def latency_statistics_table(result: LatencyResult) -> Table:
    """RFC 8219 sec. 7.2 and 7.3: typical and worst case, delay variation."""
    return Table(
        name="latency-statistics",
        title="Latency in percentiles, and its variation",
        caption="RFC 8219 sec. 7.2: typical is the median of the medians, worst the median of the 99.9th percentiles. "
        "Sec. 7.3: PDV is the 99.9th percentile less the least delay, IPDV the difference from frame to frame.",
        columns=(
            _FRAME,
            _STREAM,
            Column(title="Of throughput", form=percent_of),
            Column(title="Least", form=time),
            Column(title="1 %", form=time, group="percentiles"),
            Column(title="Typical, 50 %", form=time, group="percentiles"),
            Column(title="99 %", form=time, group="percentiles"),
            Column(title="Worst, 99.9 %", form=time, group="percentiles"),
            Column(title="Most", form=time),
            Column(title="PDV", form=time),
            Column(title="Least", form=time, group="IPDV"),
            Column(title="Median", form=time, group="IPDV"),
            Column(title="Most", form=time, group="IPDV"),
        ),
        rows=tuple(
            (
                row.frame_bytes,
                row.stream,
                row.rate_ratio,
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


def frame_loss_table(result: FrameLossResult) -> Table:
    """Sec. 26.3: loss at every share of the maximum rate."""
    return Table(
        name="frame-loss",
        title="Frame loss rate",
        caption=_sentence(
            f"RFC 2544 sec. 26.3, in steps of {percent_of(result.step_ratio)} of the maximum rate for the size.",
            _why(result.rows),
        ),
        columns=(
            _STREAM,
            _FRAME,
            Column(title="Input rate", unit="% of theoretical", form=lambda ratio: f"{100.0 * ratio:.1f}"),
            _pps("Offered"),
            _pps("Forwarded"),
            Column(title="Loss", unit="%", form=lambda ratio: f"{100.0 * ratio:.4g}"),
        ),
        rows=tuple(
            (row.stream, row.frame_bytes, row.rate_ratio, row.offered_pps, row.forwarded_pps, row.loss_ratio)
            for row in result.rows
        ),
    )


def back_to_back_table(result: BackToBackResult) -> Table:
    """Sec. 26.4 as RFC 9004 has it."""
    words = {
        "found": "",
        "limit": "the longest burst allowed passed",
        "skipped": "not tested: throughput is the maximum",
        "undetermined": "not determined",
    }
    return Table(
        name="back-to-back",
        title="Back-to-back frames",
        caption=_sentence(
            "RFC 9004 sec. 6: longest bursts at the maximum rate without loss, and the buffer that explains them.",
            _why(result.rows),
        ),
        columns=(
            _FRAME,
            _STREAM,
            Column(title="Average", unit="frames", form=",.1f", group="length of burst"),
            Column(title="Least", unit="frames", form=",.0f", group="length of burst"),
            Column(title="Most", unit="frames", form=",.0f", group="length of burst"),
            Column(title="sd", unit="frames", form=",.1f", group="length of burst"),
            Column(title="Tests", form="d"),
            Column(title="Step", unit="frames", form="d"),
            Column(title="Implied", form=time, group="buffer time"),
            Column(title="Corrected", form=time, group="buffer time"),
            _STATE,
        ),
        rows=tuple(
            (
                row.frame_bytes,
                row.stream,
                row.burst_frames.mean,
                row.burst_frames.least,
                row.burst_frames.most,
                row.burst_frames.sd,
                row.burst_frames.repeats,
                row.resolution_frames,
                row.implied_buffer_s,
                row.corrected_buffer_s,
                words[row.outcome],
            )
            for row in result.rows
        ),
    )


def recovery_table(result: RecoveryResult) -> Table:
    """Sec. 26.5: size, rate used as throughput, recovery time."""
    words = {"found": "", "no overload": "the overload was none", "undetermined": "not determined"}
    return Table(
        name="recovery",
        title="System recovery",
        caption=_sentence(
            "RFC 2544 sec. 26.5. Below zero: the last loss came before the rate was cut.", _why(result.rows)
        ),
        columns=(
            _FRAME,
            _STREAM,
            _pps("As throughput", "rates"),
            _pps("Overload", "rates"),
            _pps("Then", "rates"),
            Column(title="Recovery", unit="average", form=time),
            Column(title="Most", form=time),
            Column(title="Tests", form="d"),
            Column(title="Loss", unit="in the overload", form=percent_of),
            _STATE,
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


def reset_table(result: ResetResult) -> Table:
    """Return RFC 6201's figures by kind of reset."""
    return Table(
        name="reset",
        title="Reset",
        caption=_sentence(f"RFC 6201, {result.method}.", _why(result.rows)),
        columns=(
            Column(title="Reset", align="left"),
            Column(title="RFC 6201 sec.", align="left"),
            _FRAME,
            _STREAM,
            _pps("Rate"),
            Column(title="Rate", unit="Mbit/s", form=",.1f"),
            Column(title="Lost", unit="frames, average", form=",.0f"),
            Column(title="Reset time", unit="average", form=time),
            Column(title="Least", form=time),
            Column(title="Most", form=time),
            Column(title="Trials", form="d"),
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


def deviations_table(result: BenchmarkResult) -> Table:
    """Return every way in which the run differs from the standards, the MUSTs first to the eye."""
    found = result.compliance.deviations
    return Table(
        name="deviations",
        title="Deviations",
        caption="What the standards ask for, and what was done instead. Shaded rows are MUSTs.",
        columns=(
            Column(title="Document", align="left"),
            Column(title="Sec.", align="left"),
            Column(title="", align="left"),
            Column(title="Asked for", align="left", wrap=True),
            Column(title="Done", align="left", wrap=True),
        ),
        rows=tuple((one.document, one.section, one.requirement, one.wanted, one.done) for one in found),
        strong=frozenset(number for number, one in enumerate(found) if one.requirement == "MUST"),
    )


def not_run_table(result: BenchmarkResult) -> Table:
    """Return what the standards know and this run left out."""
    return Table(
        name="not-run",
        title="Not run",
        caption="What the standards know and this run left out, with the reason.",
        columns=(
            Column(title="Section", align="left"),
            Column(title="What", align="left", wrap=True),
            Column(title="Why", align="left", wrap=True),
        ),
        rows=tuple((one.section, one.what, one.reason) for one in result.not_run),
    )


def trials_table(result: BenchmarkResult) -> Table:
    """Return every trial in the order of the run; invalid ones stand out with their reason."""
    invalid = result.invalid_trials
    return Table(
        name="trials",
        title="Every trial",
        caption=f"In the order of the run. Shaded rows are invalid ({invalid}): they are no result "
        "and were run again.",
        columns=(
            Column(title="#", form="d"),
            Column(title="Procedure", align="left"),
            _STREAM,
            _FRAME,
            Column(title="For", align="left"),
            Column(title="Attempt", form="d"),
            Column(title="Length", form=time),
            _pps("Intended", "rates"),
            _pps("Offered", "rates"),
            _pps("Forwarded", "rates"),
            Column(title="Sent", form=",d", group="frames"),
            Column(title="Received", form=",d", group="frames"),
            Column(title="Lost", form=",d", group="frames"),
            Column(title="Twice", form=",d", group="frames"),
            Column(title="Reordered", form=",d", group="frames"),
            Column(title="Corrupt", form=",d", group="frames"),
            Column(title="Loss", form=percent_of),
            Column(title="Median", form=time, group="latency"),
            Column(title="99 %", form=time, group="latency"),
            Column(title="Invalid because", align="left"),
        ),
        rows=tuple(
            (
                record.number,
                record.procedure.replace("_", " "),
                record.stream,
                record.frame_bytes,
                record.purpose,
                record.attempt,
                record.trial.duration_s,
                record.trial.intended_pps,
                record.trial.offered_pps,
                record.trial.forwarded_pps,
                record.trial.offered_frames,
                record.trial.forwarded_frames,
                record.trial.dropped_frames,
                record.trial.duplicated_frames,
                record.trial.reordered_frames,
                record.trial.corrupted_frames,
                record.trial.loss_ratio,
                record.trial.latency.p50_s if record.trial.latency else None,
                record.trial.latency.p99_s if record.trial.latency else None,
                "; ".join(record.trial.invalid),
            )
            for record in result.trials
        ),
        strong=frozenset(number for number, record in enumerate(result.trials) if not record.trial.is_valid),
    )
