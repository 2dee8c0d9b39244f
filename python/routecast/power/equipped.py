"""Which ports of a model are plugged in and up, as a command line says it: ``"QSFP/PCC/100G=32"``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.power.port import PortPower, PortsInUse
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["equipped_with"]


def equipped_with(model: PortPower, said: Sequence[str]) -> PortPower:
    """Return a model whose equipped ports are the given ones, in place of those of its file.

    Parameters
    ----------
    model : PortPower
    said : sequence of str
        ``"class=number"`` each: that many ports of the class are plugged in, enabled and up.

    Raises
    ------
    routecast.errors.ModelProblem
        A text is no class and number, the model has no such class, or one is said twice; all faults at once.

    Examples
    --------
    >>> from routecast.power.port import PortClass
    >>> switch = PortPower(device="switch", classes={"SFP/T/1G": PortClass(base_w=30.0, trx_in_w=0.5, trx_up_w=0.2)})
    >>> equipped_with(switch, ["SFP/T/1G=10"]).use_power_w(equipped_with(switch, ["SFP/T/1G=10"]).equipped)
    37.0
    """
    equipped: dict[str, PortsInUse] = {}
    problems = []
    for text in said:
        name, _, number = (part.strip() for part in text.rpartition("="))
        ports = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0
        if not name or ports == 0:
            example = next(iter(model.classes))
            problems.append(
                Problem("equip", f'got "{text}": give a class and how many, such as "{example}=4"')
            )
        elif name not in model.classes:
            problems.append(Problem("equip", f'has no ports "{name}": {did_you_mean(name, model.classes)}'))
        elif name in equipped:
            problems.append(Problem("equip", f'"{name}" is said twice: give one number for it'))
        else:
            equipped[name] = PortsInUse(plugged=ports, enabled=ports, up=ports)
    if problems:
        raise ModelProblem(model.device, problems)
    return replace(model, equipped=equipped)
