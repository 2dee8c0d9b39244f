"""What a search asks and what it finds. Loads are frames per second of one port, as MLRsearch has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from routecast.benchmark.stage import Counts
from routecast.quantity.schema import field, value

__all__ = ["Bounds", "Probe"]

Probe = Callable[[float, float, str], Counts]
"""``probe(per_port_pps, duration_s, purpose)`` offers a load for so long and counts all ports' frames."""


@value
class Bounds:
    """The end of a search for one goal, per port."""

    lower_pps: float = field("Greatest load known to meet the goal; NaN where there is none.")
    upper_pps: float = field("Least load known to miss it; NaN where there is none.")
    conditional_pps: float = field('What is forwarded at the lower bound (RFC 9971 sec. 4.8 "conditional throughput").')
    outcome: Literal["found", "maximum", "below", "undetermined"] = field(
        "See :class:`routecast.benchmark.result.ThroughputRow`."
    )
    reason: str = field("Why there is no result.", default="")
