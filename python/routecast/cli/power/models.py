"""``routecast power meters`` and ``power read``: which power meters are here, and what they say."""

from __future__ import annotations

import math
import re
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import (
    data,
    print_json,
    print_notes,
    print_table,
    refuse_no_figure_file,
    remark,
    write_figure,
)
from routecast.cli.options import AsJson
from routecast.errors import QuantityProblem
from routecast.load.frames import FrameMix
from routecast.power.files import power_model_document
from routecast.power.port import PASSED_PORTS, PortClass, PortPower, PortsInUse

if TYPE_CHECKING:
    from routecast.errors import ModelProblem
    from routecast.power.fits import DeviceFit
    from routecast.power.load_fit import ErrorSummary, Parameter
    from routecast.power.model import PowerModel
    from routecast.power.software_router import SoftwareRouterPower
    from routecast.testbed.meters import PowerMeter, PowerReading

__all__ = ["EquipOption", "equipped_as_said", "fit", "meters", "read", "show"]


_SHOWN_NOTES = 8


class Model(StrEnum):
    """Laws that can be fitted."""

    FORM = "form"
    MONOTONE = "monotone"
    POLYNOMIAL = "polynomial"
    LINEAR = "linear"
    PIECEWISE = "piecewise"
    PORT = "port"
    ROUTER = "router"


class Between(StrEnum):
    """How a piecewise model runs between its points."""

    SMOOTH = "smooth"
    LINEAR = "linear"


class Form(StrEnum):
    """Form functions of the router's model."""

    PUBLISHED = "published"
    MONOTONE = "monotone"
    POLYNOMIAL = "polynomial"


