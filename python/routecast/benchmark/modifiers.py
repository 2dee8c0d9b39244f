"""RFC 2544 sec. 11: conditions under which the tests are repeated, and why some of them are not run."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.benchmark.procedures.procedure import NotRun
from routecast.benchmark.streams import Stream

__all__ = ["modifiers_left_out"]

_LEFT_OUT = (
    ("11.1", "1 % broadcast frames", "the tester sends unicast frames alone"),
    ("11.2", "SNMP queries", "no management agent runs on the device, so there is nothing to ask"),
    ("11.3", "routing updates", "routes are static: no routing protocol runs that an update could change"),
)


def modifiers_left_out(streams: Sequence[Stream]) -> list[NotRun]:
    """List the modifiers that were not run, with the reason; sec. 11 wants as many as the tester can generate."""
    found = [NotRun(section=f"RFC 2544 sec. {section}", what=what, reason=why) for section, what, why in _LEFT_OUT]
    if not any("filter" in stream.modifier for stream in streams):
        reason = "the device filters nothing: run a packet filter as the device (--dut nftables --filters 25)"
        found.append(NotRun(section="RFC 2544 sec. 11.4", what="1 and 25 filters", reason=reason))
    return found
