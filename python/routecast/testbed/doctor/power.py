"""Check of the power meters: which can be read here, and why the others cannot."""

from __future__ import annotations

from routecast.testbed.doctor.machine import Finding, Machine, State
from routecast.testbed.meters.finding import find_meters
from routecast.testbed.meters.rapl import READ_RECIPE

__all__ = ["meters"]

_RECIPE_MARK = ": run as root, or let a group read it"


def meters(machine: Machine) -> Finding:
    """Look for something that tells watts: the processor's counters, the server's controller."""
    found = [one for one in find_meters(machine.root) if not one.needs_address]
    readable = [one for one in found if one.is_readable]
    if readable:
        return Finding(
            check="power",
            state=State.FINE,
            found=", ".join(f"{one.name} can be read ({one.scope})" for one in readable),
            effect="trials can carry watts: --power auto",
        )
    is_denied = any(READ_RECIPE in one.why_not for one in found)
    reasons = "; ".join(f"{one.name}: {one.why_not.partition(_RECIPE_MARK)[0]}" for one in found)
    return Finding(
        check="power",
        state=State.MISSING,
        found=f"no power here, because: {reasons}",
        effect="trials carry no watts, and go on without",
        remedy=READ_RECIPE if is_denied else "",
        advice="" if is_denied else "name a meter outside: --power redfish:URL, csv:FILE or http:URL",
    )
