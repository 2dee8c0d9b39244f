"""Pages with a live router."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routecast.calibration.fitted import at_cores
from routecast.calibration.priors import Priors
from routecast.errors import QuantityProblem, RoutecastError
from routecast.evaluate.points import Point, calibrating
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.sweep import SweepAxis, even_flows, trial_past_transient
from routecast.explore.measured import DEFAULT_START, MeasuredPanel, StartConditions, panels_of_points
from routecast.explore.panel import Panel
from routecast.explore.router import panel_of_router
from routecast.explore.simulator import live_scripts
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity import format_pps
from routecast.quantity.value_list import Plain
from routecast.router.files import build_router
from routecast.router.model import RouterModel
from routecast.show.figures import Axis, Figure, Line, Points
from routecast.show.page import Linked, Links, Live, Page, Section

__all__ = ["changed_values_section", "gallery_page", "live_of_points", "live_of_router", "points_page", "router_page"]

_STATIC_POINTS = 12


def router_page(
    document: Mapping[str, Any],
    varied: Sequence[SweepAxis] = (),
    *,
    subject: str,
    folder: Path | None = None,
    command: str = "",
    start: StartConditions = DEFAULT_START,
) -> Page:
    """Return the page of a router file.

    Raises RoutecastError: the file makes no valid router, or there are frames at the start beside those of a trace.
    """
    model, load = build_router(document, subject=subject, folder=folder)
    if start.frames is not None and load is not None and load.arrivals.trace is not None:
        message = f"frames of {start.frames.name} beside a trace: sizes are those of its frames; leave them out"
        raise QuantityProblem(start.frames.name, message)
    live, left_out = live_of_router(document, varied, start=start, subject=subject, folder=folder)
    return Page(
        title=model.name,
        question="What does this router forward, how late, with what loss, and what limits it?",
        answer="Move a control: the simulator in this page answers at once.",
        sections=(_live_section(live),),
        provenance=_provenance(subject, command, left_out),
    )


def live_of_router(
    document: Mapping[str, Any],
    varied: Sequence[SweepAxis] = (),
    *,
    start: StartConditions = DEFAULT_START,
    subject: str,
    folder: Path | None = None,
) -> tuple[Live, tuple[str, ...]]:
    """Return the live panel of a router file for a page, and the fields without a control."""
    frames = start.frames.name if start.frames else None
    panel = panel_of_router(document, varied, counts=start.counts, frames=frames, subject=subject, folder=folder)
    model, load = build_router(document, subject=subject, folder=folder)
    load = load or OfferedLoad(rate_pps=1e6, flows=even_flows(1, len(model.ports)))
    key = _cores_key(panel)
    data = {
        "panels": [{"assumes": "", "panel": panel.to_json(), "forecast": None}],
        "ratePps": start.rate_pps or load.rate_pps,
        "coresKey": key,
        **_flows_following_cores(panel, len(model.ports)),
        "start": _start(panel, {"frame": frames, key: start.cores}),
        "measured": [],
        "isLinkKnown": True,
        "document": document,
        "arrivals": load.arrivals.text,
        "latencyReason": "",
    }
    if start.counts and key is not None:
        data["axis"] = key
    return Live(data=data, figure=_static_figure(model, load), scripts=live_scripts), panel.left_out


def _start(panel: Panel, start_values: Mapping[str | None, Plain | None]) -> dict[str, int]:
    """Return the start positions of the controls that have the given values."""
    return {
        control.key: control.values.index(value)
        for control in panel.controls
        if (value := start_values.get(control.key)) is not None and value in control.values
    }


def points_page(
    points: Sequence[Point],
    *,
    title: str,
    subject: str,
    priors: Priors | None = None,
    command: str = "",
    start: StartConditions = DEFAULT_START,
) -> Page:
    """Return the page of a calibrated router.

    ``points`` are of one series. Those marked to calibrate are used for the calibration, or all if none is marked; the
    page shows the others beside the curves. ``priors`` are those of :func:`routecast.calibration.fit`. Raises
    FitProblem: no point has a rate, or the points belong to several series.
    """
    live, left_out = live_of_points(points, priors=priors, start=start)
    latency = _latency_section(points, priors, start)
    number = len(calibrating(points))
    count = f"{number} measurement{'s' if number != 1 else ''}"
    return Page(
        title=title,
        question="What would this router forward with other cores, frames, links, and how sure is that?",
        answer=f"Calibrated from {count}. Move a control: the simulator in this page answers at once; bands hold 95 %.",
        sections=(_live_section(live), *latency),
        provenance=_provenance(subject, command, left_out),
    )


def live_of_points(
    points: Sequence[Point],
    *,
    start: StartConditions = DEFAULT_START,
    noise_ratio: float | None = None,
    priors: Priors | None = None,
    latency_reason: str = "",
) -> tuple[Live, tuple[str, ...]]:
    """Return the live panel of a calibrated router for a page, and the fields without a control.

    The panel has no figure of the latency, of which throughputs say nothing. ``latency_reason`` says so, or where the
    page has what was measured of it; empty: what the rows have of it is below.
    """
    if not latency_reason:
        latency_reason = "predicted from its rows, below" if any(point.latency for point in points) else "not measured"
    calibration_points = calibrating(points)
    held_out = [point for point in points if point not in calibration_points and math.isfinite(point.throughput_pps)]
    panels = panels_of_points(
        calibration_points, held_out=held_out, start=start, noise_ratio=noise_ratio, priors=priors
    )
    first = panels[0]
    model = max(calibration_points, key=lambda point: (point.cores, point.working_cores, -point.frame_bytes))
    data = {
        "panels": [
            {"assumes": entry.assumes, "panel": entry.panel.to_json(), "forecast": entry.forecast.to_json()}
            for entry in panels
        ],
        "ratePps": start.rate_pps or float(f"{0.8 * model.throughput_pps:.2g}"),
        "axis": "cores",
        "coresKey": "cores",
        **_flows_following_cores(first.panel, model.ports),
        "isFollowing": True,
        "measured": [
            {
                "cores": point.working_cores,
                "bytes": point.frame_bytes,
                "pps": point.throughput_pps,
                "calibrates": point in calibration_points,
            }
            for point in points
            if math.isfinite(point.throughput_pps)
        ],
        "isLinkKnown": first.is_link_known,
        "document": None,
        "arrivals": "",
        "latencyReason": latency_reason,
    }
    return Live(
        data=data, figure=_static_forecast(first, calibration_points), scripts=live_scripts
    ), first.panel.left_out


def _latency_section(points: Sequence[Point], priors: Priors | None, start: StartConditions) -> tuple[Section, ...]:
    """Return the section of the latency over the load, of the frames at the start; nothing where no row has one."""
    if not any(point.latency for point in points):
        return ()
    from routecast.calibration import fit
    from routecast.calibration.latency.views import latency_figure  # only of tables that have it

    fitted = fit(calibrating(points), priors=priors)
    conditions = max(fitted.points, key=lambda point: (point.cores, point.working_cores, -point.frame_bytes))
    if start.frames is not None:
        mix = None if start.frames.is_fixed else start.frames
        conditions = replace(conditions, frame_bytes=start.frames.mean_bytes, frame_mix=mix)
    figure = latency_figure(fitted, points, conditions)
    return () if figure is None else (Section(anchor="latency", title="Latency", blocks=(figure,)),)


def gallery_page(pages: Sequence[tuple[str, str, str]]) -> Page:
    """Return the index of a gallery, with file, title and description of each page."""
    rows = tuple(Linked(href=name, title=title, text=text) for name, title, text in pages)
    return Page(
        title="Routers to turn",
        question="What does each of these software routers forward, and what limits it?",
        answer="Each page holds its router and the simulator. Open one and move a control.",
        sections=(Section(anchor="routers", title="", blocks=(Links(rows),), is_listed=False),),
    )


def changed_values_section(name: str, document: Mapping[str, Any]) -> Section:
    """Return the section of a page with the live panel of a study's router."""
    live, _ = live_of_router(document, subject=f'router "{name}"')
    lead = f'Router "{name}" of this study, simulated in this page: move a control.'
    return Section(anchor="explore", title="The interactive router", lead=lead, blocks=(live,))


