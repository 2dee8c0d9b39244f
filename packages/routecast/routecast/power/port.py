"""The power model of network gear with ports: the sum of a base, of ports and transceivers, and of traffic.

``P = P_base + plugged·P_trx_in + enabled·P_port + up·P_trx_up + forwarding·P_offset + E_bit·bit/s + E_pkt·packet/s``

The terms and their names are those of NetPowerBench (github.com/nsg-ethz/NetPowerBench, power_measure/README.md):
a transceiver costs ``P_trx_in`` once it is plugged in and ``P_trx_up`` more once its link is up, ``P_port`` is the
enabled port without its transceiver, and a port draws ``P_offset`` more as soon as any traffic passes. ``bit/s`` and
``packet/s`` are summed over ports. A forwarded frame passes two ports, in and out, and counts at each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from routecast.errors import ModelProblem, Problem
from routecast.power.model import SCOPE, OperatingPoint
from routecast.quantity import parse_bit_energy_j, parse_packet_energy_j, parse_power_term_w
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, Length, Parsed, Power
from routecast.quantity.schema import field, value

__all__ = ["PASSED_PORTS", "Equipped", "PortClass", "PortPower", "PortsInUse", "equipped_with"]


PASSED_PORTS = 2
"""Number of ports that a forwarded frame passes: one in, one out."""

_MAX_LISTED_CLASSES = 8

PowerTerm = Annotated[float, Parsed(parse_power_term_w, "W", "0.9 W")]
"""Watts that a fit may find slightly below 0."""
BitEnergy = Annotated[float, Parsed(parse_bit_energy_j, "J/bit", "3.2 pJ/bit")]
PacketEnergy = Annotated[float, Parsed(parse_packet_energy_j, "J/packet", "13.4 nJ/packet")]


@value
class PortClass:
    """Ports of one kind, with one kind of transceiver, at one speed.

    Values are per port. A value that was not measured is None and counts as 0; a fit may find a value slightly below 0.
    """

    base_w: Power = field('power of the bare device with every port off, as measured for this class, such as "254 W"')
    port_w: PowerTerm | None = field("power of an enabled port without its transceiver, W", default=None)
    trx_in_w: PowerTerm | None = field("power of a transceiver that is plugged in, W", default=None)
    trx_up_w: PowerTerm | None = field("additional power of a transceiver whose link is up, W", default=None)
    offset_w: PowerTerm | None = field("additional power of a port that forwards traffic, W", default=None)
    bit_j: BitEnergy | None = field("energy of a bit that passes a port, J/bit", default=None)
    packet_j: PacketEnergy | None = field("energy of a packet that passes a port, J/packet", default=None)

    @property
    def trx_w(self) -> float | None:
        """P_trx: power of a transceiver that is plugged in and up; None if either part was not measured."""
        if self.trx_in_w is None or self.trx_up_w is None:
            return None
        return self.trx_in_w + self.trx_up_w


@value
class Equipped:
    """Numbers of ports of a kind that are plugged in, switched on, and up."""

    plugged: Count = field("ports with a transceiver", default=0, ge=0)
    enabled: Count = field("ports that are switched on", default=0, ge=0)
    up: Count = field("ports whose link is up", default=0, ge=0)

    def with_traffic(self, bps: float, pps: float) -> PortsInUse:
        """Return the ports with a traffic, summed over ports; with any traffic, all ports that are up forward."""
        return PortsInUse(
            plugged=self.plugged,
            enabled=self.enabled,
            up=self.up,
            forwarding=self.up if bps > 0.0 or pps > 0.0 else 0,
            passed_bps=bps,
            passed_pps=pps,
        )


@value
class PortsInUse(Equipped):
    """Ports and the traffic that passes them, summed over ports."""

    forwarding: int = field("ports that forward", default=0)
    passed_bps: float = field("traffic summed over ports, bit/s", default=0.0)
    passed_pps: float = field("traffic summed over ports, packets/s", default=0.0)


@value
class PortPower:
    """Power model of a device with ports."""

    device: str = field("name of the device that was modelled", default="", key="name")
    # By name: kind of port, kind of transceiver, speed.
    classes: Annotated[Mapping[str, PortClass], Length(1)] = field(
        'classes of ports by name, such as "QSFP/PCC/100G"', key="ports"
    )
    # :meth:`power_w` takes the ports from here and the traffic from the operating point.
    equipped: Mapping[str, Equipped] = field("the ports that are plugged in and up", default_factory=dict)
    scope: str = field(SCOPE, default="wall")
    source: str = field("source of the figures", default="")

    def __post_init__(self) -> None:
        problems = [
            Problem(f"equipped.{name}", f"is no kind of port of this file: {did_you_mean(name, self.classes)}")
            for name in self.equipped
            if name not in self.classes
        ]
        if problems:
            raise ModelProblem(self.device, problems)

    def port_class(self, name: str) -> PortClass:
        """Return a class of ports.

        Raises ModelProblem: the device has no such class.
        """
        if name not in self.classes:
            raise ModelProblem(self.device, [Problem("", f'has no ports "{name}": {did_you_mean(name, self.classes)}')])
        return self.classes[name]

    def use_power_w(self, use: Mapping[str, PortsInUse]) -> float:
        """Return the power with ports in use, by class. P_base is the mean over the classes in use, or over all."""
        names = list(use) or list(self.classes)
        total = sum(self.port_class(name).base_w for name in names) / len(names)
        for name, ports in use.items():
            port_class = self.port_class(name)
            total += ports.plugged * (port_class.trx_in_w or 0.0) + ports.enabled * (port_class.port_w or 0.0)
            total += ports.up * (port_class.trx_up_w or 0.0) + ports.forwarding * (port_class.offset_w or 0.0)
            total += ports.passed_bps * (port_class.bit_j or 0.0) + ports.passed_pps * (port_class.packet_j or 0.0)
        return total

    def _describe_none_up(self) -> str:
        """Return the message on how to equip the device, with the names of its classes."""
        names = list(self.classes)
        listed = ", ".join(f'"{name}"' for name in names[:_MAX_LISTED_CLASSES])
        more = ", …" if len(names) > _MAX_LISTED_CLASSES else ""
        return (
            "no port is up to carry the traffic: state the equipped ports with "
            f'--equip "{names[0]}=4" or in the file with\n'
            f'    [equipped."{names[0]}"]\n    plugged = 4\n    enabled = 4\n    up = 4\n'
            f"  Its classes of ports: {listed}{more}"
        )

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power of the equipped device while it forwards a point's frames.

        Traffic spreads evenly over the equipped ports, and each frame passes two of them. The model reads the rates of
        the point but not its load ratio, because the frame rate of full load depends on the frame size.

        Raises ModelProblem: the point has traffic and no equipped port is up.
        """
        ports = sum(equipped.up for equipped in self.equipped.values())
        has_traffic = point.rate_pps > 0.0 or point.l2_bps > 0.0
        if has_traffic and ports == 0:
            raise ModelProblem(self.device, [Problem("equipped", self._describe_none_up())])
        use = {}
        for name, equipped in self.equipped.items():
            share = equipped.up / ports * PASSED_PORTS if has_traffic else 0.0
            use[name] = equipped.with_traffic(share * point.l2_bps, share * point.rate_pps)
        return self.use_power_w(use)


