"""The Python interface of routecast: the names of ``import routecast as rc``.

Quantities are texts with units (``"14 Mpps"``, ``"562 ns"``, ``"IMIX"``) or numbers in base units (frames per second,
seconds, bytes). A number that is absurd in its base unit, such as 562 s a frame, is asked about.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from routecast.calibration import FittedRouter, fit
from routecast.calibration.fitted import MAX_CORES, at_cores
from routecast.errors import ArgumentProblem, FileProblem, Problem, QuantityProblem
from routecast.evaluate.point_table import parse_cells, read_table
from routecast.evaluate.points import Point, PointTable, calibrating, of_series
from routecast.evaluate.trial import Trial
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.load.offered import IntendedRate
from routecast.quantity import parse_duration_s, parse_ratio
from routecast.quantity.bounded_file import read_text
from routecast.quantity.fields import Parsed
from routecast.quantity.toml_file import parse_toml
from routecast.quantity.value_list import parse_counts
from routecast.router.files import build_router, router_table
from routecast.router.model import Port, ResourcePool, RouterModel
from routecast.router.variants import field_of, vary
from routecast.wings import require_part

if TYPE_CHECKING:
    import polars
    from pydantic import BaseModel

    from routecast.calibration.facts import OpenFact
    from routecast.size import Sizing

__all__ = ["Calibration", "Router", "calibrate", "measure", "multicore", "read", "simulate", "solve", "sweep"]

Rate = str | float
Frames = str | int | FrameMix
Counts = int | str | Iterable[int]

_LOAD_KEYS = {"load": "load.rate", "frame": "load.frames", "frames": "load.frames", "flows": "load.flows.count"}
"""Short keys of ``--vary``, and the fields of a router file that they are short for."""
_MAX_FLOWS = 1_000_000
_MAX_SEED = 2**63 - 1
_MAX_CELL_CHARACTERS = 80
_LEAST_LOAD_PPS = 1e3
"""A load below this is probably in Mpps where its number has no unit."""
_ASKED_ABOVE = {"s": (100.0, "us"), "s/B": (1e-6, "ns/B")}
_ASKED_BELOW = {"bit/s": (100e6, "Gbit/s"), "pps": (100e3, "Mpps"), "Hz": (1e6, "GHz"), "B/s": (1e6, "GB/s")}
"""Numbers in base units that are asked about, by unit: the limit, and the unit that was probably meant."""
_LONGEST_COST_S, _SHORTEST_COST_S = 1e-3, 1e-10
"""A frame that takes a core longer, or less than a cycle, is asked about."""
_LEAST_NOISE_RATIO = 1e-6
"""Least repeatability of a rate: a thousandth of what a counter of a second resolves."""


@dataclass(frozen=True, slots=True)
class Router:
    """A router and its file; evaluators take ``model``, and ``load`` is the load of the file."""

    document: Mapping[str, Any]
    subject: str = "router"
    folder: Path | None = None
    follows_cores: bool = False
    """Whether the flows follow the cores: as many crafted flows as fill cores and ports evenly, as in a sweep."""

    def __post_init__(self) -> None:
        if not isinstance(self.document, Mapping):
            raise _wrong(self.document, "a router", "rc.read reads a file, and rc.multicore describes a router")

    @property
    def model(self) -> RouterModel:
        """The router as task units over pools of resources."""
        return self._built(None)[0]

    @property
    def load(self) -> OfferedLoad | None:
        """The load of the file; None if the file has no load."""
        return self._built(None)[1]

    @property
    def pools(self) -> tuple[ResourcePool, ...]:
        """The resource pools of the router, such as its cores."""
        return self.model.pools

    @property
    def ports(self) -> tuple[Port, ...]:
        """The ports of the router with their links."""
        return self.model.ports

    def varied(self, **changes: object) -> Router:
        """Return the router with changed fields: ``cores=8``, ``**{"service.per_packet": "400 ns"}``.

        Keys and values are those of ``sweep``, and so is the answer: with other ``cores`` the flows follow them.

        Raises
        ------
        routecast.errors.RoutecastError
            A field is unknown, or its value is not valid.
        """
        if "frame" in changes and "frames" in changes:
            raise QuantityProblem("", _TWO_FRAMES)
        table = router_table(dict(self.document), self.subject)
        values = {
            path: _written(path, entry, table)
            for key, entry in changes.items()
            for path in [key if isinstance(entry, Mapping) else _LOAD_KEYS.get(key, key)]
        }
        document = vary(self.document, values, subject=self.subject)
        if "cores" in values and "name" not in values:
            document = _named_by_cores(document, self.document.get("cores"))
        follows_cores = (self.follows_cores or "cores" in values) and "load.flows.count" not in values
        subject = document["name"] if self.subject == self.document.get("name") else self.subject
        router = replace(self, document=document, subject=subject, follows_cores=follows_cores)
        router._built(None)
        return router

    def to_polars(self) -> polars.DataFrame:
        """Return a row for each field of the file: the path that ``varied`` takes, and the value as text."""
        import polars as pl

        fields = list(_fields(self.document))
        return pl.DataFrame(
            {"field": [path for path, _ in fields], "value": [text for _, text in fields]},
            schema={"field": pl.String, "value": pl.String},
        )

    def _built(self, frames: FrameMix | None) -> tuple[RouterModel, OfferedLoad | None]:
        return build_router(self.document, subject=self.subject, folder=self.folder, frames=frames)

    def _repr_html_(self) -> str:
        from routecast.show.tables import Table, table_html  # imported only where a notebook shows a router

        rows = [
            (path, text if len(text) <= _MAX_CELL_CHARACTERS else text[:_MAX_CELL_CHARACTERS] + "…")
            for path, text in _fields(self.document)
        ]
        return _captioned(table_html(Table.of_facts(rows, name="router", title="router")), repr(self))

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
    path = _path(path, "a router file")
    router = Router(parse_toml(read_text(path, kind="router file"), str(path)), str(path), path.parent)
    router._built(None)
    return router


def multicore(
    cores: int, per_packet: str | float, per_byte: str | float = 0.0, *, name: str = "multicore", **fields: object
) -> Router:
    """Describe a multi-core router by its cores, the time or cycles per frame on a core, and other fields of its file.

    Raises
    ------
    routecast.errors.RoutecastError
        A field is unknown, or its value is not valid, or has no unit and is absurd in its base unit.

    Examples
    --------
    >>> router = multicore(4, "562 ns", link="10 Gbit/s", contention={"sigma": 0.056})
    >>> round(solve(router, "14 Mpps").forwarded_pps / 1e6, 2)
    6.09
    """
    service = {"per_packet": per_packet}
    if not isinstance(per_byte, Real) or isinstance(per_byte, bool) or per_byte != 0.0:
        service["per_byte"] = per_byte
    name = _name(name, "a name", "write it as text")
    document = {"builder": "multicore", "name": name, "cores": cores, "service": service, **fields}
    table = router_table({"builder": "multicore"})
    router = Router({key: _written(key, entry, table) for key, entry in document.items()}, name)
    router._built(None)
    return router


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

    model, offered = _model_and_load(router, load, _either(frames, frame), flows)
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

    model, offered = _model_and_load(router, load, _either(frames, frame), flows)
    trace = offered.arrivals.trace
    duration_s = (0.1 if trace is None else trace.length_s) if duration is None else _seconds(duration)
    return Simulate(model, seed=_count(seed, "a seed", least=0, most=_MAX_SEED)).trial(offered, duration_s)


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
    mix = _mix(_either(frames, frame)) or FrameMix.fixed(64)
    flow_set = FlowSet.crafted(_count(flows, "a number of flows", most=_MAX_FLOWS), ports=1)
    offered = OfferedLoad(rate_pps=_rate_pps(load, mix), frames=mix, flows=flow_set)
    duration_s, seed = _seconds(duration), _count(seed, "a seed", least=0, most=_MAX_SEED)
    bed = testbed if isinstance(testbed, str) and testbed == "namespaces" else _path(testbed, "a test bed")
    device = None if dut is None else _name(dut, "a device", "routecast testbed devices lists them")
    texts = {key: _name(entry, f"the option {key}", "write it as text") for key, entry in options.items()}
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
    simulates = _flag(simulate, "simulate")
    table = router_table(dict(router.document), router.subject)
    if "frame" in varied and "frames" in varied:
        raise QuantityProblem("", _TWO_FRAMES)
    keys_and_values = {("frame" if key == "frames" else key): values for key, values in varied.items()}
    texts = [f"{key}={','.join(_vary_texts(key, values, table))}" for key, values in keys_and_values.items()]
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


@dataclass(frozen=True)
class Calibration:
    """A router that was calibrated from measured ``points``; ``fitted`` has its parameters."""

    points: tuple[Point, ...]
    fitted: FittedRouter
    remarks: tuple[str, ...] = ()
    noise_ratio: float | None = None

    def predict(
        self,
        cores: Counts | None = None,
        frames: Iterable[Frames] | Frames | None = None,
        *,
        frame: Iterable[Frames] | Frames | None = None,
    ) -> polars.DataFrame:
        """Predict maximum throughputs with 95 % intervals, in a row for each number of cores and frames.

        None selects the values of the table.
        """
        import polars as pl

        frames = _either(frames, frame)
        model = max(self.points, key=lambda point: point.cores)
        counts = _counts(cores) if cores is not None else sorted({point.cores for point in self.points})
        if frames is None:
            sizes = sorted({(p.frame_bytes, p.frame_mix) for p in self.points}, key=lambda size: size[0])
        else:
            mixes = [_mix(entry) or FrameMix.fixed(64) for entry in _listed(frames, "frames")]
            sizes = [(mix.mean_bytes, None if mix.is_fixed else mix) for mix in mixes]
        if not sizes:
            raise QuantityProblem("", 'there are no frames: give "IMIX", "64 B", bytes, or a list of them')
        predicted_points = [
            replace(at_cores(model, count), frame_bytes=size, frame_mix=mix, throughput_pps=math.nan, calibrate=False)
            for count in counts
            for size, mix in sizes
        ]
        return pl.DataFrame(self._predicted(predicted_points))

    def size(
        self,
        target: Rate,
        frames: Frames | None = None,
        *,
        cores: Counts = "1..64",
        confidence: str | float = 0.95,
        loss: str | float = 0.0,
        latency: str | None = None,
        frame: Frames | None = None,
    ) -> Sizing:
        """Return how many cores a target needs.

        Parameters
        ----------
        target : str or float
            ``"40 Gbit/s"`` (including gap and preamble, S1), ``"20 Mpps"``, or frames per second.
        frames : str, int or None
            ``"IMIX"``, ``"64 B"``, or bytes; None: 64 B. ``frame`` is the same.
        cores : str, int or iterable of int
            Counts to choose from: ``"1..8"``, ``range(1, 9)``, ``[4, 8]``.
        confidence, loss, latency
            As for ``routecast size``: ``"95%"`` or 0.95, ``"0.1%"`` or 0.001, ``"p99 < 100 us"``.

        Raises
        ------
        routecast.errors.RoutecastError
            An argument has a wrong type or value.
        """
        from routecast.evaluate.targets import parse_targets
        from routecast.size import Target
        from routecast.size import size as answer

        mix = _mix(_either(frames, frame)) or FrameMix.fixed(64)
        bounds = () if latency is None else parse_targets([_name(latency, "a bound on the latency", '"p99 < 100 us"')])
        if any(bound.quantity == "loss" for bound in bounds):
            raise QuantityProblem(str(latency), "latency bounds the latency: give the loss with loss")
        parsed_target = Target(
            rate_pps=_rate_pps(target, mix),
            frames=mix,
            confidence_ratio=_ratio(confidence, "a probability"),
            loss_ratio=_ratio(loss, "a loss", zero_allowed=True),
        )
        return answer(self.points, parsed_target, counts=_counts(cores), noise_ratio=self.noise_ratio, bounds=bounds)

    def next(self, n: int = 3) -> polars.DataFrame:
        """Return the measurements that would narrow the intervals most, in descending order of their effect."""
        import polars as pl

        count = _count(n, "a number of measurements", most=100)
        return pl.DataFrame([point.to_json() for point in self.fitted.next_points(count)])

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Contradictions between the points, and assumptions about the table."""
        return (*self.remarks, *self.fitted.warnings)

    def facts(self, cores: int) -> tuple[OpenFact, ...]:
        """Return the open facts about the router, with the interval for ``cores`` cores for each answer."""
        from routecast.calibration.facts import open_facts

        count = _count(cores, "cores", most=MAX_CORES)
        return open_facts(self.fitted, [at_cores(max(self.points, key=lambda point: point.cores), count)])

    def router(self, cores: int, frames: Frames | None = None, *, frame: Frames | None = None) -> Router:
        """Return the calibrated router with ``cores`` cores, with the links, ports and caps of the table.

        A router like any other, for ``solve``, ``simulate`` and ``sweep``. Its service time has the least errors over
        the frames of the table, or is exact for ``frames``.
        """
        from routecast.calibration.router_file import router_document

        document = router_document(self.fitted, _count(cores, "cores", most=MAX_CORES), _mix(_either(frames, frame)))
        return Router(document, str(document["name"]))

    def to_polars(self) -> polars.DataFrame:
        """Return a row for each point of the table: its rate, its prediction with the 95 % interval, what limits."""
        import polars as pl

        return pl.DataFrame(self._rows())

    def _predicted(self, points: Iterable[Point]) -> list[dict[str, Any]]:
        return [
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
            for prediction in self.fitted.predict(tuple(points))
        ]

    def _rows(self) -> list[dict[str, Any]]:
        calibrates = {point.conditions for point in self.fitted.points}
        return [
            {
                **row,
                "measured_pps": None if math.isnan(point.throughput_pps) else point.throughput_pps,
                "calibrates": point.conditions in calibrates,
            }
            for point, row in zip(self.points, self._predicted(self.points), strict=True)
        ]

    def _repr_html_(self) -> str:
        from routecast.show.tables import Column, Table, scaled, table_html

        mpps = scaled(1e-6, ".4g")
        table = Table.of(
            self._rows(),
            Column("Cores", getter=lambda row: row["cores"]),
            Column.text("Frames", lambda row: row["frames"]),
            Column("Measured", "Mpps", mpps, lambda row: row["measured_pps"]),
            Column("Predicted", "Mpps", mpps, lambda row: row["throughput_pps"]),
            Column("95 % from", "Mpps", mpps, lambda row: row["low_pps"]),
            Column("to", "Mpps", mpps, lambda row: row["high_pps"]),
            Column.text("Limit", lambda row: row["limit"]),
            Column.text("Calibrates", lambda row: "yes" if row["calibrates"] else "no"),
            name="calibration",
        )
        return _captioned(table_html(table), repr(self))

    def __repr__(self) -> str:
        frame_s = self.fitted.parameters["T_c"].value
        return f"Calibration({self.fitted.series!r}: {len(self.fitted.points)} points, {frame_s * 1e9:.4g} ns a frame)"


