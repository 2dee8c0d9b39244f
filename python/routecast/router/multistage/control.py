"""What the control plane takes from the elements: the messages of DIST (thesis, sec. 1.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from routecast.errors import Problem
from routecast.router.model import RouterModel
from routecast.router.random_time import Interruptions, RandomTime
from routecast.router.virtual.machines import Machine, Server

__all__ = ["Control", "control_problems", "with_control"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Messages that every element handles besides the frames that it forwards.

    They take cores away from frames and are themselves no frames of the load: they count neither as offered nor as
    forwarded. Their work is spread over all cores of an element's server; a core that is busy all the time handles just
    ``rate_pps``, one that idles handles the rest beside.

    Parameters
    ----------
    rate_pps : float
        Messages per second to and from each element.
    message_s : float
        Work of one, through host and machine, on the technology's reference machine.
    """

    rate_pps: float
    message_s: float


def control_problems(
    control: Control, servers: Sequence[Server], machines: Sequence[Machine]
) -> list[Problem]:
    """Return what is wrong with control traffic, each with its place."""
    problems = [
        Problem(f"control.{place}", f"got {value}: {what} is a finite number > 0")
        for place, value, what in (
            ("rate_pps", control.rate_pps, "a rate of messages"),
            ("message_s", control.message_s, "the work of a message"),
        )
        if not (math.isfinite(value) and value > 0.0)
    ]
    if problems:
        return problems
    for server in servers:
        if server.cores < 1 or not server.speed_ratio > 0.0:
            continue
        rate_hz, message_s = _on_core(control, server, machines)
        if rate_hz * message_s >= 1.0:
            message = f'messages would take {rate_hz * message_s:.3g} of each core of "{server.name}": less than 1 can'
            problems.append(Problem("control.rate_pps", message))
    return problems


def with_control(
    model: RouterModel, servers: Sequence[Server], machines: Sequence[Machine], control: Control
) -> RouterModel:
    """Return the router with control messages that interrupt its servers' cores."""
    interruptions = {}
    for server in servers:
        rate_hz, message_s = _on_core(control, server, machines)
        if rate_hz:
            # Interruptions come in a second of work, and a core at its limit works for what they leave of a second.
            per_work_hz = rate_hz / (1.0 - rate_hz * message_s)
            interruptions[server.name] = Interruptions(
                rate_hz=per_work_hz, duration=RandomTime(mean_s=message_s)
            )
    pools = tuple(
        replace(pool, interruptions=interruptions.get(pool.name, pool.interruptions)) for pool in model.pools
    )
    return replace(model, pools=pools)


def _on_core(control: Control, server: Server, machines: Sequence[Machine]) -> tuple[float, float]:
    """Return messages per second of each core of a server, and what one takes there."""
    elements = sum(1 for machine in machines if machine.server == server.name)
    return control.rate_pps * elements / server.cores, control.message_s / server.speed_ratio
