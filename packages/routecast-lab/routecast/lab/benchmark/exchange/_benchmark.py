"""routecast's own benchmarks as records: ``benchmark.json`` has the results, ``trials.parquet`` every trial.

Throughput rows become the bounds of searches: a goal without loss is an NDR, the goal with the least loss above 0 a
PDR. A benchmark can so be written as CSIT UTI and as a table for ``routecast validate``. Where the greatest offered
rate met the goal, it is the limit of the medium or of the tester, not the router's, and the fact ``limit`` names it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.exchange._document import Document, Node
from routecast.lab.benchmark.exchange._record import LIMITS, NAN, NO_THROUGHPUT, Bound, Record, measured
from routecast.lab.benchmark.exchange._uti import PDR_LOSS_RATIO
from routecast.quantity.bounded_file import read_parquet

_SCHEMA = "routecast-benchmark/1"
_JOURNAL_COLUMNS = frozenset({"procedure", "stream", "frame_bytes", "purpose", "trial"})
_SAME_RATE_RATIO = 1.0 - 1e-3
"""Rates as near as this are equal: a tester's rate differs a little from the intended one."""


def is_benchmark(root: Node) -> bool:
    """Whether the document is a ``benchmark.json``."""
    return root.get("schema").value == _SCHEMA


def is_journal(columns: list[str]) -> bool:
    """Whether a table is a benchmark's ``trials.parquet``."""
    return set(columns) >= _JOURNAL_COLUMNS


def read_benchmark(document: Document) -> tuple[Record, ...]:
    """Read the last bounds of the searches for the throughput.

    Raises FileProblem: no throughput was searched for.
    """
    rows = document.root.at("throughput.rows")
    if not rows.value:
        rows.problem("is missing or empty: only throughput is exchanged; trials.parquet has the single trials")
        document.check()
    records: list[Record] = []
    lossy = sorted({row.get("loss_ratio").number() for row in rows.items()} - {0.0})
    for row in rows.items():
        records += _bound_records(document, row, lossy)
    document.check()
    return tuple(records)


def _bound_records(document: Document, row: Node, lossy: list[float]) -> list[Record]:
    setup = document.root.get("setup")
    loss_ratio = row.need("loss_ratio").finite(least=0.0, most=1.0)
    frame_bytes = row.need("frame_bytes").finite(least=64.0)
    goal = "ndr" if loss_ratio == 0.0 else "pdr" if lossy[:1] == [loss_ratio] else "search"
    lower_pps, upper_pps = row.get("lower_pps").number(least=0.0), row.get("upper_pps").number(least=0.0)
    forwarded_pps = row.get("conditional_pps").number(least=0.0)
    link_bps = [node.number(least=0.0) for node in setup.get("link_bps").items()] if setup.get("link_bps") else []
    per_port_pps, throughput_pps = row.get("per_port_pps").number(), row.get("throughput_pps").number()
    ports = round(throughput_pps / per_port_pps) if per_port_pps > 0.0 and throughput_pps > 0.0 else 0
    duration_s = row.get("final_trial_s").number(least=0.0)
    limit = _limit_of(row, lower_pps)
    if limit:
        upper_pps = lower_pps if limit == "medium" else NAN  # the medium carries no more; a tester is no upper bound
    records = []
    ends: tuple[tuple[Bound, float, float], ...] = (("lower", lower_pps, forwarded_pps), ("upper", upper_pps, NAN))
    for bound, rate_pps, received_pps in ends:
        if math.isnan(rate_pps) and bound == "upper":
            continue
        invalid: tuple[str, ...] = ()
        if math.isnan(rate_pps):
            invalid = (f"no rate was found: {row.get('reason').text() or row.get('outcome').text()}",)
        trial = measured(
            intended_pps=rate_pps,
            offered_pps=rate_pps,
            forwarded_pps=received_pps,
            frame_bytes=frame_bytes,
            duration_s=duration_s,
            invalid=invalid,
            notes=(LIMITS[limit],) if limit else (),
        )
        records.append(
            Record(
                source=f"routecast {document.root.at('versions.routecast').text()}".strip(),
                title=f"{setup.get('device_title').text()}, {row.get('stream').text()}",
                goal=goal,
                bound=bound,
                goal_loss_ratio=loss_ratio,
                frame_bytes=frame_bytes,
                ports=ports or None,
                link_bps=link_bps[0] if link_bps else NAN,
                device=setup.get("device_title").text(),
                tester="routecast",
                trial=trial,
                facts={"goal": row.get("goal").text()} | ({"limit": limit} if limit else {}),
            )
        )
    return records


