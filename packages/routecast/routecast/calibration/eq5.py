"""The service model of Meyer et al. 2014, eqs. 5-7, for comparison.

``D_b = (a·k + a0)·S + (b·k + b0)`` Gbit/s for k working cores and frames of S bytes (eq. 5), hence the service time
of one core ``x_core = k·(S + 20)·8 / (D_b·10^9)`` seconds (eqs. 6 and 7).

Source: Meyer, Wohlfart, Raumer, Wolfinger, Carle: Validated Model-Based Performance Prediction of Multi-Core Software
Routers, PIK 37(1), 2014, sec. IV-B and VI-B.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from routecast.calibration.forward import saturate
from routecast.calibration.score import Prediction
from routecast.errors import FitProblem
from routecast.evaluate.points import Point
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.router.model import RouterModel, ServiceCost
from routecast.router.multicore import Distribution, multicore

__all__ = ["Eq5Router", "fit_eq5"]

_PARAMETERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Eq5Router:
    """Eq. 5 with its four coefficients: ``a, a0`` in Gbit/s per byte, ``b, b0`` in Gbit/s."""

    a: float
    a0: float
    b: float
    b0: float
    series: str = ""

    def l1_gbps(self, cores: float, frame_bytes: float) -> float:
        """Eq. 5: maximum throughput of ``cores`` working cores in Gbit/s, wire overhead included."""
        return (self.a * cores + self.a0) * frame_bytes + (self.b * cores + self.b0)

    def service_s(self, cores: float, frame_bytes: float) -> float:
        """Eq. 7: seconds that a core needs for a frame while ``cores`` cores work; infinite outside its range."""
        gbps = self.l1_gbps(cores, frame_bytes)
        if gbps <= 0.0:
            return math.inf
        return cores * (frame_bytes + WIRE_OVERHEAD_BYTES) * 8.0 / (gbps * 1e9)

    def predict(self, points: Sequence[Point]) -> tuple[Prediction, ...]:
        """Predict maximum throughputs, limited by links and NIC caps; eq. 5 gives no intervals (they are NaN)."""
        predictions = []
        for point in points:
            k = point.working_cores
            rate = 1.0 / self.service_s(k, point.frame_bytes)
            flow = saturate(point, core_pps=partial(_constant, rate))
            predictions.append(Prediction.of(point, flow.throughput_pps, limit=flow.limit))
        return tuple(predictions)

    def router_model(
        self,
        cores: int,
        frame_bytes: float,
        *,
        flows: int | None = None,
        link_bps: float = 10e9,
        ports: int = 2,
        queue_frames: int = 512,
        distribution: Distribution = "rss",
        nic_cap_pps: float | None = None,
        name: str = "",
    ) -> RouterModel:
        """Build the paper's router: every core takes x_core (eq. 7) for each frame of ``frame_bytes`` bytes.

        ``flows`` is the number of crafted flows; k of eq. 7 is the smaller of ``flows`` and ``cores``.
        """
        k = cores if flows is None else min(cores, flows)
        return multicore(
            cores,
            ServiceCost(per_packet_s=self.service_s(k, frame_bytes)),
            link_bps=link_bps,
            ports=ports,
            queue_frames=queue_frames,
            distribution=distribution,
            nic_cap_pps=nic_cap_pps,
            name=name or f"eqs. 5-7, {cores} cores",
        )


def fit_eq5(points: Sequence[Point], *, series: str = "") -> Eq5Router:
    """Fit eq. 5 by least squares of relative errors; with four points the fit is exact.

    Raises FitProblem: there are fewer than four points, or they do not determine the four coefficients.
    """
    if len(points) < _PARAMETERS:
        raise FitProblem(
            series,
            f"eq. 5 has 4 parameters, but there are {len(points)} points: measure two frame sizes on two core counts",
        )
    k = np.array([float(point.working_cores) for point in points])
    size = np.array([point.frame_bytes for point in points])
    gbps = np.array([point.throughput_pps * (point.frame_bytes + WIRE_OVERHEAD_BYTES) * 8e-9 for point in points])
    design = np.stack([k * size, size, k, np.ones_like(k)], axis=1) / gbps[:, None]
    scale = np.linalg.norm(design, axis=0)
    solution, _, rank, _ = np.linalg.lstsq(design / scale, np.ones_like(gbps), rcond=1e-9)
    if rank < _PARAMETERS:
        raise FitProblem(
            series, "the points do not determine the 4 parameters of eq. 5: measure two frame sizes on two core counts"
        )
    a, a0, b, b0 = (float(value) for value in solution / scale)
    return Eq5Router(a=a, a0=a0, b=b, b0=b0, series=series)


def _constant(rate_pps: float, _busy_cores: float) -> float:
    """Return the rate of a core, which in eq. 7 does not depend on the number of busy cores."""
    return rate_pps
