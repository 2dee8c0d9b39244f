"""Comparison of the statements of a source about a function on a host with the estimates of the same cases.

Each statement has its own frames, cores and direction, and the tables of the function's file. Its estimate is for this
case, independent of the case of the user.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from routecast.function.estimate import Estimate, estimate
from routecast.function.model import NetworkFunction, Stated
from routecast.hardware.model import Hardware
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity.schema import field, value

__all__ = ["ComparedStatement", "compared_statements", "stated_reasons"]


@value
class ComparedStatement:
    """A statement, and the estimate for the same case."""

    stated: Stated
    ours: float = field("Our estimate in the unit of the statement; NaN without an estimate")

    @property
    def error_ratio(self) -> float:
        """(ours - stated) / stated; NaN without an estimate."""
        return self.ours / self.stated.value - 1.0

    def to_json(self) -> dict[str, object]:
        """Return plain data; unknown values are null."""
        stated = self.stated
        return {
            "quantity": stated.quantity,
            "direction": stated.direction or None,
            "frame_bytes": stated.frame_bytes,
            "cores": stated.cores,
            "remote_ratio": stated.remote_ratio,
            "unit": stated.unit,
            "stated": stated.value,
            "measured": stated.measured,
            "ours": self.ours if math.isfinite(self.ours) else None,
            "section": stated.section,
            "quote": stated.quote,
            "why": stated.why or None,
            "unknown": stated.unknown or None,
        }


def compared_statements(
    function: NetworkFunction, hardware: Hardware, *, directions: Iterable[str] | None = None, giga: float = 1e9
) -> tuple[ComparedStatement, ...]:
    """Return the statements of the source about a function on this host, each with the estimate of its case.

    ``directions`` selects statements by direction; with None the result also includes statements about all directions
    together. ``giga`` is the number of Hz in 1 GHz and of bit/s in 1 Gbit/s: 1e9, or 1024e6 as in Baldi & Sapio 2018.

    Examples
    --------
    >>> from routecast.function.catalogue import read_function
    >>> from routecast.hardware.catalogue import read_hardware
    >>> first = compared_statements(read_function("l2_switch"), read_hardware("xeon-e5-2690v2"))[0]
    >>> first.stated.value, first.ours, first.stated.unit
    (213.0, 211.0, 'cycles')
    """
    names = None if directions is None else set(directions)
    return tuple(
        ComparedStatement(stated=stated, ours=_estimated_value(stated, function, hardware, giga))
        for stated in function.stated
        if stated.on == hardware.name and (names is None or stated.direction in names)
    )


def _estimated_value(stated: Stated, function: NetworkFunction, hardware: Hardware, giga: float) -> float:
    if stated.unknown:
        return math.nan
    result = estimate(
        function,
        hardware,
        direction=stated.direction or None,
        frame_bytes=stated.frame_bytes,
        cores=stated.cores,
        remote_ratio=stated.remote_ratio,
        giga=giga,
    )
    if stated.quantity == "cycles":
        return result.packet_cycles
    if stated.quantity == "dram_accesses":
        return result.dram_accesses
    rate_pps = _rate_pps(stated, result)
    if stated.unit == "Gbit/s":
        return rate_pps * 8.0 * (stated.frame_bytes + WIRE_OVERHEAD_BYTES) / giga
    return rate_pps / 1e6


def _rate_pps(stated: Stated, result: Estimate) -> float:
    rate_pps = result.pps if stated.quantity == "machine" else result.limit_pps(stated.quantity)
    return rate_pps if math.isfinite(rate_pps) else math.nan


def stated_reasons(rows: Iterable[ComparedStatement]) -> list[str]:
    """Return the reasons why values differ from the estimates or have no estimate, each with its values."""
    values: dict[str, dict[str, None]] = {}
    for statement in (row.stated for row in rows):
        if reason := statement.unknown or statement.why:
            values.setdefault(reason, {})[f"{statement.value:.10g} {statement.unit}"] = None
    return [f"{', '.join(stated_values)}: {reason}." for reason, stated_values in values.items()]
