"""``routecast measure`` without a load: the maximum forwarding rate and the latency, for each number of cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.cli.console import data, print_json, print_trial, progress_bar, remark

if TYPE_CHECKING:
    from routecast.evaluate.points import Point
    from routecast.evaluate.trial import Trial
    from routecast.lab.benchmark.latency_rows import LatencyShares
    from routecast.lab.benchmark.overload import ForwardingRate
    from routecast.lab.testbed.measure import Measure
    from routecast.load.offered import OfferedLoad

__all__ = ["FLOWS_OF_SEVERAL_CORES", "core_counts", "measure_latencies", "measure_rates"]

FLOWS_OF_SEVERAL_CORES = 1024
"""Number of flows for several cores, which a hash spreads evenly over them."""

_MAX_CORES = 4096


def core_counts(
    text: str | None, testbed: str, *, device: str | None, options: dict[str, str]
) -> tuple[tuple[int | None, dict[str, int]], ...]:
    """Return the numbers of cores to measure, each with the device's options; one unknown number without ``text``.

    Numbers that this machine cannot provide are reported on stderr.

    Raises RoutecastError: an entry is no number, the device takes no number of cores, or no number is possible here.
    """
    from routecast.lab.testbed.core_counts import device_options, possible_counts
    from routecast.lab.testbed.reading import read_testbed
    from routecast.quantity.value_list import parse_counts

    if text is None:
        return ((None, {}),)
    counts = parse_counts(text, most=_MAX_CORES)
    file = read_testbed(testbed, device=device, options=options)
    possible, refusals = possible_counts(file, counts)
    for reason in refusals:
        remark(f"Not measured: {reason}")
    return tuple((count, device_options(file, count)) for count in possible)


def measure_rates(
    open_bed: Callable[[dict[str, int]], AbstractContextManager[Measure]],
    counts: Sequence[tuple[int | None, dict[str, int]]],
    load: OfferedLoad,
    *,
    duration_s: float,
    out: Path | None,
    as_json: bool,
    latency: LatencyShares | None = None,
) -> None:
    """Measure the maximum forwarding rate for each number of cores, print it, and append it to a table of points.

    ``latency``: shares of each maximum forwarding rate at which the latency is measured, too.

    Raises CriterionFailed: a trial stays invalid, or the tester reaches no overload, so that the rate is a lower bound;
    RoutecastError: the bed cannot be made, the load cannot be sent, or ``out`` cannot be written.
    """
    from routecast.errors import CriterionFailed
    from routecast.lab.benchmark.overload import measure_forwarding_rate
    from routecast.lab.benchmark.points import append_point, measured_point

    documents, failures = [], []
    for number, (count, options) in enumerate(counts):
        with progress_bar("measure") as progress, open_bed(options) as evaluator:
            point = _measured_point(evaluator, load, count, out)
            progress(number, len(counts), f"maximum forwarding rate, {_conditions(point)}")
            remark(
                f"looking for the maximum forwarding rate of {_conditions(point)}, from {load.rate_pps:,.0f} frames/s"
            )
            rate = measure_forwarding_rate(evaluator, load, duration_s=duration_s)
            if not as_json:
                print_trial(data(), rate.trial)
                data().print(_describe_rate(rate, point), markup=False, style="bold")
            timed: list[dict[str, Any]] = []
            if not rate.is_maximum:
                failures.append(_failure(rate, point))
            elif out is not None:
                append_point(out, measured_point(point, rate.trial))
                remark(f"Row appended to {out}")
            if rate.is_maximum and latency is not None:
                timed, missing = measure_latencies(
                    evaluator,
                    load,
                    latency,
                    point,
                    capacity_pps=rate.trial.forwarded_pps,
                    duration_s=duration_s,
                    out=out,
                    as_json=as_json,
                )
                failures += missing
            facts = evaluator.facts()
        if as_json:
            documents.append(_rate_document(rate, point, facts) | ({} if latency is None else {"latency": timed}))
    if as_json:
        print_json({"forwarding_rates": documents})
    if failures:
        raise CriterionFailed("; ".join(failures) + (f"; {out} receives no row for it" if out is not None else ""))


def measure_latencies(
    evaluator: Measure,
    load: OfferedLoad,
    shares: LatencyShares,
    point: Point,
    *,
    capacity_pps: float,
    duration_s: float,
    out: Path | None,
    as_json: bool,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure the latency at shares of ``capacity_pps``, print it, and append a row a trial to a table of points.

    Returns the trials as plain data, and a sentence for each that gave no latency.

    Raises RoutecastError: the load cannot be sent, or ``out`` cannot be written.
    """
    from routecast.lab.benchmark.latency_rows import latency_row
    from routecast.lab.benchmark.points import append_point

    documents, failures = [], []
    rows = 0
    for ratio, trial in shares.trials(evaluator, load, capacity_pps, duration_s):
        row = latency_row(point, trial)
        if not as_json:
            data().print(_describe_latency(ratio, trial, row, point), markup=False)
        if row is None:
            why = "; ".join(trial.invalid) or "no frame was timed"
            failures.append(f"{_conditions(point)}, latency at {ratio:.0%}: {why}")
        elif out is not None:
            append_point(out, row)
            rows += 1
        documents.append({"load_ratio": ratio, "disturbed": row.disturbed if row else "", "trial": trial.to_json()})
    if rows:
        remark(f"{rows} row{'s' if rows > 1 else ''} of latency appended to {out}")
    return documents, failures