def calibrate(table: Any, *, series: str | None = None, noise_ratio: str | float | None = None) -> Calibration:
    """Calibrate a router from a table of measured maximum throughputs.

    Parameters
    ----------
    table : str, Path, data frame, mapping, or iterable
        A file (CSV, Parquet); a polars or pandas frame; a dict of columns, ``{"cores": [1, 2], "throughput_mpps":
        [1.9, 3.7]}``; rows, ``[{"cores": 1, "throughput_mpps": 1.9}, …]``; or points. The columns are those of a file.
    series : str or None
        Of several series this one.
    noise_ratio : str, float or None
        Repeatability of one measurement, ``"2%"`` or 0.02; None: from repetitions and published values.

    Raises
    ------
    routecast.errors.RoutecastError
        The table is not valid, or it has several series and ``series`` is None.
    """
    points_table = _points_table(table)
    noise = None if noise_ratio is None else _ratio(noise_ratio, "a repeatability")
    if noise is not None and noise < _LEAST_NOISE_RATIO:
        message = (
            f"got a repeatability of {noise:g}: no rate is measured within {_LEAST_NOISE_RATIO:g}; None estimates it"
        )
        raise QuantityProblem(str(noise), message)
    points = of_series(points_table.points, None if series is None else _name(series, "a series", "write its name"))
    if not points:
        raise QuantityProblem("", "the table has no row: give at least one measured point")
    return Calibration(points, fit(calibrating(points), noise_ratio=noise), points_table.remarks, noise)


