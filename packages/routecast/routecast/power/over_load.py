"""Watts of power models over load, as tables and as plain data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from routecast.errors import QuantityProblem
from routecast.evaluate.plain import plain
from routecast.load.frames import FrameMix
from routecast.power._platforms import read_platforms
from routecast.power.files import power_model_document
from routecast.power.form import PUBLISHED_FORM, greatest_deviation
from routecast.power.load_fit import monotone_of
from routecast.power.model import OperatingPoint, PowerModel
from routecast.power.port import PASSED_PORTS, PortClass, PortPower
from routecast.power.software_router import SoftwareRouterPower
from routecast.power.views import (
    device_table,
    form_table,
    load_table,
    platforms_table,
    ports_table,
    router_table,
    terms_table,
)
from routecast.show.tables import Table

__all__ = ["PowerView", "form_over_load", "model_over_load", "platforms_view"]

_SPEED = re.compile(r"(\d+(?:\.\d+)?)([MG])")


@dataclass(frozen=True, slots=True)
class PowerView:
    """A power model as plain data and as tables."""

    document: object
    tables: tuple[Table, ...]


def form_over_load(loads: list[float]) -> PowerView:
    """Return the published form function (Bolla et al. 2009) and the monotone form function nearest to it.

    ``loads`` are normalised throughputs, 0..1.
    """
    monotone = monotone_of()
    gap, load_ratio = greatest_deviation(PUBLISHED_FORM, monotone)
    document = {
        "source": PUBLISHED_FORM.source,
        "coefficients": list(PUBLISHED_FORM.coefficients),
        "load_ratio": loads,
        "published": [PUBLISHED_FORM.at(t) for t in loads],
        "monotone": [monotone.at(t) for t in loads],
        "monotone_knots": list(monotone.knots),
        "monotone_coefficients": list(monotone.coefficients),
        "greatest_deviation": gap,
        "greatest_deviation_at": load_ratio,
    }
    return PowerView(document, (form_table(loads, PUBLISHED_FORM, monotone),))


def platforms_view() -> PowerView:
    """Return the machines of Bolla et al. (2009)."""
    platforms = read_platforms()
    return PowerView([plain(platform) for platform in platforms], (platforms_table(platforms),))


def model_over_load(model: PowerModel, name: str, loads: list[float], frame: str | None) -> PowerView:
    """Return a power model over load ratios, 0..1; ``frame`` is the frame size or mix for a model of ports.

    Raises QuantityProblem: a frame size is given for a model of another kind.
    """
    if isinstance(model, PortPower):
        return _ports_over_load(model, loads, frame)
    if frame is not None:
        raise QuantityProblem("", "--frame is for models of ports: the watts of other models depend on the load alone")
    if isinstance(model, SoftwareRouterPower):
        return _router_over_load(model, loads)
    watts = [model.power_w(OperatingPoint(load_ratio=load)) for load in loads]
    document = {"scope": model.scope, "load_ratio": loads, "power_w": watts}
    return PowerView(document, (load_table(model, name, loads, watts),))


def _router_over_load(model: SoftwareRouterPower, loads: Sequence[float]) -> PowerView:
    points = []
    for state in model.states:
        for cores in range(1, len(model.gains) + 1):
            most_pps = cores * model.share_pps(cores, state.frequency_hz)
            for load in loads:
                point = OperatingPoint(load_ratio=load, frequency_hz=state.frequency_hz, cores=cores)
                points.append((state.frequency_hz, cores, load, load * most_pps, model.power_w(point)))
    keys = ("frequency_hz", "cores", "load_ratio", "rate_pps", "power_w")
    document = {"scope": model.scope, "points": [dict(zip(keys, point, strict=True)) for point in points]}
    return PowerView(document, (router_table(model, points),))


def _ports_over_load(model: PortPower, loads: list[float], frame: str | None) -> PowerView:
    """Return the terms of each class of ports and, with a frame size, the watts of a port and the device over load."""
    mix = None if frame is None else FrameMix.parse(frame)
    curves = {} if mix is None else _port_curves(model, loads, mix.mean_bytes)
    device_loads = loads if mix is not None and all(map(_speed_bps, model.equipped)) else [0.0]
    device_w = [_device_w(model, load, mix.mean_bytes if mix else 0.0) for load in device_loads if model.equipped]
    document = power_model_document(model)
    tables = [terms_table(model)]
    if mix is not None:
        document["port_power_w"] = {"load_ratio": loads, **curves}
    if curves:
        tables.append(ports_table(curves, loads, frame or ""))
    if device_w:
        document["device_power_w"] = {"load_ratio": device_loads, "power_w": device_w}
        tables.append(device_table(model, device_loads, device_w, frame))
    return PowerView(document, tuple(tables))


def _port_curves(model: PortPower, loads: list[float], frame_bytes: float) -> dict[str, list[float]]:
    """Return by class the watts of one port that is plugged in, enabled and up, with the load in each direction."""
    return {
        name: [_port_w(ports, load * speed, frame_bytes) for load in loads]
        for name, ports in model.classes.items()
        if (speed := _speed_bps(name))
    }


def _device_w(model: PortPower, load: float, frame_bytes: float) -> float:
    """Return the watts of the equipped device with ``load`` of the line rate both ways at every port that is up."""
    use = {}
    for name, ports in model.equipped.items():
        passed_pps = _passed_pps(load * _speed_bps(name), frame_bytes) * ports.up if load else 0.0
        use[name] = ports.with_traffic(8.0 * frame_bytes * passed_pps, passed_pps)
    return model.use_power_w(use)


def _passed_pps(direction_bps: float, frame_bytes: float) -> float:
    # A link carries 20 bytes of preamble, start delimiter and gap with each frame.
    return PASSED_PORTS * direction_bps / (8.0 * (frame_bytes + 20.0))


def _port_w(ports: PortClass, direction_bps: float, frame_bytes: float) -> float:
    idle_w = (ports.port_w or 0.0) + (ports.trx_in_w or 0.0) + (ports.trx_up_w or 0.0)
    if direction_bps == 0.0:
        return idle_w
    passed_pps = _passed_pps(direction_bps, frame_bytes)
    traffic_w = passed_pps * ((ports.packet_j or 0.0) + 8.0 * frame_bytes * (ports.bit_j or 0.0))
    return idle_w + (ports.offset_w or 0.0) + traffic_w


def _speed_bps(name: str) -> float:
    speed = _SPEED.fullmatch(name.rsplit("/", 1)[-1])
    return float(speed[1]) * (1e9 if speed[2] == "G" else 1e6) if speed else 0.0
