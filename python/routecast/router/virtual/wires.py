"""Wires between servers: links that frames of several ways take in order of arrival."""

from __future__ import annotations

from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.router.model import Need, Route, ServiceCost, TaskUnit

__all__ = ["wire_task"]


def wire_task(
    wire: str, link_bps: float, *, label: str, to: str, queue_frames: int, tag_bytes: float
) -> TaskUnit:
    """Return the task unit of one way over a wire: a frame takes it for its bytes, preamble and gap included (S1).

    Parameters
    ----------
    wire : str
        Name of the wire, and of its pool: ways of the same name share it.
    link_bps : float
        Its rate in this direction.
    label : str
        What tells this way from the others over the wire, in the task unit's name.
    to : str
        Task unit that its frames go to; ``''``: they end here, copies that nobody wants.
    queue_frames : int
        Frames of this way that wait for the wire.
    tag_bytes : float
        Bytes of a VLAN tag on each frame.
    """
    return TaskUnit(
        name=f"{wire} {label}",
        needs=(Need(pool=wire),),
        service=ServiceCost(
            per_packet_s=8.0 * (WIRE_OVERHEAD_BYTES + tag_bytes) / link_bps,
            per_byte_s=8.0 / link_bps,
        ),
        queue_frames=queue_frames,
        request="frame",
        route=Route(to=(to,) if to else ()),
    )
