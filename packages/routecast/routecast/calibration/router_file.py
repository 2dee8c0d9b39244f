"""A calibrated router as a router file with the predictions of the calibration.

The service time of the file is that of one core. Its contention is a mixture of the laws with the weights of the point
prediction; each law has the draw of its posterior that is nearest to the prediction of the law. The ``discrepancy`` is
the ratio of the calibration's prediction to the mixture at each number of cores, because measured routers differ from
every law (:mod:`routecast.calibration._discrepancy`). A warning names the differences that remain.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from routecast.calibration.fitted import FittedRouter, sparse_counts
from routecast.calibration.forward import DEVICE_SHAPES, NIC_SHAPE, law_values
from routecast.contention import mixed_factors
from routecast.evaluate.points import Point
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity import format_ratio, parse_cost
from routecast.quantity.toml_file import toml_string
from routecast.version import VERSION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from routecast.calibration.latency import Bursts, MeasuredLatency

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["RouterFile", "router_document", "router_file"]

_DIGITS = 8
_TOLERANCE_RATIO = 0.005
"""Largest relative difference of predictions without a warning."""
_NO_LINK_BPS, _NO_CAP_PPS = 1e15, 1e15
_MAX_EVALUATED = 128
"""Up to this number of cores all are predicted; of more a sample, with the times between them interpolated."""
_OVERLOAD_FACTOR = 2.0
_MAX_FLOWS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterFile:
    """The text of a router file, and warnings of its differences from the calibration."""

    text: str
    warnings: tuple[str, ...]


def router_file(fitted: FittedRouter, points: Sequence[Point] = (), *, source: str, today: date) -> RouterFile:
    """Write a calibrated router as a router file.

    ``points``: conditions of the comparison with the calibration, measured or with a rate of NaN. The file is valid up
    to their largest number of cores; ``source``: origin of the points.
    """
    points = [fitted.caps.applied(point) for point in points]
    all_points = list({point.conditions: point for point in (*points, *fitted.points)}.values())
    first = fitted.points[0]
    link_bps, ports, cap_pps = (getattr(fitted.machine, name) for name in ("link_bps", "ports", "nic_cap_pps"))
    cores = max(point.working_cores for point in fitted.points)
    max_cores = max(point.cores for point in all_points)
    model = router_document(fitted, cores, max_cores=max_cores)
    timing = _timing(fitted, points, model, cores)
    contention = model.pop("contention")
    frames = first.frame_mix.name if first.frame_mix else f"{round(first.frame_bytes)} B"
    overload = replace(first, cores=cores, flows=None, link_bps=link_bps, ports=ports, nic_cap_pps=cap_pps)
    offered_pps = _offered_pps(overload, fitted.predict([overload])[0].throughput_pps)
    load = {"rate": f"{_rounded(offered_pps / 1e6)!r} Mpps", "frames": frames, "flows": {"count": _flows(overload)}}
    if timing is not None and {point.latency.arrivals for point in timing[0].points if point.latency} == {"poisson"}:
        load["arrivals"] = {"kind": "poisson"}
    document = {**model, "contention": contention, "load": load}
    warnings = [*_differences(document, fitted, all_points), *_omissions(link_bps, all_points)]
    lines = [
        *_header(fitted, points, source, today, max_cores),
        *_lateness(timing),
        *(f"# Limitation: {warning}." for warning in warnings),
        "",
        *_toml(model),
        "",
        "[contention]",
        *_toml({key: entry for key, entry in contention.items() if key != "mixture"}),
        *(line for law in contention.get("mixture", ()) for line in ("", "[[contention.mixture]]", *_toml(law))),
        "",
        "[load]",
        *_toml(load),
    ]
    return RouterFile(text="\n".join(lines) + "\n", warnings=tuple(warnings))


def router_document(
    fitted: FittedRouter, cores: int, frames: FrameMix | None = None, *, max_cores: int | None = None
) -> dict[str, Any]:
    """Return the calibrated router with ``cores`` cores as the content of a router file without a load.

    Links, ports and cards are those of the table, and its caps that nobody stated. The service time has the least
    relative errors over the frames of the table, or is exact for ``frames``. The contention is the calibration's up to
    ``max_cores`` cores, by default ``cores`` or the most of the table; beyond them the laws go on.
    """
    machine = fitted.machine
    core_limited = replace(machine, link_bps=_NO_LINK_BPS, nic_cap_pps=_NO_CAP_PPS)
    sizes = sorted({point.frame_bytes for point in fitted.points}) if frames is None else [frames.mean_bytes]
    most = max_cores or max(cores, *(point.cores for point in fitted.points))
    seconds = _core_seconds(fitted, core_limited, sizes, most)
    per_packet_s, per_byte_s = _service_line(fitted, sizes, seconds[:, 0])
    factors = np.exp(np.mean(np.log(seconds / seconds[:, :1]), axis=0))
    return {
        "builder": "multicore",
        "name": f"{fitted.series or 'calibrated router'}, {cores} cores",
        "cores": cores,
        "ports": machine.ports,
        "link": f"{(machine.link_bps or _NO_LINK_BPS) / 1e9:.10g} Gbit/s",
        **_nic_cap(fitted, machine.nic_cap_pps),
        "service": {
            "per_packet": f"{_rounded(per_packet_s * 1e9)!r} ns",
            "per_byte": f"{_rounded(per_byte_s * 1e9)!r} ns/B",
        },
        "contention": _mixture(fitted, factors, fitted.points[0].frame_bytes if frames is None else sizes[0]),
    }


def _core_seconds(fitted: FittedRouter, core_limited: Point, sizes: Sequence[float], max_cores: int) -> Floats:
    """Return the seconds that one of 1, 2, … busy cores takes for a frame of each size, (sizes, cores).

    They include the costs of polling further queues, of other cores' rings and of queues that few cores serve.
    """
    counts = list(range(1, max_cores + 1)) if max_cores <= _MAX_EVALUATED else sparse_counts(max_cores)
    core_points = [replace(core_limited, cores=k, frame_bytes=size) for size in sizes for k in counts]
    seconds = [prediction.point.cores / prediction.throughput_pps for prediction in fitted.predict(core_points)]
    by_size = np.log(np.array(seconds).reshape(len(sizes), len(counts)))
    seconds_by_size: Floats = np.exp(
        np.stack([np.interp(np.arange(1, max_cores + 1), counts, logs) for logs in by_size])
    )
    return seconds_by_size


def _service_line(fitted: FittedRouter, sizes: Sequence[float], seconds: Floats) -> tuple[float, float]:
    """Return the seconds per frame and per byte with the smallest relative errors of the given times of frames."""
    per_packet_s, per_byte_s = fitted.parameters["T_c"].value, fitted.parameters["T_d"].value
    if len(sizes) > 1:
        rows = np.stack([1.0 / seconds, np.array(sizes) / seconds], axis=1)
        per_packet_s, per_byte_s = map(float, np.linalg.lstsq(rows, np.ones(len(sizes)), rcond=None)[0])
        if per_byte_s < 0.0:
            per_packet_s, per_byte_s = 1.0, 0.0
        elif per_packet_s < 0.0:
            per_packet_s, per_byte_s = 0.0, 1.0
    scale = float(np.exp(np.mean(np.log(seconds) - np.log([per_packet_s + per_byte_s * size for size in sizes]))))
    return per_packet_s * scale, per_byte_s * scale


def _mixture(fitted: FittedRouter, factors: Floats, frame_bytes: float) -> dict[str, Any]:
    """Return the laws in the notation of router files, and the discrepancy of ``factors`` from their mixture."""
    k = np.arange(1.0, len(factors) + 1.0)
    mixture, parts = [], []
    for fitted_law, weight in zip(fitted.fitted, fitted.typical_weights, strict=True):
        if weight <= 0.0:
            continue
        law = fitted_law.law
        draws = law_values(law, fitted_law.posterior.samples[1:])
        rates = np.median(fitted.log_core_rates(fitted_law, k, frame_bytes), axis=0)
        curves = np.log(np.broadcast_to(law.growth(k[None], draws) / k, (len(draws), len(k))))
        nearest = draws[int(np.argmin(((curves - rates + rates[0]) ** 2).sum(axis=1)))]
        values = {
            shape.name: _rounded(min(max(value, shape.minimum), shape.maximum))
            for shape, value in zip(law.shapes, nearest, strict=True)
        }
        mixture.append({"law": law.name, "weight": _rounded(weight), **values})
        parts.append((_rounded(weight), law.name, tuple(values.values())))
    discrepancy = factors / np.array(mixed_factors(tuple(parts), len(factors)))
    laws: dict[str, Any] = {"mixture": mixture}
    if len(mixture) == 1:
        laws = {key: entry for key, entry in mixture[0].items() if key != "weight"}
    return {"discrepancy": [_rounded(factor) for factor in discrepancy], **laws}


def _nic_cap(fitted: FittedRouter, nominal_pps: float | None) -> dict[str, str]:
    """Return the calibrated packet rate of network cards, if the nominal one is known."""
    if nominal_pps is None:
        return {}
    column = DEVICE_SHAPES.index(NIC_SHAPE) - len(DEVICE_SHAPES)
    medians = [float(np.median(fitted_law.posterior.samples[1:, column])) for fitted_law in fitted.fitted]
    factor = math.exp(float(np.average(medians, weights=fitted.typical_weights)))
    return {"nic_cap": f"{_rounded(nominal_pps * factor / 1e6)!r} Mpps"}


def _flows(point: Point) -> int:
    """Return the number of crafted flows of a point, or a number that loads cores and ports evenly."""
    if point.flows is not None and point.flows <= point.cores:
        return point.flows
    even_flows = math.lcm(point.cores, point.ports)
    return even_flows if even_flows <= _MAX_FLOWS else point.cores


def _offered_pps(point: Point, throughput_pps: float) -> float:
    return point.line_rate_pps if math.isfinite(point.line_rate_pps) else _OVERLOAD_FACTOR * throughput_pps


def _differences(document: dict[str, Any], fitted: FittedRouter, points: Sequence[Point]) -> Iterator[str]:
    """Yield a warning if the closed form of the file differs from the calibration at points."""
    differences = []
    for prediction in fitted.predict(points):
        solved_pps = _solved_pps(document, fitted, prediction.point, prediction.throughput_pps)
        differences.append((solved_pps / prediction.throughput_pps - 1.0, prediction, solved_pps))
    count = sum(abs(ratio) > _TOLERANCE_RATIO for ratio, _, _ in differences)
    if count:
        ratio, prediction, solved_pps = max(differences, key=lambda difference: abs(difference[0]))
        point = prediction.point
        yield (
            f"at {count} of {len(differences)} conditions the file's prediction differs from the calibration's, "
            f"because laws differ between frame sizes or because of buses; the largest difference is "
            f"{100.0 * ratio:+.1f} %, with {point.working_cores} busy cores at {point.frame_bytes:g} B: "
            f"{solved_pps / 1e6:.4g} Mpps instead of {prediction.throughput_pps / 1e6:.4g} Mpps"
        )


def _solved_pps(document: dict[str, Any], fitted: FittedRouter, point: Point, predicted_pps: float) -> float:
    """Return the throughput of the router file at a point, by the closed form."""
    from routecast.evaluate.solve import Solve
    from routecast.router.files import build_router

    model = {key: entry for key, entry in document.items() if key not in {"load", "nic_cap"}}
    model |= {"cores": point.cores, "ports": point.ports, "link": f"{(point.link_bps or _NO_LINK_BPS) / 1e9!r} Gbit/s"}
    router, _ = build_router(model | _nic_cap(fitted, point.nic_cap_pps))
    frames = point.frame_mix or FrameMix.fixed(round(point.frame_bytes))
    flows = FlowSet.crafted(_flows(point), ports=point.ports)
    load = OfferedLoad(rate_pps=_offered_pps(point, predicted_pps), frames=frames, flows=flows)
    return Solve(model=router).trial(load, 1.0).forwarded_pps


def _omissions(link_bps: float | None, points: Sequence[Point]) -> Iterator[str]:
    """Yield a warning of each property of the measured points that the file cannot hold."""
    if link_bps is None:
        yield "no link is known to limit, so the file has a link without a limit"
    measured = [point for point in points if math.isfinite(point.throughput_pps)]
    for name, noun in (("link_bps", "links"), ("ports", "numbers of ports"), ("nic_cap_pps", "packet rates of cards")):
        if len({getattr(point, name) for point in measured}) > 1:
            yield f"the points have several {noun}, and the file has the most frequent: change it there"
    if len({point.layout for point in measured}) > 1:
        yield "the points have several layouts of queues, and the file has the service time of the most frequent"


def _header(fitted: FittedRouter, points: Sequence[Point], source: str, today: date, max_cores: int) -> Iterator[str]:
    """Yield the comment on the file's source and precision."""
    calibrating = {point.conditions for point in fitted.points}
    measured = [point for point in points if math.isfinite(point.throughput_pps)] or list(fitted.points)
    errors: dict[str, list[float]] = {"calibrating": [], "held-out": []}
    for prediction in fitted.predict(measured):
        role = "calibrating" if prediction.point.conditions in calibrating else "held-out"
        errors[role].append(abs(prediction.error_ratio))
    medians = [
        f"{format_ratio(median(ratios), 2)} at {len(ratios)} {role} point{'s' if len(ratios) > 1 else ''}"
        for role, ratios in errors.items()
        if ratios
    ]
    sizes = sorted({point.frame_bytes for point in fitted.points})
    counts = sorted({point.working_cores for point in fitted.points})
    series = f", series {toml_string(fitted.series)}" if fitted.series else ""
    yield f"# Calibrated by routecast {VERSION} on {today.isoformat()}."
    yield f"# Source of the points: {toml_string(source)}{series}."
    yield (
        f"# Calibrating points: {len(fitted.points)}, with {', '.join(map(str, counts))} busy cores and frames of "
        f"{', '.join(f'{size:g}' for size in sizes)} B."
    )
    yield "# Fitted: a core's time per frame and per byte, and the contention of cores, averaged over these laws:"
    for fitted_law, weight in zip(fitted.fitted, fitted.typical_weights, strict=True):
        if weight > 0.0:
            yield f"#   {100.0 * weight:5.1f} %  {fitted_law.law.name}: {fitted_law.law.formula}"
    yield f"# Median error of the rate: {', '.join(medians)}."
    yield from (f"# Warning: {warning}." for warning in fitted.warnings)
    yield f"# The calibration gives the discrepancy for 1 to {max_cores} busy cores; more cores have the last factor."
    yield "# The file has only the point prediction; `routecast validate` prints the 95 % intervals."


