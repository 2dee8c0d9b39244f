"""The trials of a benchmark on disk, within half a second, so that an interrupted run can continue.

``trials.parquet`` has a line for each trial: its main figures in columns, and the whole trial as JSON in the last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.evaluate.ledger import Columns, Ledger, Row
from routecast.evaluate.trial import Bottleneck, Delay, FlowOutcome, Moment, Resource, TaskActivity, Trial, TrialPower
from routecast.quantity.schema import field, value

__all__ = ["FLOOR", "SUMMARY", "TABLE", "Journal", "TrialRecord", "open_journal", "read_trial"]

TABLE = "trials"
SUMMARY = "benchmark.json"
FLOOR = "floor"
"""Procedure of the trials over a wire without a device."""

COLUMNS: Columns = {
    "task": "text",
    "run": "text",
    "number": "whole",
    "procedure": "text",
    "stream": "text",
    "frame_bytes": "number",
    "purpose": "text",
    "attempt": "whole",
    "evaluator": "text",
    "duration_s": "number",
    "rate_pps": "number",
    "intended_pps": "number",
    "offered_pps": "number",
    "forwarded_pps": "number",
    "loss_ratio": "number",
    "offered_frames": "whole",
    "forwarded_frames": "whole",
    "dropped_frames": "whole",
    "in_flight_frames": "whole",
    "duplicated_frames": "whole",
    "reordered_frames": "whole",
    "corrupted_frames": "whole",
    "first_loss_s": "number",
    "last_loss_s": "number",
    "latency_min_s": "number",
    "latency_mean_s": "number",
    "latency_p50_s": "number",
    "latency_p99_s": "number",
    "latency_p999_s": "number",
    "latency_max_s": "number",
    "power_mean_w": "number",
    "power_packet_j": "number",
    "power_bit_j": "number",
    "power_scope": "text",
    "power_source": "text",
    "invalid": "text",
    "notes": "text",
    "trial": "text",
}

_PARTS = {
    "resources": Resource,
    "bottleneck": Bottleneck,
    "latency": Delay,
    "waiting": Delay,
    "delay_variation": Delay,
    "power": TrialPower,
    "activity": TaskActivity,
    "flows": FlowOutcome,
    "over_time": Moment,
}
"""Type of each part of a trial that is a dataclass or a list of dataclasses."""


@value
class TrialRecord:
    """A trial of a run; ``trials.parquet`` has a line for each."""

    number: int = field("Number of the trial, from 1.")
    procedure: str
    stream: str
    frame_bytes: float = field("Frame size, the mean for a mix.")
    purpose: str = field('``"search 1"``, ``"repeat 3 at 100%"``, ``"confirm"``.')
    attempt: int = field("1 for the first; an invalid trial is run again.")
    rate_pps: float
    trial: Trial


class Journal:
    """Finished trials by a key of all their conditions.

    ``ledger``: their file, or None to keep them in no file; ``run``: text that identifies the benchmark.
    """

    def __init__(self, ledger: Ledger | None = None, run: str = "") -> None:
        self._ledger = ledger
        self._run = run
        self._finished: Mapping[str, Row] = dict(ledger.rows) if ledger is not None else {}

    def find(self, key: str) -> Trial | None:
        """Return the trial of an interrupted run with this key; None without such a trial."""
        row = self._finished.get(key)
        return None if row is None else read_trial(str(row["trial"]))

    def add(self, key: str, record: TrialRecord) -> None:
        """Add a finished trial."""
        if self._ledger is not None:
            self._ledger.add({"run": self._run, **_row(key, record)})


@contextmanager
def open_journal(folder: Path | None, run: str) -> Iterator[Journal]:
    """Open the journal of a folder; without a folder it keeps no trial.

    Raises EnvironmentProblem: the folder cannot be written (a full disk), which keeps the finished trials; FileProblem:
    the folder's trials cannot be read, or belong to another interrupted benchmark.
    """
    if folder is None:
        yield Journal()
        return
    import polars

    try:
        with Ledger(folder, COLUMNS, table=TABLE, summary=SUMMARY) as ledger:
            others = [row for row in ledger.rows.values() if row["run"] != run]
            if others and all(row["invalid"] for row in others):
                ledger.start_over()  # an interrupted benchmark without a valid trial has nothing to lose
            elif others:
                message = (
                    "holds the trials of another benchmark that was interrupted: finish it with its own command, "
                    "remove them, or give another folder with --out"
                )
                raise FileProblem(str(folder / f"{TABLE}.parquet"), [Problem("", message)])
            yield Journal(ledger, run)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise EnvironmentProblem(
            f"{folder}: cannot be written: {error}; make room, then start the same command again: "
            "finished trials are kept"
        ) from error


def _row(key: str, record: TrialRecord) -> Row:
    """Return the cells of a trial, from the record, the trial, its latency and its power."""
    trial = record.trial
    row: Row = {
        "task": key,
        "invalid": "; ".join(trial.invalid),
        "notes": "; ".join(trial.notes),
        "trial": json.dumps(trial.to_json(), ensure_ascii=False),
    }
    for name in COLUMNS.keys() - row.keys() - {"run"}:
        part, _, of_part = name.partition("_")
        if part in {"latency", "power"}:
            row[name] = getattr(getattr(trial, part), of_part, None)
        else:
            row[name] = getattr(record, name) if hasattr(record, name) else getattr(trial, name)
    return row


def read_trial(text: str) -> Trial:
    """Return the trial that :meth:`Trial.to_json` wrote, with NaN for null where a field is a number."""
    document: dict[str, Any] = json.loads(text)
    for name, kind in _PARTS.items():
        entry = document.get(name)
        if isinstance(entry, list):
            document[name] = tuple(_value_of(kind, row) for row in entry)
        elif entry is not None:
            document[name] = _value_of(kind, entry)
    document["interval"] = {name: tuple(ends) for name, ends in document["interval"].items()}
    document["notes"] = tuple(document["notes"])
    document["invalid"] = tuple(document["invalid"])
    trial: Trial = _value_of(Trial, document)
    return trial


def _value_of(kind: type[Any], document: Mapping[str, Any]) -> Any:
    """Return a dataclass of a JSON object; null is NaN in a field of a number, else the default of the field."""
    names = {declared.name: declared for declared in fields(kind)}
    values = {}
    for name, entry in document.items():
        if name not in names:
            continue
        declared = names[name]
        is_number = str(declared.type) == "float"
        values[name] = math.nan if entry is None and is_number else entry
        if entry is None and not is_number and declared.default is not MISSING and declared.default is not None:
            values[name] = declared.default
    return kind(**values)
