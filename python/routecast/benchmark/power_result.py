"""What the power benchmark finds: a line for each state, and the metrics over them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from routecast.evaluate.plain import plain
from routecast.power.metrics import METRICS

__all__ = ["PowerTable", "PowerTableRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTableRow:
    """One line: what was offered, what was forwarded, and the watts meanwhile; NaN where nothing was measured.

    ``port_ratios`` is the utilisation of each link where the evaluator knows it.
    """

    name: str
    state: str
    load_ratio: float = math.nan
    intended_pps: float = math.nan
    forwarded_pps: float = math.nan
    l2_bps: float = math.nan
    loss_ratio: float = math.nan
    power_w: float = math.nan
    packet_j: float = math.nan
    bit_j: float = math.nan
    port_ratios: Mapping[str, float] = field(default_factory=dict)
    not_measured: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTable:
    """The finished table.

    Parameters
    ----------
    router, evaluator, scope, source : str
        What was measured, who answered, what the watts cover and where they come from.
    frames : str
        The mix of frame sizes.
    ports : int
        All of them enabled and active.
    throughput_pps, throughput_bps : float
        The greatest rate that was seen to lose nothing, over all ports.
    rows : tuple of PowerTableRow
        Base, idle, idle+, typical, loaded, and further loads of the EER.
    eer_bit_per_j : float
        Bit/s per W over ``load_ratios`` with ``weights``.
    eer_unweighted_bit_per_j : float
        With the unweighted throughput as numerator, as the draft allows if it is labelled.
    ecr_w_per_bps : float
        At full load.
    proportionality_ratio : float
        EPI over 100.
    averaging : str
        How watts were averaged.
    facts : mapping of str to object
        Versions and configuration, where the evaluator states them.
    """

    router: str
    evaluator: str
    scope: str
    source: str
    frames: str
    ports: int
    throughput_pps: float
    throughput_bps: float
    rows: tuple[PowerTableRow, ...]
    load_ratios: tuple[float, ...]
    weights: tuple[float, ...]
    eer_bit_per_j: float
    eer_unweighted_bit_per_j: float
    ecr_w_per_bps: float
    proportionality_ratio: float
    stabilise_s: float
    measure_s: float
    averaging: str
    facts: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return plain data, with the definition of every metric."""
        result = plain(self)
        assert isinstance(result, dict)
        return {**result, "metrics": plain(dict(METRICS))}