def _points_table(table: Any) -> PointTable:
    """Read a file, a frame, a mapping of columns, rows or points."""
    if isinstance(table, str | os.PathLike):
        return read_table(_path(table, "a table"))
    if hasattr(table, "lazy") and hasattr(table, "collect"):  # polars: a frame that is computed when it is needed
        table = table.collect()
    if any(name is not None for name in getattr(getattr(table, "index", None), "names", ())):
        table = table.reset_index()  # pandas: an index with a name is a column
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):  # polars, pandas
        table = {str(name): list(table[name]) for name in table.columns}
    if isinstance(table, Mapping):
        return parse_cells(_cells_of_columns(table), name=_TABLE)
    if isinstance(table, Iterable) and not isinstance(table, bytes | bytearray):
        rows = list(table)
        if rows and all(isinstance(row, Point) for row in rows):
            return PointTable(points=tuple(rows))
        if all(isinstance(row, Mapping) for row in rows):
            heads = dict.fromkeys(str(key) for row in rows for key in row)
            by_name = [{str(key): entry for key, entry in row.items()} for row in rows]
            cells = [[_cell(row.get(head)) for head in heads] for row in by_name]
            return parse_cells([list(heads), *cells] if heads else [], name=_TABLE)
    raise _wrong(
        table, "a table", "give a path, a polars or pandas frame, a dict of columns, or rows, each a dict or a Point"
    )


