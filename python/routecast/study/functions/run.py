"""Running a study of functions: probe, estimate, run, refine, compare, report."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median, stdev
from typing import Any, ClassVar, Protocol

from routecast.calibration.refine import refine
from routecast.evaluate.ledger import Columns, Row
from routecast.function.catalogue import read_function
from routecast.function.estimate import Estimate, estimate
from routecast.hardware.catalogue import read_hardware, write_hardware
from routecast.hardware.model import Hardware, MeasuredFunction
from routecast.load.popularity import Popularity
from routecast.quantity.comparison import ErrorSummary
from routecast.quantity.schema import field, value
from routecast.study.engine import StudyRun, StudyTask
from routecast.study.functions.document import FunctionStudy
from routecast.study.result import Criterion, StudyResult, criteria_of

__all__ = ["FunctionPoint", "FunctionResult", "FunctionRow", "FunctionRun", "LocalBench", "answer", "points"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPoint:
    """One function, one size of its tables, one frame size, one traffic."""

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
        """Function and direction as people say it."""
        return f"{self.function} {self.direction}".strip()

    def key(self, study: FunctionStudy, repeat: int) -> str:
        """Return what one run of the point is known by on disk: a hash of all that decides its result."""
        what = [
            self.function,
            self.direction,
            self.tables,
            self.frame_bytes,
            self.traffic,
            repeat,
            study.run.duration,
            study.run.core,
            study.run.seed,
        ]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


def points(study: FunctionStudy) -> Iterator[FunctionPoint]:
    """Yield every point of the study once, in the order of the file."""
    for series in study.series:
        refining = {(refinement.size, refinement.traffic) for refinement in series.refine}
        for size, tables in series.tables.items():
            for traffic in series.traffic:
                for frame_bytes in series.frames:
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
    """The best hand-written loop for a function's lookup, beside the function: seconds per packet.

    ``frames_s`` does the lookup on the same frames in one fused loop, ``lookup_s`` the lookup alone with keys that
    stand ready; ``bound_s`` is what the lines of the table cost alone, asked for in batches, were nothing else to be
    done, and ``one_by_one_s`` what they cost if each is waited for before the next is asked for.
    """

    frames_s: float = math.nan
    lookup_s: float = math.nan
    bound_s: float = math.nan
    one_by_one_s: float = math.nan


@value
class FunctionRow:
    """One point: cycles per packet as estimated, refined and measured."""

    SUMMARY: ClassVar = ("*", "cycles", "measured_pps", "estimated_pps", "error_ratio", "refined_error_ratio")

    point: FunctionPoint
    estimated_cycles: float = field("From the probe alone")
    refined_cycles: float = field("After refining")
    measured_cycles: tuple[float, ...] = field("One value for each repeat")
    core_hz: float = field("Clock of the core while it was measured, Hz")
    found_in: str = field("Level of the memory in which most lines of the table are expected")
    low_cycles: float = field("Least of the 95 % range of the estimate; NaN where unknown", default=math.nan)
    high_cycles: float = field("Most of it", default=math.nan)
    hand: HandLoop = HandLoop()

    @property
    def cycles(self) -> float:
        """Median of the measured cycles per packet; NaN if there is none."""
        return median(self.measured_cycles) if self.measured_cycles else math.nan

    @property
    def spread_ratio(self) -> float:
        """Range of the repeats relative to their median."""
        if len(self.measured_cycles) < 2:
            return math.nan
        return (max(self.measured_cycles) - min(self.measured_cycles)) / self.cycles

    @property
    def measured_pps(self) -> float:
        """Measured frames per second of one core."""
        return self.core_hz / self.cycles

    @property
    def estimated_pps(self) -> float:
        """Estimated frames per second of one core at the clock of the measurement."""
        return self.core_hz / self.estimated_cycles

    @property
    def refined_pps(self) -> float:
        """Frames per second by the refined estimate."""
        return self.core_hz / self.refined_cycles

    @property
    def error_ratio(self) -> float:
        """Relative error of the estimated throughput."""
        return self.cycles / self.estimated_cycles - 1.0

    @property
    def refined_error_ratio(self) -> float:
        """Relative error of the refined throughput."""
        return self.cycles / self.refined_cycles - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult(StudyResult[FunctionStudy]):
    """All that a study of functions found."""

    hardware: Hardware
    refined: Hardware
    rows: tuple[FunctionRow, ...]

    def errors(self) -> ErrorSummary:
        """Summary of the estimates from the probe alone, over all points."""
        return ErrorSummary.of(row.error_ratio for row in self.rows)

    def refined_errors(self) -> ErrorSummary:
        """Summary of the refined estimates over the points that did not refine."""
        return ErrorSummary.of(row.refined_error_ratio for row in self.held_out)

    @property
    def held_out(self) -> tuple[FunctionRow, ...]:
        """The points that did not refine."""
        return tuple(row for row in self.rows if not row.point.refines)

    @property
    def titles(self) -> tuple[str, ...]:
        """Functions and directions, in their order."""
        return tuple(dict.fromkeys(row.point.title for row in self.rows))

    def _findings(self) -> dict[str, object]:
        return {
            "hardware": self.hardware.name,
            "errors": self.errors(),
            "refined_errors": self.refined_errors(),
            "rows": self.rows,
        }


Tell = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRun:
    """One run of a function: core cycles per packet, the clock, and the hand loop beside it (NaN: not run)."""

    cycles: float
    core_hz: float
    hand_frames_s: float = math.nan
    hand_lookup_s: float = math.nan


class FunctionBench(Protocol):
    """Whoever knows a host and runs functions on it."""

    def hardware(self, tell: Tell) -> Hardware:
        """Return the host's costs; ``tell`` hears the finished share."""
        ...

    def run(self, point: FunctionPoint, seed: int, *, hand_loop: bool) -> FunctionRun:
        """Run the function of a point once; with the hand loop beside it where there is one."""
        ...


