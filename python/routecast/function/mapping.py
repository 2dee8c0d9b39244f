"""What of a host's costs no function can use: operations that there are not, parameters that an operation has not."""

from __future__ import annotations

from routecast.errors import Problem
from routecast.function.operations import OPERATIONS
from routecast.hardware.model import Hardware
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["mapping_problems"]


def mapping_problems(hardware: Hardware) -> list[Problem]:
    """Return what is wrong with the costs of operations, with places as in the hardware file."""
    problems = []
    for name, cost in hardware.operations.items():
        if name not in OPERATIONS:
            what = f"is no elementary operation, so nothing uses it; {did_you_mean(name, OPERATIONS)}"
            problems.append(Problem(f"operation.{name}", what))
            continue
        known = OPERATIONS[name].parameters
        for place, one in ((name, cost), (f"{name}.remote", cost.remote)):
            if one is None:
                continue
            formulas = [one.cycles, *(access.lines for access in one.accesses)]
            formulas += [access.table_lines for access in one.accesses if access.table_lines is not None]
            for other in sorted(frozenset().union(*(formula.names for formula in formulas)) - known.keys()):
                what = f'names "{other}", which {name} has not; {did_you_mean(other, known)}'
                problems.append(Problem(f"operation.{place}", what))
    return problems
