"""Records as a table, one row a trial, base units in the names of the columns: CSV and Parquet.

Written and read again, a record is the same, but for what only a simulation gives (resources, energy, queue lengths).
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from routecast.benchmark.exchange.benchmark import is_journal, read_journal
from routecast.benchmark.exchange.document import MOST, read_result
from routecast.benchmark.exchange.record import NAN, Record
from routecast.errors import FileProblem, Problem
from routecast.evaluate.trial import Bottleneck, Delay, Trial, TrialPower
from routecast.quantity import bounded_file
from routecast.quantity.whole_file import unfinished

if TYPE_CHECKING:
    import polars

__all__ = [
    "COLUMNS",
    "csv_text",
    "frame_of_records",
    "is_table",
    "read_csv",
    "read_parquet",
    "row_of_trial",
    "write_parquet",
]

Cell = str | float | int | None

_DELAY_TIMES = ("mean_s", "min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s")
_DELAYS = {"latency": "latency", "delay_variation": "delay_variation"}
_TRIAL_NUMBERS = (
    *("duration_s", "measured_s", "intended_pps", "offered_pps", "forwarded_pps", "loss_ratio"),
    *("l1_bps", "l2_bps", "first_loss_s", "last_loss_s"),
)
_TRIAL_COUNTS = (
    *("offered_frames", "forwarded_frames", "dropped_frames", "in_flight_frames"),
    *("duplicated_frames", "reordered_frames", "corrupted_frames"),
)
_POWER_NUMBERS = ("mean_w", "energy_j", "packet_j", "bit_j")
_POWER_TEXTS = ("scope", "source")
_RECORD_TEXTS = ("source", "title", "goal", "bound", "device", "tester")
_RECORD_NUMBERS = ("goal_loss_ratio", "frame_bytes", "link_bps")
_RECORD_COUNTS = ("ports", "cores", "flows")


def _columns() -> dict[str, type]:
    columns: dict[str, type] = dict.fromkeys(_RECORD_TEXTS, str)
    columns |= dict.fromkeys(_RECORD_NUMBERS, float) | dict.fromkeys(_RECORD_COUNTS, int)
    columns |= {"evaluator": str} | dict.fromkeys(_TRIAL_NUMBERS, float) | dict.fromkeys(_TRIAL_COUNTS, int)
    columns["attempts"] = int
    for delay in _DELAYS:
        columns |= {f"{delay}_{time}": float for time in _DELAY_TIMES}
        columns |= {f"{delay}_method": str, f"{delay}_hdr_base64": str}
    columns |= {f"power_{name}": float for name in _POWER_NUMBERS}
    columns |= {f"power_{name}": str for name in _POWER_TEXTS}
    columns |= dict.fromkeys(("bottleneck", "bottleneck_kind", "bottleneck_reason"), str)
    return columns | dict.fromkeys(("drops_pps", "invalid", "notes", "facts"), str)  # JSON in a cell


COLUMNS: Final[Mapping[str, type]] = _columns()
"""Columns and the types of their cells; an empty cell is unknown."""

_NEEDED = ("forwarded_pps", "offered_pps", "loss_ratio")


def row_of_trial(trial: Trial) -> dict[str, Cell]:
    """Return the cells that a trial fills."""
    row: dict[str, Cell] = {"evaluator": trial.evaluator, "attempts": trial.attempts}
    for name in (*_TRIAL_NUMBERS, *_TRIAL_COUNTS):
        row[name] = getattr(trial, name)
    for name in _DELAYS:
        delay: Delay | None = getattr(trial, name)
        for time in _DELAY_TIMES:
            row[f"{name}_{time}"] = getattr(delay, time) if delay else None
        row[f"{name}_method"] = delay.method if delay else None
        row[f"{name}_hdr_base64"] = delay.hdr_base64 if delay else None
    row |= {
        f"power_{name}": getattr(trial.power, name) if trial.power else None
        for name in (*_POWER_NUMBERS, *_POWER_TEXTS)
    }
    row |= {
        "bottleneck": trial.bottleneck.name,
        "bottleneck_kind": trial.bottleneck.kind,
        "bottleneck_reason": trial.bottleneck.reason,
        "drops_pps": _json(dict(trial.drops_pps)),
        "invalid": _json(list(trial.invalid)),
        "notes": _json(list(trial.notes)),
    }
    return {name: _known(cell) for name, cell in row.items()}


def _row(record: Record) -> dict[str, Cell]:
    row: dict[str, Cell] = {name: getattr(record, name) for name in _RECORD_TEXTS}
    row |= {name: getattr(record, name) for name in (*_RECORD_NUMBERS, *_RECORD_COUNTS)}
    row |= row_of_trial(record.trial) | {"facts": _json(record.to_json()["facts"])}
    return {name: _known(row[name]) for name in COLUMNS}


def _known(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False) if value else ""


def csv_text(records: Sequence[Record]) -> str:
    """Return the records as CSV text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        # repr() keeps every digit of a float.
        writer.writerow(
            ["" if cell is None else repr(cell) if isinstance(cell, float) else cell for cell in _row(record).values()]
        )
    return out.getvalue()


