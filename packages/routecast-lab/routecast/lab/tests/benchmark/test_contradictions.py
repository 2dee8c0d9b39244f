"""A report finds by arithmetic what in it cannot be right, and says it with numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("polars")

import benchmark_results as results
from benchmark_fakes import LINK_BPS, Disturbed, Fluid, profile_with

from routecast.lab.benchmark import PlainRig, plan_of, run_benchmark
from routecast.lab.benchmark._findings import contradictions
from routecast.lab.benchmark.page import benchmark_page
from routecast.lab.benchmark.values import BenchmarkResult
from routecast.show.page import render_page


def changed(name: str, chosen: Callable[[Any], bool], **values: Any) -> BenchmarkResult:
    """Return the whole result with other values in the first row that is chosen."""
    result = results.whole()
    rows = list(result.by_procedure[name].rows)
    place = next(number for number, row in enumerate(rows) if chosen(row))
    rows[place] = replace(rows[place], **values)
    return replace(
        result, by_procedure={**result.by_procedure, name: replace(result.by_procedure[name], rows=tuple(rows))}
    )


def smallest(row: Any) -> bool:
    return bool(row.stream == "IPv4" and row.frame_bytes == 64)


RATE = results.rate_of(64)


def test_a_result_that_agrees_has_none() -> None:
    assert contradictions(results.whole()) == ()
    assert "contradicts itself" not in render_page(benchmark_page(results.whole()))


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        pytest.param(
            changed("frame_loss", lambda row: smallest(row) and row.intended_pps < RATE, loss_ratio=0.004),
            "IPv4, 64 B: 2,422,481 frames/s are reported as forwarded without loss, but a loss trial at 1,488,095 "
            "frames/s lost 0.4 %",
            id="a loss trial below it lost",
        ),
        pytest.param(
            changed("latency", smallest, loss_ratio=0.02),
            "IPv4, 64 B: 2,422,481 frames/s are reported as forwarded without loss, but a latency trial at 2,422,481 "
            "frames/s lost 2 %",
            id="a latency trial at it lost",
        ),
        pytest.param(
            changed("throughput", lambda row: smallest(row) and row.loss_ratio > 0.0, throughput_pps=2e6),
            "IPv4, 64 B: 2,000,000 frames/s met PDR 0.5 %, but 2,422,481 frames/s met no loss, which tolerates less",
            id="goals out of order",
        ),
        pytest.param(
            changed(
                "throughput",
                lambda row: smallest(row) and row.loss_ratio > 0.0,
                raised_from_pps=2e6,
                searched_pps=2_434_593.0,
            ),
            "IPv4, 64 B: the search for PDR 0.5 % ended at 2,000,000 frames/s, below what met a stricter goal; it was "
            "raised to 2,434,593 frames/s",
            id="a goal that was raised",
        ),
        pytest.param(
            changed("frame_loss", smallest, forwarded_pps=15e6),
            "IPv4, 64 B: a loss trial has 15,000,000 frames/s, but the medium carries at most 14,880,952 frames/s",
            id="above the maximum",
        ),
        pytest.param(
            changed("frame_loss", smallest, loss_ratio=0.3),
            "IPv4, 64 B: the loss trial at 14,880,952 frames/s lost 30 %, but the trial at 13,392,857 frames/s lost "
            "81.9 %",
            id="less lost of more",
        ),
    ],
)
def test_each_is_reported_with_its_numbers(result: BenchmarkResult, sentence: str) -> None:
    outcome = contradictions(result)
    assert sentence in outcome
    page = render_page(benchmark_page(replace(result, contradictions=outcome)))
    assert sentence in page
    assert page.index("What contradicts itself") < page.index("Throughput</h2>")


def test_an_overload_that_lost_less_than_a_lower_load() -> None:
    result = changed("recovery", smallest, overload_pps=14e6, recovery_pps=7e6, overload_loss_ratio=0.1)
    # Without the lengths of the phases nothing is known of the loss in the overload alone.
    assert contradictions(result) == ()
    lengths = {"recovery": {"overload_duration": 0.3, "recovery_duration": 0.2}}
    (contradiction,) = contradictions(replace(result, profile={**result.profile, **lengths}))
    # 10 % of 4.2 + 1.4 million frames, had all been lost in the overload.
    assert contradiction == (
        "IPv4, 64 B: the overload of 14,000,000 frames/s lost 13.3 % at most, but a loss trial at 13,392,857 frames/s "
        "lost 81.9 %"
    )


def test_a_goal_whose_trials_may_exceed_it_is_not_contradicted_by_one() -> None:
    result = changed("latency", smallest, loss_ratio=0.02)
    goals = [{"name": "no loss", "exceed_ratio": 0.5}, {"name": "PDR 0.5 %", "exceed_ratio": 0.5}]
    assert contradictions(replace(result, profile={**result.profile, "throughput": {"goal": goals}})) == ()


def test_a_run_says_its_own() -> None:
    plan = plan_of(profile_with(), procedures=["throughput", "latency", "frame_loss"])
    agreed = run_benchmark(plan, PlainRig(evaluator=Fluid(2e6), link=LINK_BPS))
    assert agreed.contradictions == ()
    seen = []
    for seed in range(12):
        evaluator = Disturbed(2e6, chance_per_s=2.0)
        evaluator.random.seed(seed)
        seen += run_benchmark(plan, PlainRig(evaluator=evaluator, link=LINK_BPS)).contradictions
    # A loss that two more trials did not repeat lowers no rate, and is said all the same.
    assert [text for text in seen if "are reported as forwarded" in text]


def test_a_terminal_shows_them_before_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    from routecast.lab.cli.benchmark import print_result

    result = changed("latency", smallest, loss_ratio=0.02)
    print_result(replace(result, contradictions=contradictions(result)))
    shown = " ".join(capsys.readouterr().out.split())
    assert "Contradiction: IPv4, 64 B: 2,422,481 frames/s are reported as forwarded without loss" in shown
    assert shown.index("Contradiction:") < shown.index("Throughput (RFC 2544 sec. 26.1)")
