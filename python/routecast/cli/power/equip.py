"""``--equip``: which ports of a power model are plugged in and up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from routecast.power.model import PowerModel

__all__ = ["EquipOption", "equipped_as_said"]

EquipOption = Annotated[
    list[str] | None,
    typer.Option(
        "--equip",
        metavar="CLASS=N",
        help='Of a model of ports: "QSFP/PCC/100G=32" are plugged in, enabled and up. May be repeated.',
    ),
]


def equipped_as_said(model: PowerModel, said: list[str]) -> PowerModel:
    """Return a model with the ports that were given, which take the place of its file's.

    Raises
    ------
    routecast.errors.QuantityProblem
        Ports are given, and it is no model of ports.
    routecast.errors.ModelProblem
        As :func:`routecast.power.port.equipped_with`.
    """
    if not said:
        return model
    from routecast.power.port import PortPower, equipped_with

    if not isinstance(model, PortPower):
        raise QuantityProblem("", "--equip is of a model of ports: the watts of the others rest on their load")
    return equipped_with(model, said)