def equipped_with(model: PortPower, port_counts: Sequence[str]) -> PortPower:
    """Return the model with the equipped ports of ``port_counts`` in place of those of its file.

    Each text is ``"class=number"``, such as ``"QSFP/PCC/100G=32"``: that many ports of the class are plugged in,
    enabled and up. Raises ModelProblem with all faults: a text is no class and number, or a class is unknown or appears
    twice.

    Examples
    --------
    >>> from routecast.power.port import PortClass
    >>> switch = PortPower(device="switch", classes={"SFP/T/1G": PortClass(base_w=30.0, trx_in_w=0.5, trx_up_w=0.2)})
    >>> equipped_with(switch, ["SFP/T/1G=10"]).power_w(OperatingPoint())
    37.0
    """
    equipped: dict[str, Equipped] = {}
    problems = []
    for text in port_counts:
        name, _, number = (part.strip() for part in text.rpartition("="))
        ports = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0
        if not name or ports == 0:
            example = next(iter(model.classes))
            problems.append(
                Problem("equip", f'got "{text}": give a class and a number of ports, such as "{example}=4"')
            )
        elif name not in model.classes:
            problems.append(Problem("equip", f'has no ports "{name}": {did_you_mean(name, model.classes)}'))
        elif name in equipped:
            problems.append(Problem("equip", f'"{name}" appears twice: give one number for it'))
        else:
            equipped[name] = Equipped(plugged=ports, enabled=ports, up=ports)
    if problems:
        raise ModelProblem(model.device, problems)
    return replace(model, equipped=equipped)
