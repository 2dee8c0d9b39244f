"""``routecast measure --until``: measure a device's forwarding rate in overload until all frame sizes are known."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from routecast.cli.console import data, print_json, remark
from routecast.cli.tables import print_table

if TYPE_CHECKING:
    from routecast.calibrate.points import Point
    from routecast.calibrate.until import Known
    from routecast.load.offered import OfferedLoad
    from routecast.testbed.measure import Measure

__all__ = ["print_known", "run_until"]

_HEADER: Final = ("series", "cores", "frame_bytes", "throughput_pps", "link_bps", "ports", "calibrate")
_OVERLOAD_RATIO = 1.5
_HEADERS_BYTES = 18
"""Of Ethernet, with the check sequence."""


def run_until(
    evaluator: Measure,
    load_of: Callable[[int], OfferedLoad],
    *,
    until_ratio: float,
    most: int,
    duration_s: float,
    spread_s: float,
    out: Path | None,
    tell: Callable[[int, int, str], None],
) -> Known:
    """Measure the forwarding rate in overload at RFC 2544's frame sizes until each is known as well as asked.

    Every rate is written to ``out``, a file for `validate`, as soon as it is measured; a run goes on from what it has.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        A trial stays invalid, or the tester reaches no overload.
    """
    from routecast.benchmark.overload import find_overload_pps
    from routecast.calibrate.points import Point, read_points
    from routecast.calibrate.until import measure_until
    from routecast.errors import EnvironmentProblem
    from routecast.load.frames import RFC2544_FRAME_BYTES

    port = evaluator.bed.ports[0]
    able = [
        Point(
            cores=1,
            frame_bytes=float(size),
            throughput_pps=math.nan,
            link_bps=port.wire_bps,
            ports=1,
            series=evaluator.bed.device.name,
        )
        for size in RFC2544_FRAME_BYTES
        if size <= port.mtu + _HEADERS_BYTES
    ]
    overloads: dict[float, float] = {}

    def measure(point: Point) -> float:
        load = load_of(round(point.frame_bytes))
        if point.frame_bytes not in overloads:
            overloads[point.frame_bytes] = find_overload_pps(evaluator, load, overload_ratio=_OVERLOAD_RATIO)
        trial = evaluator.trial(load.at(overloads[point.frame_bytes]), duration_s)
        if not trial.is_valid:
            raise EnvironmentProblem(
                f"the trial at {point.frame_bytes:g} B is invalid after {trial.attempts} attempts: "
                f"{'; '.join(trial.invalid)}"
            )
        if out is not None:
            _append(out, point, trial.forwarded_pps)
        return trial.forwarded_pps

    known = [] if out is None or not out.exists() else list(read_points(out))
    if known:
        remark(f"{out} has {len(known)} measurements: going on from them")
    return measure_until(
        measure,
        able,
        known=known,
        until_ratio=until_ratio,
        most=most,
        spread_s=spread_s,
        progress=lambda done, known_as: tell(done, most, known_as),
    )


def print_known(known: Known, *, until_ratio: float, as_json: bool) -> None:
    """Print what was measured, what is known at each frame size, and whether that is enough."""
    from routecast.calibrate.validate import Row
    from routecast.cli.validation import rows_table

    rows = [Row(prediction=made, role="calibrate") for made in known.fitted.predict(known.fitted.points)]
    if as_json:
        print_json(
            {
                "measured": [
                    {"frame_bytes": point.frame_bytes, "throughput_pps": point.throughput_pps}
                    for point in known.measured
                ],
                "rows": [row.to_json() for row in rows],
                "noise_ratio": known.fitted.noise_ratio,
                "until_ratio": until_ratio,
                "half_width_ratio": known.half_width_ratio,
                "is_enough": known.is_enough,
                "warnings": list(known.fitted.warnings),
            }
        )
        return
    print_table(data(), rows_table(rows))
    for warning in known.fitted.warnings:
        data().print(f"{warning[0].upper()}{warning[1:]}.", markup=False)
    data().print(
        f"{len(known.measured)} measurements, which repeat within {known.fitted.noise_ratio:.1%}: all rates are known "
        f"within ±{known.half_width_ratio:.1%}, asked was ±{until_ratio:.1%}.",
        markup=False,
    )


def _append(path: Path, point: Point, throughput_pps: float) -> None:
    is_new = not path.exists() or path.stat().st_size == 0
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(_HEADER)
        writer.writerow(
            (
                point.series,
                point.cores,
                f"{point.frame_bytes:g}",
                f"{throughput_pps:.6g}",
                f"{point.link_bps:g}",
                point.ports,
                "true",
            )
        )
