"""What the names in the tables and figures of a study of a network on chip mean."""

from __future__ import annotations

from routecast.report.page import Facts
from routecast.study.noc.point import BOUND, NO_DVFS, WHOLE, curve_name
from routecast.study.noc.result import NocResult

__all__ = ["glossary"]

ALWAYS = (
    (
        "Load",
        "Traffic relative to the most that the grid carries: at load 1 the link that is loaded most, over all compared "
        "routings or under XY on one plane, is full.",
    ),
    (
        "Power",
        "Of moving bits only: each flow's rate times its hops times the square of the voltage. Relative to NoDVFS at "
        "load 1.",
    ),
    (
        "alpha",
        "By how much voltage and clock of a plane are lowered. Its fullest link sets it: with links at most half full, "
        "alpha is 2, and power a quarter. It ends at V_max / V_min.",
    ),
    (
        "Times below no scaling",
        "NoDVFS' power over a policy's, at the same load: 4 is a quarter of the power.",
    ),
)
CURVES = {
    NO_DVFS: "XY on one plane at full voltage and clock: power in proportion to the load.",
    "xy": "First along the row, then along the column; one plane, its voltage and clock scaled.",
    "yx": "First along the column, then along the row.",
    "2p_es": "Half of each flow goes XY, half YX.",
    "2p_rs": "Each flow is divided between XY and YX at random.",
    "4p_es": "A quarter XY, a quarter YX, and two quarters over a random router between source and target.",
    "adaptive": "Flow by flow, the heaviest first: at each hop the link that is loaded least so far.",
    "balance": "Flows are put on two planes so that both are loaded alike.",
    "mini": "Heavy flows are concentrated on one plane, the rest may be slow on the other.",
    "four_phase": "The thesis' best: in four phases, flows move from one plane to the other while that saves power.",
    "search": "Ours: whole flows are moved between planes and shortest paths while power falls.",
    WHOLE: "Proven: flows that are not split need at least this, for a plane is no slower than its heaviest flow.",
    BOUND: "Proven: nothing needs less, even if flows are split over paths and planes at will.",
}


def glossary(result: NocResult) -> Facts:
    """Return what is meant by load, power, alpha and the curves that a result has."""
    there = {curve for one in result.cases for curve in one.curves}
    curves = tuple((curve_name(curve), meaning) for curve, meaning in CURVES.items() if curve in there)
    return Facts(title="What the names mean", rows=(*ALWAYS, *curves))
