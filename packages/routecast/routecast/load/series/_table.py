"""Traffic series, tables of their samples with the place of each row, and the units of their columns.

A traffic series is the bit rate over days in equal steps, as a link counter or a flow collector reports it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.parse import parse_bit_rate_bps
from routecast.quantity.schema import field, value

DAY_S = 86_400.0


@value
class TrafficSeries:
    """Mean bit rates in equal steps."""

    step_s: float = field("Length of a step")
    l2_bps: tuple[float, ...] = field("Mean rate during each step; NaN if missing")
    start: datetime | None = field(
        "Begin of the first step, naive local time; None for a typical day, which begins at midnight", default=None
    )
    clock_changes: tuple[tuple[float, float], ...] = field(
        "Changes of the local clock, such as the begin of summer time: time since the start in seconds, and by how "
        "many seconds the clock is ahead of the first one from then on",
        default=(),
    )
    source: str = field("Source of the series, for reports", default="")
    read_as: str = field(
        "What a file was taken for; empty for one column with a unit; the notes have it too", default=""
    )
    notes: tuple[str, ...] = field("Remarks on gaps, zeros and scaling", default=())

    @property
    def duration_s(self) -> float:
        """Length of the whole series."""
        return self.step_s * len(self.l2_bps)

    @property
    def peak_bps(self) -> float:
        """Highest rate of a step; NaN if all steps are missing."""
        return max((rate for rate in self.l2_bps if not math.isnan(rate)), default=float("nan"))


SERIES_UNITS_TEXT = '"bit/s", "Mbit/s", "byte/s", "bit per step", "byte per step", "octet counter32", "octet counter64"'
"""The allowed units, for messages."""

_PER_STEP = re.compile(r"(?P<unit>[A-Za-z]+)\s*(?:/|per)\s*step", re.IGNORECASE)
_COUNTER = re.compile(r"(?:octets?|bytes?)\s*counter\s*(?P<bits>32|64)", re.IGNORECASE)
_NAMED_BITS = re.compile(
    r"(?<![A-Za-z])(?P<prefix>(?:[kmgtKMGT]i?)?)(?:(?i:bits?)(?i:\s*/\s*|[ _]?per[ _]?)(?i:s|sec|seconds?)"
    r"|b(?:/s|ps))(?![A-Za-z])"
)
_NAMED_BYTES = re.compile(
    r"(?<![A-Za-z])(?P<prefix>(?:[kmgtKMGT]i?)?)(?:(?i:bytes?|octets?)(?i:\s*/\s*|[ _]?per[ _]?)(?i:s|sec|seconds?)"
    r"|B/s|Bps)(?![A-Za-z])"
)
_NAMED_COUNTER = re.compile(
    r"if(?P<wide>HC)?(?:In|Out)Octets|(?P<total>(?:receive|transmit|received|sent|rx|tx|in|out)[A-Za-z0-9_]*_"
    r"(?:bytes|octets)_total)",
    re.IGNORECASE,
)
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_PREFIX |= {f"{prefix}i": 1024.0**power for power, prefix in enumerate("kmgt", 1)}
_SYSSTAT = re.compile(r"[rt]x(?P<unit>kB|byt)/s")
"""sar(1): kilobytes of 1024 bytes."""


@value
class SeriesUnit:
    """The unit of the numbers of a series."""

    bits: float = field("Bits that the number 1 stands for")
    per: Literal["second", "step", "counter"] = field(
        "second: a rate; step: an amount in a step; counter: the state of a counter that rises until it wraps"
    )
    counter_bits: int = field(
        "Width of a counter (RFC 2863: ``ifInOctets`` has 32 bits, ``ifHCInOctets`` 64)", default=64
    )
    text: str = field("The unit as a reader writes it", default="")
    is_in_cells: bool = field("Whether each cell carries its own unit", default=False)


def parse_series_unit(text: str) -> SeriesUnit:
    """Read the unit of a series.

    Raises QuantityProblem: the text is no unit of a series.

    Examples
    --------
    >>> parse_series_unit("Mbit/s").bits
    1000000.0
    >>> parse_series_unit("byte per step").per
    'step'
    """
    counter = _COUNTER.fullmatch(text.strip())
    if counter:
        width = int(counter["bits"])
        return SeriesUnit(bits=8.0, per="counter", counter_bits=width, text=f"a {width}-bit counter of bytes")
    step = _PER_STEP.fullmatch(text.strip())
    rate = f"{step['unit']}/s" if step else text.strip()
    try:
        if not _PER_TIME.search(rate):  # a link of "10G" is a rate, but an amount in a file may be one of a step
            raise QuantityProblem(text, "names no time")
        return SeriesUnit(bits=parse_bit_rate_bps(f"1 {rate}"), per="step" if step else "second", text=text.strip())
    except QuantityProblem as problem:
        raise QuantityProblem(
            text, f'"{text[:60]}" is no unit of a traffic series: write one such as {SERIES_UNITS_TEXT}'
        ) from problem


def unit_in_name(name: str) -> SeriesUnit | None:
    """Return the unit in the name of a column, None without one.

    A name with bits but without a time (``"traffic (in bits)"``) has no unit.

    Examples
    --------
    >>> unit_in_name("total_MBITPERSEC").bits
    1000000.0
    """
    counter = _NAMED_COUNTER.search(name)
    if counter:
        width = 64 if counter["wide"] or counter["total"] else 32
        return SeriesUnit(bits=8.0, per="counter", counter_bits=width, text=f"a {width}-bit counter of bytes")
    of_sar = _SYSSTAT.search(name)
    if of_sar:
        kilo = of_sar["unit"] == "kB"
        return SeriesUnit(bits=8192.0 if kilo else 8.0, per="second", text="KiB/s" if kilo else "byte/s")
    for pattern, bits, unit in ((_NAMED_BITS, 1.0, "bit/s"), (_NAMED_BYTES, 8.0, "byte/s")):
        match = pattern.search(name)
        if match:
            prefix = match["prefix"].lower()
            text = f"{prefix if prefix in ('', 'k') else prefix.capitalize()}{unit}"
            return SeriesUnit(bits=bits * _PREFIX[prefix], per="second", text=text)
    return None


_PER_TIME = re.compile(r"/|ps$", re.IGNORECASE)


@value
class SeriesTable:
    """A table of samples, as texts."""

    path: str
    names: tuple[str, ...] = field("Names of the columns")
    rows: tuple[tuple[str, ...], ...]
    places: tuple[str, ...] = field('Place of each row, for messages: ``"line 17"``')
    notes: tuple[str, ...] = field("Notes from the lines ``# note: …`` of the file", default=())
    format_name: str = field("Name of the tool's format; empty for plain columns", default="")
    units: tuple[str, ...] = field("Unit of each column from outside its name, empty without one", default=())
    unit_reason: str = field("Why the units hold, for the note on what is read", default="")
    devices: tuple[str, ...] = field("Device of each column, where a file holds several", default=())
    is_union: bool = field(
        "Whether the rows are the times of several series, so that an empty cell is no missing sample", default=False
    )

    def unit(self, index: int) -> str:
        """Return the unit of a column that the format states, empty without one."""
        return self.units[index] if self.units else ""


def column_index(table: SeriesTable, column: str, option: str) -> int:
    """Return the index of a column by its name, or by its number from 1.

    Raises FileProblem: the table has no such column.
    """
    if column in table.names:
        return table.names.index(column)
    lower = [name.lower() for name in table.names]
    if lower.count(column.lower()) == 1:
        return lower.index(column.lower())
    if column.isdecimal() and 1 <= int(column) <= len(table.names):
        return int(column) - 1
    raise FileProblem(
        table.path, [Problem(option, f'there is no column "{column}": {did_you_mean(column, table.names)}')]
    )


def shortened(problems: Sequence[Problem], shown: int = 20) -> list[Problem]:
    """Return the first problems, and a last problem with the number of the others."""
    if len(problems) <= shown:
        return list(problems)
    return [*problems[:shown], Problem("", f"and {len(problems) - shown} more of {len(problems)}")]