def frame_of_records(records: Sequence[Record]) -> polars.DataFrame:
    """Return the records as a data frame."""
    import polars

    types = {str: polars.String, float: polars.Float64, int: polars.Int64}
    schema = {name: types[kind] for name, kind in COLUMNS.items()}
    return polars.DataFrame([_row(record) for record in records], schema=schema, orient="row")


def write_parquet(records: Sequence[Record], path: Path) -> None:
    """Write the records to a Parquet file, which is whole or absent."""
    with unfinished(path) as draft:
        frame_of_records(records).write_parquet(draft)


def is_table(header: Sequence[str]) -> bool:
    """Whether a header is that of a table of records."""
    return set(_NEEDED) <= set(header) and set(header) <= set(COLUMNS)


def read_parquet(path: Path) -> tuple[Record, ...]:
    """Read the records of a Parquet file.

    Raises FileProblem: the file cannot be read, or is no table of records.
    """
    frame = bounded_file.read_parquet(path, kind="table of trials")
    if is_journal(frame.columns):
        return read_journal(path)
    if not is_table(frame.columns):
        raise FileProblem(str(path), [Problem("", _header_message(frame.columns))])
    problems: list[Problem] = []
    records = [_record(row, f"row {number}", problems) for number, row in enumerate(frame.to_dicts(), start=1)]
    if problems:
        raise FileProblem(str(path), problems)
    return tuple(records)


def read_csv(path: Path) -> tuple[Record, ...]:
    """Read the records of a CSV file; row 1 is the header.

    Raises FileProblem: the file is no table of records, or a cell is not what its column holds.
    """
    try:
        rows = list(csv.reader(io.StringIO(read_result(path), newline=""), strict=True))
    except csv.Error as error:
        raise FileProblem(str(path), [Problem("", f"is not CSV: {error}")]) from None
    header = rows[0] if rows else []
    if not is_table(header):
        raise FileProblem(str(path), [Problem("row 1", _header_message(header))])
    problems: list[Problem] = []
    records = []
    for number, cells in enumerate(rows[1:], start=2):
        if len(cells) != len(header):
            message = f"has {len(cells)} cells, the header names {len(header)} columns: is the file cut off?"
            problems.append(Problem(f"row {number}", message))
            continue
        row = {name: _typed(name, cell, f"row {number}", problems) for name, cell in zip(header, cells, strict=True)}
        records.append(_record(row, f"row {number}", problems))
    if problems:
        raise FileProblem(str(path), problems)
    return tuple(records)


