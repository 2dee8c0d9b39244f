"""Long layouts: a column of values, and columns of labels that say whose value it is.

======================  ===============================================================================================
layout                  what its documentation says
======================  ===============================================================================================
Grafana CSV             "Series", "Time", "Value" of old versions; a column for each label beside "Time" and "Value"
InfluxDB annotated CSV  ``#group``, ``#datatype``, ``#default``, then a head; a table ends at an empty line, and the
                        next has its own head; ``_time``, ``_value``, ``_field``, ``_measurement`` and the tags
InfluxDB 1.x            ``influx -format csv``: ``name,time,value`` in nanoseconds
======================  ===============================================================================================

Each series becomes a column, whose name says its labels; an empty cell of it is no missing sample.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.errors import FileProblem, Problem
from routecast.load.series._table import SeriesTable
from routecast.load.series.columns import MISSING, is_amount_of_interval, is_number, is_time_title, time_index
from routecast.load.series.formats import device_of, series_name

__all__ = ["in_columns", "influx_table"]

_NAMES = frozenset({"series", "metric", "name", "_field", "field", "legend", "target", "label"})
_VALUES = frozenset({"value", "_value", "values", "val", "mean", "avg", "average", "last", "mean_value"})
_LABEL_NAMES = re.compile(
    r"(?:if_?)?index|i(?:f|face|fname|fdescr)|ports?|vlan|(?:item|port|device|interface|sensor)_?id|interface|device|host(?:name)?|instance|node",
    re.IGNORECASE,
)
_OF_QUERY = frozenset({"", "result", "table", "_start", "_stop"})
"""Columns of InfluxDB that say something about the query."""
_NO_LOOP = "traffic of the loopback interface lo is left out"
_MAX_SERIES = 5_000
_MAX_CELLS = 20_000_000


def influx_table(path: str, text: str) -> SeriesTable | None:
    """Return the table of an annotated CSV of InfluxDB, None if the text is none.

    Raises FileProblem: a row does not fit the head of its table.
    """
    lines = [line for line in text[:100_000].splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith("#")), "")
    if "_time" not in (cell.strip().strip('"') for cell in first.split(",")):
        return None
    names: list[str] = []
    rows: list[dict[str, str]] = []
    places: list[str] = []
    head: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip(" ,"):
            head = []
            continue
        if line.startswith(("#", '"#')):
            head = [] if line.lstrip('"').startswith("#group") else head
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if not head or ("_time" in cells and "_time" in head):
            head = cells
            names += [name for name in cells if name not in names and name not in _OF_QUERY]
            continue
        if len(cells) != len(head):
            message = f"has {len(cells)} fields, the head of its table {len(head)}"
            raise FileProblem(path, [Problem(f"line {number}", message)])
        rows.append(dict(zip(head, cells, strict=True)))
        places.append(f"line {number}")
    if not rows:
        raise FileProblem(path, [Problem("", "has a header and no samples")])
    table = SeriesTable(
        path=path,
        names=tuple(names),
        rows=tuple(tuple(row.get(name, "") for name in names) for row in rows),
        places=tuple(places),
        format_name="annotated CSV of InfluxDB",
    )
    return in_columns(table)


def in_columns(table: SeriesTable) -> SeriesTable:
    """Return a table with a column for each series; the table itself if it is not in a long layout.

    Raises FileProblem: the table has too many series.
    """
    lower = [name.lower() for name in table.names]
    time_at = time_index(table, None)
    if not is_time_title(table.names[time_at]) or any(
        is_amount_of_interval(table, index, time_at) for index in range(len(lower))
    ):
        return table
    others = [index for index in range(len(lower)) if index != time_at]
    labels = [index for index in others if _is_label(table, index)]
    values = [index for index in others if index not in labels and _has_values(table, index)]
    labels = _without_states(table, labels, time_at)
    if not labels or not values:
        return table
    times = Counter(row[time_at] for row in table.rows)
    groups = {tuple(row[index] for index in labels) for row in table.rows}
    repeats = len(times) < len(table.rows) and len(groups) > 1
    is_named = any(_is_name(table.names[index]) for index in labels)
    is_plain_value = all(lower[index] in _VALUES for index in values)
    if not (repeats or is_named or (is_plain_value and len(groups) == 1)):
        return table
    if len(groups) * len(values) > _MAX_SERIES or len(groups) * len(values) * len(times) > _MAX_CELLS:
        message = (
            f"has {len(groups):,} series over {len(times):,} times: at most {_MAX_SERIES:,} are read; select fewer"
        )
        raise FileProblem(table.path, [Problem("", message)])
    return _pivoted(table, time_at, labels, values)


def _is_label(table: SeriesTable, index: int) -> bool:
    """Return whether a column has names of what was measured: texts, or numbers of ports and the like."""
    if _is_name(table.names[index]):
        return True
    filled = [row[index] for row in table.rows if row[index].lower() not in MISSING]
    return (
        bool(filled)
        and table.names[index].strip().lower() not in _VALUES
        and not any(is_number(text) for text in filled[:1000])
    )


def _is_name(title: str) -> bool:
    return title.strip().lower() in _NAMES or _LABEL_NAMES.fullmatch(title.strip()) is not None


def _has_values(table: SeriesTable, index: int) -> bool:
    return any(row[index].lower() not in MISSING for row in table.rows)


def _without_states(table: SeriesTable, labels: Sequence[int], time_at: int) -> list[int]:
    """Leave out columns that vary within a series and are not needed to tell the rows of one time apart."""
    kept = list(labels)
    for index in reversed(labels):
        if _is_name(table.names[index]):
            continue
        rest = [at for at in kept if at != index]
        rows = {(row[time_at], *(row[at] for at in rest)) for row in table.rows}
        states: dict[tuple[str, ...], set[str]] = {}
        for row in table.rows:
            states.setdefault(tuple(row[at] for at in rest), set()).add(row[index])
        if len(rows) == len(table.rows) and any(len(texts) > 1 for texts in states.values()):
            kept = rest
    return kept


def _pivoted(table: SeriesTable, time_at: int, labels: Sequence[int], values: Sequence[int]) -> SeriesTable:
    samples: dict[tuple[str, int], dict[tuple[tuple[str, ...], int], str]] = {}
    places: dict[tuple[str, int], str] = {}
    seen: Counter[tuple[str, tuple[str, ...]]] = Counter()
    groups: dict[tuple[str, ...], None] = {}
    for row, place in zip(table.rows, table.places, strict=True):
        group = tuple(row[index] for index in labels)
        groups.setdefault(group)
        # A local time occurs twice in the night in which the clock goes back.
        key = row[time_at], seen[row[time_at], group]
        seen[row[time_at], group] += 1
        places.setdefault(key, place)
        cells = samples.setdefault(key, {})
        for index in values:
            cells[group, index] = row[index] if row[index] else "null"
    filled = {column for cells in samples.values() for column, text in cells.items() if text.lower() not in MISSING}
    loops = {group for group in groups if "lo" in group}
    groups = {group: None for group in groups if group not in loops} or groups
    columns = [(group, index) for index in values for group in groups if (group, index) in filled]
    named = [_named(table, labels, group, index, is_alone=len(values) == 1) for group, index in columns]
    shared = set.intersection(*(set(part.items()) for _, part in named))
    names = [series_name(name, part, shared) for name, part in named]
    unique = [name if names.count(name) == 1 else f"{name} {number}" for number, name in enumerate(names, 1)]
    return replace(
        table,
        names=(table.names[time_at], *unique),
        rows=tuple((time, *(cells.get(column, "") for column in columns)) for (time, _), cells in samples.items()),
        places=tuple(places[key] for key in samples),
        notes=(*table.notes, *([_NO_LOOP] if loops - groups.keys() else [])),
        format_name=table.format_name or "CSV with a row for each series and time",
        units=(),
        devices=("", *(device_of(part) for _, part in named)),
        is_union=True,
    )


def _named(
    table: SeriesTable, labels: Sequence[int], group: Sequence[str], index: int, *, is_alone: bool
) -> tuple[str, Mapping[str, str]]:
    """Return the name of a series and its labels; a column "value" takes its name from the label that is a name."""
    part = {table.names[at].strip(): text for at, text in zip(labels, group, strict=True) if text}
    name = table.names[index].strip()
    if not (is_alone and name.lower() in _VALUES):
        return name, part
    key = next((key for key in part if key.lower() in _NAMES), next(iter(part)) if len(part) == 1 else None)
    return (part.pop(key), part) if key is not None else (name, part)
