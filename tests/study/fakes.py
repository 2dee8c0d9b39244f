"""Stand-ins for a calibrated law and an evaluator: the paper's law, and its router served flow by flow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from routecast.calibration.fitted import FittedLaw, Parameter
from routecast.calibration.score import Prediction
from routecast.evaluate.points import Point
from routecast.evaluate.trial import Bottleneck, Trial
from routecast.load.flows import rss_index
from routecast.load.offered import OfferedLoad
from routecast.router.model import RouterModel, ServiceCost
from routecast.router.multicore import multicore
from routecast.study.tables.run import offered_load

# Meyer et al. 2014, Table I(b).
A, A0, B, B0 = 0.011392, 0.002708, 0.227037, 0.063321


def core_service_s(busy_cores: int, frame_bytes: int) -> float:
    """Meyer et al. 2014, eq. 7."""
    k, size = busy_cores, frame_bytes
    return 8.0 * (size + 20) / (((A + A0 / k) * size + (B + B0 / k)) * 1e9)


@dataclass(frozen=True, slots=True)
class PaperLaw:
    """Eqs. 5 to 7 with the paper's own parameters, and an interval of ±2 %."""

    name: str = "paper"
    description: str = "x = (S + 20)·8 / ((a + a0/k)·S + (b + b0/k))"
    hypotheses: tuple[FittedLaw, ...] = ()
    parameters: tuple[Parameter, ...] = (
        Parameter(name="a", value=A, standard_error=math.nan, low=math.nan, high=math.nan, unit="Gbit/s/B", meaning=""),
    )
    warnings: tuple[str, ...] = ()
    recipe: None = None

    def remarks(self, targets: Sequence[Point]) -> tuple[str, ...]:
        return self.warnings

    def model(self, point: Point, queue_frames: int) -> RouterModel:
        service = ServiceCost(per_packet_s=core_service_s(point.working_cores, point.frame_bytes))
        return multicore(point.cores, service, queue_frames=queue_frames, ports=point.ports, link_bps=point.link_bps)

    def next_points(self, targets: Sequence[Point]) -> tuple[str, ...]:
        return ("2 flows of 64 B",) if targets else ()

    def predict(self, points: Sequence[Point]) -> tuple[Prediction, ...]:
        predictions = []
        for point in points:
            rate = FlowByFlow(self.model(point, 512)).trial(offered_load(point, 1), 1.0).forwarded_pps
            predictions.append(Prediction.of(point, rate, limit="cpu", intervals={0.95: (0.98 * rate, 1.02 * rate)}))
        return tuple(predictions)

    def contention_ratio(self, cores: int) -> float:
        return core_service_s(cores, 64) / core_service_s(1, 64)


@dataclass(frozen=True, slots=True)
class FlowByFlow:
    """Overload of a multi-core router whose cores take what they can of the flows that they get."""

    model: RouterModel

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        size = load.frames.sequence_bytes[0]
        cores = [task for task in self.model.tasks if task.name.startswith("core")]
        shares = [0.0] * len(cores)
        offered = 0.0
        ports = len(self.model.ports)
        by_port = [0.0] * ports
        for flow in load.flows.flows:
            by_port[flow.ingress] += flow.weight / load.flows.total_weight
        line = self.model.ports[0].link_bps / (8.0 * (size + 20))
        for flow in load.flows.flows:
            share = flow.weight / load.flows.total_weight
            into_port = load.rate_pps * by_port[flow.ingress]
            rate = load.rate_pps * share * min(1.0, line / into_port)
            shares[rss_index(flow.rss_hash, len(cores))] += rate
            offered += rate
        capacity = 1.0 / cores[0].service.mean_s(size)
        forwarded = sum(min(share, capacity) for share in shares)
        return Trial(
            evaluator="solve",
            duration_s=duration_s,
            intended_pps=load.rate_pps,
            offered_pps=offered,
            forwarded_pps=forwarded,
            loss_ratio=1.0 - forwarded / offered,
            l1_bps=forwarded * 8.0 * (size + 20),
            l2_bps=forwarded * 8.0 * size,
            bottleneck=Bottleneck(name="cpu", kind="pool", reason="every core is busy"),
        )
