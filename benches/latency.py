"""Published latencies predicted at loads that were not given: errors, intervals, rivals.

Each source is predicted with a prior that has not seen it. Then rows of CSIT 17.01 are carried to other frames and
cores at the same share of the load. ``--learn`` learns the priors anew and writes them; ``--carried`` prints only what
is carried; ``--simulate`` instead saves routers from two rows each and simulates them; ``--fit`` times a fit with p50
and p99 beside one without. ::

    PYTHONPATH=packages/routecast python benches/latency.py [--learn | --carried | --simulate | --fit]
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Literal

from routecast.calibration import fit
from routecast.calibration.latency import fit_curve, measured_latency, prior_of
from routecast.calibration.latency.prior import LATENCY_PRIORS
from routecast.evaluate.point_table import parse_points
from routecast.replications.latency.carried import CARRIED, scored_carried, sized_routers
from routecast.replications.latency.learning import learnt_document
from routecast.replications.latency.scores import QUESTIONS, Score, scored
from routecast.replications.latency.simulated import simulated_medians
from routecast.replications.latency.tables import published_latencies

ROWS = """cores,frame_bytes,throughput_mpps,rate_kind,latency_load_ratio,latency_p50_us,latency_p99_us
1,64,5.1,overload,0.1,12,18
2,64,10.0,overload,,,
4,64,19.4,overload,0.8,31,80
4,64,19.4,overload,1.2,400,460
"""
KINDS: dict[Literal["body", "tail"], str] = {"body": "p50 or mean", "tail": "p95 and p99"}


def line(score: Score) -> str:
    errors = "  ".join(f"{name} {100.0 * error:.1f}" for name, error in score.errors.items())
    return (
        f"  {score.source:15} {score.predictions:4} rows  median errors, %: {errors}  "
        f"95 % hold {100.0 * score.held_95:.0f}, 80 % {100.0 * score.held_80:.0f}; Winkler {score.winkler:.2f}"
    )


def simulate() -> None:
    medians = list(simulated_medians(published_latencies("body")))
    for source in dict.fromkeys(each.source for each in medians):
        of_source = [each for each in medians if each.source == source]
        of_curve, measured = (
            [100.0 * abs(each.simulated_s / getattr(each, other) - 1.0) for each in of_source]
            for other in ("curve_s", "measured_s")
        )
        routers = len({each.router for each in of_source})
        print(
            f"  {source:15} {routers:2} routers, {len(of_source):3} loads  simulated p50 from the curve's, %: median "
            f"{median(of_curve):.1f}, greatest {max(of_curve):.1f}; from the measured, %: median {median(measured):.1f}"
        )


def fit_times() -> None:
    """Print the time of a fit with p50 and p99 over that of one without, in turns: one number of cores, and eight."""
    points = parse_points(ROWS)

    def seconds(counts: Sequence[int]) -> float:
        start = perf_counter()
        fitted = fit(points)
        fitted.joint_rates_pps([points[0]])
        curves = [measured_latency(fitted, points, points[0], name) for name in ("p50", "p99") if counts]
        for curve, count in itertools.product(curves, counts):
            assert curve is not None
            curve.with_cores(count)
        return perf_counter() - start

    turns = [tuple(seconds(counts) for counts in ((), (1,), range(1, 9))) for _ in range(15)]
    for number, name in enumerate(("one number of cores", "1 to 8 cores"), start=1):
        print(f"  fit with p50 and p99, {name}: {median(turn[number] / turn[0] for turn in turns):.2f} of one without")


def from_each_row() -> None:
    """Print what each row alone says of those at higher loads: the fourth source has four loads."""
    for kind, name in KINDS.items():
        for latency in published_latencies(kind, ("vppxc2020",)):
            prior = prior_of(latency.statistic, latency.source, rate_kind=latency.rate_kind)
            for number, row in enumerate(latency.rows):
                curve = fit_curve([row], prior, frame_s=latency.frame_s)
                for other in latency.rows[number + 1 :]:
                    low_us, middle_us, high_us = 1e6 * curve.quantiles_s(other.load_ratio, (0.025, 0.5, 0.975))
                    error = middle_us / (1e6 * other.latency_s) - 1.0
                    print(
                        f"  {latency.source}, {name}, left out: {100.0 * row.load_ratio:.0f} % -> "
                        f"{100.0 * other.load_ratio:.0f} %: {middle_us:.2f} us, {low_us:.2f} to {high_us:.2f}; "
                        f"measured {1e6 * other.latency_s:.2f} ({100.0 * error:+.1f} %)"
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learn", action="store_true", help="learn the priors anew and write them")
    parser.add_argument("--carried", action="store_true", help="only rows carried to other frames and cores")
    parser.add_argument("--fit", action="store_true", help="only the time of a fit with latency over one without")
    parser.add_argument("--simulate", action="store_true", help="simulate saved routers at 30 to 70 %% of the capacity")
    arguments = parser.parse_args()
    if arguments.simulate or arguments.fit:
        (simulate if arguments.simulate else fit_times)()
        return
    if arguments.learn:
        LATENCY_PRIORS.write_text(json.dumps(learnt_document(), indent=1) + "\n", encoding="utf-8")
    if not arguments.carried:
        from_each_row()
    for kind, name in () if arguments.carried else KINDS.items():
        latencies = published_latencies(kind)
        for question in QUESTIONS:
            print(f"{name}: {question}")
            for score in scored(latencies, question):
                print(line(score))
    routers = sized_routers()
    for carried in CARRIED:
        if (score := scored_carried(carried, routers)) is not None:
            print(f"mean: {carried}\n{line(score)}")


if __name__ == "__main__":
    main()
