"""Tables of a benchmark: results of procedures, parts not run, deviations, limits, trials and expected time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from routecast.lab.benchmark.exchange import Record
from routecast.lab.benchmark.plan import Plan, expected
from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.procedures.procedure import percent_of, plural, rate_column, time_column, without_unknown
from routecast.lab.benchmark.values import BenchmarkResult
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.show.tables import Column, Table

__all__ = [
    "benchmark_tables",
    "deviations_table",
    "limits_table",
    "not_run_table",
    "plan_table",
    "procedure_table",
    "records_table",
    "trials_table",
]


def benchmark_tables(result: BenchmarkResult) -> Iterator[Table]:
    """Yield the tables for a terminal: procedures with a result, limits, parts that were not run, deviations."""
    for name in result.procedures:
        table = procedure_table(result, name)
        reasons = PROCEDURES[name].reasons(result.by_procedure[name].rows)
        yield replace(table, caption=" ".join(filter(None, (table.caption, *reasons))))
    if result.limits:
        yield limits_table(result)
    if result.not_run:
        yield not_run_table(result)
    if result.compliance.deviations:
        yield deviations_table(result)


def procedure_table(result: BenchmarkResult, name: str) -> Table:
    """Return the table of a procedure; a terminal shows the streams if there are several."""
    return PROCEDURES[name].table(result.by_procedure[name], several=len(result.setup.streams) > 1)


def plan_table(plan: Plan) -> Table:
    """Return the expected time of a run on the wire, by procedure."""
    stages = Counter(procedure for *_, procedure in plan.stages())
    each = {name: expected(plan.profile, name) for name in stages}
    rows = [(PROCEDURES[name].words, n, n * each[name].trials, n * each[name].seconds) for name, n in stages.items()]
    return Table.of(
        [*rows, ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))],
        Column.text("Procedure", lambda row: row[0]),
        Column("Stages", "", ",d", lambda row: row[1]),
        Column("Trials", "", ",d", lambda row: row[2]),
        Column("Time", "", _hours, lambda row: row[3]),
        name="plan",
        title="Expected on the wire",
        caption="The trials of a search depend on the router.",
        strong=[len(rows)],
    )


def _hours(seconds: float) -> str:
    """Write a time from seconds to hours, rounded.

    Examples
    --------
    >>> _hours(45.2), _hours(3700.0)
    ('45 s', '1 h 2 min')
    """
    if round(seconds) < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60.0)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def deviations_table(result: BenchmarkResult) -> Table:
    """Return every deviation of the run from the standards; MUSTs are strong."""
    return Table.of(
        result.compliance.deviations,
        Column.text("Document", lambda row: row.document),
        Column.text("Sec.", lambda row: row.section),
        Column.text("Level", lambda row: row.requirement),
        Column.text("Asked for", lambda row: row.wanted, wrap=True),
        Column.text("Done", lambda row: row.done, wrap=True),
        name="deviations",
        title="Deviations",
        caption="Requirements of the standards, and what was done instead. Shaded rows are MUSTs.",
        strong=lambda deviation: deviation.requirement == "MUST",
    )


def not_run_table(result: BenchmarkResult) -> Table:
    """Return the parts of the standards that this run left out."""
    return Table.of(
        result.not_run,
        Column.text("Section", lambda row: row.section),
        Column.text("What", lambda row: row.what, wrap=True),
        Column.text("Why", lambda row: row.reason, wrap=True),
        name="not-run",
        title="Not run",
    )


def limits_table(result: BenchmarkResult) -> Table:
    """Return the bottleneck of each stream at each frame size."""
    return Table.of(
        result.limits,
        Column.text("Stream", lambda limit: limit.stream),
        Column("Frame", "B", ".6g", lambda limit: limit.frame_bytes),
        Column.text("What limits", lambda limit: limit.name),
        Column.text("Because it", lambda limit: limit.reason, wrap=True),
        Column.text("Trials", lambda limit: f"{limit.trials} of {limit.of_trials}"),
        name="limits",
        title="What limits",
        caption="The bottleneck of most valid trials with loss, and the evidence of the last such trial.",
    )


def trials_table(result: BenchmarkResult) -> Table:
    """Return every trial in the order of the run; invalid trials are strong, with their reason."""
    table = Table.of(
        result.trials,
        Column("#", "", "d", lambda record: record.number),
        Column.text("Procedure", lambda record: record.procedure.replace("_", " ")),
        Column.text("Stream", lambda record: record.stream),
        Column("Frame", "B", ".6g", lambda record: record.frame_bytes),
        Column.text("For", lambda record: record.purpose),
        Column("Attempt", "", "d", lambda record: record.attempt),
        time_column("Length", lambda record: record.trial.duration_s),
        rate_column("Intended", lambda record: record.trial.intended_pps, group="rates"),
        rate_column("Offered", lambda record: record.trial.offered_pps, group="rates"),
        rate_column("Forwarded", lambda record: record.trial.forwarded_pps, group="rates"),
        Column("Sent", "", ",d", lambda record: record.trial.offered_frames, group="frames", wide=True),
        Column("Received", "", ",d", lambda record: record.trial.forwarded_frames, group="frames", wide=True),
        Column("Lost", "", ",d", lambda record: record.trial.dropped_frames, group="frames", wide=True),
        Column("Twice", "", ",d", lambda record: record.trial.duplicated_frames, group="frames", wide=True),
        Column("Reordered", "", ",d", lambda record: record.trial.reordered_frames, group="frames", wide=True),
        Column("Corrupt", "", ",d", lambda record: record.trial.corrupted_frames, group="frames", wide=True),
        Column("Loss", "", percent_of, lambda record: record.trial.loss_ratio),
        time_column(
            "Median",
            lambda record: record.trial.latency.p50_s if record.trial.latency else None,
            group="latency",
            wide=True,
        ),
        time_column(
            "99 %",
            lambda record: record.trial.latency.p99_s if record.trial.latency else None,
            group="latency",
            wide=True,
        ),
        Column.text("Invalid because", lambda record: "; ".join(record.trial.invalid), wide=True),
        Column.text("Notes", lambda record: "; ".join(record.trial.notes), wide=True),
        name="trials",
        title="Every trial",
        caption=f"In the order of the run. Shaded rows are invalid ({result.invalid_trials}): they are no result and "
        "were run again.",
        strong=lambda record: not record.trial.is_valid,
    )
    return without_unknown(table)


def records_table(file: str, records: Sequence[Record]) -> Table:
    """Return the trials of a file: goal, frame, rates, loss, latency."""
    sources = ", ".join(dict.fromkeys(record.source for record in records))
    invalid = sum(not record.trial.is_valid for record in records)
    caption = plural(len(records), "trial")
    caption += f", {invalid} of them invalid (✗)" if invalid else ""
    has_latency = any(_latency_s(record) is not None for record in records)
    caption += "; latency is the median, the mean where no median is known" if has_latency else ""
    return Table.of(
        list(enumerate(records, start=1)),
        Column("#", "", "d", lambda row: row[0]),
        Column.text("Goal", lambda row: _goal(row[1])),
        Column("Frame", "B", ".6g", lambda row: row[1].frame_bytes),
        Column("Offered", "", format_pps, lambda row: row[1].trial.offered_pps),
        Column("Forwarded", "", format_pps, lambda row: _forwarded(row[1])),
        Column("Loss", "", format_ratio, lambda row: row[1].trial.loss_ratio),
        Column("Latency", "", format_duration, lambda row: _latency_s(row[1]), wide=not has_latency),
        Column.text("Test", lambda row: row[1].title, wide=len({record.title for record in records}) == 1),
        name="trials",
        title=f"{sources}: {file}",
        caption=f"{caption}.",
    )


def _goal(record: Record) -> str:
    return " ".join(filter(None, (record.goal, record.bound))) + ("" if record.trial.is_valid else " ✗")


def _forwarded(record: Record) -> float | str:
    """Return the forwarded rate, with "≥" where it is the end of a search that the tester limited."""
    rate_pps = record.trial.forwarded_pps
    is_least = record.bound == "lower" and record.facts.get("limit") == "tester" and math.isfinite(rate_pps)
    return f"≥ {format_pps(rate_pps)}" if is_least else rate_pps


def _latency_s(record: Record) -> float | None:
    latency = record.trial.latency
    times_s = (latency.p50_s, latency.mean_s) if latency else ()
    return next((time_s for time_s in times_s if math.isfinite(time_s)), None)
