"""The load that a router file suggests, for users who give none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.arrivals import Arrivals
from routecast.load.fields import Frames, LoadRate
from routecast.load.flows import MICROSOFT_KEY, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, recorded_load
from routecast.quantity import format_pps
from routecast.quantity.fields import Count, FrameCount, Number
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import validated

__all__ = ["LoadTable", "load_of", "read_load"]

_SAME_RATE = 1e-3


@value
class FlowsTable:
    """The flows of a load."""

    kind: Literal["crafted", "random", "meshed"] = field(
        "Spread evenly by RSS; by its real hash; or from every port to every other in turn", default="crafted"
    )
    count: Count = field("Number of flows, 1 to 100000", default=1, ge=1, le=100_000)
    seed: Count = field("Seed of random flows", default=1)
    key: str = field(
        "Secret key of the network card's Toeplitz hash, 40 bytes in hexadecimal, for random and recorded flows; "
        "Microsoft's without",
        default="",
    )


@value
class ArrivalsTable:
    """The arrival process of frames."""

    kind: Literal["cbr", "poisson", "on_off", "trace"] = field("Arrival process", default="cbr")
    burst_frames: FrameCount = field("Mean burst of on_off, frames", default=1)
    peak_ratio: Number = field("Peak over mean rate of on_off, dimensionless, > 1", default=1.0)
    trace: str = field(
        "Capture, or CSV file with the columns time_s, frame_bytes, flow and perhaps port, beside this file", default=""
    )
    inner: bool = field("Flows of a capture: those inside MPLS and tunnels, not the outer ones", default=False)
    split_mtu: Count = field("MTU to which super-packets of a capture are split, B; 0: they are not", default=0)


@value
class LoadTable:
    """The load that the router is evaluated with when the user gives none."""

    rate: LoadRate | None = field("Intended load over all ports, frames/s or bit/s; a trace has its own", default=None)
    frames: Frames = field("Frame size or mix, B with FCS", default=FrameMix.fixed(64))
    flows: FlowsTable = field("The flows", default=FlowsTable())
    arrivals: ArrivalsTable = field("The arrival process", default=ArrivalsTable())


def read_load(
    table: Mapping[str, Any], *, ports: int, subject: str = "load", folder: Path | None = None
) -> OfferedLoad:
    """Return the load of a table ``load`` of a router file, for a number of ports.

    Raises FileProblem with all faults of the table and their places.
    """
    try:
        return load_of(validated(LoadTable, table, subject), ports, folder)
    except ModelProblem as problem:
        raise FileProblem(subject, problem.problems) from problem


@lru_cache(maxsize=4)
def _flow_set(kind: str, count: int, seed: int, ports: int, key: bytes) -> FlowSet:
    """Return the flows of a table; runs of an experiment share them."""
    if kind == "random":
        return FlowSet.random(count, seed=seed, ports=ports, key=key)
    return FlowSet.meshed(count, ports=ports) if kind == "meshed" else FlowSet.crafted(count, ports=ports)


def load_of(load: LoadTable, ports: int, folder: Path | None, *, frames: FrameMix | None = None) -> OfferedLoad:
    """Return the load of a table for a number of ports; ``folder`` holds the traces.

    ``frames`` replaces the table's frames; a rate in bit/s then refers to them.
    """
    if load.arrivals.kind == "trace":
        return _of_trace(load, ports, folder)
    if load.rate is None:
        raise ModelProblem("load", [Problem("rate", 'is missing: give the intended load, e.g. "1 Mpps"')])
    flows = _flow_set(load.flows.kind, load.flows.count, load.flows.seed, ports, _rss_key(load.flows))
    try:
        arrivals = Arrivals(
            kind=load.arrivals.kind, burst_frames=float(load.arrivals.burst_frames), peak_ratio=load.arrivals.peak_ratio
        )
    except ModelProblem as problem:
        placed = [Problem(f"arrivals.{fault.place}", fault.message) for fault in problem.problems]
        raise ModelProblem(problem.subject, placed) from problem
    rate_pps = load.rate.pps(frames or load.frames)
    return OfferedLoad(rate_pps=rate_pps, frames=load.frames, flows=flows, arrivals=arrivals)


def _rss_key(flows: FlowsTable) -> bytes:
    if not flows.key:
        return MICROSOFT_KEY
    try:
        key = bytes.fromhex(flows.key.replace(":", ""))
    except ValueError:
        key = b""
    if len(key) < len(MICROSOFT_KEY):
        message = f'got "{flows.key}": a key has {len(MICROSOFT_KEY)} bytes or more, each two hexadecimal digits'
        raise ModelProblem("load", [Problem("flows.key", message)])
    return key


def _of_trace(load: LoadTable, ports: int, folder: Path | None) -> OfferedLoad:
    """Return the load of a table's trace, which brings its rate, sizes and flows; only their kind is the table's."""
    if not load.arrivals.trace:
        raise ModelProblem("load", [Problem("arrivals.trace", "is missing: name the file of the trace")])
    path, table = (folder or Path()) / load.arrivals.trace, load.arrivals
    key = _rss_key(load.flows)
    trace = Arrivals.from_trace(path, inner=table.inner, split_mtu=table.split_mtu, rss_key=key).trace
    assert trace is not None
    stated_pps = math.nan if load.rate is None else load.rate.pps(trace.mix)
    if not math.isclose(stated_pps, trace.rate_pps, rel_tol=_SAME_RATE) and math.isfinite(stated_pps + trace.rate_pps):
        stated, own = format_pps(stated_pps), format_pps(trace.rate_pps)
        note = f"the rate of the file, {stated}, is left out: its trace has {own}; --load scales the times of a trace"
        trace = replace(trace, notes=(*trace.notes, note))
    offered = recorded_load(trace, ports=ports)
    if trace.flows or load.flows.kind == "crafted":
        return offered
    flows = _flow_set(load.flows.kind, len(trace.frames_by_flow), load.flows.seed, ports, key)
    return OfferedLoad(rate_pps=offered.rate_pps, flows=flows, arrivals=Arrivals.recorded(trace))
