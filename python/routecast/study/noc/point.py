"""One point of a curve: a traffic matrix at a load under one policy."""

from __future__ import annotations

from dataclasses import dataclass

from routecast.noc.case import policy_name

__all__ = ["BOUND", "NO_DVFS", "WHOLE", "Point", "curve_name"]

NO_DVFS = "no_dvfs"
"""XY routing on one plane at full voltage: power grows in proportion to the load."""

BOUND = "optimum"
"""The proven lower bound: no splitting over paths and planes needs less."""

WHOLE = "whole_flows"
"""The bound of flows that are not split, whatever their planes and paths."""

SPECIAL = {NO_DVFS: "NoDVFS", WHOLE: "bound, whole", BOUND: "bound, split"}
THESIS_ALLOCATIONS = ("balance", "mini", "four_phase")
"""Those that the thesis prints for two planes."""


def curve_name(curve: str) -> str:
    """Return what tables and figures call a curve.

    Examples
    --------
    >>> curve_name("no_dvfs"), curve_name("four_phase")
    ('NoDVFS', '2P-4PHASE')
    """
    if curve in SPECIAL:
        return SPECIAL[curve]
    return f"2P-{policy_name(curve)}" if curve in THESIS_ALLOCATIONS else policy_name(curve)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Power of one policy for one matrix at one load.

    Attributes
    ----------
    curve
        The policy: a routing, an allocation, :data:`NO_DVFS` or :data:`BOUND`.
    matrix
        Number of the traffic matrix.
    load
        Normalised load (eq. 6.7 or 7.13).
    relative_power
        Power relative to :data:`NO_DVFS` at load 1 of the same matrix.
    alphas
        Expansion factor of each plane.
    gap
        Of the bound: how far a flow that was found is above it, relative to that flow.
    """

    curve: str
    matrix: int
    load: float
    relative_power: float
    alphas: tuple[float, ...]
    gap: float = 0.0
