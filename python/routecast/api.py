"""The Python interface of routecast: the names of ``import routecast as rc``.

Quantities are texts with units (``"14 Mpps"``, ``"562 ns"``, ``"IMIX"``) or numbers in base units (frames per second,
seconds, bytes).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.calibration import FittedRouter, fit
from routecast.calibration.fitted import at_cores
from routecast.errors import QuantityProblem
from routecast.evaluate.points import Point, calibrating, of_series, read_table
from routecast.evaluate.trial import Trial
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.load.offered import IntendedRate
from routecast.quantity import parse_duration_s, parse_ratio
from routecast.quantity.bounded_file import read_text
from routecast.quantity.toml_file import parse_toml
from routecast.router.files import build_router
from routecast.router.model import RouterModel
from routecast.router.variants import vary

if TYPE_CHECKING:
    import polars

    from routecast.calibration.facts import OpenFact
    from routecast.size import Sizing

__all__ = ["Calibration", "Router", "calibrate", "measure", "multicore", "read", "simulate", "solve", "sweep"]

Rate = str | float
Frames = str | int
_UNITS = {"link": "bit/s", "queue": "frames", "nic_cap": "pps", "frequency": "Hz", "tx_ring": "frames"}
"""Base units of fields that a router file writes as texts."""


@dataclass(frozen=True, slots=True)
class Router:
    """A router and its file; evaluators take ``model``, and ``load`` is the load of the file."""

    document: Mapping[str, Any]
    subject: str = "router"
    folder: Path | None = None

    @property
    def model(self) -> RouterModel:
        """The router as task units over pools of resources."""
        return self._built(None)[0]

    @property
    def load(self) -> OfferedLoad | None:
        """The load of the file; None if the file has no load."""
        return self._built(None)[1]

    def varied(self, **changes: object) -> Router:
        """Return the router with changed fields: ``cores=8``, ``**{"service.per_packet": "400 ns"}``."""
        return replace(self, document=vary(self.document, changes, subject=self.subject))

    def _built(self, frames: FrameMix | None) -> tuple[RouterModel, OfferedLoad | None]:
        return build_router(self.document, subject=self.subject, folder=self.folder, frames=frames)

    def __repr__(self) -> str:
        model = self.model
        pools = ", ".join(f"{pool.units} {pool.name}" for pool in model.pools)
        return f"Router({model.name!r}: {len(model.tasks)} task units, {pools}, {len(model.ports)} ports)"


def read(path: str | Path) -> Router:
    """Read a router file.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is not TOML, or is not valid. The error lists all faults with their places.
    """
    path = Path(path)
    router = Router(parse_toml(read_text(path, kind="router file"), str(path)), str(path), path.parent)
    router._built(None)
    return router


def multicore(
    cores: int, per_packet: str | float, per_byte: str | float = 0.0, *, name: str = "multicore", **fields: object
) -> Router:
    """Describe a multi-core router by its cores, the time or cycles per frame on a core, and other fields of its file.

    Raises
    ------
    routecast.errors.FileProblem
        A field is unknown, or its value is not valid.

    Examples
    --------
    >>> router = multicore(4, "562 ns", link="10 Gbit/s", contention={"sigma": 0.056})
    >>> round(solve(router, "14 Mpps").forwarded_pps / 1e6, 2)
    6.09
    """
    service = {"per_packet": _text(per_packet, "s")}
    if per_byte:
        service["per_byte"] = _text(per_byte, "s/B")
    document: dict[str, Any] = {"builder": "multicore", "name": name, "cores": cores, "service": service}
    document |= {key: _text(entry, _UNITS[key]) if key in _UNITS else entry for key, entry in fields.items()}
    router = Router(document, name)
    router._built(None)
    return router


def solve(
    router: Router | str | Path, load: Rate | None = None, *, frames: Frames | None = None, flows: int | None = None
) -> Trial:
    """Solve a router in closed form: throughput, loss, bottleneck, and latency where theory gives it.

    Parameters
    ----------
    router : Router or path
    load : str, float or None
        Load over all ports: ``"14 Mpps"``, ``"20 Gbit/s"`` (including gap and preamble, S1), or frames per second;
        None: the load of the file.
    frames : str, int or None
        ``"IMIX"``, ``"64 B"``, or bytes; None: the frames of the file, or 64 B.
    flows : int or None
        Number of flows, crafted to spread evenly; None: the flows of the file, or one for each core.
    """
    from routecast.evaluate.solve import Solve

    model, offered = _model_and_load(router, load, frames, flows)
    return Solve(model=model).trial(offered, 1.0)


def simulate(
    router: Router | str | Path,
    load: Rate | None = None,
    *,
    frames: Frames | None = None,
    flows: int | None = None,
    duration: str | float = 0.1,
    seed: int = 1,
) -> Trial:
    """Simulate a router frame by frame; parameters as for :func:`solve`, ``duration`` in seconds or ``"100 ms"``."""
    from routecast.evaluate.simulate import Simulate

    model, offered = _model_and_load(router, load, frames, flows)
    return Simulate(model, seed=seed).trial(offered, _seconds(duration))


def measure(
    load: Rate,
    *,
    testbed: str = "namespaces",
    dut: str | None = None,
    frames: Frames | None = None,
    flows: int = 1,
    duration: str | float = 0.5,
    seed: int = 1,
    **options: str,
) -> Trial:
    """Measure a real router, in network namespaces of this machine or between the ports of a test bed.

    Parameters
    ----------
    load, frames, duration
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
    from routecast.testbed import open_testbed

    mix = _mix(frames) or FrameMix.fixed(64)
    offered = OfferedLoad(rate_pps=_rate_pps(load, mix), frames=mix, flows=FlowSet.crafted(flows, ports=1))
    with open_testbed(testbed, device=dut, options=options, seed=seed) as evaluator:
        return evaluator.trial(offered, _seconds(duration))


