"""The procedures of RFC 2544 sec. 26, each an object in its own file; a new procedure is a file and its name here."""

from collections.abc import Mapping
from importlib import import_module

from routecast.benchmark.procedures.procedure import Procedure

__all__ = ["PROCEDURES", "Procedure"]

_NAMES = ("throughput", "latency", "frame_loss", "back_to_back", "recovery", "reset")

PROCEDURES: Mapping[str, Procedure] = {name: import_module(f"{__name__}.{name}").PROCEDURE for name in _NAMES}
"""All procedures by name, in the RFC's order, which is the order of a run."""