_TABLE = "the table (row 1 is the heads)"
_TABLE_SUFFIXES = frozenset({".csv", ".parquet", ".tsv", ".xlsx", ".xlsm", ".ods"})


def _cells_of_columns(columns: Mapping[Any, Any]) -> list[list[str]]:
    """Return the cells of a mapping of columns, the heads first; a single value holds for every row."""
    listed = {
        str(name): list(column)
        for name, column in columns.items()
        if isinstance(column, Iterable) and not isinstance(column, str | bytes | Mapping)
    }
    lengths = {len(column) for column in listed.values()} or ({1} if columns else set())
    if len(lengths) > 1:
        counts = ", ".join(f"{name} {len(column)}" for name, column in listed.items())
        raise FileProblem(_TABLE, [Problem("", f"has columns of several lengths ({counts}): give each as many rows")])
    if not lengths:
        return []
    (length,) = lengths
    filled = {str(name): listed.get(str(name), [entry] * length) for name, entry in columns.items()}
    return [list(filled), *([_cell(column[row]) for column in filled.values()] for row in range(length))]


def _cell(entry: Any) -> str:
    """Write a value as the cell of a table; what is missing is empty."""
    entry = _plain(entry)
    if entry is None or str(entry) in {"nan", "NaN", "NaT", "<NA>"}:
        return ""
    if isinstance(entry, FrameMix):
        return entry.name
    return str(entry).lower() if isinstance(entry, bool) else str(entry)