def sweep(router: Router | str | Path, *, simulate: bool = False, **varied: Any) -> polars.DataFrame:
    """Evaluate a router at every combination of the varied values; return a row for each.

    Parameters
    ----------
    router : Router or path
    simulate : bool
        Whether to simulate each combination as well.
    **varied
        ``cores=range(1, 17)``, ``frame=[64, "IMIX"]``, ``load=["1 Mpps", "2 Mpps"]``, ``flows``, or any field of the
        file, ``**{"service.per_packet": ["400 ns", "500 ns"]}``; also single values. Without a load, the rows have the
        maximum throughputs.
    """
    import polars as pl

    from routecast.evaluate.sweep import Settings, parse_varied
    from routecast.evaluate.sweep import sweep as evaluate

    router = _router(router)
    texts = [f"{key}={','.join(_vary_texts(key, values))}" for key, values in varied.items()]
    axes = parse_varied(texts, router.document, subject=router.subject)
    keys = {axis.key for axis in axes}

    def offered(settings: Settings, model: RouterModel, default: OfferedLoad | None) -> OfferedLoad:
        mix = FrameMix.parse(str(settings["frame"])) if "frame" in settings else None
        flows = settings.get("flows")
        rate = str(settings["load"]) if "load" in settings else (1.0 if default is None else default.rate_pps)
        return _load(model, default, rate, mix, None if flows is None else int(flows))

    answer = evaluate(
        router.document,
        axes,
        offered,
        subject=router.subject,
        folder=router.folder,
        has_load="load" in keys,
        keeps_flows="flows" in keys,
        simulates=simulate,
    )
    return pl.DataFrame([_flat(row) for row in answer.rows()])


