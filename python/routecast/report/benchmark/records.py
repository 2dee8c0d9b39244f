"""Trials that a tool has made, as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.benchmark.exchange import Record
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.report.tables import Column, Table

__all__ = ["records_table"]


def records_table(file: str, records: Sequence[Record]) -> Table:
    """Return the trials of a file: goal, frame, rates, loss, latency."""
    sources = ", ".join(dict.fromkeys(record.source for record in records))
    invalid = sum(not record.trial.is_valid for record in records)
    caption = f"{len(records)} trial{'s' if len(records) != 1 else ''}"
    caption += f", {invalid} of them invalid (✗)" if invalid else ""
    has_latency = any(_latency_s(record) is not None for record in records)
    caption += "; latency is the median, the mean where no median is known" if has_latency else ""
    return Table.of(
        list(enumerate(records, start=1)),
        Column("#", "", "d", lambda row: row[0]),
        Column.text("Goal", lambda row: _goal(row[1])),
        Column("Frame", "B", ".6g", lambda row: row[1].frame_bytes),
        Column("Offered", "", format_pps, lambda row: row[1].trial.offered_pps),
        Column("Forwarded", "", format_pps, lambda row: row[1].trial.forwarded_pps),
        Column("Loss", "", format_ratio, lambda row: row[1].trial.loss_ratio),
        Column("Latency", "", format_duration, lambda row: _latency_s(row[1]), wide=not has_latency),
        Column.text("Test", lambda row: row[1].title, wide=len({record.title for record in records}) == 1),
        name="trials",
        title=f"{sources}: {file}",
        caption=f"{caption}.",
    )


def _goal(record: Record) -> str:
    return " ".join(filter(None, (record.goal, record.bound))) + ("" if record.trial.is_valid else " ✗")


def _latency_s(record: Record) -> float | None:
    latency = record.trial.latency
    known = (value for value in (latency.p50_s, latency.mean_s) if math.isfinite(value)) if latency else iter(())
    return next(known, None)
