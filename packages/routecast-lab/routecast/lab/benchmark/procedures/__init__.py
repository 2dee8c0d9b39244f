"""The procedures of RFC 2544 sec. 26, each an object in its own file; a new one is a file and its name in values."""

from collections.abc import Mapping
from importlib import import_module

from routecast.lab.benchmark.procedures.procedure import Procedure
from routecast.lab.benchmark.values import PROCEDURE_NAMES

__all__ = ["PROCEDURES", "Procedure"]

PROCEDURES: Mapping[str, Procedure] = {name: import_module(f"{__name__}.{name}").PROCEDURE for name in PROCEDURE_NAMES}
"""All procedures by name, in the RFC's order, which is the order of a run."""
