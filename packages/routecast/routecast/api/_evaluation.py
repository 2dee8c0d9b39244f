"""Evaluation by the Python interface: a load by closed form, simulation or measurement, and many of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.api._arguments import (
    MAX_CELL_CHARACTERS,
    MAX_FLOWS,
    TWO_FRAMES,
    Frames,
    Rate,
    frames_of_two,
    read_count,
    read_flag,
    read_mix,
    read_name,
    read_path,
    read_rate_pps,
    read_seconds,
    wrong_type,
)
from routecast.api._calibration import Calibration
from routecast.api._file_values import vary_texts
from routecast.api._router import Router, read
from routecast.errors import ArgumentProblem, QuantityProblem
from routecast.evaluate.trial import Trial
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.router.files import router_table
from routecast.router.model import RouterModel
from routecast.wings import require_part

if TYPE_CHECKING:
    import polars


_MAX_SEED = 2**63 - 1


def solve(
    router: Router | str | Path,
    load: Rate | None = None,
    *,
    frames: Frames | None = None,
    flows: int | None = None,
    frame: Frames | None = None,
) -> Trial:
    """Solve a router in closed form: throughput, loss, bottleneck, and latency where theory gives it.

    Parameters
    ----------
    router : Router, or path of a router file
    load : str, float or None
        Load over all ports: ``"14 Mpps"``, ``"20 Gbit/s"`` (including gap and preamble, S1), or frames per second;
        None: the load of the file.
    frames : str, int or None
        ``"IMIX"``, ``"64 B"``, or bytes; None: the frames of the file, or 64 B. ``frame`` is the same.
    flows : int or None
        Number of flows, crafted to spread evenly; None: the flows of the file, or as many as fill cores and ports
        evenly.

    Raises
    ------
    routecast.errors.RoutecastError
        An argument has a wrong type or value, or no evaluator knows the router.
    """
    from routecast.evaluate.solve import Solve

    model, offered = _model_and_load(router, load, frames_of_two(frames, frame), flows)
    return Solve(model=model).trial(offered, 1.0)


def simulate(
    router: Router | str | Path,
    load: Rate | None = None,
    *,
    frames: Frames | None = None,
    flows: int | None = None,
    duration: str | float | None = None,
    seed: int = 1,
    frame: Frames | None = None,
) -> Trial:
    """Simulate a router frame by frame; parameters as for :func:`solve`, ``duration`` in seconds or ``"100 ms"``.

    Without ``duration``: 100 ms, or all of a trace.
    """
    from routecast.evaluate.simulate import Simulate

    model, offered = _model_and_load(router, load, frames_of_two(frames, frame), flows)
    trace = offered.arrivals.trace
    duration_s = (0.1 if trace is None else trace.length_s) if duration is None else read_seconds(duration)
    return Simulate(model, seed=read_count(seed, "a seed", least=0, most=_MAX_SEED)).trial(offered, duration_s)


def measure(
    load: Rate,
    *,
    testbed: str = "namespaces",
    dut: str | None = None,
    frames: Frames | None = None,
    flows: int = 1,
    duration: str | float = 0.5,
    seed: int = 1,
    frame: Frames | None = None,
    **options: str,
) -> Trial:
    """Measure a real router, in network namespaces of this machine or between the ports of a test bed.

    Parameters
    ----------
    load, frames, frame, duration
        As for :func:`simulate`; all flows go from the first port to the second.
    testbed : str
        ``"namespaces"``, or a ``*.testbed.toml``.
    dut : str or None
        A device that ``routecast testbed devices`` lists.
    **options : str
        The device's options.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        A right, a package or a device is missing.
    """
    mix = read_mix(frames_of_two(frames, frame)) or FrameMix.fixed(64)
    flow_set = FlowSet.crafted(read_count(flows, "a number of flows", most=MAX_FLOWS), ports=1)
    offered = OfferedLoad(rate_pps=read_rate_pps(load, mix), frames=mix, flows=flow_set)
    duration_s, seed = read_seconds(duration), read_count(seed, "a seed", least=0, most=_MAX_SEED)
    bed = testbed if isinstance(testbed, str) and testbed == "namespaces" else read_path(testbed, "a test bed")
    device = None if dut is None else read_name(dut, "a device", "routecast testbed devices lists them")
    texts = {key: read_name(entry, f"the option {key}", "write it as text") for key, entry in options.items()}
    with require_part("a measurement")(bed, device=device, options=texts, seed=seed) as evaluator:
        trial: Trial = evaluator.trial(offered, duration_s)
    return trial


def sweep(router: Router | str | Path, *, simulate: bool = False, **varied: Any) -> polars.DataFrame:
    """Evaluate a router at every combination of the varied values; return a row for each.

    Parameters
    ----------
    router : Router or path
    simulate : bool
        Whether to simulate each combination as well.
    **varied
        ``cores=range(1, 17)``, ``frame=[64, "IMIX"]``, ``load=["1 Mpps", "2 Mpps"]``, ``flows``, or any field of the
        file, ``**{"service.per_packet": ["400 ns", "500 ns"]}``; also single values and texts as ``--vary`` takes
        them, ``cores="1..16"``. Without a load, the rows have the maximum throughputs.
    """
    import polars as pl

    from routecast.evaluate.sweep import Settings, parse_varied
    from routecast.evaluate.sweep import sweep as evaluate

    router = _router(router)
    simulates = read_flag(simulate, "simulate")
    table = router_table(dict(router.document), router.subject)
    if "frame" in varied and "frames" in varied:
        raise QuantityProblem("", TWO_FRAMES)
    keys_and_values = {("frame" if key == "frames" else key): values for key, values in varied.items()}
    texts = [f"{key}={','.join(vary_texts(key, values, table))}" for key, values in keys_and_values.items()]
    axes = parse_varied(texts, router.document, subject=router.subject, name_of=_varied_name)
    keys = {axis.key for axis in axes}

    def offered(settings: Settings, model: RouterModel, default: OfferedLoad | None) -> OfferedLoad:
        mix = FrameMix.parse(str(settings["frame"])) if "frame" in settings else None
        flows = settings.get("flows")
        rate = str(settings["load"]) if "load" in settings else ("1 pps" if default is None else None)
        return _load(router, model, default, rate, mix, None if flows is None else int(flows))

    answer = evaluate(
        router.document,
        axes,
        offered,
        subject=router.subject,
        folder=router.folder,
        has_load="load" in keys,
        keeps_flows="flows" in keys,
        simulates=simulates,
    )
    return pl.DataFrame([_flat(row) for row in answer.rows()])


_TABLE_SUFFIXES = frozenset({".csv", ".parquet", ".tsv", ".xlsx", ".xlsm", ".ods"})


def _router(router: Router | str | Path) -> Router:
    if isinstance(router, str | os.PathLike):
        if Path(router).suffix.lower() in _TABLE_SUFFIXES:
            message = f"{Path(router).name} is a table and no router: calibrate one, rc.calibrate(path).router(8)"
            raise ArgumentProblem(repr(router)[:MAX_CELL_CHARACTERS], message)
        return read(Path(router))
    if hasattr(router, "columns"):
        raise wrong_type(router, "a router", "calibrate a table first, rc.calibrate(table).router(8)")
    if isinstance(router, Calibration):
        raise wrong_type(router, "a router", "say how many cores it has: fitted.router(8)")
    if not isinstance(router, Router):
        raise wrong_type(router, "a router", "a router is what rc.read or rc.multicore gives, or a path")
    return router


def _model_and_load(
    router: Router | str | Path, load: Rate | None, frames: Frames | None, flows: int | None
) -> tuple[RouterModel, OfferedLoad]:
    router = _router(router)
    mix = read_mix(frames)
    model, default = router._built(mix)
    if load is None and default is None:
        raise QuantityProblem("", f'{router.subject} has no load: give one, such as "14 Mpps"')
    count = None if flows is None else read_count(flows, "a number of flows", most=MAX_FLOWS)
    return model, _load(router, model, default, load, mix, count)


def _load(
    router: Router,
    model: RouterModel,
    default: OfferedLoad | None,
    load: Rate | None,
    mix: FrameMix | None,
    flows: int | None,
) -> OfferedLoad:
    from routecast.evaluate.sweep import even_flows, is_crafted

    ports = len(model.ports)
    cores = router.document.get("cores")
    has_cores = isinstance(cores, int)
    base = default
    if base is None:
        count = max(pool.units for pool in model.pools) if model.pools else 1
        base = OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(max(count, ports), ports=ports))
    if base.arrivals.trace is not None:
        for name, given in (("frames", mix), ("flows", flows)):
            if given is not None:
                message = f"{name} beside a trace: sizes and flows are those of its frames; leave it out"
                raise QuantityProblem("", message)
        return base if load is None else base.at(read_rate_pps(load, base.frames))
    if has_cores and (default is None or (router.follows_cores and is_crafted(base, ports))):
        base = replace(base, flows=even_flows(int(cores or 1), ports))
    mix = mix or base.frames
    rate_pps = base.rate_pps if load is None else read_rate_pps(load, mix)
    flow_set = FlowSet.crafted(flows, ports=ports) if flows else base.flows
    return OfferedLoad(rate_pps=rate_pps, frames=mix, flows=flow_set, arrivals=base.arrivals)


def _varied_name(key: str) -> str:
    """Name a varied key as Python writes it, ``varied(cores=…)``; a text ``KEY=VALUES`` with its values."""
    name, _, values = key.partition("=")
    written = f'"{values}"' if values else "…"
    return f"varied({name}={written})" if name.isidentifier() else f'varied(**{{"{name}": {written}}})'


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a row as columns: settings by their keys, nested values with a prefix, the bottleneck by its name."""
    columns: dict[str, Any] = {}
    for key, entry in row.items():
        if key == "settings":
            columns |= dict(entry)
        elif key == "bottleneck":
            columns[f"{prefix}limits"] = entry["name"]
        elif isinstance(entry, Mapping):
            columns |= _flat(entry, f"{prefix}{key}_")
        elif not isinstance(entry, list):
            columns[f"{prefix}{key}"] = entry
    return columns
