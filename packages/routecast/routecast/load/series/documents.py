"""JSON of monitoring systems as labelled series.

=====================  ===============================================================================================
system                 what its documentation says
=====================  ===============================================================================================
InfluxDB 1.x           ``/query``: ``results[].series[]`` with name, tags, columns and values; times as text or numbers
VictoriaMetrics        ``/api/v1/export``: a line for each series, with values and timestamps in milliseconds
Zabbix                 ``history.get``: ``itemid``, ``clock`` in seconds and ``value``; ``trend.get`` has ``value_avg``
vnStat                 ``--json``: ``interfaces[].traffic`` with rx and tx in bytes of each five minutes, hour or day
CloudWatch             ``get-metric-statistics``: ``Datapoints`` with ``Timestamp``, a statistic and ``Unit``
=====================  ===============================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.load.series.times import parse_time

__all__ = ["LabelledSeries", "series_of_document"]

LabelledSeries = tuple[str, Mapping[str, str], Mapping[float, str]]
"""Name, labels, and the value at each time in seconds since 1970, empty where it is missing."""

_VNSTAT = ("fiveminute", "hour", "day")
_CLOUDWATCH = ("Average", "Sum", "Maximum", "Minimum")
_CLOUDWATCH_UNITS = {"Bytes/Second": "byte/s", "Bits/Second": "bit/s"} | {
    f"{word}{kind}/Second": f"{prefix}{kind.lower().removesuffix('s')}/s"
    for word, prefix in (("Kilo", "k"), ("Mega", "M"), ("Giga", "G"))
    for kind in ("bits", "bytes")
}


def series_of_document(path: str, document: object) -> tuple[str, list[LabelledSeries]] | None:
    """Return the name of a system and its series, None if a document is of none of these systems.

    Raises FileProblem: the document is of such a system and wrong.
    """
    try:
        for name, read in _SYSTEMS.items():
            series = read(document)
            if series is not None:
                if not any(samples for _, _, samples in series):
                    raise FileProblem(path, [Problem("", f"is {name} without a sample")])
                return name, series
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError) as problem:
        message = f"is {name}, and a part is missing or wrong: {type(problem).__name__}: {str(problem)[:80]}"
        raise FileProblem(path, [Problem("", message)]) from problem
    return None


def _time_s(value: Any) -> float:
    time = parse_time(str(value))
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _text(value: Any) -> str:
    if value is None:
        return ""
    number = float(str(value))
    return "" if math.isnan(number) else str(value)


def _influx(document: Any) -> list[LabelledSeries] | None:
    if not (isinstance(document, dict) and isinstance(document.get("results"), list)):
        return None
    series: list[LabelledSeries] = []
    for part in (part for result in document["results"] for part in result.get("series", ())):
        columns, time_at = part["columns"], part["columns"].index("time")
        labels = {str(key): str(text) for key, text in (part.get("tags") or {}).items()}
        for index, column in enumerate(columns):
            if index == time_at or any(isinstance(row[index], str) for row in part["values"]):
                continue
            name = str(part["name"]) if column in ("value", "mean", "last") else str(column)
            series.append((name, labels, {_time_s(row[time_at]): _text(row[index]) for row in part["values"]}))
    return series


def _victoria(document: Any) -> list[LabelledSeries] | None:
    lines = document if isinstance(document, list) else [document]
    if not lines or not all(
        isinstance(line, dict) and {"metric", "values", "timestamps"} <= line.keys() for line in lines
    ):
        return None
    series: list[LabelledSeries] = []
    for line in lines:
        labels = {str(key): str(text) for key, text in line["metric"].items()}
        pairs = zip(line["timestamps"], line["values"], strict=True)
        samples = {float(time_ms) / 1e3: _text(value) for time_ms, value in pairs}
        series.append((labels.pop("__name__", ""), labels, samples))
    return series


def _zabbix(document: Any) -> list[LabelledSeries] | None:
    rows = document.get("result") if isinstance(document, dict) else document
    if not (isinstance(rows, list) and rows and all(isinstance(row, dict) and "clock" in row for row in rows)):
        return None
    items: dict[str, dict[float, str]] = {}
    for row in rows:
        value = row["value"] if "value" in row else row["value_avg"]
        items.setdefault(str(row.get("itemid", "")), {})[float(row["clock"])] = _text(value)
    return [(f"item {item}".strip(), {}, samples) for item, samples in items.items()]


def _vnstat(document: Any) -> list[LabelledSeries] | None:
    if not (isinstance(document, dict) and "vnstatversion" in document):
        return None
    series: list[LabelledSeries] = []
    for interface in document["interfaces"]:
        traffic = interface["traffic"]
        kind = next((kind for kind in _VNSTAT if len(traffic.get(kind, ())) > 1), None)
        if kind is None:
            raise ValueError("no list of fiveminute, hour or day: run vnstat --json f")
        rows = [(_vnstat_time_s(row), row) for row in traffic[kind]]
        step_s = min(later - earlier for (earlier, _), (later, _) in pairwise(sorted(rows, key=lambda row: row[0])))
        for key in ("rx", "tx"):
            rates = {time_s: repr(float(row[key]) / step_s) for time_s, row in rows}
            series.append((f"{key} byte/s", {"interface": str(interface["name"])}, rates))
    return series


def _vnstat_time_s(row: Any) -> float:
    day, clock = row["date"], row.get("time", {})
    time = datetime(day["year"], day["month"], day["day"], clock.get("hour", 0), clock.get("minute", 0), tzinfo=UTC)
    return time.timestamp()


def _cloudwatch(document: Any) -> list[LabelledSeries] | None:
    if not (isinstance(document, dict) and isinstance(document.get("Datapoints"), list)):
        return None
    points = document["Datapoints"]
    statistic = next(key for key in _CLOUDWATCH if all(key in point for point in points))
    unit = _CLOUDWATCH_UNITS.get(str(points[0].get("Unit")), "") if points else ""
    name = f"{document.get('Label', '')} {statistic} {unit}".strip()
    return [(name, {}, {_time_s(point["Timestamp"]): _text(point[statistic]) for point in points})]


_SYSTEMS = {
    "JSON of InfluxDB": _influx,
    "an export of VictoriaMetrics": _victoria,
    "history of Zabbix": _zabbix,
    "JSON of vnStat": _vnstat,
    "statistics of CloudWatch": _cloudwatch,
}