def _router(router: Router | str | Path) -> Router:
    if isinstance(router, str | os.PathLike):
        if Path(router).suffix.lower() in _TABLE_SUFFIXES:
            message = f"{Path(router).name} is a table and no router: calibrate one, rc.calibrate(path).router(8)"
            raise ArgumentProblem(repr(router)[:_MAX_CELL_CHARACTERS], message)
        return read(Path(router))
    if hasattr(router, "columns"):
        raise _wrong(router, "a router", "calibrate a table first, rc.calibrate(table).router(8)")
    if isinstance(router, Calibration):
        raise _wrong(router, "a router", "say how many cores it has: fitted.router(8)")
    if not isinstance(router, Router):
        raise _wrong(router, "a router", "a router is what rc.read or rc.multicore gives, or a path")
    return router


def _model_and_load(
    router: Router | str | Path, load: Rate | None, frames: Frames | None, flows: int | None
) -> tuple[RouterModel, OfferedLoad]:
    router = _router(router)
    mix = _mix(frames)
    model, default = router._built(mix)
    if load is None and default is None:
        raise QuantityProblem("", f'{router.subject} has no load: give one, such as "14 Mpps"')
    count = None if flows is None else _count(flows, "a number of flows", most=_MAX_FLOWS)
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
        return base if load is None else base.at(_rate_pps(load, base.frames))
    if has_cores and (default is None or (router.follows_cores and is_crafted(base, ports))):
        base = replace(base, flows=even_flows(int(cores or 1), ports))
    mix = mix or base.frames
    rate_pps = base.rate_pps if load is None else _rate_pps(load, mix)
    flow_set = FlowSet.crafted(flows, ports=ports) if flows else base.flows
    return OfferedLoad(rate_pps=rate_pps, frames=mix, flows=flow_set, arrivals=base.arrivals)


