"""Series as monitoring tools write them: MRTG, RRDtool, and Prometheus.

=====================  ================================================================================================
format                 what its documentation says
=====================  ================================================================================================
MRTG log               mrtg-logfile(1): bytes per second in and out, newest first; a rate is valid from the time of its
                       line to that of the line before; intervals of 5 min, 30 min, 2 h and a day
``rrdtool fetch``      rrdfetch(1), rrdcreate(1): a value is the rate per second in the step that ends at its time
``rrdtool xport``      rrdxport(1): as fetch, as XML or JSON, with the legends as names
Prometheus JSON        HTTP API, range queries: a matrix of series with labels and pairs of time and value
Prometheus text        exposition formats: metric, labels, value, and the time in milliseconds (OpenMetrics: seconds)
``sar -n DEV``         sar(1): means of the interval that ends at each time of day; kilobytes of 1024 bytes
``promtool query``     ``range``: a line ``METRIC{LABELS} =>`` for each series, then lines ``VALUE @[SECONDS]``
=====================  ================================================================================================

A data source of an RRD holds octets per second where it counts an interface; only graphs multiply by 8.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from itertools import pairwise
from typing import Any

from routecast.errors import FileProblem, Problem
from routecast.load.series._table import SeriesTable, shortened, unit_in_name
from routecast.load.series.columns import is_traffic_of_direction
from routecast.load.series.documents import LabelledSeries, series_of_document

__all__ = ["device_of", "series_name", "tool_table"]

_MAX_DOCUMENT_CHARACTERS = 100_000_000
"""Longest JSON or XML document; 30 days of 100 series in steps of five minutes have 25 MB."""
_MAX_CELLS = 20_000_000
_MAX_MRTG_ROWS = 100_000
"""Most steps that an MRTG log may unfold to; MRTG itself keeps 2,600 lines."""
_DAY_S = 86_400

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|NaN|NAN|[Ii]nf)"
_MRTG_HEAD = re.compile(r"\d{9,11} -?\d+ -?\d+\s*")
_MRTG_LINE = re.compile(r"\d{1,11}( -?\d+){4}\s*")
_FETCH_LINE = re.compile(rf"\s*(\d{{9,11}}):((?:\s+{_NUMBER})+)\s*")
_SAMPLE = re.compile(
    rf"(?P<name>[a-zA-Z_:][\w:]*)?\s*(?:\{{(?P<labels>(?:[^\"}}]|\"(?:[^\"\\]|\\.)*\")*)\}})?\s+(?P<value>{_NUMBER}|[+-]Inf)"
    r"(?:\s+(?P<time>-?\d+(?:\.\d+)?))?\s*(?:#.*)?"
)
_LABEL = re.compile(r"\s*([a-zA-Z_]\w*)\s*=\s*\"((?:[^\"\\]|\\.)*)\"\s*,?")
_STREAM_HEAD = re.compile(
    r"(?P<name>[a-zA-Z_:][\w:]*)?\s*(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?\s*=>\s*(?P<instant>\S.*)?"
)
_STREAM_SAMPLE = re.compile(rf"\s*(?P<value>{_NUMBER}|[+-]Inf)\s+@\[(?P<time>\d{{1,12}}(?:\.\d{{1,9}})?)\]\s*")
_SAR_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{2,4}|\d{1,2}\.\d{1,2}\.\d{4}")
_COMMENT_TIME = re.compile(r"#\s*(?:time|scraped(?: at)?)\s*[:=]?\s*(\S.*)", re.IGNORECASE)
_OF_INTEREST = re.compile(r"joule|energy|watts?(?:_|$)|octets|bytes_total$|bits|^power", re.IGNORECASE)
_DEVICE_LABELS = frozenset(
    {"instance", "host", "hostname", "node", "nodename", "sysName", "target", "exported_instance"}
)
_NOT_TRAFFIC = frozenset({"lo"})
_CLOCK = "node_time_seconds"


def tool_table(path: str, text: str) -> SeriesTable | None:
    """Return the table of a tool's file, None if the text is none of the known formats.

    Raises FileProblem: the text is of a known format and wrong.
    """
    first = next((line.strip() for line in text[:100_000].splitlines() if line.strip()), "")
    if _STREAM_HEAD.fullmatch(first):
        return _streams(path, text)
    start = text.lstrip()[:1]
    if start == "<":
        return _xport_xml(path, text)
    if start in ("{", "[") and (document := _json(path, text)) is not None:
        return _of_document(path, document)
    if first.startswith("Linux ") and "IFACE" in text[:100_000]:
        return _sar(path, text)
    lines = text.splitlines()
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if len(filled) > 1 and _MRTG_HEAD.fullmatch(filled[0][1]) and _MRTG_LINE.fullmatch(filled[1][1]):
        return _mrtg(path, filled)
    if len(filled) > 1 and any(_FETCH_LINE.fullmatch(line) for _, line in filled[1:3]):
        return _fetch(path, filled)
    samples = [line for _, line in filled[:200] if not line.startswith("#")]
    is_typed = any(line.startswith(("# HELP ", "# TYPE ")) for _, line in filled[:200])
    if samples and (is_typed or len(samples) > 1) and all(_is_sample(line) for line in samples[:2]):
        return _exposition(path, filled)
    return None


def _is_sample(line: str) -> bool:
    match = _SAMPLE.fullmatch(line)
    return match is not None and (match["name"] is not None or match["labels"] is not None)


def _mrtg(path: str, lines: Sequence[tuple[int, str]]) -> SeriesTable:
    rates: list[tuple[int, int, str, str]] = []  # begin, end, in, out
    problems: list[Problem] = []
    newer = int(lines[0][1].split()[0])
    for number, line in lines[1:]:
        if not _MRTG_LINE.fullmatch(line):
            problems.append(Problem(f"line {number}", "is no line of an MRTG log: time, and bytes/s in and out"))
            continue
        begin, inbound, outbound = line.split()[:3]
        if int(begin) > newer:
            problems.append(Problem(f"line {number}", f"{begin} is later than the line before: the newest comes first"))
        elif int(begin) < newer and int(begin) > 0:
            rates.append((int(begin), newer, inbound, outbound))
        newer = int(begin)
    if problems or not rates:
        raise FileProblem(path, shortened(problems) or [Problem("", "is an MRTG log without rates")])
    step_s = Counter(end - begin for begin, end, _, _ in rates[: max(10, len(rates) // 4)]).most_common(1)[0][0]
    used = _finest(rates, step_s)
    rows = _in_steps(path, used, step_s)
    left = len(rates) - len(used)
    notes = (f"{left:,} older rates over longer intervals are left out: they are means that smooth the day",)
    return SeriesTable(
        path=path,
        names=("time", "in", "out"),
        rows=tuple(rows),
        places=tuple(f"time {time}" for time, _, _ in rows),
        notes=notes if left else (),
        format_name="MRTG log",
        units=("", "byte/s", "byte/s"),
        unit_reason="an MRTG log has the mean rates in bytes per second",
    )


def _finest(rates: Sequence[tuple[int, int, str, str]], step_s: int) -> list[tuple[int, int, str, str]]:
    """Return the newest rates with the finest intervals, and coarser ones only while they cover less than a day."""
    used = []
    for begin, end, inbound, outbound in rates:
        if end - begin > 1.5 * step_s and rates[0][1] - end >= _DAY_S:
            break
        used.append((begin, end, inbound, outbound))
    return used


def _in_steps(path: str, rates: Sequence[tuple[int, int, str, str]], step_s: int) -> list[tuple[str, str, str]]:
    """Return time, in and out in equal steps on multiples of the step; a step has the mean over its time."""
    first, last = -(-rates[-1][0] // step_s), rates[0][1] // step_s
    if last - first > _MAX_MRTG_ROWS:
        raise FileProblem(path, [Problem("", f"spans {last - first:,} steps of {step_s} s: is a time wrong?")])
    totals = [[0.0, 0.0, 0.0] for _ in range(max(last - first, 0))]
    for begin, end, inbound, outbound in rates:
        if float(inbound) < 0.0 or float(outbound) < 0.0:
            continue
        for step in range(max(begin // step_s, first), min(-(-end // step_s), last)):
            part_s = min(end, (step + 1) * step_s) - max(begin, step * step_s)
            total = totals[step - first]
            total[0] += part_s
            total[1] += float(inbound) * part_s
            total[2] += float(outbound) * part_s
    if not totals:
        raise FileProblem(path, [Problem("", "covers no whole step")])
    return [
        (str((first + index) * step_s), *(repr(amount / step_s) if covered == step_s else "" for amount in amounts))  # type: ignore[misc]
        for index, (covered, *amounts) in enumerate(totals)
    ]


def _fetch(path: str, lines: Sequence[tuple[int, str]]) -> SeriesTable:
    names = lines[0][1].split()
    times: list[int] = []
    cells: list[list[str]] = []
    problems: list[Problem] = []
    for number, line in lines[1:]:
        match = _FETCH_LINE.fullmatch(line)
        values = match[2].split() if match else []
        if match is None or len(values) != len(names):
            message = f'is no line of rrdtool fetch, "time: " and {len(names)} values: got "{line.strip()[:60]}"'
            problems.append(Problem(f"line {number}", message))
            continue
        times.append(int(match[1]))
        cells.append(values)
    if problems:
        raise FileProblem(path, shortened(problems))
    places = [f"line {number}" for number, _ in lines[1:]]
    return _of_rrd(path, "output of rrdtool fetch", names, times, cells, places, None)


def _of_rrd(
    path: str,
    format_name: str,
    names: Sequence[str],
    times: Sequence[int],
    cells: Sequence[Sequence[str]],
    places: Sequence[str],
    step_s: float | None,
) -> SeriesTable:
    """Return the table of an RRD, whose times are the ends of the steps and whose last rows may be unknown yet."""
    kept = len(times)
    while kept and all(_is_unknown(value) for value in cells[kept - 1]):
        kept -= 1
    first = 0
    while first < kept and all(_is_unknown(value) for value in cells[first]):
        first += 1
    if first == kept:
        raise FileProblem(path, [Problem("", f"is {format_name} in which every value is unknown (nan)")])
    if step_s is None:
        gaps = Counter(later - earlier for earlier, later in pairwise(times))
        step_s = gaps.most_common(1)[0][0] if gaps else 0
    if not step_s > 0:
        raise FileProblem(path, [Problem("", f"is {format_name} with one step or steps of no length: fetch more")])
    unknown = len(times) - (kept - first)
    units = [_rrd_unit(name) for name in names]
    return SeriesTable(
        path=path,
        names=("time", *names),
        rows=tuple(
            (str(time - step_s), *("" if _is_unknown(value) else value for value in row))
            for time, row in zip(times[first:kept], cells[first:kept], strict=True)
        ),
        places=tuple(places[first:kept]),
        notes=(f"{unknown:,} unknown steps (nan) at the ends are left out",) if unknown else (),
        format_name=format_name,
        units=("", *units),
        unit_reason=_RRD_BITS if any("bit" in unit for unit in units) else _RRD_BYTES,
    )


_RRD_BYTES = "an RRD stores the rate of its counter, and interfaces count bytes"
_RRD_BITS = "an RRD stores rates, and the legend says bits"


def _rrd_unit(name: str) -> str:
    """Return the unit of a data source or legend; RRDtool divides by the time, so that bits are bits per second."""
    named = unit_in_name(name)
    if named is not None and named.per == "second":
        return ""
    words = re.findall(r"[a-z]+", name.lower())
    for word in words:
        match = re.fullmatch(r"([kmgt]?)(bits?|bps)", word)
        if match:
            return f"{match[1] if match[1] in ('', 'k') else match[1].upper()}bit/s"
    if any(word in ("byte", "bytes", "octet", "octets") for word in words) or is_traffic_of_direction(name):
        return "byte/s"
    return ""


def _is_unknown(text: str) -> bool:
    return "nan" in text.lower() or text in ("", "None", "null")


def _xport_xml(path: str, text: str) -> SeriesTable:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    _check_length(path, text)
    try:
        root = fromstring(text.lstrip(), forbid_dtd=True)
    except (DefusedXmlException, ParseError, LookupError, ValueError) as problem:
        raise FileProblem(path, [Problem("", f"begins like XML and is none that is read: {problem}")]) from problem
    if root.tag != "xport":
        message = f'is XML of "{root.tag[:40]}": of XML files only the output of rrdtool xport is read'
        raise FileProblem(path, [Problem("", message)])
    rows = root.findall("data/row")
    times = [row.findtext("t") for row in rows]
    return _xport(
        path,
        "output of rrdtool xport (XML)",
        {name: root.findtext(f"meta/{name}") for name in ("start", "step")},
        [entry.text or "" for entry in root.findall("meta/legend/entry")],
        None if any(time is None for time in times) else [str(time) for time in times],
        [[cell.text or "" for cell in row.findall("v")] for row in rows],
    )


def _xport(
    path: str,
    format_name: str,
    meta: Mapping[str, Any],
    names: Sequence[str],
    times: Sequence[str] | None,
    cells: Sequence[Sequence[str]],
) -> SeriesTable:
    start, step = _whole(meta.get("start")), _whole(meta.get("step"))
    if step is None or step <= 0 or (start is None and times is None):
        raise FileProblem(path, [Problem("meta", f"is {format_name}, and start or step is no whole number of seconds")])
    wrong = next((index for index, row in enumerate(cells, 1) if len(row) != len(names)), None)
    if wrong is not None:
        message = f"has {len(cells[wrong - 1])} values, the legend {len(names)} names"
        raise FileProblem(path, [Problem(f"row {wrong}", message)])
    ends = (
        [_whole(time) for time in times] if times is not None else [(start or 0) + step * n for n in range(len(cells))]
    )
    known = [end for end in ends if end is not None]
    if len(known) < len(ends) or not ends:
        raise FileProblem(path, [Problem("data", "has no rows, or a row whose time is no number of seconds")])
    unique = [name if names.count(name) == 1 else f"{name} {index}" for index, name in enumerate(names, 1)]
    places = [f"row {number}" for number in range(1, len(cells) + 1)]
    return _of_rrd(path, format_name, unique, known, cells, places, step)


def _whole(value: object) -> int | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return int(number) if math.isfinite(number) and 0 <= number < 1e11 and number == int(number) else None


def _check_length(path: str, text: str) -> None:
    if len(text) > _MAX_DOCUMENT_CHARACTERS:
        message = (
            f"has {len(text):,} characters: JSON and XML are read up to {_MAX_DOCUMENT_CHARACTERS:,}; cut its time"
        )
        raise FileProblem(path, [Problem("", message)])


def _json(path: str, text: str) -> Any:
    """Return a JSON document, None if the text is no JSON at all (a line of labels may begin with a brace)."""
    _check_length(path, text)
    # RRDtool before 1.5 writes names without quotes and texts in single ones.
    loose = re.sub(r"(?m)^(\s*[{,]?\s*)(about|meta|start|step|end|legend|data):", r'\1"\2":', text)
    for candidate in (text, re.sub(r"'([^'\"\n]*)'", r'"\1"', loose)):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError) as problem:
            fault = problem
    if _is_sample(text.lstrip().splitlines()[0]):
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [json.loads(line) for line in lines] if len(lines) > 1 else json.loads(text)
    except (ValueError, RecursionError):
        raise FileProblem(path, [Problem("", f"begins like JSON and is none: {str(fault)[:120]}")]) from None


def _of_document(path: str, document: object) -> SeriesTable:
    if isinstance(document, dict) and isinstance(document.get("meta"), dict) and "data" in document:
        return _xport_json(path, document)
    if isinstance(document, dict) and document.get("status") == "error":
        message = f"is an error of Prometheus: {str(document.get('error'))[:200]}"
        raise FileProblem(path, [Problem("", message)])
    if (other := series_of_document(path, document)) is not None:
        return _of_series(path, *other)
    data = document.get("data", document) if isinstance(document, dict) else document
    kind = data.get("resultType", "matrix") if isinstance(data, dict) else "matrix"
    result = data.get("result") if isinstance(data, dict) else data
    if kind != "matrix":
        message = f"is a {str(kind)[:20]} of Prometheus, one instant: ask /api/v1/query_range, which gives a matrix"
        raise FileProblem(path, [Problem("", message)])
    if (
        not isinstance(result, list)
        or not result
        or not all(isinstance(part, dict) and "values" in part for part in result)
    ):
        message = (
            "is JSON, but none of Prometheus (query_range), rrdtool xport, InfluxDB, VictoriaMetrics, Zabbix, vnStat "
            "or CloudWatch: write it as CSV with a time and a rate in a row"
        )
        raise FileProblem(path, [Problem("", message)])
    series = []
    for number, part in enumerate(result, 1):
        metric = part.get("metric")
        labels = {str(key): str(value) for key, value in metric.items()} if isinstance(metric, dict) else {}
        try:
            samples = {_instant(time): _text_value(value) for time, value in part["values"]}
        except (TypeError, ValueError) as problem:
            where = f"result {number}"
            message = f"has values that are no pairs of time and number: {str(problem)[:80]}"
            raise FileProblem(path, [Problem(where, message)]) from problem
        series.append((labels.pop("__name__", ""), labels, samples))
    return _of_series(path, "Prometheus range query", series)


def _xport_json(path: str, document: Mapping[str, Any]) -> SeriesTable:
    rows, names = document["data"], document["meta"].get("legend")
    if not isinstance(rows, list) or not isinstance(names, list) or not all(isinstance(row, list) for row in rows):
        raise FileProblem(path, [Problem("data", "is no list of rows of an rrdtool xport with a legend")])
    cells = [[str(value) for value in row] for row in rows]
    has_times = bool(cells) and all(len(row) == len(names) + 1 for row in cells)
    return _xport(
        path,
        "output of rrdtool xport (JSON)",
        document["meta"],
        [str(name) for name in names],
        [row[0] for row in cells] if has_times else None,
        [row[1:] for row in cells] if has_times else cells,
    )


def _instant(value: object) -> float:
    time_s = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    if not 0.0 <= time_s < 1e11:
        raise ValueError(f"{str(value)[:40]} is no time in seconds since 1970")
    return time_s


def _text_value(value: object) -> str:
    number = float(str(value))
    return "" if math.isnan(number) else str(value)


def _of_series(path: str, format_name: str, series: Sequence[LabelledSeries]) -> SeriesTable:
    """Return the table of labelled series over the union of their times."""
    loops = [part for part in series if _interface(part[1]) in _NOT_TRAFFIC]
    series = [part for part in series if part not in loops] or series
    times = sorted({time for _, _, samples in series for time in samples})
    if len(times) * len(series) > _MAX_CELLS:
        message = f"has {len(series):,} series over {len(times):,} times: at most {_MAX_CELLS:,} values; select fewer"
        raise FileProblem(path, [Problem("", message)])
    if len(times) < 2:
        raise FileProblem(path, [Problem("", f"is a {format_name} with {len(times)} instants: give two or more")])
    shared = set.intersection(*(set(labels.items()) for _, labels, _ in series))
    names = [series_name(name, labels, shared) for name, labels, _ in series]
    unique = [name if names.count(name) == 1 else f"{name} {index}" for index, name in enumerate(names, 1)]
    return SeriesTable(
        path=path,
        names=("time", *unique),
        rows=tuple((f"{time:.6f}", *(samples.get(time, "") for _, _, samples in series)) for time in times),
        places=tuple(f"time {time:.3f}" for time in times),
        notes=("traffic of the loopback interface lo is left out",) if len(loops) > 0 and len(series) else (),
        format_name=format_name,
        devices=("", *(device_of(labels) for _, labels, _ in series)),
    )


def series_name(name: str, labels: Mapping[str, str], shared: set[tuple[str, str]]) -> str:
    """Return the name of a series with the labels that not all series share."""
    own = ",".join(f'{key}="{value}"' for key, value in labels.items() if (key, value) not in shared)
    return f"{name or 'value'}{{{own}}}" if own else name or "value"


def _interface(labels: Mapping[str, str]) -> str:
    return next((labels[key] for key in ("device", "interface", "iface", "ifName", "ifDescr") if key in labels), "")


def device_of(labels: Mapping[str, str]) -> str:
    """Return the labels of a series that name its machine, as one text."""
    return ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if key in _DEVICE_LABELS)


def _exposition(path: str, lines: Sequence[tuple[int, str]]) -> SeriesTable:
    """Return the table of one or more scrapes; those without time stamps are dated by ``node_time_seconds``."""
    is_open_metrics = any(line.strip() == "# EOF" for _, line in lines)
    stamped: dict[tuple[str, str], dict[float, str]] = {}
    scrapes: list[dict[tuple[str, str], str]] = [{}]
    clocks: list[float | None] = [None]
    for number, line in lines:
        if line.startswith("#"):
            dated = _COMMENT_TIME.fullmatch(line.strip())
            if dated:
                scrapes.append({})
                clocks.append(_comment_time(path, number, dated[1]))
            continue
        match = _SAMPLE.fullmatch(line)
        if match is None:
            message = f'is no sample of the Prometheus text format: "{line.strip()[:60]}"'
            raise FileProblem(path, [Problem(f"line {number}", message)])
        name, labels, value = match["name"] or "", match["labels"] or "", match["value"]
        key = name, labels
        if match["time"]:
            if _is_of_interest(name, labels):
                stamped.setdefault(key, {})[_stamp(path, number, match["time"], is_open_metrics)] = value
            continue
        if key in scrapes[-1]:
            scrapes.append({})
            clocks.append(None)
        scrapes[-1][key] = value
        if name == _CLOCK:
            clocks[-1] = float(value)
    for scrape, clock in zip(scrapes, clocks, strict=True):
        wanted = {key: value for key, value in scrape.items() if _is_of_interest(*key)}
        if wanted and clock is None:
            raise _undated(path, len([scrape for scrape in scrapes if scrape]))
        for key, value in wanted.items():
            stamped.setdefault(key, {})[clock or 0.0] = value
    if not stamped:
        raise FileProblem(path, [Problem("", "is of the Prometheus text format, without traffic, energy or watts")])
    series: list[LabelledSeries] = []
    for (name, text), samples in stamped.items():
        labels = dict(_LABEL.findall(text))
        known = {time: "" if "nan" in value.lower() else value for time, value in samples.items()}
        series.append((labels.pop("__name__", name), labels, known))
    if len({time for _, _, samples in series for time in samples}) < 2:
        raise _one_scrape(path)
    return _of_series(path, "Prometheus text format", series)


def _streams(path: str, text: str) -> SeriesTable:
    """Return the table of the output of ``promtool query range``."""
    series: list[tuple[str, Mapping[str, str], dict[float, str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        head = _STREAM_HEAD.fullmatch(line.strip())
        sample = None if head else _STREAM_SAMPLE.fullmatch(line)
        if head and head["instant"]:
            message = "is one instant: promtool query range --start=… --end=… --step=5m gives a series"
            raise FileProblem(path, [Problem(f"line {number}", message)])
        if head:
            labels = dict(_LABEL.findall(head["labels"] or ""))
            series.append((labels.pop("__name__", head["name"] or ""), labels, {}))
        elif sample and series:
            time_s = _stamp(path, number, sample["time"], is_open_metrics=True)
            series[-1][2][time_s] = "" if "nan" in sample["value"].lower() else sample["value"]
        else:
            message = f'is no sample of promtool, "VALUE @[SECONDS]": "{line.strip()[:60]}"'
            raise FileProblem(path, [Problem(f"line {number}", message)])
    return _of_series(path, "promtool query range", series)


def _sar(path: str, text: str) -> SeriesTable:
    """Return the table of the interfaces in the output of ``sar -n DEV``, whose first line has the date."""
    from routecast.load.series.times import parse_time

    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    dates = [cell for cell in lines[0][1] if _SAR_DATE.fullmatch(cell)]
    if not dates:
        raise FileProblem(path, [Problem("line 1", "is output of sar whose first line has no date: keep that line")])
    try:
        day = parse_time(dates[0])
    except ValueError as problem:
        raise FileProblem(path, [Problem("line 1", str(problem))]) from problem
    series: dict[tuple[str, str], dict[float, str]] = {}
    titles: list[str] = []
    before_s, instants = -1.0, list[float]()
    for number, cells in lines[1:]:
        is_half = len(cells) > 1 and cells[1] in ("AM", "PM")
        clock, values = " ".join(cells[: 1 + is_half]), cells[1 + is_half :]
        if not re.match(r"\d{1,2}:\d{2}:\d{2}", clock) or (values and "RESTART" in values[0]) or "LINUX" in cells:
            continue
        if values and "IFACE" in values:
            titles = values
            continue
        if len(values) != len(titles) or "IFACE" not in titles:
            continue
        try:
            time = parse_time(f"{day:%Y-%m-%d} {clock}" if not is_half else f"{day:%m/%d/%Y} {clock}")
        except ValueError as problem:
            raise FileProblem(path, [Problem(f"line {number}", str(problem))]) from problem
        time_s = time.replace(tzinfo=UTC).timestamp()
        if time_s < before_s - _DAY_S / 2:  # after midnight
            day += timedelta(days=1)
            time_s += _DAY_S
        before_s = time_s
        instants += [time_s] if not instants or time_s != instants[-1] else []
        row = dict(zip(titles, values, strict=True))
        for title in row.keys() & {"rxkB/s", "txkB/s", "rxbyt/s", "txbyt/s"}:
            series.setdefault((title, row["IFACE"]), {})[time_s] = row[title]
    if len(instants) < 2:
        raise FileProblem(path, [Problem("", "is output of sar -n DEV with fewer than two times: record more")])
    step_s = Counter(later - earlier for earlier, later in pairwise(instants)).most_common(1)[0][0]
    begun = [
        (title, {"iface": interface}, {time_s - step_s: value for time_s, value in samples.items()})
        for (title, interface), samples in sorted(series.items())
    ]
    return _of_series(path, "output of sar -n DEV", begun)


def _is_of_interest(name: str, labels: str) -> bool:
    if not name:
        name = dict(_LABEL.findall(labels)).get("__name__", "")
    return bool(_OF_INTEREST.search(name))


_APPEND = 'while sleep 60; do date +"# time %s"; curl -s http://HOST:PORT/metrics; done >> FILE'


def _one_scrape(path: str) -> FileProblem:
    message = f"is one scrape of counters, which has no rate: append scrapes with their times, such as by {_APPEND}"
    return FileProblem(path, [Problem("", message)])


def _undated(path: str, scrapes: int) -> FileProblem:
    if scrapes == 1:
        return _one_scrape(path)
    message = (
        f'is {scrapes} scrapes without their times: give each line its time stamp, or write a line "# time SECONDS" '
        f"before each scrape, such as by {_APPEND}"
    )
    return FileProblem(path, [Problem("", message)])


def _stamp(path: str, number: int, text: str, is_open_metrics: bool) -> float:
    time_s = float(text)
    # Milliseconds of the text format; OpenMetrics has seconds. 1e11 ms is in 1973, 1e11 s in the year 5138.
    time_s = time_s if is_open_metrics or abs(time_s) < 1e11 else time_s / 1e3
    if not 0.0 <= time_s < 1e11:
        raise FileProblem(path, [Problem(f"line {number}", f'"{text[:40]}" is no time since 1970')])
    return time_s


def _comment_time(path: str, number: int, text: str) -> float:
    from routecast.load.series.times import parse_time

    try:
        time = parse_time(text.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as problem:
        raise FileProblem(path, [Problem(f"line {number}", str(problem))]) from problem
