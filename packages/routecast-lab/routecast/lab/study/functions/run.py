"""Run a study of functions: probe the host, estimate, run, refine, compare."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from statistics import median, stdev
from typing import Any, Protocol

from routecast.evaluate.ledger import Columns, Row, read_rows
from routecast.function.catalogue import read_function
from routecast.function.estimate import Estimate, estimate
from routecast.hardware.catalogue import read_hardware, write_hardware
from routecast.hardware.model import Hardware, MeasuredFunction
from routecast.hardware.probe_facts import is_of_this_machine, native
from routecast.lab.study.functions.document import FunctionStudy
from routecast.lab.study.refine import refine
from routecast.load.popularity import Popularity
from routecast.progress import ShareProgress
from routecast.quantity.comparison import ComparedRow, ErrorSummary, held_out
from routecast.study.engine import StudyRun, StudyTask
from routecast.study.result import Criterion, Measured, StudyResult, criteria_of

__all__ = ["FunctionPoint", "FunctionResult", "FunctionRow", "LocalBench", "RepeatedRun", "answer", "points"]

HOST_FILE = "host.hardware.toml"
REFINED_FILE = "refined.hardware.toml"

COLUMNS: Columns = {
    **dict.fromkeys(("task", "function", "direction", "size"), "text"),
    "frame_bytes": "whole",
    "traffic": "text",
    "repeat": "whole",
    **dict.fromkeys(("cycles", "core_hz", "hand_frames_s", "hand_lookup_s"), "number"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPoint:
    """A function with a size of its tables, a frame size and a traffic."""

    function: str
    direction: str
    size: str
    tables: tuple[tuple[str, int], ...]
    frame_bytes: int
    traffic: str
    refines: bool

    @property
    def entries(self) -> Mapping[str, int]:
        """Entries of each table."""
        return dict(self.tables)

    @property
    def title(self) -> str:
        """Function and direction in words."""
        return f"{self.function} {self.direction}".strip()

    def key(self, study: FunctionStudy, repeat: int) -> str:
        """Return the key of a run in the ledger: a hash of all its conditions."""
        run = study.run
        point = [self.function, self.direction, self.tables, self.frame_bytes, self.traffic]
        conditions = [*point, repeat, run.duration, run.core, run.seed]
        return hashlib.sha256(json.dumps(conditions).encode()).hexdigest()[:16]


def points(study: FunctionStudy) -> Iterator[FunctionPoint]:
    """Yield every point of the study once, in the order of the file."""
    for series in study.series:
        refining = {(refinement.size, refinement.traffic) for refinement in series.refine}
        for (size, tables), traffic, frame_bytes in product(series.tables.items(), series.traffic, series.frames):
            yield FunctionPoint(
                function=series.function,
                direction=series.direction,
                size=size,
                tables=tuple(sorted(tables.items())),
                frame_bytes=frame_bytes,
                traffic=traffic,
                refines=frame_bytes == series.frames[0] and (size, traffic) in refining,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class HandLoop:
    """Times of the best hand-written loop for a function's lookup, in seconds per packet.

    ``frames_s`` is the lookup on the same frames in one fused loop, ``lookup_s`` the lookup alone with prepared keys.
    ``bound_s`` and ``one_by_one_s`` are the times of the table's cache lines alone, requested in batches or one after
    the other.
    """

    frames_s: float = math.nan
    lookup_s: float = math.nan
    bound_s: float = math.nan
    one_by_one_s: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow(ComparedRow[FunctionPoint]):
    """Frames per second of a core: measured, and estimated from the probe alone; a point that refines calibrates.

    ``cycles`` are the cycles per packet of each repeat, ``core_hz`` the clock of the core meanwhile, ``refined_pps``
    the refined estimate. ``found_in`` is the level of the memory that most likely holds most lines of the tables.
    """

    cycles: Measured
    core_hz: float
    refined_pps: float
    found_in: str
    hand: HandLoop = HandLoop()

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "point": self.conditions,
            "estimated_cycles": self.estimated_cycles,
            "refined_cycles": self.refined_cycles,
            "measured_cycles": self.cycles.values,
            "core_hz": self.core_hz,
            "found_in": self.found_in,
            "low_cycles": self.low_cycles,
            "high_cycles": self.high_cycles,
            "hand": self.hand,
            "cycles": self.cycles.median,
            "measured_pps": self.measured,
            "estimated_pps": self.predicted,
            "error_ratio": self.error_ratio,
            "refined_error_ratio": self.refined_error_ratio,
        }

    @property
    def estimated_cycles(self) -> float:
        """Estimated cycles per packet, from the probe alone."""
        return self.core_hz / self.predicted

    @property
    def refined_cycles(self) -> float:
        """Refined estimate of the cycles per packet."""
        return self.core_hz / self.refined_pps

    @property
    def low_cycles(self) -> float:
        """Least cycles per packet of the estimate's 95 % range."""
        return self.core_hz / self.high

    @property
    def high_cycles(self) -> float:
        """Most cycles per packet of the estimate's 95 % range."""
        return self.core_hz / self.low

    @property
    def spread_ratio(self) -> float:
        """Range of the repeats relative to their median; NaN for fewer than two."""
        cycles = self.cycles
        return (cycles.most - cycles.least) / cycles.median if len(cycles.values) > 1 else math.nan

    @property
    def refined_error_ratio(self) -> float:
        """Relative error of the refined throughput."""
        return self.error_ratio_of(self.refined_pps)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult(StudyResult[FunctionStudy]):
    """The results of a study of functions."""

    hardware: Hardware
    refined: Hardware
    rows: tuple[FunctionRow, ...]

    def errors(self) -> ErrorSummary:
        """Summary of the estimates from the probe alone, over all points."""
        return ErrorSummary.of(row.error_ratio for row in self.rows)

    def refined_errors(self) -> ErrorSummary:
        """Summary of the refined estimates over the points that did not refine."""
        return ErrorSummary.of(row.refined_error_ratio for row in held_out(self.rows))

    @property
    def titles(self) -> tuple[str, ...]:
        """Functions with their directions, in the order of the rows."""
        return tuple(dict.fromkeys(row.conditions.title for row in self.rows))

    def _findings(self) -> dict[str, object]:
        return {
            "hardware": self.hardware.name,
            "errors": self.errors(),
            "refined_errors": self.refined_errors(),
            "rows": self.rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRun:
    """A run of a function: core cycles per packet, clock, and the hand loop beside it, NaN where it was not run."""

    cycles: float
    core_hz: float
    hand_frames_s: float = math.nan
    hand_lookup_s: float = math.nan


class FunctionBench(Protocol):
    """A host that is probed and runs functions."""

    def hardware(self, on_progress: ShareProgress) -> Hardware:
        """Return the host's costs; ``on_progress`` gets the finished share."""
        ...

    def run(self, point: FunctionPoint, seed: int, *, hand_loop: bool) -> RepeatedRun:
        """Run the function of a point once, beside its hand loop if there is one."""
        ...


class LocalBench:
    """The host that the study runs on."""

    def __init__(self, study: FunctionStudy) -> None:
        self._study = study

    def hardware(self, on_progress: ShareProgress) -> Hardware:
        """Probe the host, or read the file that the study names."""
        host = self._study.host
        if host.hardware != "probe":
            return read_hardware(host.hardware)
        from routecast.lab.probe import probe

        return probe(quick=host.quick, cpu=self._study.run.core, on_progress=on_progress).hardware

    def run(self, point: FunctionPoint, seed: int, *, hand_loop: bool) -> RepeatedRun:
        """Run on the study's core."""
        popularity = Popularity.parse(point.traffic)
        request: dict[str, Any] = {
            "function": point.function,
            "direction": point.direction or None,
            "frame_bytes": point.frame_bytes,
            "tables": point.entries,
            "flows": popularity.flows,
            "popularity": popularity.kind,
            "exponent": popularity.exponent,
            "cores": [self._study.run.core],
            "duration_s": self._study.run.duration,
            "seed": seed,
            "hand_loop": hand_loop,
        }
        outcome = native("run_function", request)
        hand = {key: math.nan if ns is None else ns * 1e-9 for key, ns in (outcome.get("hand_loop") or {}).items()}
        return RepeatedRun(
            cycles=float(outcome["cycles_per_packet"]),
            core_hz=float(outcome["core_hz"]),
            hand_frames_s=hand.get("ns_per_packet", math.nan),
            hand_lookup_s=hand.get("lookup_ns", math.nan),
        )


def answer(run: StudyRun[FunctionStudy], *, bench: FunctionBench | None = None) -> FunctionResult:
    """Probe the host, estimate and run the functions, and refine the host's costs of operations.

    A resumed run takes the probe of the interrupted run. Every point is run once in each repeat, so that a drift of the
    machine spreads over all points. The points that refine then correct the host's costs of operations.

    ``bench``: host that is probed and runs the functions, by default this host. Raises RoutecastError: a function
    or the hardware file cannot be read, or a table does not fit into memory.
    """
    study, out = run.study, run.out
    bench = bench or LocalBench(study)
    grid = list(points(study))
    run.work = 1 + len(grid) * study.run.repeats
    hardware = _hardware(run, bench)
    estimates = {point: _estimate(hardware, point) for point in grid}  # a faulty file fails before the first run
    tasks = [(point, repeat) for repeat in range(study.run.repeats) for point in grid]
    with run.ledger(COLUMNS) as ledger:
        rows = run.complete(
            ledger,
            (
                StudyTask(
                    key=point.key(study, repeat),
                    title=f"{point.title}, {point.size}, {point.frame_bytes} B, {point.traffic}",
                    call=partial(_run, bench, point, study.run.seed + repeat, repeat),
                )
                for point, repeat in tasks
            ),
        )
    by_point = {point: rows[number :: len(grid)] for number, point in enumerate(grid)}
    measured = [_measured(point, by_point[point]) for point in grid if point.refines]
    refined = refine(hardware, measured).hardware if measured else hardware
    write_hardware(refined, out / REFINED_FILE)
    result = FunctionResult(
        study=study,
        out=out,
        hardware=hardware,
        refined=refined,
        rows=tuple(
            _row(hardware, point, estimates[point], _estimate(refined, point), by_point[point]) for point in grid
        ),
        provenance=run.provenance(seed=study.run.seed),
        notes=(*hardware.notes, *_two_machines(study, hardware)),
    )
    return replace(result, criteria=_criteria(result))


def _two_machines(study: FunctionStudy, hardware: Hardware) -> tuple[str, ...]:
    """Say that what the tables call errors lies between two machines, if the hardware file is of another one."""
    if study.host.hardware == "probe" or is_of_this_machine(hardware):
        return ()
    return (
        f"The estimates are for {hardware.name}, and the functions ran on this machine: what the tables call an error "
        "is the difference between two machines, and no error of the estimates",
    )


def _hardware(run: StudyRun[FunctionStudy], bench: FunctionBench) -> Hardware:
    """Return the hardware of an interrupted run, or probe the host."""
    path = run.out / HOST_FILE
    # Without a finished run nothing was measured beside the probe, whose file may be half written.
    if path.exists() and not (run.out / "summary.json").exists() and read_rows(run.out, COLUMNS):
        run.done = 1
        return read_hardware(str(path))
    hardware = bench.hardware(lambda _share: run.report_step("probe the host"))
    run.done = 1
    run.out.mkdir(parents=True, exist_ok=True)
    write_hardware(hardware, path)
    return hardware


def _estimate(hardware: Hardware, point: FunctionPoint) -> Estimate:
    return estimate(
        read_function(point.function),
        hardware,
        direction=point.direction or None,
        frame_bytes=point.frame_bytes,
        popularity=Popularity.parse(point.traffic),
        tables=point.entries,
    )


def _run(bench: FunctionBench, point: FunctionPoint, seed: int, repeat: int) -> Row:
    outcome = bench.run(point, seed, hand_loop=repeat == 0 and point.refines)
    conditions = {name: getattr(point, name) for name in ("function", "direction", "size", "frame_bytes", "traffic")}
    return {**conditions, "repeat": repeat, **asdict(outcome)}


def _numbers(rows: Sequence[Row], name: str) -> tuple[float, ...]:
    values = [row[name] for row in rows]
    return tuple(float(value) for value in values if isinstance(value, int | float) and math.isfinite(value))


def _measured(point: FunctionPoint, rows: Sequence[Row]) -> MeasuredFunction:
    cycles = _numbers(rows, "cycles")
    return MeasuredFunction(
        function=point.function,
        direction=point.direction,
        frame_bytes=point.frame_bytes,
        traffic=point.traffic,
        tables=point.entries,
        cycles=median(cycles),
        spread_ratio=stdev(cycles) / median(cycles) if len(cycles) > 1 else 0.0,
    )


def _row(
    hardware: Hardware, point: FunctionPoint, estimated: Estimate, refined: Estimate, rows: Sequence[Row]
) -> FunctionRow:
    cycles, core_hz = Measured(values=_numbers(rows, "cycles")), median(_numbers(rows, "core_hz"))
    low, high = estimated.cycles_range
    lines: dict[str, float] = {}  # cache lines of tables per packet, by level of the memory
    for step in estimated.operations:
        for level, count in step.table_lines_by_level.items():
            lines[level] = lines.get(level, 0.0) + count
    clock_hz = hardware.cpu.frequency_hz
    return FunctionRow(
        conditions=point,
        measured=core_hz / cycles.median,
        predicted=core_hz / estimated.packet_cycles,
        refined_pps=core_hz / refined.packet_cycles,
        intervals={} if math.isnan(low) else {0.95: (core_hz / high, core_hz / low if low else math.inf)},
        calibrates=point.refines,
        cycles=cycles,
        core_hz=core_hz,
        found_in=max(lines, key=lines.__getitem__, default="–"),
        hand=HandLoop(
            frames_s=min(_numbers(rows, "hand_frames_s"), default=math.nan),
            lookup_s=min(_numbers(rows, "hand_lookup_s"), default=math.nan),
            bound_s=sum(step.table_stall_cycles for step in estimated.operations) / clock_hz,
            one_by_one_s=sum(
                lines.get(level.name, 0.0) * (level.dependent_cycles / clock_hz + level.dependent_s)
                for level in hardware.levels
            ),
        ),
    )


def _criteria(result: FunctionResult) -> tuple[Criterion, ...]:
    bounds, errors, refined = result.study.criteria, result.errors(), result.refined_errors()
    return criteria_of(
        ("median error from the probe alone", bounds.estimate_median, errors.median_abs_error_ratio),
        ("90th percentile of the error from the probe alone", bounds.estimate_p90, errors.p90_abs_error_ratio),
        ("median error after refining", bounds.refined_median, refined.median_abs_error_ratio),
    )