def _timing(
    fitted: FittedRouter, points: Sequence[Point], model: dict[str, Any], cores: int
) -> tuple[MeasuredLatency, Bursts] | None:
    """Make a document as late as the latency rows of the points say; return curve and bursts, if there are any."""
    from routecast.calibration.latency import bursts_of, measured_latency

    measured = next(
        (curve for name in ("p50", "mean") if (curve := measured_latency(fitted, points, fitted.points[0], name))), None
    )
    if measured is None:
        return None
    measured = measured.with_cores(cores)
    of_packet_s = parse_cost(model["service"]["per_packet"])[1]
    bursts = bursts_of(measured, most_ratio=0.9 * of_packet_s / fitted.frame_s)
    per_packet_s = of_packet_s - bursts.per_batch_s / bursts.batch_frames
    model["service"] |= {"per_packet": f"{_rounded(per_packet_s * 1e9)!r} ns"}
    if bursts.per_batch_s > 0.0:
        model["service"] |= {"per_batch": f"{_rounded(bursts.per_batch_s * 1e9)!r} ns"}
        model |= {"activation": {"kind": "polling"}, "batch": f"{bursts.batch_frames} frames"}
    if bursts.path_s > 0.0:
        model["path"] = f"{_rounded(bursts.path_s * 1e6)!r} us"
    model["queue"] = f"{bursts.queue_frames} frames"
    return measured, bursts


