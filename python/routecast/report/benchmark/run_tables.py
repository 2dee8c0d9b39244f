"""Tables of the run itself: in what it differs from the standards, what it left out, every trial."""

from __future__ import annotations

from routecast.benchmark.result import BenchmarkResult
from routecast.report.benchmark.columns import FRAME, STREAM, known, rate_column
from routecast.report.benchmark.texts import percent_of, time
from routecast.report.tables import Column, Table

__all__ = ["deviations_table", "not_run_table", "trials_table"]


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
            Column(title="Level", align="left"),
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
        caption="",
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
    table = Table(
        name="trials",
        title="Every trial",
        caption=f"In the order of the run. Shaded rows are invalid ({invalid}): they are no result "
        "and were run again.",
        columns=(
            Column(title="#", form="d"),
            Column(title="Procedure", align="left"),
            STREAM,
            FRAME,
            Column(title="For", align="left"),
            Column(title="Attempt", form="d"),
            Column(title="Length", form=time),
            rate_column("Intended", "rates"),
            rate_column("Offered", "rates"),
            rate_column("Forwarded", "rates"),
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
    return known(table)
