"""From measured rows to a calibrated router, and from it to predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from routecast.calibrate.wakeup import QUANTILES, FittedWakeup, LatencyPoint, MakeRouter, fit_wakeup
from routecast.calibrate.work import FittedWork, WorkPoint, fit_work
from routecast.errors import FitProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.router.model import Interruptions, RandomTime, RouterModel
from routecast.router.softirq import softirq
from routecast.study.wire.document import Throughput, WireStudy
from routecast.study.wire.points import Setting, load_of

__all__ = ["Calibrated", "calibrate_latency", "calibrate_throughput", "measured_quantiles_s", "router_maker"]

Rows = Sequence[Mapping[str, object]]

LINK_BPS = 1e12
"""No wire limits the model: the study asks what the device carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A series' law, and the wake-up of its device where latency was calibrated."""

    series: Throughput
    law: FittedWork
    wakeup: FittedWakeup | None = None

    def capacity_pps(self, value: float) -> float:
        """Return the predicted forwarding rate in overload."""
        return self.law.rate_pps(value)

    def router(self, value: float) -> RouterModel:
        """Return the model of the router at one value of the factor."""
        stretch = self.wakeup.interruptions.stretch if self.wakeup and self.wakeup.interruptions else 1.0
        make = router_maker(self.series)
        found = self.wakeup
        return make(
            self.law.seconds(value) / stretch,
            found.wakeup if found else None,
            found.interruptions if found else None,
        )

    def solve(self, value: float, load_pps: float) -> Trial:
        """Answer in closed form."""
        return Solve(model=self.router(value)).trial(self._load(value, load_pps), 1.0)

    def simulate(self, value: float, load_pps: float, *, duration_s: float, seed: int) -> Trial:
        """Answer packet by packet."""
        simulator = Simulate(self.router(value), seed=seed, steady_state=False)
        return simulator.trial(self._load(value, load_pps), duration_s)

    def _load(self, value: float, load_pps: float) -> OfferedLoad:
        return load_of(Setting.of(self.series, value), load_pps)


def router_maker(series: Throughput) -> MakeRouter:
    """Return what makes a router of a series: one core that interrupts activate, behind a ring."""

    def make(per_packet_s: float, wakeup: RandomTime | None, interruptions: Interruptions | None) -> RouterModel:
        return softirq(
            name=f"{series.device}, {series.name}",
            per_packet_s=per_packet_s,
            wakeup=wakeup,
            interruptions=interruptions,
            link_bps=LINK_BPS,
        )

    return make


def calibrate_throughput(series: Throughput, rows: Rows) -> Calibrated:
    """Fit the law of a series to the rows that calibrate."""
    wanted = set(series.calibrate)
    rates: dict[float, list[float]] = {}
    for row in rows:
        value = _number(row["value"])
        if row["series"] == series.name and value in wanted and not row["invalid"]:
            rates.setdefault(value, []).append(_number(row["forwarded_pps"]))
    lost = sorted(wanted - set(rates))
    if lost:
        message = f"no trial was valid at {series.factor} = {', '.join(f'{value:g}' for value in lost)}"
        raise FitProblem(series.name, f"{message}: look at the reasons in results.parquet, and run again")
    points = [WorkPoint(work=value, rates_pps=tuple(found)) for value, found in sorted(rates.items())]
    law = fit_work(points, series=series.name, constant=series.law == "constant")
    return Calibrated(series=series, law=law)


def calibrate_latency(study: WireStudy, device: str, laws: Mapping[str, Calibrated], rows: Rows) -> FittedWakeup | None:
    """Fit wake-up and interruptions of a device to its latency rows that calibrate; None if none does."""
    points = []
    for latency in study.latency:
        law = laws[latency.series]
        if law.series.device != device:
            continue
        for ratio in latency.calibrate:
            mine = _rows_at(rows, latency.series, latency.value, ratio)
            quantiles_s = measured_quantiles_s(mine)
            if quantiles_s:
                offered_pps = median(_number(row["offered_pps"]) for row in mine if not row["invalid"])
                points.append(
                    LatencyPoint(
                        load=load_of(Setting.of(law.series, latency.value), offered_pps),
                        completion_s=law.law.seconds(latency.value),
                        quantiles_s=quantiles_s,
                        make_router=router_maker(law.series),
                    )
                )
    return fit_wakeup(points, series=device) if points else None


def measured_quantiles_s(rows: Rows) -> tuple[float, ...]:
    """Return the latency at :data:`QUANTILES`: at each probability the median over the valid repeats."""
    from routecast import _core

    found = [
        _core.hdr_quantiles_s(str(row["latency_hdr_base64"]), QUANTILES)
        for row in rows
        if not row["invalid"] and row["latency_hdr_base64"]
    ]
    return tuple(median(each) for each in zip(*found, strict=True))


def _rows_at(rows: Rows, series: str, value: float, ratio: float) -> Rows:
    return [row for row in rows if (row["series"], row["value"], row["offered_ratio"]) == (series, value, ratio)]


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
