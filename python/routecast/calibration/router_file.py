"""A calibrated router as a router file, which predicts what the calibration predicts.

The service time of the file is that of one core. Its contention is a mixture of the laws with the weights of the point
prediction; each law has the draw of its posterior that is nearest to the prediction of the law. Measured routers stray
from every law (:mod:`routecast.calibration._discrepancy`): what the calibration predicts beyond the mixture, at each
whole number of cores, is its ``discrepancy``. So the file forwards what was predicted. Where it cannot, a warning says
so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import median, mode
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from routecast import __version__
from routecast.calibration.fitted import FittedRouter
from routecast.calibration.forward import DEVICE_SHAPES, NIC_SHAPE, law_values
from routecast.contention import mixed_factors
from routecast.evaluate.points import Point
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity.toml_file import toml_string

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["RouterFile", "router_file"]

_DIGITS = 8
_SAME = 0.005
"""Half a percent apart is the same prediction."""
_NO_LINK_BPS = 1e15
_OVERLOAD = 2.0
_MOST_FLOWS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterFile:
    """The text of a router file, and remarks on what it lacks of the calibration."""

    text: str
    warnings: tuple[str, ...]


def router_file(fitted: FittedRouter, points: Sequence[Point] = (), *, source: str, today: date) -> RouterFile:
    """Write a calibrated router as a router file.

    ``points``: conditions at which the file is compared with the calibration: measured points of the series, and
    conditions to predict, whose rate is NaN. The file holds for as many cores as the most of them have; ``source``:
    where the points are from.
    """
    everywhere = list({point.conditions: point for point in (*points, *fitted.points)}.values())
    first = fitted.points[0]
    links, ports, caps, layouts = (
        mode(getattr(point, name) for point in fitted.points) for name in ("link_bps", "ports", "nic_cap_pps", "layout")
    )
    usual = replace(first, link_bps=None, nic_cap_pps=None, ports=ports, layout=layouts, flows=None)
    sizes = sorted({point.frame_bytes for point in fitted.points})
    cores = max(point.working_cores for point in fitted.points)
    most = max(point.cores for point in everywhere)
    seconds = _core_seconds(fitted, usual, sizes, most)
    per_packet_s, per_byte_s = _line(fitted, sizes, seconds[:, 0])
    factors = np.exp(np.mean(np.log(seconds / seconds[:, :1]), axis=0))
    contention = _mixture(fitted, factors, first.frame_bytes)
    model = {
        "builder": "multicore",
        "name": f"{fitted.series or 'calibrated router'}, {cores} cores",
        "cores": cores,
        "ports": ports,
        "link": f"{(links or _NO_LINK_BPS) / 1e9:.10g} Gbit/s",
        **_nic_cap(fitted, caps),
        "service": {"per_packet": f"{_number(per_packet_s * 1e9)} ns", "per_byte": f"{_number(per_byte_s * 1e9)} ns/B"},
    }
    frames = first.frame_mix.name if first.frame_mix else f"{round(first.frame_bytes)} B"
    overload = replace(first, cores=cores, flows=None, link_bps=links, ports=ports, nic_cap_pps=caps)
    offered_pps = _offered_pps(overload, fitted.predict([overload])[0].throughput_pps)
    load = {"rate": f"{_number(offered_pps / 1e6)} Mpps", "frames": frames, "flows": {"count": _flows(overload)}}
    document = {**model, "contention": contention, "load": load}
    warnings = [*_apart(document, fitted, everywhere), *_left_out(links, everywhere)]
    lines = [
        *_head(fitted, points, source, today, most),
        *(f"# Not said here: {line}." for line in warnings),
        "",
        *_toml(model),
        "",
        *_toml({"contention": {key: entry for key, entry in contention.items() if key != "mixture"}}),
        *(line for each in contention.get("mixture", ()) for line in ("", "[[contention.mixture]]", *_toml(each))),
        "",
        *_toml({"load": load}),
    ]
    return RouterFile(text="\n".join(lines) + "\n", warnings=tuple(warnings))


def _core_seconds(fitted: FittedRouter, usual: Point, sizes: Sequence[float], most: int) -> Floats:
    """Seconds that one of 1, 2, … busy cores takes for a frame of each size where nothing else limits, (sizes, cores).

    The cost of polling further queues, of rings of other cores and of queues that few cores serve is in it.
    """
    core_points = [replace(usual, cores=k, frame_bytes=size) for size in sizes for k in range(1, most + 1)]
    made = [each.point.cores / each.throughput_pps for each in fitted.predict(core_points)]
    return np.array(made).reshape(len(sizes), most)


def _line(fitted: FittedRouter, sizes: Sequence[float], seconds: Floats) -> tuple[float, float]:
    """Time of a frame and of a byte that come nearest the time of a frame of each size, relatively."""
    known = fitted.parameters
    per_packet_s, per_byte_s = known["T_c"].value, known["T_d"].value
    if len(sizes) > 1:
        size = np.array(sizes)
        rows = np.stack([1.0 / seconds, size / seconds], axis=1)
        per_packet_s, per_byte_s = (
            float(coefficient) for coefficient in np.linalg.lstsq(rows, np.ones(len(size)), rcond=None)[0]
        )
        if per_byte_s < 0.0:
            per_packet_s, per_byte_s = 1.0, 0.0
        elif per_packet_s < 0.0:
            per_packet_s, per_byte_s = 0.0, 1.0
    scale = float(np.exp(np.mean(np.log(seconds) - np.log([per_packet_s + per_byte_s * size for size in sizes]))))
    return per_packet_s * scale, per_byte_s * scale


def _mixture(fitted: FittedRouter, factors: Floats, frame_bytes: float) -> dict[str, Any]:
    """Return the laws in the notation of router files, and the factors on top that complete them."""
    k = np.arange(1.0, len(factors) + 1.0)
    mixture = []
    for each, weight in zip(fitted.fitted, fitted.typical_weights, strict=True):
        if weight <= 0.0:
            continue
        draws = law_values(each.law, each.posterior.samples[1:])
        rates = np.median(fitted.log_core_rates(each, k, frame_bytes), axis=0)
        curves = np.log(np.broadcast_to(each.law.growth(k[None], draws) / k, (len(draws), len(k))))
        nearest = int(np.argmin(((curves - rates + rates[0]) ** 2).sum(axis=1)))
        values = {
            shape.name: _rounded(min(max(value, shape.minimum), shape.maximum))
            for shape, value in zip(each.law.shapes, draws[nearest], strict=True)
        }
        mixture.append({"law": each.law.name, "weight": _rounded(weight), **values})
    parts = tuple((component["weight"], component["law"], tuple(list(component.values())[2:])) for component in mixture)
    strays = factors / np.array(mixed_factors(parts, len(factors)))
    laws: dict[str, Any] = {"mixture": mixture}
    if len(mixture) == 1:
        laws = {key: entry for key, entry in mixture[0].items() if key != "weight"}
    return {"discrepancy": [_rounded(stray) for stray in strays], **laws}


def _nic_cap(fitted: FittedRouter, nominal_pps: float | None) -> dict[str, str]:
    """Return the packet rate of network cards, from its nominal value and from the points."""
    if nominal_pps is None:
        return {}
    column = DEVICE_SHAPES.index(NIC_SHAPE) - len(DEVICE_SHAPES)
    medians = [float(np.median(each.posterior.samples[1:, column])) for each in fitted.fitted]
    factor = math.exp(float(np.average(medians, weights=fitted.typical_weights)))
    return {"nic_cap": f"{_number(nominal_pps * factor / 1e6)} Mpps"}


def _flows(point: Point) -> int:
    """Crafted flows that load the cores and ports of a point as measured, evenly where they were many."""
    if point.flows is not None and point.flows <= point.cores:
        return point.flows
    evenly = math.lcm(point.cores, point.ports)
    return evenly if evenly <= _MOST_FLOWS else point.cores


def _offered_pps(point: Point, most_pps: float) -> float:
    return point.line_rate_pps if math.isfinite(point.line_rate_pps) else _OVERLOAD * most_pps


def _apart(document: dict[str, Any], fitted: FittedRouter, points: Sequence[Point]) -> Iterator[str]:
    """Return remarks on points at which the closed form of the file differs from the calibration."""
    distances = []
    for made in fitted.predict(points):
        point, pps = made.point, made.throughput_pps
        solved = _solved_pps(document, fitted, point, pps)
        distances.append((solved / pps - 1.0, point, solved, pps))
    far = sorted(
        (distance for distance in distances if abs(distance[0]) > _SAME), key=lambda distance: -abs(distance[0])
    )
    if far:
        ratio, point, solved, pps = far[0]
        where = f"with {point.working_cores} busy cores at {point.frame_bytes:g} B"
        yield (
            f"at {len(far)} of {len(distances)} conditions the file predicts otherwise than the calibration, "
            f"because of laws that differ from frame size to frame size, or of buses; "
            f"at most by {100.0 * ratio:+.1f} %, {where}: "
            f"{solved / 1e6:.4g} Mpps, not {pps / 1e6:.4g} Mpps"
        )


def _solved_pps(document: dict[str, Any], fitted: FittedRouter, point: Point, most_pps: float) -> float:
    """Return the throughput of the router file at a point, by the closed form."""
    from routecast.evaluate.solve import Solve
    from routecast.router.files import build_router

    own = {key: entry for key, entry in document.items() if key not in {"load", "nic_cap"}}
    own |= {"cores": point.cores, "ports": point.ports, "link": f"{(point.link_bps or _NO_LINK_BPS) / 1e9!r} Gbit/s"}
    model, _ = build_router(own | _nic_cap(fitted, point.nic_cap_pps))
    frames = point.frame_mix or FrameMix.fixed(round(point.frame_bytes))
    flows = FlowSet.crafted(_flows(point), ports=point.ports)
    load = OfferedLoad(rate_pps=_offered_pps(point, most_pps), frames=frames, flows=flows)
    return Solve(model=model).trial(load, 1.0).forwarded_pps


def _left_out(link_bps: float | None, points: Sequence[Point]) -> Iterator[str]:
    if link_bps is None:
        yield "no link was known to limit, so that of the file is faster than any"
    measured = [point for point in points if math.isfinite(point.throughput_pps)]
    for name, what in (("link_bps", "links"), ("ports", "ports"), ("nic_cap_pps", "packet rates of cards")):
        if len({getattr(point, name) for point in measured}) > 1:
            yield f"the points have several {what}, the file one: change it there"
    if len({point.layout for point in measured}) > 1:
        yield "the points have queues laid out in several ways, the file has the service time of the commonest"


def _head(fitted: FittedRouter, points: Sequence[Point], source: str, today: date, most: int) -> Iterator[str]:
    """Return the comment on the file's source and precision."""
    calibrating = {point.conditions for point in fitted.points}
    measured = [point for point in points if math.isfinite(point.throughput_pps)] or list(fitted.points)
    errors: dict[bool, list[float]] = {True: [], False: []}
    for made in fitted.predict(measured):
        errors[made.point.conditions in calibrating].append(abs(made.error_ratio))
    sizes = sorted({point.frame_bytes for point in fitted.points})
    counts = sorted({point.working_cores for point in fitted.points})
    lines = [
        f"at {len(each)} {what} {100.0 * median(each):.2g} %"
        for each, what in ((errors[True], "points that calibrated"), (errors[False], "points held out"))
        if each
    ]
    yield f"# Calibrated by routecast {__version__} on {today.isoformat()}."
    yield f"# Source of the points: {toml_string(source)}" + (
        f", series {toml_string(fitted.series)}." if fitted.series else "."
    )
    yield (
        f"# Points that calibrated: {len(fitted.points)}, with {', '.join(map(str, counts))} busy cores and frames of "
        f"{', '.join(f'{size:g}' for size in sizes)} B."
    )
    yield "# Fitted: time per frame and per byte of one core, and how cores slow each other, averaged over these laws:"
    weights = zip(fitted.fitted, fitted.typical_weights, strict=True)
    yield from (
        f"#   {100.0 * weight:5.1f} %  {each.law.name}: {each.law.formula}" for each, weight in weights if weight > 0.0
    )
    yield f"# Median error of the rate: {', '.join(lines)}."
    yield from (f"# Mind: {warning}." for warning in fitted.warnings)
    yield f"# The factors of discrepancy are the calibration's for 1 to {most} busy cores; beyond, the last goes on."
    yield "# The file has the point prediction alone: 95 % intervals are in what `routecast validate` prints."


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _number(value: float) -> str:
    return f"{_rounded(value)!r}"


def _toml(table: dict[str, Any]) -> Iterator[str]:
    """Write a table: its values, tables in a line, then tables of their own."""
    for key, entry in table.items():
        if isinstance(entry, dict) and key in {"contention", "load"}:
            yield f"[{key}]"
            yield from _toml(entry)
        else:
            yield f"{key} = {_inline(entry)}"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(entry)}" for key, entry in value.items()) + " }"
    return toml_string(value) if isinstance(value, str) else json.dumps(value)