def fit(
    samples: Annotated[Path, typer.Argument(metavar="SAMPLES", help="Measured watts.", dir_okay=False)],
    *,
    model: Annotated[
        Model | None, typer.Option("--model", help="The law; without it the columns of the file decide.")
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(
            "--points", "--calibrate", metavar="0,10,50,100", help="Loads in percent to fit; the others are predicted."
        ),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="One device of the file.")] = None,
    between: Annotated[
        Between, typer.Option("--between", help="piecewise: shape-preserving cubics, or straight lines.")
    ] = Between.SMOOTH,
    form: Annotated[Form, typer.Option("--form", help="router: the form function.")] = Form.PUBLISHED,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="router: cores of the machine, those that never forward too.")
    ] = None,
    scope: Annotated[str | None, typer.Option("--scope", help="What the watts cover: package, server, wall.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the model: .toml, .json, or .yaml (NetPowerBench, ports).")
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Draw samples and model: .svg.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a power model to measured samples, and state its errors on samples that it was not fitted to.

    A row for each sample has power_w and load_ratio or rate_pps (and frequency_hz, cores, device); a row for each
    server has w_0, w_10, …, w_100; ports have class, plugged, enabled, up, passed_bps, passed_pps, or NetPowerBench's
    device, path, n, mean_w, or they are its power_data.yml.
    """
    from routecast.errors import FileProblem, FitProblem, Problem
    from routecast.power.csv_file import UNNAMED_DEVICE
    from routecast.power.files import file_suffix
    from routecast.power.fits import fit_file, model_for
    from routecast.power.load_fit import ErrorSummary

    if out is not None:
        file_suffix(out)
    refuse_no_figure_file(figure)
    chosen = model.value if model else model_for(samples)
    try:
        fits = fit_file(
            samples,
            chosen,
            points=None if points is None else percents(points),
            device=device,
            interpolation=between.value,
            form=form.value,
            cores=cores,
            scope=scope,
        )
    except FitProblem as problem:
        place = "" if problem.series == UNNAMED_DEVICE else problem.series
        raise FileProblem(str(samples), [Problem(place, problem.message)]) from problem
    unwritten: ModelProblem | None = None
    if out is not None:
        if len(fits) > 1:
            raise FitProblem("", f"the file has {len(fits)} devices: name one with --device to write its model")
        unwritten = _written(fits[0], out, samples)
    if figure is not None:
        from routecast.power.views import fit_figure

        write_figure(fit_figure(chosen, fits), figure)
    together = ErrorSummary.of([error for one in fits for error in one.error_ratio])
    if as_json:
        print_json(
            {
                "model": chosen,
                "errors": _errors(together),
                "fitted_errors": _errors(ErrorSummary.of([error for one in fits for error in one.fitted_error_ratio])),
                "devices": {one.device: _document(one) for one in fits},
            }
        )
        if unwritten is not None:
            raise unwritten
        return
    from routecast.power.views import error_table, parameter_table

    console = data()
    if len(fits) == 1:
        print_table(console, parameter_table(fits[0]))
    else:
        remark(f"{len(fits)} devices: --device NAME shows the parameters of one, --json of all")
    print_table(console, error_table(chosen, fits))
    notes = [f"{one.device}: {note}" for one in fits for note in one.notes]
    for note in notes if len(notes) <= _SHOWN_NOTES else ():
        remark(note)
    if len(notes) > _SHOWN_NOTES:
        remark(f"{len(notes)} notes on samples: --device NAME shows those of one, --json all")
    if unwritten is not None:
        raise unwritten


def _written(fit: DeviceFit, out: Path, samples: Path) -> ModelProblem | None:
    """Write a fitted model; return why not where it has no place in the format: the fit is to be shown all the same."""
    from routecast.errors import ModelProblem
    from routecast.power.files import write_power_model

    try:
        write_power_model(fit.model, out, name=fit.device, source=f"fitted to {samples.name}")
    except ModelProblem as problem:
        return problem
    remark(f"wrote {out}")
    return None


def percents(text: str) -> list[float]:
    """Read loads in percent, such as ``0,10,50,100``, as shares 0..1.

    Raises
    ------
    routecast.errors.QuantityProblem
        One is no number from 0 to 100.
    """
    from routecast.errors import QuantityProblem

    loads = []
    for part in text.split(","):
        try:
            load = float(part.strip().removesuffix("%")) / 100.0
        except ValueError:
            load = math.nan
        if not 0.0 <= load <= 1.0:
            raise QuantityProblem(part, f'got "{part.strip()}": loads are percents, such as 0,10,50,100')
        loads.append(load)
    return sorted(set(loads))


def _errors(summary: ErrorSummary) -> dict[str, object]:
    from routecast.evaluate.plain import plain

    return {
        "count": summary.count,
        "median_ratio": plain(summary.median_ratio),
        "p90_ratio": plain(summary.p90_ratio),
        "max_ratio": plain(summary.max_ratio),
    }


def _document(fit: DeviceFit) -> dict[str, object]:
    from routecast.power.files import power_model_document
    from routecast.power.load_fit import ErrorSummary

    return {
        "parameters": {name: _parameter(one) for name, one in fit.parameters.items()},
        "fitted_samples": fit.fitted,
        "left_out": fit.left_out,
        "errors": _errors(ErrorSummary.of(fit.error_ratio)),
        "fitted_errors": _errors(ErrorSummary.of(fit.fitted_error_ratio)),
        "notes": list(fit.notes),
        "model": power_model_document(fit.model, name=fit.device),
    }


def _parameter(parameter: Parameter) -> dict[str, object]:
    if math.isnan(parameter.low):
        return {"value": parameter.value, "low": None, "high": None}
    return {"value": parameter.value, "low": parameter.low, "high": parameter.high}


# ``--equip``: which ports of a power model are plugged in and up.


EquipOption = Annotated[
    list[str] | None,
    typer.Option(
        "--equip",
        metavar="CLASS=N",
        help='Of a model of ports: "QSFP/PCC/100G=32" are plugged in, enabled and up. May be repeated.',
    ),
]


def equipped_as_said(model: PowerModel, said: list[str]) -> PowerModel:
    """Return a model with the ports that were given, which take the place of its file's.

    Raises
    ------
    routecast.errors.QuantityProblem
        Ports are given, and it is no model of ports.
    routecast.errors.ModelProblem
        As :func:`routecast.power.port.equipped_with`.
    """
    if not said:
        return model
    from routecast.power.port import PortPower, equipped_with

    if not isinstance(model, PortPower):
        raise QuantityProblem("", "--equip is of a model of ports: the watts of the others rest on their load")
    return equipped_with(model, said)


_LOADS = "0,10,20,30,40,50,60,70,80,90,100"


def show(
    model: Annotated[
        str,
        typer.Argument(
            metavar="FILE|form",
            help="A power model (.toml, .json, .yaml), form for the published function, or platforms for the paper's "
            "machines.",
        ),
    ] = "form",
    *,
    loads: Annotated[str, typer.Option("--loads", metavar="0,10,…", help="Loads in percent.")] = _LOADS,
    frame: Annotated[
        str | None, typer.Option("--frame", help='ports: frame size or mix, such as "512 B", for watts over load.')
    ] = None,
    equip: EquipOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a power model as watts over load; the form function beside the monotone one that lies nearest to it."""
    at = percents(loads)
    if model in {"form", "platforms"}:
        _refuse_frame(frame)
        _refuse_equip(equip)
    if model == "form":
        _show_form(at, as_json=as_json)
        return
    if model == "platforms":
        _show_platforms(as_json=as_json)
        return
    from routecast.power.files import read_power_model
    from routecast.power.port import PortPower
    from routecast.power.software_router import SoftwareRouterPower

    found = equipped_as_said(read_power_model(model), equip or [])
    if isinstance(found, PortPower):
        show_ports(found, at, frame, as_json=as_json)
        return
    _refuse_frame(frame)
    if isinstance(found, SoftwareRouterPower):
        _show_router(found, at, as_json=as_json)
    else:
        _show_load(found, model, at, as_json=as_json)


def _refuse_frame(frame: str | None) -> None:
    if frame is not None:
        raise QuantityProblem("", "--frame is of a model of ports: the watts of the others rest on their load")


def _refuse_equip(equip: list[str] | None) -> None:
    if equip:
        raise QuantityProblem("", "--equip is of a model of ports: name its file")


def _show_form(loads: list[float], *, as_json: bool) -> None:
    from routecast.power.form import PUBLISHED_FORM, greatest_deviation
    from routecast.power.load_fit import monotone_of

    monotone = monotone_of()
    gap, place = greatest_deviation(PUBLISHED_FORM, monotone)
    if as_json:
        print_json(
            {
                "source": PUBLISHED_FORM.source,
                "coefficients": list(PUBLISHED_FORM.coefficients),
                "load_ratio": loads,
                "published": [PUBLISHED_FORM.at(t) for t in loads],
                "monotone": [monotone.at(t) for t in loads],
                "monotone_knots": list(monotone.knots),
                "monotone_coefficients": list(monotone.coefficients),
                "greatest_deviation": gap,
                "greatest_deviation_at": place,
            }
        )
        return
    from routecast.power.views import form_table

    print_table(data(), form_table(loads, PUBLISHED_FORM, monotone))


def _show_load(model: PowerModel, name: str, loads: list[float], *, as_json: bool) -> None:
    from routecast.power.model import OperatingPoint

    watts = [model.power_w(OperatingPoint(load_ratio=load)) for load in loads]
    if as_json:
        print_json({"scope": model.scope, "load_ratio": loads, "power_w": watts})
        return
    from routecast.power.views import load_table

    print_table(data(), load_table(model, name, loads, watts))


def _show_router(model: SoftwareRouterPower, loads: list[float], *, as_json: bool) -> None:
    from routecast.power.model import OperatingPoint

    shown = []
    for state in model.states:
        for cores in range(1, len(model.gains) + 1):
            most = cores * model.share_pps(cores, state.frequency_hz)
            for load in loads:
                point = OperatingPoint(load_ratio=load, frequency_hz=state.frequency_hz, cores=cores)
                shown.append((state.frequency_hz, cores, load, load * most, model.power_w(point)))
    if as_json:
        keys = ("frequency_hz", "cores", "load_ratio", "rate_pps", "power_w")
        print_json({"scope": model.scope, "points": [dict(zip(keys, row, strict=True)) for row in shown]})
        return
    from routecast.power.views import router_table

    print_table(data(), router_table(model, shown))


def _show_platforms(*, as_json: bool) -> None:
    from routecast.evaluate.plain import plain
    from routecast.power.platforms import read_platforms

    platforms = read_platforms()
    if as_json:
        print_json([plain(one) for one in platforms])
        return
    from routecast.power.views import platforms_table

    print_table(data(), platforms_table(platforms))


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
    from routecast.power.views import device_table, ports_table, terms_table

    console = data()
    print_table(console, terms_table(model))
    if curves:
        print_table(console, ports_table(curves, loads, frame or ""))
    if device:
        print_table(console, device_table(model, at, device, frame))


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
        use[name] = PortsInUse(
            plugged=ports.plugged,
            enabled=ports.enabled,
            up=ports.up,
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


_LOOK_S = 0.25


def meters(*, as_json: AsJson = False) -> None:
    """List the power meters: what each covers, whether it can be read here, and if not, why and what to do."""
    from routecast.evaluate.plain import plain
    from routecast.testbed.meters import find_meters, no_power
    from routecast.testbed.views import meters_table

    found = find_meters()
    is_any = any(one.is_readable for one in found)
    if as_json:
        print_json({"meters": plain(found), "no_power": None if is_any else no_power(found)})
        return
    print_table(data(), meters_table(found))
    if not is_any:
        data().print(
            "No power can be read from inside this machine; trials go on without. A meter outside is named with "
            "--power or in the test bed's file.",
            markup=False,
        )


def read(
    *,
    meter: Annotated[
        str,
        typer.Option(
            "--meter",
            metavar="METER",
            help="auto, rapl, rapl:psys, rapl:dram, perf, ipmi, redfish:URL, csv:FILE, http:URL.",
        ),
    ] = "auto",
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="For how long; Ctrl-C ends it earlier.")
    ] = "10 s",
    interval: Annotated[
        str | None,
        typer.Option(
            "--interval",
            metavar="TIME",
            help="Time between samples; 0.1 s for the processor's counters, else 1 s.",
            show_default=False,
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="LABEL", help="What a file or a web address covers: pdu (default), wall."),
    ] = None,
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="For each answer of a host.")] = "5 s",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Take any certificate of a host, a forged one too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read a power meter for a while: mean, least and most power, energy, and each zone.

    User and password of a host come from ROUTECAST_POWER_USER and ROUTECAST_POWER_PASSWORD, a token from
    ROUTECAST_POWER_TOKEN, or both from ~/.netrc.
    """
    from routecast.errors import EnvironmentProblem
    from routecast.quantity import parse_duration_s
    from routecast.testbed.meters import MeterSettings, choose_meter

    duration_s = parse_duration_s(duration)
    settings = MeterSettings(
        interval_s=parse_duration_s(interval) if interval else None,
        scope=scope,
        verify_tls=not insecure,
        timeout_s=parse_duration_s(timeout),
    )
    chosen, no_power = choose_meter(meter, settings)
    if chosen is None:
        raise EnvironmentProblem(no_power)
    reading = _metered(chosen, duration_s)
    if not math.isfinite(reading.mean_w):
        why = "; ".join(reading.notes) or "the interval is shorter than its steps: give a longer --duration"
        raise EnvironmentProblem(f"power meter {reading.meter} told nothing: {why}")
    if as_json:
        print_json(reading.to_json())
    else:
        _meters_print(reading)


def _metered(meter: PowerMeter, duration_s: float) -> PowerReading:
    """Read for a while, with the newest power on stderr if that is a terminal."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from routecast.quantity import format_power

    console = Console(stderr=True)
    meter.start()
    began_s = time.monotonic()
    try:
        with Live(console=console, auto_refresh=False, transient=True) as line:
            while (left_s := duration_s - (time.monotonic() - began_s)) > 0.0:
                latest_w = meter.latest_w()
                if console.is_terminal and math.isfinite(latest_w):
                    text = f"{meter.name} ({meter.scope}): {format_power(latest_w)}, {left_s:.0f} s left"
                    line.update(Text(text), refresh=True)
                time.sleep(min(_LOOK_S, left_s))
    except KeyboardInterrupt:
        pass  # what was read until now is printed
    except BaseException:
        meter.stop()
        raise
    return meter.stop()


def _meters_print(reading: PowerReading) -> None:
    from routecast.quantity import format_duration
    from routecast.testbed.views import reading_tables

    console = data()
    for table in reading_tables(reading):
        print_table(console, table)
    notes = list(reading.notes)
    if reading.is_partial:
        notes.insert(0, f"{format_duration(reading.metered_s)} of {format_duration(reading.interval_s)} were metered")
    print_notes(console, notes)