class LocalBench:
    """The machine that we are on."""

    def __init__(self, study: FunctionStudy) -> None:
        self._study = study

    def hardware(self, tell: Tell) -> Hardware:
        """Probe the host, or read the file that the study names."""
        from routecast.hardware.catalogue import read_hardware

        host = self._study.host
        if host.hardware != "probe":
            return read_hardware(host.hardware)
        from routecast.hardware.probe import probe

        return probe(quick=host.quick, cpu=self._study.run.core, progress=tell).hardware

    def run(self, point: FunctionPoint, seed: int, *, hand_loop: bool) -> FunctionRun:
        """Run on the study's core."""
        from routecast import _core

        popularity = Popularity.parse(point.traffic)
        request: dict[str, Any] = {
            "function": point.function,
            "direction": point.direction or None,
            "frame_bytes": point.frame_bytes,
            "tables": dict(point.tables),
            "flows": popularity.flows,
            "popularity": popularity.kind,
            "exponent": popularity.exponent,
            "cores": [self._study.run.core],
            "duration_s": self._study.run.duration,
            "seed": seed,
            "hand_loop": hand_loop,
        }
        outcome = json.loads(_core.run_function(json.dumps(request), None))
        hand = outcome.get("hand_loop") or {}
        return FunctionRun(
            cycles=float(outcome["cycles_per_packet"]),
            core_hz=float(outcome["core_hz"]),
            hand_frames_s=_seconds(hand.get("ns_per_packet")),
            hand_lookup_s=_seconds(hand.get("lookup_ns")),
        )


def _seconds(nanoseconds: float | None) -> float:
    return math.nan if nanoseconds is None else nanoseconds * 1e-9


HOST_FILE = "host.hardware.toml"
REFINED_FILE = "refined.hardware.toml"

COLUMNS: Columns = {
    "task": "text",
    "function": "text",
    "direction": "text",
    "size": "text",
    "frame_bytes": "whole",
    "traffic": "text",
    "repeat": "whole",
    "cycles": "number",
    "core_hz": "number",
    "hand_frames_s": "number",
    "hand_lookup_s": "number",
}


