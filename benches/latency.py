"""Published latencies predicted at loads that were not given: errors, intervals, rivals.

Each source is predicted with a prior that has not seen it. Then rows of CSIT 17.01 are carried to other frames and
cores at the same share of the load. ``--learn`` learns the priors anew and writes them; ``--carried`` prints only what
is carried; ``--simulate`` instead saves routers from two rows each and simulates them. ::

    PYTHONPATH=packages/routecast python benches/latency.py [--learn | --carried | --simulate]
"""

from __future__ import annotations

import argparse
import json
from statistics import median
from typing import Literal

from routecast.calibration.latency import fit_curve, prior_of
from routecast.calibration.latency.prior import LATENCY_PRIORS
from routecast.replications.latency.carried import CARRIED, scored_carried, sized_routers
from routecast.replications.latency.learning import learnt_document
from routecast.replications.latency.scores import QUESTIONS, Score, scored
from routecast.replications.latency.simulated import simulated_medians
from routecast.replications.latency.tables import UNSEEN, published_latencies

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


def unseen() -> None:
    for kind, name in KINDS.items():
        for latency in published_latencies(kind, UNSEEN):
            prior = prior_of(latency.statistic, rate_kind=latency.rate_kind)
            for number, row in enumerate(latency.rows):
                curve = fit_curve([row], prior, frame_s=latency.frame_s)
                for other in latency.rows[number + 1 :]:
                    low_us, middle_us, high_us = 1e6 * curve.quantiles_s(other.load_ratio, (0.025, 0.5, 0.975))
                    error = middle_us / (1e6 * other.latency_s) - 1.0
                    print(
                        f"  {latency.source}, {name}, never seen: {100.0 * row.load_ratio:.0f} % -> "
                        f"{100.0 * other.load_ratio:.0f} %: {middle_us:.2f} us, {low_us:.2f} to {high_us:.2f}; "
                        f"measured {1e6 * other.latency_s:.2f} ({100.0 * error:+.1f} %)"
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learn", action="store_true", help="learn the priors anew and write them")
    parser.add_argument("--carried", action="store_true", help="only rows carried to other frames and cores")
    parser.add_argument("--simulate", action="store_true", help="simulate saved routers at 30 to 70 %% of the capacity")
    arguments = parser.parse_args()
    if arguments.simulate:
        simulate()
        return
    if arguments.learn:
        LATENCY_PRIORS.write_text(json.dumps(learnt_document(), indent=1) + "\n", encoding="utf-8")
    if not arguments.carried:
        unseen()
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