@dataclass(frozen=True)
class Calibration:
    """A router that was calibrated from measured ``points``; ``fitted`` has its parameters."""

    points: tuple[Point, ...]
    fitted: FittedRouter
    remarks: tuple[str, ...] = ()

    def predict(
        self, cores: Iterable[int] | int | None = None, frames: Iterable[Frames] | Frames | None = None
    ) -> polars.DataFrame:
        """Predict maximum throughputs with 95 % intervals, in a row for each number of cores and frames.

        None selects the values of the table.
        """
        import polars as pl

        model = max(self.points, key=lambda point: point.cores)
        counts = _listed(cores) if cores is not None else sorted({point.cores for point in self.points})
        if frames is None:
            sizes = sorted({(p.frame_bytes, p.frame_mix) for p in self.points}, key=lambda size: size[0])
        else:
            mixes = [_mix(entry) or FrameMix.fixed(64) for entry in _listed(frames)]
            sizes = [(mix.mean_bytes, None if mix.is_fixed else mix) for mix in mixes]
        predicted_points = [
            replace(at_cores(model, count), frame_bytes=size, frame_mix=mix, throughput_pps=math.nan, calibrate=False)
            for count in counts
            for size, mix in sizes
        ]
        return pl.DataFrame(
            [
                {
                    "cores": prediction.point.cores,
                    "frames": prediction.point.frame_mix.name
                    if prediction.point.frame_mix
                    else f"{prediction.point.frame_bytes:g} B",
                    "frame_bytes": prediction.point.frame_bytes,
                    "throughput_pps": prediction.throughput_pps,
                    "low_pps": prediction.low_pps,
                    "high_pps": prediction.high_pps,
                    "limit": prediction.limit,
                }
                for prediction in self.fitted.predict(predicted_points)
            ]
        )

    def size(
        self, target: str, frames: Frames | None = None, *, cores: Iterable[int] = range(1, 65), **options: Any
    ) -> Sizing:
        """Return how many cores a target needs; ``confidence="95%"`` and ``loss=0.0`` as for ``routecast size``."""
        from routecast.size import Target
        from routecast.size import size as answer

        mix = _mix(frames)
        confidence = options.pop("confidence", 0.95)
        parsed_target = Target.parse(
            target,
            mix.name if mix else "",
            confidence_ratio=parse_ratio(confidence) if isinstance(confidence, str) else confidence,
            loss_ratio=options.pop("loss", 0.0),
        )
        if options:
            raise TypeError(f"size() has no option {', '.join(options)}: give confidence, loss, cores or frames")
        return answer(self.points, parsed_target, counts=tuple(cores))

    def next(self, n: int = 3) -> polars.DataFrame:
        """Return the measurements that would narrow the intervals most, in descending order of their effect."""
        import polars as pl

        return pl.DataFrame([point.to_json() for point in self.fitted.next_points(n)])

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Contradictions between the points, and assumptions about the table."""
        return (*self.remarks, *self.fitted.warnings)

    def facts(self, cores: int) -> tuple[OpenFact, ...]:
        """Return the open facts about the router, with the interval for ``cores`` cores for each answer."""
        from routecast.calibration.facts import open_facts

        return open_facts(self.fitted, [at_cores(max(self.points, key=lambda point: point.cores), cores)])

    def router(self, cores: int, frames: Frames = 64) -> RouterModel:
        """Return the calibrated router with ``cores`` cores, for the evaluators, exact for these frames."""
        mix = _mix(frames) or FrameMix.fixed(64)
        return self.fitted.router_model(cores, mix.mean_bytes)

    def __repr__(self) -> str:
        frame_s = self.fitted.parameters["T_c"].value
        return f"Calibration({self.fitted.series!r}: {len(self.fitted.points)} points, {frame_s * 1e9:.4g} ns a frame)"


def calibrate(
    table: str | Path | Sequence[Point], *, series: str | None = None, noise_ratio: float | None = None
) -> Calibration:
    """Calibrate a router from a table of measured maximum throughputs (CSV, Parquet) or from points.

    Raises
    ------
    routecast.errors.RoutecastError
        The table is not valid, or it has several series and ``series`` is None.
    """
    remarks: tuple[str, ...] = ()
    if isinstance(table, str | Path):
        points_table = read_table(Path(table))
        points, remarks = points_table.points, points_table.remarks
    else:
        points = tuple(table)
    points = of_series(points, series)
    calibration_points = calibrating(points)
    return Calibration(points, fit(calibration_points, noise_ratio=noise_ratio), remarks)


def _router(router: Router | str | Path) -> Router:
    if isinstance(router, str | Path):
        return read(router)
    if not isinstance(router, Router):
        raise TypeError(f"got a {type(router).__name__}: a router is what rc.read or rc.multicore gives, or a path")
    return router


def _model_and_load(
    router: Router | str | Path, load: Rate | None, frames: Frames | None, flows: int | None
) -> tuple[RouterModel, OfferedLoad]:
    router = _router(router)
    mix = _mix(frames)
    model, default = router._built(mix)
    if load is None and default is None:
        raise QuantityProblem("", f'{router.subject} has no load: give one, such as "14 Mpps"')
    return model, _load(model, default, load, mix, flows)


def _load(
    model: RouterModel, default: OfferedLoad | None, load: Rate | None, mix: FrameMix | None, flows: int | None
) -> OfferedLoad:
    ports = len(model.ports)
    count = flows or max(pool.units for pool in model.pools)
    base = default or OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(max(count, ports), ports=ports))
    mix = mix or base.frames
    rate_pps = base.rate_pps if load is None else _rate_pps(load, mix)
    flow_set = FlowSet.crafted(flows, ports=ports) if flows else base.flows
    return OfferedLoad(rate_pps=rate_pps, frames=mix, flows=flow_set, arrivals=base.arrivals)


def _rate_pps(rate: Rate, mix: FrameMix) -> float:
    if isinstance(rate, int | float) and not isinstance(rate, bool):
        return float(rate)
    if not isinstance(rate, str):
        raise TypeError(f'got a {type(rate).__name__} for a rate: write "14 Mpps", "20 Gbit/s", or frames per second')
    return IntendedRate.parse(rate).pps(mix)


def _mix(frames: Frames | None) -> FrameMix | None:
    if frames is None:
        return None
    if isinstance(frames, bool) or not isinstance(frames, str | int):
        raise TypeError(f'got a {type(frames).__name__} for frames: write "IMIX", "64 B", or a number of bytes')
    return FrameMix.parse(f"{frames} B" if isinstance(frames, int) else frames)


def _seconds(duration: str | float) -> float:
    return parse_duration_s(duration) if isinstance(duration, str) else float(duration)


def _text(quantity: object, unit: str) -> object:
    """Write a number in base units as a router file writes it."""
    is_number = isinstance(quantity, int | float) and not isinstance(quantity, bool)
    return f"{quantity!r} {unit}" if is_number else quantity


def _listed(values: Any) -> list[Any]:
    return [values] if isinstance(values, str | int) or not isinstance(values, Iterable) else list(values)


def _vary_texts(key: str, values: Any) -> list[str]:
    """Write the values of a key as ``--vary`` takes them: mixes of frames with ``+``, numbers in base units."""
    units = {"load": " pps"} if key in {"load", "load.rate"} else {}
    return [
        f"{value:.12g}{units.get('load', '')}"
        if isinstance(value, float) or (units and isinstance(value, int))
        else str(value).replace(", ", "+").replace(",", "+")
        for value in _listed(values)
    ]


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