def _live_section(live: Live) -> Section:
    return Section(anchor="explore", title="", blocks=(live,), is_listed=False)


def _provenance(subject: str, command: str, left_out: Sequence[str]) -> tuple[tuple[str, str], ...]:
    rows = {"From": subject, "Command": command and f"`{command}`", "Not to be turned": "; ".join(left_out)}
    return tuple((name, text) for name, text in rows.items() if text)


def _cores_key(panel: Panel) -> str | None:
    keys = [control.key for control in panel.controls]
    count_keys = [key for key in ("cores", "engines", "machines") if key in keys]
    return next(iter([*count_keys, *(key for key in keys if key.endswith(".units"))]), None)


def _flows_following_cores(panel: Panel, ports: int) -> dict[str, object]:
    """Return the position of the flows for each number of cores, and whether they follow the cores at the start."""
    by_key = {control.key: control for control in panel.controls}
    if not {"cores", "flows"} <= by_key.keys():
        return {"follows": None, "isFollowing": False}
    cores, flows = by_key["cores"], by_key["flows"]
    start_values = [len(even_flows(int(count), ports).flows) for count in cores.values]
    positions = [flows.values.index(count) for count in start_values]
    return {"follows": positions, "isFollowing": positions[cores.at] == flows.at}


def _static_figure(model: RouterModel, load: OfferedLoad) -> Figure:
    """Return a static figure of simulated loads, for readers without scripts."""
    rates = [] if load.arrivals.kind == "trace" else [load.rate_pps * (k + 1) / 8 for k in range(_STATIC_POINTS)]
    points = []
    for rate in rates:
        try:
            trial = trial_past_transient(Simulate(model), load.at(rate), max(20_000 / rate, 1e-4))
        except RoutecastError:
            continue
        points.append((rate / 1e6, trial.forwarded_pps / 1e6))
    x, y = tuple(rate for rate, _ in points), tuple(forwarded for _, forwarded in points)
    return Figure(
        name="still",
        title="Throughput over load",
        caption=f"Simulated, with everything as in the file; its load is {format_pps(load.rate_pps)}.",
        x=Axis(title="offered load, Mpps"),
        y=Axis(title="throughput, Mpps", low=0.0),
        marks=(
            Line(name="all forwarded", x=x, y=x, dashed=True, colour="#7a7f87"),
            Line(name="forwarded", x=x, y=y),
            Points(name="simulated", x=x, y=y, filled=False),
        ),
    )


