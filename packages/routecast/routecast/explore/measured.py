"""Live panels of measured points: the calibrated router, its intervals, and the effect of open facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from routecast.calibration import FittedRouter, fit
from routecast.calibration.evidence import Evidence
from routecast.calibration.facts import open_facts, with_shared_queue
from routecast.calibration.fitted import CONFIDENCE_RATIO, TOLERANCE_RATIO, at_cores
from routecast.calibration.priors import Priors
from routecast.evaluate.points import Point
from routecast.evaluate.sweep import even_flows
from routecast.explore.panel import Control, Panel, make_panel
from routecast.explore.router import LINKS_BPS, QUEUES, core_counts, lowered, placed
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import RFC2544_FRAME_BYTES, FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad
from routecast.quantity.parse import parse_bit_rate_bps
from routecast.quantity.value_list import Plain

__all__ = ["DEFAULT_START", "Forecast", "MeasuredPanel", "StartConditions", "panels_of_points"]

_MAX_CORES = 24
_TAIL_PROBABILITIES = (0.005, 0.01, 0.025, 0.05, 0.075)
_PROBABILITIES = (
    *_TAIL_PROBABILITIES,
    *(step / 20 for step in range(2, 19)),
    *(round(1.0 - tail, 3) for tail in reversed(_TAIL_PROBABILITIES)),
)
_NO_LINK_BPS = 10e12
_LEAST_ASSUMED_BPS = 10e9


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConditions:
    """Frames, rate and cores at the start of a panel; None: the values of the measurements.

    ``counts``: numbers of cores to choose from, beside those of the panel itself; with them the curves are over cores.
    """

    frames: FrameMix | None = None
    rate_pps: float | None = None
    cores: int | None = None
    counts: tuple[int, ...] = ()


DEFAULT_START = StartConditions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecast of a measured maximum throughput: quantiles by cores and frames, without limits by links.

    ``ends_pps`` are the ends of the band that holds one measurement with 95 %, the interval of the calibration.
    They are those that the measured rows allow (:meth:`routecast.calibration.evidence.Evidence.quantiles_pps`), NaN
    where nothing is known; ``unknown`` says why.
    """

    cores: tuple[int, ...]
    frames: tuple[str, ...]
    quantiles_pps: tuple[tuple[tuple[float, ...], ...], ...]
    ends_pps: tuple[tuple[tuple[float, ...], ...], ...]
    unknown: tuple[str, ...] = ()

    def band_pps(self, frames: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the lower and the upper ends of the band for frames, by cores, frames/s."""
        column = self.frames.index(frames)
        return tuple(rows[column][0] for rows in self.ends_pps), tuple(rows[column][1] for rows in self.ends_pps)

    def to_json(self) -> dict[str, object]:
        """Return plain data, with rates to four digits."""
        quantiles, ends = (
            [[[None if math.isnan(rate) else float(f"{rate:.4g}") for rate in row] for row in rows] for rows in table]
            for table in (self.quantiles_pps, self.ends_pps)
        )
        return {
            "cores": list(self.cores),
            "frames": list(self.frames),
            "probabilities": list(_PROBABILITIES),
            "tolerance_ratio": TOLERANCE_RATIO,
            "quantiles_pps": quantiles,
            "ends_pps": ends,
            "unknown": list(self.unknown),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPanel:
    """The panel of a calibrated router: the fact that it assumes, and its forecast.

    ``is_link_known``: whether the points state their links, or show what limits them; otherwise the link is assumed.
    """

    assumes: str
    panel: Panel
    forecast: Forecast
    fitted: FittedRouter
    is_link_known: bool


def panels_of_points(
    points: Sequence[Point],
    *,
    held_out: Sequence[Point] = (),
    start: StartConditions = DEFAULT_START,
    noise_ratio: float | None = None,
    priors: Priors | None = None,
) -> tuple[MeasuredPanel, ...]:
    """Calibrate a router; return its panel, and a panel for each answer to an open fact.

    ``points`` are used for the calibration; ``held_out`` are other measured rows, which refute and confirm what the
    panel says; ``start`` sets the controls; ``noise_ratio`` and ``priors`` are those of
    :func:`routecast.calibration.fit`. Raises FitProblem: no point has a rate, or the points belong to several series.
    """
    fitted = fit(points, noise_ratio=noise_ratio, priors=priors)
    most_measured = max(point.cores for point in points)
    own = range(1, min(max(8, 2 * most_measured), _MAX_CORES) + 1)
    counts = core_counts(own, start.counts, keep=(most_measured, start.cores or most_measured))
    model = max(points, key=lambda point: (point.cores, point.working_cores, -point.frame_bytes))
    panels = {"": fitted}
    if open_facts(fitted, [at_cores(model, counts[-1])], noise_ratio=noise_ratio, priors=priors):
        for answer, is_shared in (("no", False), ("yes", True)):
            facts = with_shared_queue(points, is_shared)
            panels[f"shared_queue = {answer}"] = fit(facts, noise_ratio=noise_ratio, priors=priors)
    model = fitted.caps.applied(model)
    forecasts = {assumes: _forecast(variant, model, counts, start, held_out) for assumes, variant in panels.items()}
    link_bps = _link_bps(model, next(iter(forecasts.values())), [*points, *held_out])
    return tuple(
        MeasuredPanel(
            assumes=assumes,
            panel=_panel(variant, model, counts, start, link_bps),
            forecast=forecasts[assumes],
            fitted=variant,
            is_link_known=_is_stated(model.link_bps),
        )
        for assumes, variant in panels.items()
    )


def _is_stated(link_bps: float | None) -> bool:
    return link_bps is not None and math.isfinite(link_bps)


def _link_bps(model: Point, forecast: Forecast, measured: Sequence[Point]) -> float:
    """Return the link of the points; without one the slowest usual link that carries what is measured and forecast."""
    if model.link_bps is not None and math.isfinite(model.link_bps):
        return model.link_bps
    name = (model.frame_mix or FrameMix.fixed(round(model.frame_bytes))).name
    rates = [(pps, model.frame_bytes) for pps in forecast.band_pps(name)[1]]
    rates += [(point.throughput_pps, point.frame_bytes) for point in measured]
    most_bps = max(
        (pps * 8.0 * (size + WIRE_OVERHEAD_BYTES) / model.busy_ports for pps, size in rates if math.isfinite(pps)),
        default=0.0,
    )
    usual = [bps for bps in LINKS_BPS if bps >= _LEAST_ASSUMED_BPS]
    return next((bps for bps in usual if bps >= most_bps), usual[-1])


def _frames(fitted: FittedRouter, start: StartConditions) -> dict[str, FrameMix]:
    """Return the frames of the control: those measured or requested, the sizes of RFC 2544, and IMIX."""
    measured = [point.frame_mix or FrameMix.fixed(round(point.frame_bytes)) for point in fitted.points]
    requested = [start.frames] if start.frames else []
    mixes = [*measured, *requested, *(FrameMix.fixed(size) for size in RFC2544_FRAME_BYTES), FrameMix.imix()]
    return {mix.name: mix for mix in sorted(mixes, key=lambda mix: (not mix.is_fixed, mix.mean_bytes))}


def _panel(fitted: FittedRouter, model: Point, counts: Sequence[int], start: StartConditions, link_bps: float) -> Panel:
    mixes = _frames(fitted, start)
    ports = model.ports
    current = (start.frames or model.frame_mix or FrameMix.fixed(round(model.frame_bytes))).name
    cores = start.cores or model.cores
    links = [f"{bps / 1e9:.12g} Gbit/s" for bps in sorted({*LINKS_BPS, link_bps})]
    flows = sorted({1, 2, 4, 8, 16, 32, 64, 128, *(len(even_flows(count, ports).flows) for count in counts)})
    controls: tuple[Control, ...] = (
        placed("cores", "cores", list(counts), cores),
        placed("frame", "frames", list(mixes), current),
        placed("flows", "flows", flows, len(even_flows(cores, ports).flows)),
        placed("arrivals", "arrivals", list(_ARRIVALS), "even gaps"),
        placed("link", "link", links, f"{link_bps / 1e9:.12g} Gbit/s"),
        placed("queue", "queue", [f"{count} frames" for count in QUEUES], "512 frames"),
    )

    def lower(settings: Mapping[str, Plain]) -> dict[str, Any]:
        mix = mixes[str(settings["frame"])]
        router = fitted.router_model(
            int(settings["cores"]),
            mix.mean_bytes,
            link_bps=parse_bit_rate_bps(str(settings["link"])),
            ports=ports,
            queue_frames=int(str(settings["queue"]).split()[0]),
            nic_cap_pps=model.nic_cap_pps,
        )
        load = OfferedLoad(
            rate_pps=1.0,
            frames=mix,
            flows=FlowSet.crafted(int(settings["flows"]), ports=ports),
            arrivals=_ARRIVALS[str(settings["arrivals"])],
        )
        return lowered(router, load)

    return make_panel(lower, controls)


_ARRIVALS = {"even gaps": Arrivals.cbr(), "Poisson": Arrivals.poisson()}


def _forecast(
    fitted: FittedRouter, model: Point, counts: Sequence[int], start: StartConditions, held_out: Sequence[Point]
) -> Forecast:
    mixes = _frames(fitted, start)
    conditions = [
        replace(model, frame_bytes=mix.mean_bytes, frame_mix=None if mix.is_fixed else mix) for mix in mixes.values()
    ]
    evidence = [Evidence.of(fitted, frames, held_out) for frames in conditions]
    open_links = replace(model, link_bps=_NO_LINK_BPS, throughput_pps=math.nan, calibrate=False)
    forecast_points = [
        replace(at_cores(open_links, count), frame_bytes=mix.mean_bytes, frame_mix=None if mix.is_fixed else mix)
        for count in counts
        for mix in mixes.values()
    ]
    quantiles = fitted.quantiles_pps(forecast_points, _PROBABILITIES)
    quantile_table = np.reshape(quantiles, (len(counts), len(mixes), len(_PROBABILITIES)))
    tails = np.reshape(fitted.interval_tails(forecast_points), (len(counts), len(mixes)))
    ends = [(prediction.low_pps, prediction.high_pps) for prediction in fitted.predict(forecast_points)]
    end_table = np.reshape(ends, (len(counts), len(mixes), 2))
    contradictions = fitted.contradictions[:1]
    return Forecast(
        cores=tuple(counts),
        frames=tuple(mixes),
        quantiles_pps=tuple(
            tuple(
                (math.nan,) * len(_PROBABILITIES)
                if contradictions
                else rows.quantiles_pps(count, [float(rate) for rate in predicted], _PROBABILITIES)
                for rows, predicted in zip(evidence, by_frames, strict=True)
            )
            for count, by_frames in zip(counts, quantile_table, strict=True)
        ),
        ends_pps=tuple(
            tuple(
                (math.nan, math.nan)
                if contradictions
                else rows.quantiles_pps(count, [float(end) for end in both], (tail, tail + CONFIDENCE_RATIO))
                for rows, both, tail in zip(evidence, by_frames, by_tails, strict=True)
            )
            for count, by_frames, by_tails in zip(counts, end_table, tails.tolist(), strict=True)
        ),
        unknown=tuple(dict.fromkeys((*contradictions, *(remark for rows in evidence for remark in rows.remarks)))),
    )