def _lateness(timing: tuple[MeasuredLatency, Bursts] | None) -> Iterator[str]:
    """Yield the comment on the file's latency."""
    if timing is None:
        yield (
            "# Latency: not measured. The service time is calibrated from throughputs; a latency of this file is that "
            "of a model with assumed queues and arrivals."
        )
        return
    measured, bursts = timing
    loads = ", ".join(f"{row.load_ratio:.0%}" for row in measured.rows)
    middle = "mean" if measured.statistic == "mean" else "median"
    yield (
        f"# Latency: the {middle} follows the curve of the rows at {loads} of the capacity "
        "(bursts, a way outside the cores, a ring); tails are the model's own."
    )
    if measured.batch_frames is not None:
        yield (
            f"# The batch of {bursts.batch_frames} frames is the table's; with it the median is "
            f"{100.0 * bursts.worst_ratio:.2g} % or less from the curve at 30 to 70 % of the capacity."
        )
    if measured.highest_load_ratio < 1.0:
        yield "# The ring is that of other routers: no row is in overload."


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _toml(table: dict[str, Any]) -> list[str]:
    return [f"{key} = {_inline(entry)}" for key, entry in table.items()]


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(entry)}" for key, entry in value.items()) + " }"
    return toml_string(value) if isinstance(value, str) else json.dumps(value)