def _static_forecast(panel: MeasuredPanel, points: Sequence[Point]) -> Figure:
    """Return a static figure of the maximum throughput over cores, for readers without scripts."""
    model = max(points, key=lambda point: (point.cores, -point.frame_bytes))
    forecast_points = [replace(at_cores(model, count), throughput_pps=math.nan) for count in panel.forecast.cores]
    predicted = panel.fitted.predict(forecast_points)
    measured_points = [point for point in points if point.frame_bytes == model.frame_bytes]
    x = tuple(float(count) for count in panel.forecast.cores)
    name = (model.frame_mix or FrameMix.fixed(round(model.frame_bytes))).name
    line_pps = panel.fitted.caps.applied(model).line_rate_pps
    low, high = (tuple(min(pps, line_pps) / 1e6 for pps in ends_pps) for ends_pps in panel.forecast.band_pps(name))
    return Figure(
        name="still",
        title="Greatest throughput over cores",
        caption=f"Frames of {model.frame_bytes:g} B; the band holds one measurement with 95 %.",
        x=Axis(title="cores"),
        y=Axis(title="throughput, Mpps", low=0.0),
        marks=(
            Line(
                name="predicted",
                x=x,
                y=tuple(
                    min(max(entry.throughput_pps / 1e6, least), most) if least <= most else math.nan
                    for entry, least, most in zip(predicted, low, high, strict=True)
                ),
                low=low,
                high=high,
            ),
            Points(
                name="measured",
                x=tuple(float(point.working_cores) for point in measured_points),
                y=tuple(point.throughput_pps / 1e6 for point in measured_points),
            ),
        ),
    )