def _wrong(got: object, what: str, remedy: str) -> ArgumentProblem:
    """Return the error of a value whose type a function does not take."""
    name = type(got).__name__
    kind = "None" if got is None else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
    return ArgumentProblem(repr(got)[:_MAX_CELL_CHARACTERS], f"got {kind} for {what}: {remedy}")


def _plain(entry: Any) -> Any:
    """Return Python's own number or Boolean for that of NumPy, which other libraries give."""
    if type(entry).__module__ == "numpy" and getattr(entry, "shape", None) == ():
        return entry.item()
    return entry


def _is_number(entry: object) -> bool:
    return isinstance(entry, Real) and not isinstance(entry, bool)


def _count(entry: Any, what: str, *, least: int = 1, most: int) -> int:
    entry = _plain(entry)
    if isinstance(entry, str) and entry.strip().isdecimal():
        entry = int(entry)
    remedy = f"write a whole number from {least} to {most:,}"
    if not _is_number(entry):
        raise _wrong(entry, what, remedy)
    if not math.isfinite(entry) or entry != int(entry) or not least <= entry <= most:
        raise QuantityProblem(str(entry), f"got {entry} for {what}: {remedy}")
    return int(entry)


def _counts(entry: Any) -> tuple[int, ...]:
    """Read numbers of cores: a number, a text as ``--cores`` takes it, or several numbers."""
    if isinstance(entry, str):
        return parse_counts(entry, most=MAX_CORES)
    counts = tuple(_count(count, "cores", most=MAX_CORES) for count in _listed(entry, "cores"))
    if not counts:
        raise QuantityProblem("", 'there are no cores: give a number, "1..8", range(1, 9), or a list')
    return counts


def _ratio(entry: Any, what: str, *, zero_allowed: bool = False) -> float:
    entry = _plain(entry)
    if isinstance(entry, str):
        return parse_ratio(entry, zero_allowed=zero_allowed)
    remedy = f"write {'0 or more' if zero_allowed else 'more than 0'} and less than 1, such as 0.05 or " + '"5 %"'
    if not _is_number(entry):
        raise _wrong(entry, what, remedy)
    if not (0.0 < entry < 1.0 or (zero_allowed and entry == 0.0)):
        raise QuantityProblem(str(entry), f"got {entry} for {what}: {remedy}")
    return float(entry)


def _rate_pps(rate: Any, mix: FrameMix) -> float:
    rate = _plain(rate)
    if isinstance(rate, str):
        return IntendedRate.parse(rate).pps(mix)
    if not _is_number(rate):
        raise _wrong(rate, "a rate", 'write "14 Mpps", "20 Gbit/s", or frames per second')
    _check_load(rate)
    return float(rate)


def _check_load(rate: float) -> None:
    if not (math.isfinite(rate) and rate > 0.0):
        raise QuantityProblem(str(rate), f"got {rate} for a rate: write more than 0 frames per second")
    if rate < _LEAST_LOAD_PPS:
        message = f'got {rate:g} frames/s, a number without a unit: write its unit, "{rate:g} Mpps" or "{rate:g} pps"'
        raise QuantityProblem(str(rate), message)


