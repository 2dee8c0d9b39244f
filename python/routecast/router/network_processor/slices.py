"""Slices (meta-routers) of one processor: which flows are whose, and what is dropped before it takes others' time.

::

    ports ─► slices ─by flow─┬─► slice A ─by egress─► slice A to port 0 (a bucket that leaks at A's bandwidth) ─► ring
                             └─► slice B ─────────────────────────────────────────────────────────────────────► ring

A flow belongs to one slice. Flows are dealt out in groups of one for each port, so that every slice has traffic on
every port; shares are exact where the number of flows is a multiple of :func:`flows_of_a_round`. What a slice that is
policed sends beyond its bandwidth to a port overflows its bucket. Line cards do that, as they validate what comes in
(Heller 2006, sec. 2.3), so it costs no engine anything. A bucket is a queue that is served at the provisioned rate: it
delays a burst where a token bucket would let it through.

Where slices are weighted, each has a queue of its own before every port::

    last stage ─by flow─┬─► slice A out ─by egress─► slice A at port 0 ─┬─► port 0
                        └─► slice B out ───────────► slice B at port 0 ─┘   the scheduler's pool: weights are bandwidths

The scheduler lets frames go at the rate of the link, so they do not meet again in the port's own ring; their latency
counts the time on the wire twice. With line cards that is no artefact: the scheduler is the blade's port, and theirs
follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.router.model import Need, Policy, ResourcePool, Route, ServiceCost, TaskUnit
from routecast.router.network_processor.model import Slice

__all__ = ["ENTRY", "are_weighted", "dealt_out", "flows_of_a_round", "policers", "schedulers"]

ENTRY = "slices"
"""Name of the task unit that tells slices apart."""

_MOST_PARTS = 100
_SHORTEST_TURN_S = 10e-9


def pattern(slices: Sequence[Slice]) -> tuple[int, ...]:
    """Return numbers of slices in turn, each as often as its share of the traffic says, spread evenly.

    The number of entries is the least up to 100 that says all shares exactly, else 100 with the nearest parts.

    Examples
    --------
    >>> pattern([Slice(name="a", bandwidth_bps=1e9, share=0.75), Slice(name="b", bandwidth_bps=1e9, share=0.25)])
    (0, 0, 1, 0)
    """
    shares = [one.share for one in slices]
    exact = (
        parts
        for parts in range(1, _MOST_PARTS + 1)
        if all(abs(share * parts - round(share * parts)) < 1e-9 for share in shares)
    )
    parts = next(exact, _MOST_PARTS)
    dealt = [0.0] * len(shares)
    order = []
    for turn in range(1, parts + 1):
        behind = [share * turn - have for share, have in zip(shares, dealt, strict=True)]
        chosen = max(range(len(shares)), key=lambda number: behind[number])
        dealt[chosen] += 1.0
        order.append(chosen)
    return tuple(order)


def flows_of_a_round(slices: Sequence[Slice], ports: int) -> int:
    """Return of how many flows the number must be a multiple for shares to be exact."""
    return len(pattern(slices)) * ports


def dealt_out(slices: Sequence[Slice], ports: int, to: Sequence[str]) -> Route:
    """Return the route by which the flows of slice ``k`` go to ``to[k]``, anywhere on their way."""
    return Route(kind="per_flow", to=tuple(to[number] for number in pattern(slices) for _ in range(ports)))


def policers(slices: Sequence[Slice], ports: int, following: str, burst_frames: int) -> list[TaskUnit]:
    """Return the task units that tell slices apart and hold each to its bandwidth; the first is :data:`ENTRY`."""
    names = [f"slice {one.name}" if one.policing == "policed" else following for one in slices]
    units = [TaskUnit(name=ENTRY, route=dealt_out(slices, ports, names))]
    for one, name in zip(slices, names, strict=True):
        if one.policing != "policed":
            continue
        buckets = tuple(f"{name} to port {port}" for port in range(ports))
        units.append(TaskUnit(name=name, route=Route(kind="by_egress", to=buckets)))
        byte_s = 8.0 / one.bandwidth_bps
        units += [
            TaskUnit(
                name=bucket,
                service=ServiceCost(per_packet_s=WIRE_OVERHEAD_BYTES * byte_s, per_byte_s=byte_s),
                queue_frames=burst_frames,
                route=Route(to=(following,)),
            )
            for bucket in buckets
        ]
    return units


def are_weighted(slices: Sequence[Slice]) -> bool:
    """Return whether slices have queues of their own at the ports: one that asks for it divides from all others."""
    return any(one.policing == "weighted" for one in slices)


def schedulers(
    slices: Sequence[Slice],
    ports: Sequence[str],
    link_bps: float,
    queue_frames: int,
    frame_bytes: float,
    following: Route | None = None,
) -> tuple[Route, list[TaskUnit], list[ResourcePool]]:
    """Return the way from the last stage to the ports: queues of each slice, and pools that serve them by weight.

    Parameters
    ----------
    slices : sequence of Slice
    ports : sequence of str
    link_bps : float
    queue_frames : int
        Of each slice at each port.
    frame_bytes : float
        One such frame is the longest turn of a slice.
    following : Route or None
        Where frames go from there; None: to the port.
    """
    byte_s = 8.0 / link_bps
    turn_s = max((frame_bytes + WIRE_OVERHEAD_BYTES) * byte_s, _SHORTEST_TURN_S)
    pools = [
        ResourcePool(name=f"{port} scheduler", policy=Policy(kind="fair", quantum_s=turn_s)) for port in ports
    ]
    units: list[TaskUnit] = []
    for one in slices:
        queues = tuple(f"slice {one.name} at {port}" for port in ports)
        units.append(TaskUnit(name=f"slice {one.name} out", route=Route(kind="by_egress", to=queues)))
        units += [
            TaskUnit(
                name=queue,
                needs=(Need(pool=f"{port} scheduler"),),
                service=ServiceCost(per_packet_s=WIRE_OVERHEAD_BYTES * byte_s, per_byte_s=byte_s),
                queue_frames=max(queue_frames, 1),
                weight=one.bandwidth_bps,
                route=following or Route(to=(port,)),
            )
            for queue, port in zip(queues, ports, strict=True)
        ]
    out = dealt_out(slices, len(ports), [f"slice {one.name} out" for one in slices])
    return out, units, pools