def answer(run: StudyRun[FunctionStudy], *, bench: FunctionBench | None = None) -> FunctionResult:
    """Probe the host, estimate and run the functions, refine the host's costs of operations.

    The host is probed first. Then every point is run, repeat after repeat, so that drifts of the machine spread over
    all points. The points that refine then correct the host's costs of operations. A run that goes on does so with
    the same probe.

    ``bench``: where the host is probed and functions are run; this host if not given. Raises RoutecastError: a function
    or the hardware file cannot be read, or a table does not fit into memory.
    """
    study, out = run.study, run.out
    bench = bench or LocalBench(study)
    chosen = list(points(study))
    run.work = 1 + len(chosen) * study.run.repeats
    hardware = _hardware(run, bench)
    estimates = {point: _estimate(hardware, point) for point in chosen}  # a wrong file is refused before anything runs
    tasks = [(point, repeat) for repeat in range(study.run.repeats) for point in chosen]
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
    by_point = {
        chosen_point: [row for (point, _), row in zip(tasks, rows, strict=True) if point == chosen_point]
        for chosen_point in chosen
    }
    measured = [_measured(point, by_point[point]) for point in chosen if point.refines]
    refined = refine(hardware, measured).hardware if measured else hardware
    write_hardware(refined, out / REFINED_FILE)
    result = FunctionResult(
        study=study,
        out=out,
        hardware=hardware,
        refined=refined,
        rows=tuple(
            _row(hardware, point, estimates[point], _estimate(refined, point), by_point[point]) for point in chosen
        ),
        provenance=run.provenance(seed=study.run.seed),
        notes=hardware.notes,
    )
    return replace(result, criteria=_criteria(result))


def _hardware(run: StudyRun[FunctionStudy], bench: FunctionBench) -> Hardware:
    """Return the host of an interrupted run, or probe it."""
    path = run.out / HOST_FILE
    if path.exists() and not (run.out / "summary.json").exists():
        run.done = 1
        return read_hardware(str(path))
    hardware = bench.hardware(lambda _share: run.tell("probe the host"))
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
    return {
        "function": point.function,
        "direction": point.direction,
        "size": point.size,
        "frame_bytes": point.frame_bytes,
        "traffic": point.traffic,
        "repeat": repeat,
        "cycles": outcome.cycles,
        "core_hz": outcome.core_hz,
        "hand_frames_s": outcome.hand_frames_s,
        "hand_lookup_s": outcome.hand_lookup_s,
    }


def _numbers(rows: Sequence[Row], name: str) -> list[float]:
    values = [row[name] for row in rows]
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


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
    hardware: Hardware, point: FunctionPoint, before: Estimate, after: Estimate, rows: Sequence[Row]
) -> FunctionRow:
    hand = {name: _numbers(rows, name) for name in ("hand_frames_s", "hand_lookup_s")}
    low, high = before.cycles_range
    return FunctionRow(
        point=point,
        estimated_cycles=before.packet_cycles,
        refined_cycles=after.packet_cycles,
        low_cycles=low,
        high_cycles=high,
        measured_cycles=tuple(_numbers(rows, "cycles")),
        core_hz=median(_numbers(rows, "core_hz")),
        found_in=_found_in(before),
        hand=HandLoop(
            frames_s=min(hand["hand_frames_s"], default=math.nan),
            lookup_s=min(hand["hand_lookup_s"], default=math.nan),
            bound_s=_table_stalls(before) / hardware.cpu.frequency_hz,
            one_by_one_s=_one_by_one_s(hardware, before),
        ),
    )


def _table_lines(estimate: Estimate) -> Mapping[str, float]:
    """Return the lines of tables per packet, by level of the memory."""
    lines: dict[str, float] = {}
    for step in estimate.operations:
        for level, count in step.table_lines_by_level.items():
            lines[level] = lines.get(level, 0.0) + count
    return lines


def _found_in(estimate: Estimate) -> str:
    lines = _table_lines(estimate)
    return max(lines, key=lambda level: lines[level]) if lines else "–"


def _table_stalls(estimate: Estimate) -> float:
    return sum(step.table_stall_cycles for step in estimate.operations)


def _one_by_one_s(hardware: Hardware, estimate: Estimate) -> float:
    lines = _table_lines(estimate)
    return sum(
        lines.get(level.name, 0.0) * (level.dependent_cycles / hardware.cpu.frequency_hz + level.dependent_s)
        for level in hardware.levels
    )


def _criteria(result: FunctionResult) -> tuple[Criterion, ...]:
    bounds, errors, refined = result.study.criteria, result.errors(), result.refined_errors()
    return criteria_of(
        ("median error from the probe alone", bounds.estimate_median, errors.median_abs_error_ratio),
        ("90th percentile of the error from the probe alone", bounds.estimate_p90, errors.p90_abs_error_ratio),
        ("median error after refining", bounds.refined_median, refined.median_abs_error_ratio),
    )