_TWO_FRAMES = "frame and frames are the same: give one of them"


def _either(frames: Any, frame: Any) -> Any:
    """Return the frames under the one of two names that was given."""
    if frames is not None and frame is not None:
        raise QuantityProblem("", _TWO_FRAMES)
    return frame if frames is None else frames


def _varied_name(key: str) -> str:
    """Name a varied key as Python writes it, ``varied(cores=…)``; a text ``KEY=VALUES`` with its values."""
    name, _, values = key.partition("=")
    written = f'"{values}"' if values else "…"
    return f"varied({name}={written})" if name.isidentifier() else f'varied(**{{"{name}": {written}}})'


def _named_by_cores(document: dict[str, Any], cores: object) -> dict[str, Any]:
    """Return a router whose name follows its cores, where it ended with the number of those it had."""
    name, ending = str(document.get("name", "")), f", {cores} cores"
    changed = document.get("cores")
    if not name.endswith(ending) or changed == cores:
        return document
    return {**document, "name": f"{name.removesuffix(ending)}, {changed} cores"}


def _mix(frames: Any) -> FrameMix | None:
    frames = _plain(frames)
    if frames is None or isinstance(frames, FrameMix):
        return frames
    if isinstance(frames, str):
        return FrameMix.parse(frames)
    if not _is_number(frames):
        raise _wrong(frames, "frames", 'write "IMIX", "64 B", or a number of bytes')
    if not math.isfinite(frames) or frames != int(frames):
        raise QuantityProblem(str(frames), f"got frames of {frames} bytes: write whole bytes, or a mix such as IMIX")
    return FrameMix.parse(f"{int(frames)} B")


def _seconds(duration: Any) -> float:
    duration = _plain(duration)
    if isinstance(duration, str):
        return parse_duration_s(duration)
    if not _is_number(duration):
        raise _wrong(duration, "a duration", 'write "100 ms", or seconds')
    if not (math.isfinite(duration) and duration > 0.0):
        raise QuantityProblem(str(duration), f'got {duration} for a duration: write "100 ms", or seconds, more than 0')
    return float(duration)


def _flag(entry: Any, what: str) -> bool:
    entry = _plain(entry)
    if not isinstance(entry, bool):
        raise _wrong(entry, what, "write True or False")
    return entry


def _name(entry: Any, what: str, remedy: str) -> str:
    if not isinstance(entry, str):
        raise _wrong(entry, what, remedy)
    return entry


def _path(entry: Any, what: str) -> Path:
    if not isinstance(entry, str | os.PathLike):
        raise _wrong(entry, what, "write its path")
    text = os.fspath(entry)
    if not isinstance(text, str) or "\0" in text:
        raise QuantityProblem(repr(text), f"got {text!r} for {what}: write its path as text")
    return Path(text)


def _listed(values: Any, what: str) -> list[Any]:
    """Return several values as a list, and one value as a list of it."""
    if isinstance(values, Mapping | bytes | bytearray) or values is None:
        raise _wrong(values, what, "write a value, or several in a list")
    return [values] if isinstance(values, str) or not isinstance(values, Iterable) else list(values)


def _encodable(entry: Any) -> Any:
    """Return a text as UTF-8 can hold it: pydantic reports no other."""
    return entry.encode("utf-8", "replace").decode() if isinstance(entry, str) else entry


def _parsed_type(path: str, table: type[BaseModel]) -> Parsed | None:
    """Return how a field of a router file is written, where it is a text with a unit."""
    known = field_of(table, path)
    kinds = [known.annotation] if known else []
    while kinds:
        kind = kinds.pop()
        if isinstance(kind, Parsed):
            return kind
        kinds += [*get_args(kind), *getattr(kind, "__metadata__", ())]
    return None


