"""Line cards before a network processor, and the crossbar between them (Heller 2006, sec. 2.3).

::

    port 0 ─► line card 0 ─► line card 0 to crossbar ─┐                         ┌─► ring of the first stage
    port 1 ─► line card 1 ─► line card 1 to crossbar ─┴─► crossbar in (a delay) ─┘        ⋮
    port 0 ◄── line card 0 out ◄──┬── crossbar out (a delay) ◄──┬── blade port 0 ◄── last stage, by the flow's egress
    port 1 ◄── line card 1 out ◄──┘                             └── blade port 1 ◄──

Each port of the blade has a line card of its own at the other side of the switch. A crossbar that does not block costs
time and no capacity; its ports carry frames at the rate of the blade's ports, with the 20 bytes of each frame (S1),
once into the blade and once out of it. The lines to the outside are the line cards'; what leaves the blade waits before
its own ports, in the transmit buffer and the queues of the queue manager.
"""

from __future__ import annotations

from collections.abc import Sequence

from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.router.check_numbers import MAX_UNITS
from routecast.router.model import Port, Route, ServiceCost, TaskUnit
from routecast.router.network_processor.model import LineCard, NetworkProcessor

__all__ = ["blade_ports", "line_ports", "way_in", "way_out"]


def line_ports(card: LineCard, processor: NetworkProcessor) -> list[Port]:
    """Return the lines to the outside, which end at the line cards."""
    return [
        Port(
            name=f"port {number}",
            link_bps=card.line_bps(processor),
            tx_ring_frames=card.queue_frames,
            entry=_name(number),
        )
        for number in range(processor.ports)
    ]


def way_in(card: LineCard, processor: NetworkProcessor, following: str) -> list[TaskUnit]:
    """Return the way of a frame from outside to the processor's ``following``; line cards come first."""
    switched = [_crossbar("crossbar in", card, Route(to=(following,)))] if card.latency_s else []
    behind = switched[0].name if switched else following
    cards = [
        TaskUnit(
            name=_name(number),
            service=ServiceCost(per_packet_s=card.per_packet_s, per_byte_s=card.per_byte_s),
            queue_frames=card.queue_frames,
            route=Route(to=(f"{_name(number)} to crossbar",)),
        )
        for number in range(processor.ports)
    ]
    links = [
        TaskUnit(
            name=one.route.to[0],
            service=_on_the_wire(processor),
            queue_frames=card.queue_frames,
            route=Route(to=(behind,)),
        )
        for one in cards
    ]
    return [*cards, *links, *switched]


def blade_ports(
    processor: NetworkProcessor, ring_frames: int, following: Route
) -> tuple[Route, list[TaskUnit]]:
    """Return where frames go that leave the last stage, and the processor's own ports, each with a ring before it."""
    ports = [
        TaskUnit(
            name=f"blade port {number}",
            service=_on_the_wire(processor),
            queue_frames=ring_frames,
            route=following,
        )
        for number in range(processor.ports)
    ]
    return Route(kind="by_egress", to=tuple(port.name for port in ports)), ports


def way_out(card: LineCard, ports: Sequence[str]) -> tuple[Route, list[TaskUnit]]:
    """Return where frames go that leave the blade, and the way from there to the ports of their flows."""
    cards: list[TaskUnit] = []
    out = Route(kind="egress", to=tuple(ports))
    if card.out_per_packet_s or card.out_per_byte_s:
        cards = [
            TaskUnit(
                name=f"{_name(number)} out",
                service=ServiceCost(per_packet_s=card.out_per_packet_s, per_byte_s=card.out_per_byte_s),
                queue_frames=card.queue_frames,
                route=Route(to=(port,)),
            )
            for number, port in enumerate(ports)
        ]
        out = Route(kind="by_egress", to=tuple(one.name for one in cards))
    if not card.latency_s:
        return out, cards
    switched = _crossbar("crossbar out", card, out)
    return Route(to=(switched.name,)), [switched, *cards]


def _crossbar(name: str, card: LineCard, route: Route) -> TaskUnit:
    return TaskUnit(
        name=name,
        service=ServiceCost(per_packet_s=card.latency_s),
        queue_frames=card.queue_frames,
        parallel=MAX_UNITS,  # a delay: it carries all at once and limits nothing
        route=route,
    )


def _name(number: int) -> str:
    return f"line card {number}"


def _on_the_wire(processor: NetworkProcessor) -> ServiceCost:
    """Return how long a port of the switch carries a frame, the 20 bytes that it has on the wire included."""
    byte_s = 8.0 / processor.link_bps
    return ServiceCost(per_packet_s=WIRE_OVERHEAD_BYTES * byte_s, per_byte_s=byte_s)
