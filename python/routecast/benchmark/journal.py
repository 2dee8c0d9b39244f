"""The trials of a benchmark on disk: each is there half a second after it ended, so that a killed run goes on.

``trials.parquet`` has a line per trial: what people look for in columns, and the whole trial as JSON in the last.
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
"""Procedure of the trials over a wire without a device: they are no results of the device."""

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


@value
class TrialRecord:
    """One trial as it was run, in the order of the run; ``trials.parquet`` has a line for each."""

    number: int = field("From 1.")
    procedure: str
    stream: str
    frame_bytes: float = field("Of a mix the mean.")
    purpose: str = field('What it was for: ``"search 1"``, ``"verify"``, ``"repeat 3"``.')
    attempt: int = field("1 for the first; an invalid trial is run again.")
    rate_pps: float
    trial: Trial


class Journal:
    """Finished trials by the key of everything that decides them.

    ``ledger``: where they are kept; None keeps them in memory only; ``run``: text that all trials of one benchmark have
    in common, and no other's.
    """

    def __init__(self, ledger: Ledger | None = None, run: str = "") -> None:
        self._ledger = ledger
        self._run = run
        self._known: Mapping[str, Row] = dict(ledger.rows) if ledger is not None else {}

    def find(self, key: str) -> Trial | None:
        """Return the trial of a run before, if it is there."""
        row = self._known.get(key)
        return None if row is None else read_trial(str(row["trial"]))

    def add(self, key: str, record: TrialRecord) -> None:
        """Enter a trial that has just ended."""
        if self._ledger is not None:
            self._ledger.add({"run": self._run, **_row(key, record)})


@contextmanager
def open_journal(folder: Path | None, run: str) -> Iterator[Journal]:
    """Open the journal of a folder; without a folder trials are kept in memory.

    Raises EnvironmentProblem: the folder cannot be written (a full disk); what is finished stays there; FileProblem:
    the trials that are there cannot be read, or are those of another benchmark that was interrupted.
    """
    if folder is None:
        yield Journal()
        return
    import polars

    try:
        with Ledger(folder, COLUMNS, table=TABLE, summary=SUMMARY) as ledger:
            others = {str(row["run"]) for row in ledger.rows.values()} - {run}
            if others:
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
    """Return the cells of a trial: of the record, of the trial itself, of its latency and its power."""
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
    """Return the trial that :meth:`Trial.to_json` has written, with NaN where null stands for an unknown number."""
    document: dict[str, Any] = json.loads(text)
    document["resources"] = tuple(_made(Resource, row) for row in document["resources"])
    document["bottleneck"] = _made(Bottleneck, document["bottleneck"])
    for name in ("latency", "waiting", "delay_variation"):
        if document.get(name) is not None:
            document[name] = _made(Delay, document[name])
    if document.get("power") is not None:
        document["power"] = _made(TrialPower, document["power"])
    document["activity"] = tuple(_made(TaskActivity, row) for row in document.get("activity", ()))
    document["flows"] = tuple(_made(FlowOutcome, row) for row in document.get("flows", ()))
    document["over_time"] = tuple(_made(Moment, row) for row in document.get("over_time", ()))
    document["interval"] = {name: tuple(ends) for name, ends in document["interval"].items()}
    document["notes"] = tuple(document["notes"])
    document["invalid"] = tuple(document["invalid"])
    trial: Trial = _made(Trial, document)
    return trial


def _made(kind: type[Any], document: Mapping[str, Any]) -> Any:
    """Make a dataclass of what JSON says; null is NaN where a field is a number, whatever its default."""
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