def _written(path: str, entry: Any, table: type[BaseModel]) -> Any:
    """Write a number in base units as a router file writes it, with its unit, and so the numbers in tables and lists.

    Raises QuantityProblem: the number is absurd in its base unit, so that another unit was probably meant.
    """
    entry = _plain(entry)
    if isinstance(entry, Mapping):
        return {str(key): _written(f"{path}.{key}", part, table) for key, part in entry.items()}
    if isinstance(entry, Iterable) and not isinstance(entry, str | bytes | bytearray):
        return [_written(f"{path}[{number}]", part, table) for number, part in enumerate(entry)]
    if not _is_number(entry):
        return _encodable(entry)
    entry = int(entry) if isinstance(entry, Integral) else float(entry)
    if not math.isfinite(entry):
        raise QuantityProblem(str(entry), f"{path}: got {entry}: write a finite number, or a text with a unit")
    if path == "load.rate":
        _check_load(entry)
        return f"{entry!r} pps"
    if path == "load.frames":
        return f"{entry:g} B"
    kind = _parsed_type(path, table)
    if kind is None or not kind.unit:
        return entry
    _check_unit(path, entry, kind.unit)
    return kind.write(entry)


def _check_unit(path: str, amount: float, unit: str) -> None:
    """Raise where a number without a unit is absurd in its base unit, and the probable one is another."""
    limit, probable = _ASKED_ABOVE.get(unit, (math.inf, ""))
    if unit == "s" and path.rpartition(".")[2].startswith("per_"):
        limit, probable = _LONGEST_COST_S, "ns"
    least, larger = _ASKED_BELOW.get(unit, (0.0, ""))
    if path.rpartition(".")[2] == "per_packet":
        least, larger = _SHORTEST_COST_S, "us"
    if amount > limit or 0.0 < amount < least:
        plain = f"{amount:g} {unit}"
        raise QuantityProblem(
            plain,
            f'{path}: got {amount:g} without a unit, which is {plain}: write its unit, "{amount:g} '
            f'{probable if amount > limit else larger}" or "{plain}"',
        )


def _vary_texts(key: str, values: Any, table: type[BaseModel]) -> list[str]:
    """Write the values of a key as ``--vary`` takes them: mixes of frames with ``+``, numbers in base units."""
    what = f"values of {key}"
    values = _encodable(values)
    if isinstance(values, str):  # a list or a range, as --vary takes it
        return [_with_plus(values) if key == "frame" and "x" in values.lower().replace("imix", "") else values]
    texts = []
    for entry in map(_plain, _listed(values, what)):
        if isinstance(entry, bool):
            texts.append(str(entry).lower())
        elif isinstance(entry, FrameMix) and key == "frame":
            texts.append(_with_plus(entry.name))
        elif isinstance(entry, str):
            text = _encodable(entry)
            texts.append(_with_plus(text) if key == "frame" else _THOUSANDS.sub("", text))
        elif not _is_number(entry):
            raise _wrong(entry, what, "write texts, numbers or Booleans, several in a list")
        elif key == "frame":
            texts.append(f"{_count(entry, 'bytes of a frame', most=_MAX_FLOWS)}")
        elif key == "flows":
            texts.append(f"{_count(entry, 'a number of flows', most=_MAX_FLOWS)}")
        elif key == "cores":
            texts.append(f"{_count(entry, 'cores', most=MAX_CORES)}")
        else:
            written = _written(_LOAD_KEYS.get(key, key), entry, table)
            texts.append(f"{written:.17g}" if isinstance(written, float) else str(written))
    return texts


_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def _with_plus(mix: str) -> str:
    return re.sub(r",\s*", "+", mix)


def _fields(document: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Yield the path and the value of each field of a router file."""
    for key, entry in document.items():
        parts = [(f"{prefix}{key}", entry)]
        if isinstance(entry, list) and entry and all(isinstance(part, Mapping) for part in entry):
            parts = [(f"{prefix}{key}[{part.get('name', number)}]", part) for number, part in enumerate(entry)]
        for path, part in parts:
            if isinstance(part, Mapping):
                yield from _fields(part, f"{path}.")
            else:
                yield path, str(part).lower() if isinstance(part, bool) else str(part)


def _captioned(table: str, caption: str) -> str:
    return table.replace("<table>", f"<table>\n<caption>{escape(caption)}</caption>", 1)


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
