"""What a search asks and what it finds. Loads are frames per second of one port, as MLRsearch has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from routecast.benchmark.stage import Counts

__all__ = ["Bounds", "Probe"]

Probe = Callable[[float, float, str], Counts]
"""``probe(per_port_pps, duration_s, purpose)`` offers a load for so long and counts all ports' frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The end of a search for one goal, per port.

    Parameters
    ----------
    lower_pps, upper_pps : float
        Greatest load known to meet the goal, least load known to miss it; NaN where there is none.
    conditional_pps : float
        What is forwarded at the lower bound (RFC 9971 sec. 4.8 "conditional throughput").
    outcome : {"found", "maximum", "below", "undetermined"}
        See :class:`routecast.benchmark.result.ThroughputRow`.
    reason : str
        Why there is no result.
    """

    lower_pps: float
    upper_pps: float
    conditional_pps: float
    outcome: Literal["found", "maximum", "below", "undetermined"]
    reason: str = ""
