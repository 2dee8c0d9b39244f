"""Records as a table in CSV or Parquet: a row for each trial, base units in the names of the columns.

A record that is written and read again is the same, without the values of a simulation alone (resources, energy, queue
lengths).
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from routecast.errors import FileProblem, Problem
from routecast.evaluate.point_table import is_head, parse_cells
from routecast.evaluate.points import Point, PointLatency
from routecast.evaluate.trial import Bottleneck, Delay, Trial, TrialPower
from routecast.lab.benchmark.exchange._benchmark import is_journal, read_journal
from routecast.lab.benchmark.exchange._document import MAX_BYTES, MAX_NUMBER
from routecast.lab.benchmark.exchange._record import LATENCY_FACTS, NAN, Record, measured
from routecast.quantity import bounded_file
from routecast.quantity.table_file import csv_cells, is_spreadsheet, read_sheet, read_table_text, rename_heads
from routecast.quantity.whole_file import unfinished

_GOAL_OF_KIND = {"no_loss": "ndr", "overload": "mrr", "": "run"}

Cell = str | float | int | None

_DELAY_TIMES = ("mean_s", "min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s")
_DELAYS = ("latency", "delay_variation")
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
    columns |= (
        {"evaluator": str, "arrivals": str} | dict.fromkeys(_TRIAL_NUMBERS, float) | dict.fromkeys(_TRIAL_COUNTS, int)
    )
    columns["attempts"] = int
    for delay in _DELAYS:
        columns |= {f"{delay}_{time}": float for time in _DELAY_TIMES}
        columns |= {f"{delay}_method": str, f"{delay}_hdr_base64": str}
    columns |= {f"power_{name}": float for name in _POWER_NUMBERS}
    columns |= {f"power_{name}": str for name in _POWER_TEXTS}
    columns |= dict.fromkeys(("bottleneck", "bottleneck_kind", "bottleneck_reason"), str)
    return columns | dict.fromkeys(("drops_pps", "invalid", "notes", "facts"), str)  # JSON in a cell


COLUMNS: Final[Mapping[str, type]] = _columns()
"""Type of the cells of each column; an empty cell is unknown."""

_NEEDED = ("forwarded_pps", "offered_pps", "loss_ratio")


def _row(record: Record) -> dict[str, Cell]:
    trial = record.trial
    row: dict[str, Cell] = {name: getattr(record, name) for name in (*_RECORD_TEXTS, *_RECORD_NUMBERS, *_RECORD_COUNTS)}
    row |= {
        name: getattr(trial, name) for name in ("evaluator", "arrivals", "attempts", *_TRIAL_NUMBERS, *_TRIAL_COUNTS)
    }
    for name in _DELAYS:
        parts = (*_DELAY_TIMES, "method", "hdr_base64")
        row |= {f"{name}_{part}": getattr(getattr(trial, name), part, None) for part in parts}
    row |= {f"power_{name}": getattr(trial.power, name, None) for name in (*_POWER_NUMBERS, *_POWER_TEXTS)}
    row |= {
        "bottleneck": trial.bottleneck.name,
        "bottleneck_kind": trial.bottleneck.kind,
        "bottleneck_reason": trial.bottleneck.reason,
        "drops_pps": _json(dict(trial.drops_pps)),
        "invalid": _json(list(trial.invalid)),
        "notes": _json(list(trial.notes)),
        "facts": _json(record.to_json()["facts"]),
    }
    return {name: None if row[name] != row[name] else row[name] for name in COLUMNS}  # NaN is an empty cell


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


def write_parquet(records: Sequence[Record], path: Path) -> None:
    """Write the records to a Parquet file, which is whole or absent."""
    import polars

    types = {str: polars.String, float: polars.Float64, int: polars.Int64}
    schema = {name: types[kind] for name, kind in COLUMNS.items()}
    with unfinished(path) as draft:
        polars.DataFrame([_row(record) for record in records], schema=schema, orient="row").write_parquet(draft)


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


def read_csv(path: Path, *, rename: Mapping[str, str] = MappingProxyType({})) -> tuple[Record, ...]:
    """Read the records of a CSV file or a spreadsheet; row 1 is the header. Tables of points are read too.

    ``rename``: names of :data:`COLUMNS`, or of a table of points, for heads of the file that are called otherwise.
    Raises FileProblem: the file is no table of records or points, or a cell has another type than its column.
    """
    rows = _cells(path, rename)
    header = [cell.strip() for cell in rows[0]] if rows else []
    if not is_table(header) and is_head(header):
        return records_of_points(parse_cells(rows, name=str(path)).points)
    if not is_table(header):
        raise FileProblem(str(path), [Problem("row 1", _header_message(header))])
    problems: list[Problem] = []
    records = []
    for number, cells in enumerate(rows[1:], start=2):
        if not any(cells):
            continue
        if len(cells) != len(header):
            message = f"has {len(cells)} cells, the header names {len(header)} columns: is the file cut off?"
            problems.append(Problem(f"row {number}", message))
            continue
        row = {name: _typed(name, cell, f"row {number}", problems) for name, cell in zip(header, cells, strict=True)}
        records.append(_record(row, f"row {number}", problems))
    if problems:
        raise FileProblem(str(path), problems)
    return tuple(records)


def _cells(path: Path, rename: Mapping[str, str]) -> list[list[str]]:
    kind = "table of trials"
    if is_spreadsheet(path):

        def is_table_head(heads: Sequence[str]) -> bool:
            names = with_loss_ratio([[rename.get(head, head) for head in heads]])[0]
            return is_table(names) or is_head(names)

        rows = read_sheet(path, kind=kind, is_head=is_table_head)
    else:
        rows = csv_cells(read_table_text(path, kind=kind, max_file_bytes=MAX_BYTES), name=str(path))
    return with_loss_ratio(rename_heads(rows, rename, name=str(path)))


_LOSS_IN_PERCENT: Final = re.compile(r"loss[ _]*(?:percent|pct|[(\[]?%[)\]]?)", re.IGNORECASE)


def with_loss_ratio(rows: list[list[str]]) -> list[list[str]]:
    """Return rows whose loss in percent (``loss_percent``, ``loss (%)``) is a share, under its name."""
    heads = [cell.strip() for cell in rows[0]] if rows else []
    at = next((index for index, head in enumerate(heads) if _LOSS_IN_PERCENT.fullmatch(head)), None)
    if at is None or "loss_ratio" in heads:
        return rows
    shares = ([*row[:at], _share(row[at]), *row[at + 1 :]] if at < len(row) else row for row in rows[1:])
    return [[*rows[0][:at], "loss_ratio", *rows[0][at + 1 :]], *shares]


def _share(cell: str) -> str:
    """Return a loss in percent as a share; another text stays, for the faults of its row."""
    try:
        return repr(float(cell.strip().removesuffix("%")) / 100.0)
    except ValueError:
        return cell


def records_of_points(points: Sequence[Point]) -> tuple[Record, ...]:
    """Return the measured points of a table as records: each rate, and each latency with its load.

    A point without both is none.
    """
    return (*_rates_of(points), *_latencies_of(points))


def _latencies_of(points: Sequence[Point]) -> Iterator[Record]:
    for point in points:
        latency = point.latency
        if latency is None:
            continue
        load_pps = latency.load_ratio * point.throughput_pps if math.isnan(latency.load_pps) else latency.load_pps
        unstated = PointLatency()
        facts: dict[str, object] = {
            f"latency_{name}": fact
            for name in LATENCY_FACTS
            if (fact := getattr(latency, name)) == fact and fact != getattr(unstated, name)
        }
        if point.frame_mix:
            facts["mix"] = point.frame_mix.name
        yield Record(
            source="table of points",
            title=point.series,
            goal="latency",
            frame_bytes=point.frame_bytes,
            ports=point.ports,
            link_bps=NAN if point.link_bps is None else point.link_bps,
            cores=point.cores,
            flows=point.flows,
            facts=facts,
            trial=replace(
                measured(
                    intended_pps=load_pps,
                    offered_pps=load_pps,
                    forwarded_pps=NAN,
                    frame_bytes=point.frame_bytes,
                    latency=Delay(
                        mean_s=latency.mean_s,
                        min_s=latency.min_s,
                        p50_s=latency.p50_s,
                        p99_s=latency.p99_s,
                        max_s=latency.max_s,
                    ),
                    notes=(f"disturbance: {point.disturbed}",) if point.disturbed else (),
                ),
                arrivals=latency.arrivals,
            ),
        )


def _rates_of(points: Sequence[Point]) -> tuple[Record, ...]:
    return tuple(
        Record(
            source="table of points",
            title=point.series,
            goal=_GOAL_OF_KIND[point.rate_kind],
            frame_bytes=point.frame_bytes,
            ports=point.ports,
            link_bps=NAN if point.link_bps is None else point.link_bps,
            cores=point.cores,
            flows=point.flows,
            facts={"mix": point.frame_mix.name} if point.frame_mix else {},
            trial=measured(
                intended_pps=NAN,
                offered_pps=NAN,
                forwarded_pps=point.throughput_pps,
                loss_ratio=0.0 if point.rate_kind == "no_loss" else NAN,
                frame_bytes=point.frame_bytes,
                notes=()
                if point.rate_kind == "no_loss"
                else ("the table does not state the loss, which is not known",),
            ),
        )
        for point in points
        if math.isfinite(point.throughput_pps)
    )


def _header_message(header: Sequence[str]) -> str:
    unknown = [name for name in header if name not in COLUMNS]
    missing = [name for name in _NEEDED if name not in header]
    what = f"has the unknown columns {', '.join(unknown[:5])}" if unknown else f"lacks {', '.join(missing)}"
    return f"is no table of trials: it {what}; --rename HEAD=NAME gives a column the name that it has here"


def _typed(name: str, text: str, place: str, problems: list[Problem]) -> Cell:
    kind = COLUMNS[name]
    if kind is str or text == "":
        return text or None
    try:
        value = float(text) if kind is float else int(text)
        if kind is int and abs(value) > MAX_NUMBER:
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
    trial_values: dict[str, Any] = {name: number(name) for name in _TRIAL_NUMBERS}
    trial_values |= {name: count(name) for name in _TRIAL_COUNTS} | {name: _delay(row, name) for name in _DELAYS}
    trial_values["power"] = _power(row)
    trial_values["arrivals"] = text("arrivals")
    trial_values["bottleneck"] = Bottleneck(
        name=text("bottleneck"), kind=cast("Any", kind), reason=text("bottleneck_reason")
    )
    trial_values["drops_pps"] = drops if isinstance(drops, dict) else {}
    trial_values["invalid"] = tuple(map(str, invalid)) if isinstance(invalid, list) else ()
    trial_values["notes"] = tuple(map(str, notes)) if isinstance(notes, list) else ()
    trial = Trial(evaluator=text("evaluator") or "measure", attempts=count("attempts") or 1, **trial_values)
    record_values: dict[str, Any] = {name: text(name) for name in _RECORD_TEXTS}
    record_values |= {name: number(name) for name in _RECORD_NUMBERS} | {name: count(name) for name in _RECORD_COUNTS}
    return Record(trial=trial, facts=facts if isinstance(facts, dict) else {}, **record_values)


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
