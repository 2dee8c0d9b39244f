"""Which of a function's steps count on a host: those of the paper's model, or those of the function that runs."""

from __future__ import annotations

from dataclasses import replace

from routecast.function.model import NetworkFunction
from routecast.hardware.model import Hardware

__all__ = ["in_the_manner_of"]


def in_the_manner_of(hardware: Hardware, function: NetworkFunction) -> NetworkFunction:
    """Return the function as it counts on a host.

    Hosts described as in Baldi & Sapio 2018 (``stalls = "separate"``) take the steps of its models and the entries of
    its tables; probed hosts (``"added"``) take what the real twin does, with entries as the twin holds them.
    """
    left_out = "real" if hardware.stalls == "separate" else "model"
    directions = tuple(
        replace(one, steps=tuple(step for step in one.steps if step.only != left_out))
        for one in function.directions
    )
    if hardware.stalls == "separate":
        return replace(function, directions=directions)
    tables = tuple(replace(one, entry_bytes=one.held_bytes or one.entry_bytes) for one in function.tables)
    return replace(function, directions=directions, tables=tables)