def _limit_of(row: Node, lower_pps: float) -> str:
    """Return the limit of a rate that the row names, or the one that the ratio to the medium's rate shows."""
    text = row.get("limit").text()
    if text and text not in LIMITS:
        row.get("limit").problem(f"got {text!r}: it must be one of {', '.join(LIMITS)}, or empty")
    if text or row.get("outcome").value != "maximum":
        return text if text in LIMITS else ""
    return "medium" if lower_pps >= _SAME_RATE_RATIO * row.get("theoretical_pps").number(least=0.0) else "tester"


def read_journal(path: Path) -> tuple[Record, ...]:
    """Read every trial of a benchmark's ``trials.parquet``.

    The goal of a search's trials is ``"search"``, that of trials at the greatest rate ``"mrr"``, that of others the
    name of their procedure. Trials over a wire without a device are left out. The file does not have the goals of the
    searches: where the greatest rate of a stream and frame size lost no more than a PDR tolerates, the limit is taken
    to be the tester's.

    Raises FileProblem: the file, or a trial in it, cannot be read.
    """
    from routecast.lab.benchmark.journal import FLOOR, read_trial
    from routecast.lab.benchmark.procedures.throughput import GREATEST

    table = read_parquet(path, kind="table of trials")
    records: list[Record] = []
    problems = []
    for number, row in enumerate(table.sort("number").to_dicts(), start=1):
        if row["procedure"] == FLOOR:
            continue
        try:
            trial = read_trial(str(row["trial"]))
        except (ValueError, KeyError, TypeError) as error:
            problems.append(Problem(f"row {number}, column trial", f"is no trial: {error}"))
            continue
        is_search = row["procedure"] == "throughput"
        records.append(
            Record(
                source="routecast",
                title=str(row["stream"]),
                goal="mrr" if row["purpose"] == GREATEST else "search" if is_search else row["procedure"],
                frame_bytes=float(row["frame_bytes"]),
                tester="routecast",
                trial=trial,
                facts={name: row.get(name) for name in ("number", "procedure", "purpose", "attempt")},
            )
        )
    if problems:
        raise FileProblem(str(path), problems)
    tester_limited = _without_overload(records)
    return tuple(
        replace(record, facts={**record.facts, "limit": "tester"})
        if record.goal not in NO_THROUGHPUT and (record.title, record.frame_bytes) in tester_limited
        else record
        for record in records
    )


def _without_overload(records: Sequence[Record]) -> set[tuple[str, float]]:
    """Return stream and frame size where a valid trial at the greatest rate lost no more than a PDR tolerates."""
    trials: dict[tuple[str, float], list[Trial]] = {}
    for record in records:
        if record.goal not in NO_THROUGHPUT and record.trial.is_valid:
            trials.setdefault((record.title, record.frame_bytes), []).append(record.trial)

    def min_loss_ratio(same_conditions: Sequence[Trial]) -> float:
        max_pps = max(trial.offered_pps for trial in same_conditions)
        return min(trial.loss_ratio for trial in same_conditions if trial.offered_pps >= _SAME_RATE_RATIO * max_pps)

    return {key for key, same_conditions in trials.items() if min_loss_ratio(same_conditions) <= PDR_LOSS_RATIO}
