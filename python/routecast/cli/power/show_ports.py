"""``routecast power show`` for network gear: the terms of its ports, and watts of a port over load."""

from __future__ import annotations

import re
from dataclasses import replace

from routecast.cli.console import data, print_json
from routecast.cli.tables import print_table
from routecast.load.frames import FrameMix
from routecast.power.files import power_model_document
from routecast.power.port import PASSED_PORTS, PortClass, PortPower
from routecast.report.tables import Column, Table

__all__ = ["show_ports"]

_SPEED = re.compile(r"(\d+(?:\.\d+)?)([MG])")


def show_ports(model: PortPower, loads: list[float], frame: str | None, *, as_json: bool) -> None:
    """Print the terms of each kind of port and, for a frame size, watts of a port over load."""
    mix = None if frame is None else FrameMix.parse(frame)
    curves = {} if mix is None else _curves(model, loads, mix.mean_bytes)
    at = loads if mix is not None and all(map(_speed_bps, model.equipped)) else [0.0]
    device = [_device_w(model, load, mix.mean_bytes if mix else 0.0) for load in at if model.equipped]
    if as_json:
        document = power_model_document(model)
        if mix is not None:
            document["port_power_w"] = {"load_ratio": loads, **curves}
        if device:
            document["device_power_w"] = {"load_ratio": at, "power_w": device}
        print_json(document)
        return
    console = data()
    print_table(console, _terms(model))
    if curves:
        print_table(console, _over_load(curves, loads, frame or ""))
    if device:
        print_table(console, _of_device(model, at, device, frame))


def _curves(model: PortPower, loads: list[float], frame_bytes: float) -> dict[str, list[float]]:
    """Return watts of one port that is plugged in, on and up, with the load in each direction."""
    return {
        name: [_port_w(ports, load * speed, frame_bytes) for load in loads]
        for name, ports in model.classes.items()
        if (speed := _speed_bps(name))
    }


def _device_w(model: PortPower, load: float, frame_bytes: float) -> float:
    """Return watts of the equipped device with a share of the line rate in each direction of every port that is up."""
    use = {}
    for name, ports in model.equipped.items():
        passed_pps = _passed_pps(load * _speed_bps(name), frame_bytes) * ports.up if load else 0.0
        use[name] = replace(
            ports,
            forwarding=ports.up if load else 0,
            passed_bps=8.0 * frame_bytes * passed_pps,
            passed_pps=passed_pps,
        )
    return model.use_power_w(use)


def _passed_pps(direction_bps: float, frame_bytes: float) -> float:
    # A link at a rate carries the frame and 20 bytes of preamble, delimiter and gap for each.
    return PASSED_PORTS * direction_bps / (8.0 * (frame_bytes + 20.0))


def _port_w(ports: PortClass, direction_bps: float, frame_bytes: float) -> float:
    still = (ports.port_w or 0.0) + (ports.trx_in_w or 0.0) + (ports.trx_up_w or 0.0)
    if direction_bps == 0.0:
        return still
    passed_pps = _passed_pps(direction_bps, frame_bytes)
    moving = passed_pps * ((ports.packet_j or 0.0) + 8.0 * frame_bytes * (ports.bit_j or 0.0))
    return still + (ports.offset_w or 0.0) + moving


def _speed_bps(name: str) -> float:
    found = _SPEED.fullmatch(name.rsplit("/", 1)[-1])
    return float(found[1]) * (1e9 if found[2] == "G" else 1e6) if found else 0.0


def _terms(model: PortPower) -> Table:
    watts = ("P_base", "P_port", "P_trx_in", "P_trx_up", "P_offset")
    return Table(
        name="ports",
        title=model.device,
        caption="P_base once, P_port, P_trx_in, P_trx_up and P_offset per port enabled, plugged in, up and "
        f"forwarding; E_bit and E_pkt per bit and packet at each port it passes. Scope {model.scope}.",
        columns=(
            Column(title="Ports", align="left"),
            *(Column(title=title, unit="W", form=".4g") for title in watts),
            Column(title="E_bit", unit="pJ", form=".4g"),
            Column(title="E_pkt", unit="nJ", form=".4g"),
        ),
        rows=tuple(
            (
                name,
                one.base_w,
                one.port_w,
                one.trx_in_w,
                one.trx_up_w,
                one.offset_w,
                None if one.bit_j is None else one.bit_j * 1e12,
                None if one.packet_j is None else one.packet_j * 1e9,
            )
            for name, one in model.classes.items()
        ),
    )


def _over_load(curves: dict[str, list[float]], loads: list[float], frame: str) -> Table:
    return Table(
        name="port_power",
        title=f"Power of one port over load, frames {frame}",
        caption="Plugged in, on and up, the load in each direction, in percent of the line rate; the device's P_base "
        "comes on top, once.",
        columns=(
            Column(title="Load", unit="%", form=".3g"),
            *(Column(title=name, unit="W", form=".4g") for name in curves),
        ),
        rows=tuple((100.0 * load, *(watts[number] for watts in curves.values())) for number, load in enumerate(loads)),
    )


def _of_device(model: PortPower, loads: list[float], watts: list[float], frame: str | None) -> Table:
    ports = ", ".join(
        f"{one.plugged} x {name} plugged in, {one.enabled} enabled, {one.up} up" for name, one in model.equipped.items()
    )
    traffic = "no traffic" if frame is None else f"frames {frame}"
    return Table(
        name="device_power",
        title=f"Power of {model.device} as equipped, {traffic}",
        caption=f"{ports}. The load in each direction of every port that is up, in percent of its line rate; the mean "
        "P_base of its classes is counted once.",
        columns=(Column(title="Load", unit="%", form=".3g"), Column(title="Power", unit="W", form=".5g")),
        rows=tuple((100.0 * load, power) for load, power in zip(loads, watts, strict=True)),
    )
