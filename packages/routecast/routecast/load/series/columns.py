"""The columns of a table that make a traffic series: their units, their directions, and what is added up."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.load.series._table import (
    SERIES_UNITS_TEXT,
    SeriesTable,
    SeriesUnit,
    column_index,
    parse_series_unit,
    unit_in_name,
)
from routecast.quantity.schema import field, value

__all__ = [
    "MISSING",
    "Chosen",
    "chosen_columns",
    "direction",
    "energy_columns",
    "is_amount_of_interval",
    "is_number",
    "is_time_title",
    "is_traffic_of_direction",
    "number",
    "time_index",
]

MISSING = ("", "na", "n/a", "nan", "-nan", "null", "none", "-", "undefined")

_TIME_NAMES = ("time", "timestamp", "date", "datetime", "date_time", "ts", "time_s", "epoch", "_time")
_TIME_TITLES = (
    "@timestamp",
    "date time",
    "date/time",
    "datum",
    "zeit",
    "zeitstempel",
    "uhrzeit",
    "horodatage",
    "fecha",
    "hora",
)
_TIME_WORDS = re.compile(r"(?:time|timestamp|epoch|date)(?:[_ (]*(?:n|u|µ|m)?s(?:ec(?:ond)?s?)?\)?)?", re.IGNORECASE)
_INTERVAL_NAMES = (
    *("start", "start_time", "starttime", "first", "first_seen", "t_first", "ts", "time_start", "interval_start"),
    *("stamp_inserted", "timeslot", "bucket", "date first seen"),
)
"""Names of times at which an interval of a flow collector begins; ``stamp_inserted`` is pmacct's (CONFIG-KEYS,
``sql_history``)."""
_AMOUNT_NAMES = re.compile(
    r"(?:(?:in|out|total|sum)[_ ]?)?(?:bytes?|octets?)(?:[_ ](?:in|out|total))?|ibyt|obyt|octetdeltacount",
    re.IGNORECASE,
)
_DIRECTION_LABEL = re.compile(r"[{,]\s*(?:direction|dir|way)=\"([^\"{]{1,100})\"", re.IGNORECASE)
_WORDS = re.compile(r"[A-ZÄÖÜÉ]?[a-zäöüßéèêóíç]+|[A-ZÄÖÜÉ]+(?![a-z])|\d+")
_IN = frozenset({"in", "rx", "receive", "received", "inbound", "input", "ingress", "incoming", "download", "ibyt"})
_OUT = frozenset({"out", "tx", "transmit", "transmitted", "sent", "outbound", "output", "egress", "outgoing"})
_OUT = _OUT | {"upload", "obyt"}
_IN = _IN | {"eingehend", "eingehender", "empfangen", "entrant", "entrée", "reçu", "entrante", "entrada", "recibido"}
_OUT = _OUT | {"ausgehend", "ausgehender", "gesendet", "sortant", "sortie", "émis", "saliente", "salida", "enviado"}
_OF_RRD = {"ds0": "in", "ds1": "out", "inoctets": "in", "outoctets": "out", "ifinoctets": "in", "ifoutoctets": "out"}
_EXTREMES = (
    frozenset({"avg", "average", "mean"}),
    frozenset({"total", "sum", "last", "current", "raw", "gesamt"}),
    frozenset({"max", "maximum", "min", "minimum", "peak", "percentile", "th"}),
)
"""Words of columns of which others are the plain ones, the better ones first."""
_NO_TRAFFIC = frozenset(
    {
        "packets",
        "packet",
        "pkts",
        "ucast",
        "mcast",
        "pps",
        "frames",
        "errors",
        "errs",
        "discards",
        "drops",
        "dropped",
        "load",
        "flows",
        "util",
        "percent",
        "speed",
    }
)
_CELL = re.compile(
    r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"
    r"(?P<prefix>(?:[kKMGTP]i?)?)(?P<unit>bits?|bytes?|Bytes?|b|B)\s*(?:/\s*s(?:ec)?|ps|per second)"
)
_CELL_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{prefix}i": 1024.0**power for power, prefix in enumerate("kMGTP", 1)
}
_CELL_PREFIX["Ki"] = 1024.0
_ENERGY = re.compile(
    r"(?P<kilowatt_hours>(?<![A-Za-z])k[Ww]h|kilowatt[_ ]?hours?)(?![A-Za-z])"
    r"|(?P<watt_hours>(?<![A-Za-z])(?:Wh|wh)|watt[_ ]?hours?)"
    r"(?![A-Za-z])|(?P<micro>energy_uj|energy_u[Jj]|micro_?joules?|_uj\b)|joules?(?:_total)?(?![A-Za-z])|energy_j\b|(?<![A-Za-z])J(?![A-Za-z])"
)
_POWER = re.compile(
    r"(?P<kilo>kW|kilowatts?)(?![A-Za-z])|(?<![A-Za-z])(?:[Ww]atts?|W)(?![A-Za-z])"
    r"|power_w\b|(?:Pkg|Cor|GFX|RAM|Sys)Watt\b"
)


@value
class Chosen:
    """Columns whose sum is the traffic."""

    columns: tuple[tuple[int, SeriesUnit], ...]
    note: str = field("What the file was taken for; empty for a plain column with a unit", default="")


def time_index(table: SeriesTable, time_column: str | None) -> int:
    """Return the column of times: the named one, or one with a usual name, or the first."""
    if time_column is not None:
        return column_index(table, time_column, "time_column")
    lower = [name.lower() for name in table.names]
    names = (*_TIME_NAMES, *_TIME_TITLES, *_INTERVAL_NAMES)
    named = next((lower.index(name) for name in names if name in lower), None)
    return named if named is not None else next((at for at, name in enumerate(lower) if _TIME_WORDS.fullmatch(name)), 0)


def is_time_title(name: str) -> bool:
    """Return whether the title of a column says that it has times."""
    lower = name.lower()
    return lower in _TIME_NAMES or lower in _TIME_TITLES or _TIME_WORDS.fullmatch(lower) is not None


def direction(name: str) -> str:
    """Return ``"in"``, ``"out"`` or ``""`` by the words of a name.

    Examples
    --------
    >>> direction("ifHCInOctets"), direction("node_network_transmit_bytes_total"), direction("Traffic (in bits)")
    ('in', 'out', '')
    >>> direction('interface_bits_per_second{direction="receive"}')
    'in'
    """
    label = _DIRECTION_LABEL.search(name)
    if label:
        return direction(label[1])
    plain = name.split("{", maxsplit=1)[0] if not name.startswith("value{") else name
    if plain.strip().lower() in _OF_RRD:
        return _OF_RRD[plain.strip().lower()]
    plain = re.sub(r"\(in |\bin (?=[kMGT]?(?:bits?|bytes?|octets?)\))", "(", plain)
    plain = re.sub(r"\b([rt]x)(?=kB/s|byt/s)", r"\1 ", plain)
    words = {word.lower() for word in _WORDS.findall(plain)}
    inward, outward = bool(words & _IN), bool(words & _OUT)
    return "in" if inward and not outward else "out" if outward and not inward else ""


def is_traffic_of_direction(name: str) -> bool:
    """Return whether a name says in or out, and nothing that is no amount of traffic, such as packets or errors.

    Examples
    --------
    >>> is_traffic_of_direction("traffic_in"), is_traffic_of_direction("errors_in")
    (True, False)
    """
    return bool(direction(name)) and not _words(name) & _NO_TRAFFIC


def chosen_columns(table: SeriesTable, column: str | None, unit: str | None, time_at: int) -> Chosen:
    """Return the columns of values and their units.

    One column with a unit is the traffic. In and out of one link are added, because a router forwards both; of several
    interfaces with both, only what they receive is added, because what a router receives it sends again.

    Raises FileProblem: the file leaves the columns or their unit open, or it has energy and no traffic.
    """
    given = _given_unit(table, unit)
    others = [index for index in range(len(table.names)) if index != time_at]
    if column is not None:
        at = column_index(table, column, "column")
        if at == time_at:
            raise FileProblem(table.path, [Problem("column", f'"{column}" is the column of times')])
        meaning = given or _stated(table, at, time_at)
        if meaning is None:
            raise _no_unit(table, [at])
        return Chosen(columns=((at, meaning),), note=_note(table, [(at, meaning)], "") if table.format_name else "")
    stated = {index: _stated(table, index, time_at) for index in others}
    candidates = [index for index in others if stated[index] is not None]
    if not candidates:
        _refuse_energy(table, others)
        candidates = [index for index in others if not _words(table.names[index]) & _NO_TRAFFIC] or others
        if given is None and candidates and (len(candidates) == 1 or _sum_rule(table, candidates)):
            raise _no_unit(table, candidates)
    columns = _without_doubles(table, candidates, stated)
    rule = "" if len(columns) == 1 else _sum_rule(table, columns)
    if len(columns) != 1 and not rule:
        names = ", ".join(f'"{table.names[index]}"' for index in others[:20]) or "none"
        more = f" and {len(others) - 20} more" if len(others) > 20 else ""
        message = f"name the column of values (--column); beside the time there are {names}{more}"
        raise FileProblem(table.path, [Problem("column", message)])
    if rule == "received":
        columns = [index for index in columns if direction(table.names[index]) == "in"]
    chosen = [(index, meaning) for index in columns if (meaning := given or stated[index]) is not None]
    if len(chosen) < len(columns):
        raise _no_unit(table, columns)
    is_plain = not (table.format_name or rule or len(candidates) > 1 or chosen[0][1].is_in_cells)
    is_plain = is_plain and chosen[0][1].per == "second"
    note = "" if is_plain else _note(table, chosen, rule)
    return Chosen(columns=tuple(chosen), note=note)


def _given_unit(table: SeriesTable, unit: str | None) -> SeriesUnit | None:
    if unit is None:
        return None
    try:
        return parse_series_unit(unit)
    except QuantityProblem as problem:
        raise FileProblem(table.path, [Problem("unit", problem.message)]) from problem


def _stated(table: SeriesTable, index: int, time_at: int) -> SeriesUnit | None:
    """Return the unit of a column by its format, its name, its cells, or its place beside a time of flow records."""
    name = table.names[index]
    if table.unit(index):
        return parse_series_unit(table.unit(index))
    named = unit_in_name(name.split("{")[0]) or unit_in_name(name)
    cells = [row[index] for row in table.rows[:1000] if row[index].lower() not in MISSING]
    of_cells = next((match for match in map(_CELL.fullmatch, cells) if match), None)
    if of_cells and (named is None or named.per == "second"):
        return SeriesUnit(bits=1.0, per="second", text="the unit of each cell", is_in_cells=True)
    if named is not None:
        return named
    if is_amount_of_interval(table, index, time_at):
        return SeriesUnit(bits=8.0, per="step", text="bytes of each interval")
    return None


def is_amount_of_interval(table: SeriesTable, index: int, time_at: int) -> bool:
    """Return whether a column has bytes of intervals that begin at the column of times."""
    is_interval = table.names[time_at].lower() in _INTERVAL_NAMES
    return is_interval and _AMOUNT_NAMES.fullmatch(table.names[index].strip()) is not None


def is_number(text: str) -> bool:
    """Return whether a cell is a number, or a rate with its unit."""
    for unit in (None, SeriesUnit(bits=1.0, per="second", is_in_cells=True)):
        try:
            number(text, unit)
        except ValueError:
            continue
        return True
    return False


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(name.split("{", maxsplit=1)[0])}


def _without_doubles(table: SeriesTable, candidates: Sequence[int], stated: dict[int, SeriesUnit | None]) -> list[int]:
    """Leave out extremes and totals beside what they are of, and 32-bit counters beside those of 64 bits."""
    ranks = {index: _rank(table.names[index]) for index in candidates}
    columns = [index for index in candidates if ranks[index] == min(ranks.values())]
    units = [unit for index in columns if (unit := stated[index]) is not None]
    if {unit.counter_bits for unit in units if unit.per == "counter"} == {32, 64}:
        columns = [i for i in columns if (unit := stated[i]) is None or unit.counter_bits == 64]
    if len({unit.per for unit in units}) > 1:
        columns = [i for i in columns if (unit := stated[i]) is None or unit.per != "counter"]
    return columns


def _rank(name: str) -> int:
    """Return 0 for the name of a plain value, and more for means, totals and extremes beside it."""
    if name.endswith("_total"):
        return 0
    words = _words(name)
    return next((rank for rank in reversed(range(len(_EXTREMES))) if words & _EXTREMES[rank]), -1) + 1


def _sum_rule(table: SeriesTable, columns: Sequence[int]) -> str:
    """Return how columns are combined: "both", "all", "received", or "" if their names do not say."""
    directions = [direction(table.names[index]) for index in columns]
    devices = {table.devices[index] for index in columns} if table.devices else set()
    if not columns or len(devices) > 1 or not all(directions):
        return ""
    if sorted(directions) == ["in", "out"]:
        return "both"
    return "all" if len(set(directions)) == 1 else "received"


_RULES = {
    "": "",
    "both": "; in and out of one link are added, because the router forwards both (--column takes one)",
    "all": "; the interfaces are added",
    "received": "; what all interfaces receive is added, because the router sends it again",
}


def _note(table: SeriesTable, chosen: Sequence[tuple[int, SeriesUnit]], rule: str) -> str:
    names = [f'"{table.names[index][:60]}"' for index, _ in chosen]
    listed = " + ".join(names[:4]) + (f" + {len(names) - 4} more" if len(names) > 4 else "")
    unit = chosen[0][1].text or "the given unit"
    reason = f" ({table.unit_reason})" if table.unit_reason and table.unit(chosen[0][0]) else ""
    preposition = "as" if chosen[0][1].per != "second" else "in"
    return f"read as {table.format_name or 'CSV'}: {listed} {preposition} {unit}{reason}{_RULES[rule]}"


def _no_unit(table: SeriesTable, columns: Sequence[int]) -> FileProblem:
    name = table.names[columns[0]]
    hint = '; a title with "in bits" usually means "bit per step"' if "bits" in name else ""
    message = f"gives no unit: choose one of {SERIES_UNITS_TEXT} (--unit){hint}"
    return FileProblem(table.path, [Problem(f'column "{name[:60]}"', message)])


def energy_columns(table: SeriesTable) -> tuple[dict[int, float], dict[int, float]]:
    """Return the columns of energy counters and those of power, each with the joules or watts of the number 1."""
    energy, power = {}, {}
    for index, name in enumerate(table.names):
        plain = name.split("{")[0]
        if (match := _ENERGY.search(plain)) and "max_energy" not in plain:
            hours_j = 3.6e6 if match["kilowatt_hours"] else 3600.0 if match["watt_hours"] else 1.0
            energy[index] = 1e-6 if match["micro"] else hours_j
        elif match := _POWER.search(plain):
            power[index] = 1e3 if match["kilo"] else 1.0
    return energy, power


def _refuse_energy(table: SeriesTable, others: Sequence[int]) -> None:
    energy, power = energy_columns(table)
    without_traffic = [index for index in others if index in energy or index in power]
    if without_traffic:
        kind = "energy" if without_traffic[0] in energy else "power"
        message = f"holds {kind} and no traffic: fit its watts with routecast power fit {table.path}"
        raise FileProblem(table.path, [Problem(f'column "{table.names[without_traffic[0]][:60]}"', message)])


def number(text: str, unit: SeriesUnit | None = None) -> float:
    """Return a cell as a number, with ``unit.is_in_cells`` in bits per second.

    Raises ValueError: the cell is no finite number, or no rate in bits or bytes.
    """
    if unit is not None and unit.is_in_cells:
        return _cell_bps(text)
    try:
        result = float(text)
    except ValueError:
        raise ValueError(f'"{text[:40]}" is no number') from None
    if math.isinf(result):
        raise ValueError(f'"{text[:40]}" is no finite number')
    return result


def _cell_bps(text: str) -> float:
    match = _CELL.fullmatch(text)
    if match is None:
        try:
            if float(text) == 0.0:
                return 0.0
        except ValueError:
            pass
        raise ValueError(f'"{text[:40]}" is no rate such as "1.2 Gb/s" or "12 kB/s"')
    bits = 1.0 if match["unit"].startswith("b") and not match["unit"].startswith("byte") else 8.0
    result = float(match["number"]) * _CELL_PREFIX[match["prefix"]] * bits
    if math.isinf(result):
        raise ValueError(f'"{text[:40]}" is no finite number')
    return result