def _header_message(header: Sequence[str]) -> str:
    unknown = [name for name in header if name not in COLUMNS]
    missing = [name for name in _NEEDED if name not in header]
    what = f"has the unknown columns {', '.join(unknown[:5])}" if unknown else f"lacks {', '.join(missing)}"
    return f"is no table of trials: it {what}"


def _typed(name: str, text: str, place: str, problems: list[Problem]) -> Cell:
    kind = COLUMNS[name]
    if kind is str or text == "":
        return text or None
    try:
        value = float(text) if kind is float else int(text)
        if kind is int and abs(value) > MOST:
            raise ValueError(text)
    except ValueError:
        wants = "a number" if kind is float else "a whole number"
        problems.append(Problem(f"{place}, column {name}", f"got {text[:40]!r}: wants {wants}"))
        return None
    return value


def _record(row: Mapping[str, Cell], place: str, problems: list[Problem]) -> Record:
    def number(name: str) -> float:
        cell = row.get(name)
        return NAN if cell is None else float(cell)

    def count(name: str) -> int | None:
        cell = row.get(name)
        return None if cell is None else int(cell)

    def text(name: str) -> str:
        return str(row.get(name) or "")

    def load(name: str) -> object:
        try:
            return json.loads(text(name) or "null")
        except json.JSONDecodeError as error:
            problems.append(Problem(f"{place}, column {name}", f"is no JSON: {error.msg}"))
            return None

    bound, kind = text("bound"), text("bottleneck_kind") or "load"
    if bound not in ("", "lower", "upper"):
        problems.append(Problem(f"{place}, column bound", f"got {bound[:40]!r}: allowed are lower, upper, nothing"))
    if kind not in ("pool", "task", "link", "load"):
        problems.append(Problem(f"{place}, column bottleneck_kind", f"got {kind[:40]!r}"))
    drops, facts, invalid, notes = load("drops_pps"), load("facts"), load("invalid"), load("notes")
    of_trial: dict[str, Any] = {name: number(name) for name in _TRIAL_NUMBERS}
    of_trial |= {name: count(name) for name in _TRIAL_COUNTS} | {name: _delay(row, name) for name in _DELAYS}
    of_trial["power"] = _power(row)
    of_trial["bottleneck"] = Bottleneck(
        name=text("bottleneck"), kind=cast("Any", kind), reason=text("bottleneck_reason")
    )
    of_trial["drops_pps"] = drops if isinstance(drops, dict) else {}
    of_trial["invalid"] = tuple(map(str, invalid)) if isinstance(invalid, list) else ()
    of_trial["notes"] = tuple(map(str, notes)) if isinstance(notes, list) else ()
    trial = Trial(evaluator=text("evaluator") or "measure", attempts=count("attempts") or 1, **of_trial)
    of_record: dict[str, Any] = {name: text(name) for name in _RECORD_TEXTS}
    of_record |= {name: number(name) for name in _RECORD_NUMBERS} | {name: count(name) for name in _RECORD_COUNTS}
    return Record(trial=trial, facts=facts if isinstance(facts, dict) else {}, **of_record)


def _delay(row: Mapping[str, Cell], name: str) -> Delay | None:
    cells = {time: row.get(f"{name}_{time}") for time in _DELAY_TIMES}
    if all(cell is None for cell in cells.values()):
        return None
    times = {time: NAN if cell is None else float(cell) for time, cell in cells.items()}
    return Delay(
        **times, method=str(row.get(f"{name}_method") or ""), hdr_base64=str(row.get(f"{name}_hdr_base64") or "")
    )


def _power(row: Mapping[str, Cell]) -> TrialPower | None:
    cells = {name: row.get(f"power_{name}") for name in _POWER_NUMBERS}
    if cells["mean_w"] is None:
        return None
    values: dict[str, Any] = {name: NAN if cell is None else float(cell) for name, cell in cells.items()}
    values |= {name: str(row.get(f"power_{name}") or "") for name in _POWER_TEXTS}
    return TrialPower(**values)