def _describe_latency(ratio: float, trial: Trial, row: Point | None, point: Point) -> str:
    from routecast.quantity import format_duration, format_pps

    where = f"Latency at {ratio:.0%}, {format_pps(trial.offered_pps)} ({_conditions(point)})"
    if row is None or row.latency is None:
        return f"{where}: not known, {'; '.join(trial.invalid) or 'no frame was timed'}."
    times = ", ".join(
        f"{name} {format_duration(row.latency.of(name))}"
        for name in ("mean", "p50", "p99")
        if row.latency.of(name) > 0.0
    )
    return f"{where}: {times}" + (f"; disturbed: {row.disturbed}." if row.disturbed else ".")


def _measured_point(evaluator: Measure, load: OfferedLoad, count: int | None, out: Path | None) -> Point:
    from routecast.errors import QuantityProblem
    from routecast.lab.benchmark.points import point_of, points_before
    from routecast.lab.testbed.namespaces import Namespaces

    bed = evaluator.bed
    ports = len({flow.ingress for flow in load.flows.flows})
    is_local = isinstance(bed, Namespaces)
    if ports > 1 and is_local and bed.device.data_path == "kernel":
        message = (
            "--bidirectional needs a rate with --load on this test bed: frames of the other way are forwarded on the "
            "generator's core, so that no rate of both ways is the device's own"
        )
        raise QuantityProblem("", message)
    if count is None and not is_local and out is not None:
        message = f"--out {out}: the table has a column for the device's cores: say how many it has with --cores"
        raise QuantityProblem("", message)
    point = point_of(bed, load.frames, ports=ports, cores=count)
    if out is not None:
        points_before(out, point, command="measure")
    return point


def _conditions(point: Point) -> str:
    cores = f"{point.cores} core{'s' if point.cores > 1 else ''}"
    frames = point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g} B"
    return f"{point.series}, {cores}, {frames}"


def _describe_rate(rate: ForwardingRate, point: Point) -> str:
    from routecast.quantity import format_pps

    forwarded = format_pps(rate.trial.forwarded_pps)
    where = f"({_conditions(point)})"
    if not rate.trial.is_valid:
        return f"Maximum forwarding rate: not known {where}."
    if rate.lower_bound:
        return f"Maximum forwarding rate: ≥ {forwarded} {where}, a lower bound: {rate.lower_bound}."
    return f"Maximum forwarding rate: {forwarded} {where}, at {format_pps(rate.trial.offered_pps)} offered."


def _failure(rate: ForwardingRate, point: Point) -> str:
    if not rate.trial.is_valid:
        return (
            f"{_conditions(point)}: the trial is invalid after {rate.trial.attempts} attempts: "
            f"{'; '.join(rate.trial.invalid)}"
        )
    return f"{_conditions(point)}: ≥ {rate.trial.forwarded_pps:,.0f} frames/s is a lower bound"


def _rate_document(rate: ForwardingRate, point: Point, facts: object) -> dict[str, Any]:
    from routecast.evaluate.plain import plain

    return {
        "cores": point.cores,
        "frame": point.frame_mix.name if point.frame_mix else f"{point.frame_bytes:g} B",
        "series": point.series,
        "forwarding_rate_pps": rate.trial.forwarded_pps,
        "is_maximum": rate.is_maximum,
        "lower_bound": rate.lower_bound,
        "trial": rate.trial.to_json(),
        "facts": plain(facts),
    }
