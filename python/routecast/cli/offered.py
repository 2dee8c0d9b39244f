"""The offered load of ``solve`` and ``simulate``: what the router's file says, with what the command line changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from routecast.load.arrivals import Arrivals
    from routecast.load.frames import FrameMix
    from routecast.load.offered import OfferedLoad

__all__ = [
    "ArrivalsOption",
    "BurstOption",
    "FlowsOption",
    "FrameOption",
    "LoadOption",
    "PeakOption",
    "RandomFlowsOption",
    "frames_asked",
    "offered_load",
]

PANEL = "Offered load"

LoadOption = Annotated[
    str | None,
    typer.Option("--load", metavar="RATE", help='Intended load over all ports, e.g. "14 Mpps".', rich_help_panel=PANEL),
]
FrameOption = Annotated[
    str | None,
    typer.Option(
        "--frame",
        metavar="SIZE",
        help='Frame size or mix: "64 B", IMIX, "genome aaafg", "7x64, 4x594, 1x1518".',
        rich_help_panel=PANEL,
    ),
]
FlowsOption = Annotated[
    int | None,
    typer.Option("--flows", min=1, max=1_000_000, metavar="N", help="Number of flows.", rich_help_panel=PANEL),
]
RandomFlowsOption = Annotated[
    bool,
    typer.Option(
        "--random-flows",
        help="Random flows, spread by the NIC's hash; otherwise they are crafted to spread evenly.",
        rich_help_panel=PANEL,
    ),
]
ArrivalsOption = Annotated[
    str | None,
    typer.Option(
        "--arrivals",
        metavar="PROCESS",
        help="cbr, poisson, on_off, or a trace in a FILE.csv (time_s, frame_bytes, flow).",
        rich_help_panel=PANEL,
    ),
]
BurstOption = Annotated[
    float, typer.Option("--burst-frames", help="on_off: mean length of a burst.", rich_help_panel=PANEL)
]
PeakOption = Annotated[
    float, typer.Option("--peak-ratio", help="on_off: rate within a burst over the mean rate.", rich_help_panel=PANEL)
]


def offered_load(
    default: OfferedLoad | None,
    *,
    ports: int,
    load: str | None,
    frame: str | None,
    flows: int | None,
    random_flows: bool,
    arrivals: str | None,
    burst_frames: float,
    peak_ratio: float,
    seed: int,
) -> OfferedLoad:
    """Return the load to offer: options first, then the file's, then one flow of 64-byte frames per port.

    Raises
    ------
    routecast.errors.RoutecastError
        An option is not what it must be, or neither the file nor ``--load`` gives a rate.
    """
    from routecast.load.flows import FlowSet
    from routecast.load.offered import OfferedLoad
    from routecast.quantity import parse_rate_pps

    process = _arrivals(arrivals, burst_frames, peak_ratio) if arrivals else None
    if default is None and load is None and not (process and process.trace_time_s):
        raise QuantityProblem("", 'the file has no [load]: give a rate with --load, e.g. --load "14 Mpps"')
    if load:
        rate_pps = parse_rate_pps(load)
    elif default:
        rate_pps = default.rate_pps
    else:
        assert process is not None
        rate_pps = process.trace_rate_pps
    base = default or OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(ports, ports=ports))
    if flows or random_flows:
        count = flows or len(base.flows.flows)
        random = FlowSet.random(count, seed=seed, ports=ports) if random_flows else None
        flow_set = random or FlowSet.crafted(count, ports=ports)
    else:
        flow_set = base.flows
    return OfferedLoad(
        rate_pps=rate_pps, frames=frames_asked(frame) or base.frames, flows=flow_set, arrivals=process or base.arrivals
    )


def frames_asked(frame: str | None) -> FrameMix | None:
    """Return the frames that ``--frame`` asks for, None where it is not given."""
    from routecast.load.frames import FrameMix

    return FrameMix.parse(frame) if frame else None


def _arrivals(text: str, burst_frames: float, peak_ratio: float) -> Arrivals:
    from routecast.load.arrivals import Arrivals
    from routecast.quantity.did_you_mean import did_you_mean

    if text == "cbr":
        return Arrivals.cbr()
    if text == "poisson":
        return Arrivals.poisson()
    if text == "on_off":
        return Arrivals.on_off(burst_frames=burst_frames, peak_ratio=peak_ratio)
    if Path(text).suffix == ".csv":
        return Arrivals.from_trace(text)
    hint = did_you_mean(text, ("cbr", "poisson", "on_off"))
    raise QuantityProblem(text, f"--arrivals {text!r} is no arrival process; {hint}, or a trace in a FILE.csv")
