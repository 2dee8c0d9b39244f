"""Running a study of functions: probe, estimate, run, refine, compare, report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median, stdev

from routecast.calibrate.refine import refine
from routecast.evaluate.ledger import Columns, Ledger, Row
from routecast.function.catalogue import read_function
from routecast.function.estimate import Estimate, estimate
from routecast.hardware.catalogue import read_hardware, write_hardware
from routecast.hardware.model import Hardware, MeasuredFunction
from routecast.load.popularity import Popularity
from routecast.study.folder import begin, write_results
from routecast.study.functions.bench import FunctionBench
from routecast.study.functions.chapters import functions_page
from routecast.study.functions.document import FunctionStudy
from routecast.study.functions.points import Point, points
from routecast.study.functions.result import FunctionResult, FunctionRow, HandLoop
from routecast.study.result import Criterion

__all__ = ["run_function_study"]

Progress = Callable[[int, int, str], None]

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


def run_function_study(
    study: FunctionStudy,
    out: Path,
    bench: FunctionBench,
    *,
    progress: Progress | None = None,
    command: str = "",
) -> FunctionResult:
    """Run a study of functions and write its results, hardware files, summary, figures and report to ``out``.

    The host is probed first. Then every point is run, repeat after repeat, so that drifts of the machine spread over
    all points. The points that refine then correct the host's costs of operations.

    Parameters
    ----------
    study : FunctionStudy
    out : Path
        Made if missing. If a run of the same study was killed there, it goes on with the same probe.
    bench : FunctionBench
        Where the host is probed and functions are run.
    progress : callable or None
        Told how many runs are done.

    Raises
    ------
    routecast.errors.RoutecastError
        A function or the hardware file cannot be read, or a table does not fit into memory.
    """
    making = begin(study.name, out, command)
    chosen = list(points(study))
    total = 1 + len(chosen) * study.run.repeats
    hardware = _hardware(out, bench, progress, total)
    estimates = {point: _estimate(hardware, point) for point in chosen}  # a wrong file is refused before anything runs
    with Ledger(out, COLUMNS) as ledger:
        tasks = [(point, repeat) for repeat in range(study.run.repeats) for point in chosen]
        resumed = sum(point.key(study, repeat) in ledger.rows for point, repeat in tasks)
        for done, (point, repeat) in enumerate(tasks):
            if progress:
                progress(1 + done, total, f"{point.title}, {point.size}, {point.frame_bytes} B, {point.traffic}")
            key = point.key(study, repeat)
            if key not in ledger.rows:
                ledger.add(_run(bench, point, study.run.seed + repeat, repeat, key))
        found = {
            point: [ledger.rows[point.key(study, repeat)] for repeat in range(study.run.repeats)] for point in chosen
        }
    measured = [_measured(point, found[point]) for point in chosen if point.refines]
    refined = refine(hardware, measured).hardware if measured else hardware
    write_hardware(refined, out / REFINED_FILE)
    result = FunctionResult(
        study=study,
        out=out,
        hardware=hardware,
        refined=refined,
        rows=tuple(
            _row(hardware, point, estimates[point], _estimate(refined, point), found[point]) for point in chosen
        ),
        criteria=(),
        made=making.made(seed=study.run.seed, trials=len(tasks), resumed=resumed),
        notes=hardware.notes,
    )
    result = _judged(result)
    write_results(out, functions_page(result), result.to_json())
    return result


def _hardware(out: Path, bench: FunctionBench, progress: Progress | None, total: int) -> Hardware:
    """Return the host of an interrupted run, or probe it."""
    path = out / HOST_FILE
    if path.exists() and not (out / "summary.json").exists():
        return read_hardware(str(path))

    def tell(_share: float) -> None:
        if progress:
            progress(0, total, "probe the host")

    hardware = bench.hardware(tell)
    out.mkdir(parents=True, exist_ok=True)
    write_hardware(hardware, path)
    return hardware


def _estimate(hardware: Hardware, point: Point) -> Estimate:
    return estimate(
        read_function(point.function),
        hardware,
        direction=point.direction or None,
        frame_bytes=point.frame_bytes,
        popularity=Popularity.parse(point.traffic),
        tables=point.entries,
    )


def _run(bench: FunctionBench, point: Point, seed: int, repeat: int, key: str) -> Row:
    run = bench.run(point, seed, hand_loop=repeat == 0 and point.refines)
    return {
        "task": key,
        "function": point.function,
        "direction": point.direction,
        "size": point.size,
        "frame_bytes": point.frame_bytes,
        "traffic": point.traffic,
        "repeat": repeat,
        "cycles": run.cycles,
        "core_hz": run.core_hz,
        "hand_frames_s": run.hand_frames_s,
        "hand_lookup_s": run.hand_lookup_s,
    }


def _numbers(rows: Sequence[Row], name: str) -> list[float]:
    found = [row[name] for row in rows]
    return [float(value) for value in found if isinstance(value, int | float) and math.isfinite(value)]


def _measured(point: Point, rows: Sequence[Row]) -> MeasuredFunction:
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


def _row(hardware: Hardware, point: Point, before: Estimate, after: Estimate, rows: Sequence[Row]) -> FunctionRow:
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


def _table_lines(found: Estimate) -> Mapping[str, float]:
    """Return the lines of tables per packet, by level of the memory."""
    lines: dict[str, float] = {}
    for step in found.operations:
        for level, count in step.table_lines_by_level.items():
            lines[level] = lines.get(level, 0.0) + count
    return lines


def _found_in(found: Estimate) -> str:
    lines = _table_lines(found)
    return max(lines, key=lambda level: lines[level]) if lines else "–"


def _table_stalls(found: Estimate) -> float:
    return sum(step.table_stall_cycles for step in found.operations)


def _one_by_one_s(hardware: Hardware, found: Estimate) -> float:
    lines = _table_lines(found)
    return sum(
        lines.get(level.name, 0.0) * (level.dependent_cycles / hardware.cpu.frequency_hz + level.dependent_s)
        for level in hardware.levels
    )


def _judged(result: FunctionResult) -> FunctionResult:
    bounds, errors, refined = result.study.criteria, result.errors(), result.refined_errors()
    reached = (
        ("median error from the probe alone", bounds.estimate_median, errors.median_abs_error_ratio),
        (
            "90th percentile of the error from the probe alone",
            bounds.estimate_p90,
            errors.p90_abs_error_ratio,
        ),
        ("median error after refining", bounds.refined_median, refined.median_abs_error_ratio),
    )
    criteria = (Criterion(name=name, bound=bound, reached=value) for name, bound, value in reached if bound is not None)
    return replace(result, criteria=tuple(criteria))
