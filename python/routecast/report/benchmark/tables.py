"""Tables of a benchmark: what its procedures found, what was left out, deviations, trials, what a run will take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from routecast.benchmark.procedures import PROCEDURES
from routecast.benchmark.procedures.procedure import known, percent_of, rate_column, time_column
from routecast.report.tables import Cell, Column, Table

if TYPE_CHECKING:
    from routecast.benchmark.result import BenchmarkResult

__all__ = ["benchmark_tables", "deviations_table", "not_run_table", "plan_table", "procedure_table", "trials_table"]


def benchmark_tables(result: BenchmarkResult) -> Iterator[Table]:
    """Yield the tables for a terminal: each procedure that has a result, what was left out, the deviations."""
    for name in result.procedures:
        table = procedure_table(result, name)
        reasons = PROCEDURES[name].reasons(result.found[name].rows)
        yield replace(table, caption=" ".join(filter(None, (table.caption, *reasons))))
    if result.not_run:
        yield not_run_table(result)
    if result.compliance.deviations:
        yield deviations_table(result)


def procedure_table(result: BenchmarkResult, name: str) -> Table:
    """Return the table of a procedure; a terminal shows its streams where there is more than one."""
    return PROCEDURES[name].table(result.found[name], several=len(result.setup.streams) > 1)


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


def deviations_table(result: BenchmarkResult) -> Table:
    """Return every way in which the run differs from the standards, the MUSTs first to the eye."""
    found = result.compliance.deviations
    return Table.of(
        found,
        Column.text("Document", "document"),
        Column.text("Sec.", "section"),
        Column.text("Level", "requirement"),
        Column.text("Asked for", "wanted", wrap=True),
        Column.text("Done", "done", wrap=True),
        name="deviations",
        title="Deviations",
        caption="What the standards ask for, and what was done instead. Shaded rows are MUSTs.",
        strong=lambda one: one.requirement == "MUST",
    )


def not_run_table(result: BenchmarkResult) -> Table:
    """Return what the standards know and this run left out."""
    return Table.of(
        result.not_run,
        Column.text("Section", "section"),
        Column.text("What", "what", wrap=True),
        Column.text("Why", "reason", wrap=True),
        name="not-run",
        title="Not run",
    )


def trials_table(result: BenchmarkResult) -> Table:
    """Return every trial in the order of the run; invalid ones stand out with their reason."""
    table = Table.of(
        result.trials,
        Column("#", "", "d", "number"),
        Column.text("Procedure", lambda record: record.procedure.replace("_", " ")),
        Column.text("Stream", "stream"),
        Column("Frame", "B", "d", "frame_bytes"),
        Column.text("For", "purpose"),
        Column("Attempt", "", "d", "attempt"),
        time_column("Length", "trial.duration_s"),
        rate_column("Intended", "trial.intended_pps", group="rates"),
        rate_column("Offered", "trial.offered_pps", group="rates"),
        rate_column("Forwarded", "trial.forwarded_pps", group="rates"),
        Column("Sent", "", ",d", "trial.offered_frames", group="frames", wide=True),
        Column("Received", "", ",d", "trial.forwarded_frames", group="frames", wide=True),
        Column("Lost", "", ",d", "trial.dropped_frames", group="frames", wide=True),
        Column("Twice", "", ",d", "trial.duplicated_frames", group="frames", wide=True),
        Column("Reordered", "", ",d", "trial.reordered_frames", group="frames", wide=True),
        Column("Corrupt", "", ",d", "trial.corrupted_frames", group="frames", wide=True),
        Column("Loss", "", percent_of, "trial.loss_ratio"),
        time_column(
            "Median", lambda record: record.trial.latency and record.trial.latency.p50_s, group="latency", wide=True
        ),
        time_column(
            "99 %", lambda record: record.trial.latency and record.trial.latency.p99_s, group="latency", wide=True
        ),
        Column.text("Invalid because", lambda record: "; ".join(record.trial.invalid), wide=True),
        name="trials",
        title="Every trial",
        caption=f"In the order of the run. Shaded rows are invalid ({result.invalid_trials}): they are no result and "
        "were run again.",
        strong=lambda record: not record.trial.is_valid,
    )
    return known(table)
