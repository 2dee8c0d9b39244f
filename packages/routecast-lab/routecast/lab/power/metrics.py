"""Energy metrics, each with its formula, scope and source.

The scope of a metric is that of the watts it is computed from (package, server, wall). Figures of different scopes are
not comparable. Bit rates are at layer 2: they count the FCS and not the preamble (semantics S2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from routecast.errors import ModelProblem, Problem
from routecast.quantity.schema import field, value

__all__ = [
    "CORE_LOADS",
    "EER_WEIGHTS",
    "METRICS",
    "LoadPoint",
    "MetricDefinition",
    "energy_consumption_rate_w_per_bps",
    "energy_efficiency_ratio_bit_per_j",
    "proportionality_ratio",
]

CORE_LOADS: Final = (1.0, 0.3, 0.0)
"""Loads of the EER of core routers and data-centre switches, over the zero-loss rate (powerbench-02 sec. 4)."""

EER_WEIGHTS: Final = (0.1, 0.8, 0.1)
"""Typical weights of the three loads."""

_POWERBENCH = "ETSI ES 203 136, as restated by draft-ietf-bmwg-powerbench-02 sec. 4"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinition:
    """Name, unit, formula, scope and source of a metric."""

    name: str
    unit: str
    formula: str
    scope: str
    source: str


@value
class LoadPoint:
    """Throughput and power at one load."""

    weight_ratio: float = field("B_i: the share of its time that the device spends at this load")
    l2_bps: float = field("T_i: throughput, bit/s")
    power_w: float = field("P_i: power, W")


METRICS: Final = MappingProxyType(
    {
        "power": MetricDefinition(
            name="power",
            unit="W",
            formula="P, the mean over the measurement interval",
            scope="as the watts are labelled: package, server, wall, …",
            source="draft-ietf-bmwg-powerbench-02; RFC 7460",
        ),
        "packet_energy": MetricDefinition(
            name="energy per packet",
            unit="J",
            formula="P / forwarded frames per second; all of P, idle power included",
            scope="forwarded frames of all ports; the watts' scope",
            source="ratio of two measured quantities; state its load, because it diverges towards zero load",
        ),
        "bit_energy": MetricDefinition(
            name="energy per bit",
            unit="J",
            formula="P / forwarded bit/s; 1 nJ/bit is 1 W per Gbit/s",
            scope="layer 2, FCS counted, preamble and gap not; the watts' scope",
            source="ratio of two measured quantities; state its load",
        ),
        "eer": MetricDefinition(
            name="energy efficiency ratio (EER)",
            unit="Gbit/s per W",
            formula="sum B_i T_i / sum B_i P_i, sum B_i = 1, at 100/30/0 % (core) or 100/10/0 % (access) of the "
            "zero-loss rate, B typically 0.1/0.8/0.1",
            scope="the whole device by its standard; here the watts' scope",
            source=_POWERBENCH,
        ),
        "eer_unweighted": MetricDefinition(
            name="EER over the unweighted total capacity",
            unit="Gbit/s per W",
            formula="T(100 %) / sum B_i P_i: an option of the draft, not comparable with the weighted figure",
            scope="the whole device by its standard; here the watts' scope",
            source=_POWERBENCH,
        ),
        "ecr": MetricDefinition(
            name="energy consumption rate (ECR) at full load",
            unit="W per Gbit/s",
            formula="E_f / T_f = P / T at the zero-loss rate; the inverse of an EER at that load alone",
            scope="full load alone; the watts' scope",
            source="ECR Initiative, Network and Telecom Equipment: Energy and Performance Assessment, 3.0.1",
        ),
        "epi": MetricDefinition(
            name="energy proportionality index (EPI)",
            unit="%",
            formula="100 (P_max - P_idle) / P_max: 100 draws nothing when idle, 0 draws the same at every load",
            scope="the watts' scope",
            source="Mahadevan, Sharma, Banerjee, Ranganathan: A Power Benchmarking Framework for Network Devices, "
            "Networking 2009; not the NEPI of the old BMWG proposal, whose sign contradicts its text",
        ),
    }
)
"""Every metric by key; reports print formula, scope and source from here."""


def energy_consumption_rate_w_per_bps(power_w: float, l2_bps: float) -> float:
    """Return the ECR of full load, ``E_f / T_f``, in W per bit/s: the inverse of the EER at that load alone.

    Raises
    ------
    ModelProblem
        Power or rate is not > 0.
    """
    _raise_if_faulty([*_power_faults("power_w", power_w), *_positive_faults("l2_bps", l2_bps)])
    return power_w / l2_bps


def energy_efficiency_ratio_bit_per_j(points: Sequence[LoadPoint], *, total_capacity_bps: float | None = None) -> float:
    """Return the EER in bit/s per W: ``sum B_i T_i / sum B_i P_i`` (ETSI ES 203 136; powerbench-02 sec. 4).

    Parameters
    ----------
    points : sequence of LoadPoint
        Throughput and power at each load, with weights that sum up to 1.
    total_capacity_bps : float or None
        Numerator in place of the weighted throughput. The draft allows it with a label, because the two ratios are not
        comparable.

    Raises
    ------
    ModelProblem
        Weights do not sum up to 1 or are negative, a power is not > 0, or no load forwards anything.
    """
    total = math.fsum(point.weight_ratio for point in points)
    faults = [] if abs(total - 1.0) <= 1e-9 else [Problem("weights", f"sum up to {total:g}: they must sum up to 1")]
    for number, point in enumerate(points):
        if not (math.isfinite(point.weight_ratio) and point.weight_ratio >= 0.0):
            faults.append(Problem(f"weights[{number}]", f"is {point.weight_ratio:g}: it must be at least 0"))
        if not (math.isfinite(point.l2_bps) and point.l2_bps >= 0.0):
            faults.append(Problem(f"l2_bps[{number}]", f"is {point.l2_bps:g}: it must be at least 0"))
        faults += _power_faults(f"power_w[{number}]", point.power_w)
    if total_capacity_bps is not None:
        faults += _positive_faults("total_capacity_bps", total_capacity_bps)
    _raise_if_faulty(faults)
    throughput_bps = math.fsum(point.weight_ratio * point.l2_bps for point in points)
    if total_capacity_bps is None and throughput_bps == 0.0:
        _raise_if_faulty([Problem("l2_bps", "no weighted load forwards anything, so the efficiency is undefined")])
    power_w = math.fsum(point.weight_ratio * point.power_w for point in points)
    return (throughput_bps if total_capacity_bps is None else total_capacity_bps) / power_w


def proportionality_ratio(idle_w: float, max_w: float) -> float:
    """Return ``(P_max - P_idle) / P_max``, the EPI over 100: 1 draws nothing when idle, 0 draws the same at every load.

    Raises
    ------
    ModelProblem
        ``max_w`` is not > 0, ``idle_w`` is negative, or ``idle_w`` is above ``max_w``.
    """
    faults = _power_faults("max_w", max_w)
    if not (math.isfinite(idle_w) and idle_w >= 0.0):
        faults.append(Problem("idle_w", f"is {idle_w:g} W: it must be at least 0"))
    elif idle_w > max_w:
        faults.append(Problem("idle_w", f"is {idle_w:g} W, more than the {max_w:g} W of the highest power"))
    _raise_if_faulty(faults)
    return (max_w - idle_w) / max_w


def _power_faults(name: str, power_w: float) -> list[Problem]:
    if math.isfinite(power_w) and power_w > 0.0:
        return []
    return [Problem(name, f"is {power_w:g} W: it must be above 0")]


def _positive_faults(name: str, value: float) -> list[Problem]:
    return [] if math.isfinite(value) and value > 0.0 else [Problem(name, f"is {value:g}: it must be above 0")]


def _raise_if_faulty(faults: Sequence[Problem]) -> None:
    if faults:
        raise ModelProblem("energy metric", faults)
