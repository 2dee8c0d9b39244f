"""Simulations that go on until their figures are precise: M/M/1/K, correlated series, and what cannot be had."""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from routecast.errors import ModelProblem, QuantityProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.simulate.precision import (
    Estimate,
    PreciseTrial,
    _half_width,
    parse_precisions,
    simulate_precisely,
)
from routecast.load import Arrivals, FrameMix, OfferedLoad
from routecast.load.offered import RateStep
from routecast.router import RouterModel, ServiceCost, multicore

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVICE_S = 1e-6
ROOM = 20


def queue() -> RouterModel:
    cost = ServiceCost(per_packet_s=SERVICE_S, variation="exponential")
    return multicore(1, cost, queue_frames=ROOM - 1, link_bps=1e15)


def offered(load: float) -> OfferedLoad:
    return OfferedLoad(rate_pps=load / SERVICE_S, arrivals=Arrivals.poisson())


def states(load: float) -> list[float]:
    """Return the probabilities of M/M/1/K to hold 0 to K frames."""
    weights = [load**frames for frames in range(ROOM + 1)]
    return [weight / math.fsum(weights) for weight in weights]


def sojourn_exceeds(load: float, time_s: float) -> float:
    """Return how often an admitted frame of M/M/1/K stays longer: it waits for the frames before it, and is served."""
    admitted = states(load)[:-1]
    x = time_s / SERVICE_S
    erlang = [math.exp(-x) * math.fsum(x**k / math.factorial(k) for k in range(n + 1)) for n in range(ROOM)]
    return math.fsum(p * tail for p, tail in zip(admitted, erlang, strict=True)) / math.fsum(admitted)


@pytest.mark.parametrize("path", ["lanes", "recursion"])
def test_the_intervals_of_a_queue_hold_its_theory(path: Any) -> None:
    load = 0.8
    asked = parse_precisions("loss within 10 %, p99 within 4 %, mean within 1 %")
    trial = simulate_precisely(Simulate(queue(), seed=2, path=path), offered(load), asked, at_most_s=60.0)
    assert trial.is_reached
    assert trial.batches >= 32
    chain = states(load)
    frames = math.fsum(n * p for n, p in enumerate(chain))
    truth = {
        "loss": chain[-1],
        "forwarded": load / SERVICE_S * (1.0 - chain[-1]),
        "mean": frames * SERVICE_S / (load * (1.0 - chain[-1])),
    }
    for figure, true in truth.items():
        estimate = trial.of(figure)
        # Twice a half-width of 95 % is missed by one in ten thousand.
        assert abs(estimate.value - true) <= 2.0 * estimate.half_width
        assert 0.0 < estimate.half_width < 0.1 * true
    for figure, probability in (("p50", 0.5), ("p99", 0.99)):
        estimate = trial.of(figure)
        low, high = (sojourn_exceeds(load, estimate.value + side * 2.0 * estimate.half_width) for side in (1, -1))
        assert low <= 1.0 - probability <= high
    assert trial.dropped_frames == round(trial.of("loss").value * trial.offered_frames)


def test_neighbours_that_resemble_each_other_widen_an_interval() -> None:
    rng = random.Random(1)
    alone = [rng.gauss(5.0, 1.0) for _ in range(4096)]
    known = _half_width(alone)
    assert known == pytest.approx(1.96 / math.sqrt(4096), rel=0.1)
    # An autoregressive series has (1 + c)/(1 - c) times the variance of its mean.
    series, last = [], 0.0
    for _ in range(4096):
        last = 0.9 * last + math.sqrt(1.0 - 0.81) * rng.gauss(0.0, 1.0)
        series.append(5.0 + last)
    assert _half_width(series) == pytest.approx(math.sqrt(19.0) * known, rel=0.35)
    assert _half_width([2.0] * 40) == 0.0
    assert math.isnan(_half_width([float(number) for number in range(40)])), "a drift has no interval"


def test_a_router_that_lanes_do_not_run_is_replicated_and_says_why() -> None:
    sizes = FrameMix(name="two", sequence_bytes=(64, 570))
    load = OfferedLoad(rate_pps=0.6 / SERVICE_S, arrivals=Arrivals.poisson(), frames=sizes)
    trial = simulate_precisely(Simulate(queue()), load, parse_precisions("mean within 5 %"), at_most_s=60.0)
    assert trial.is_reached
    assert "replications with other seeds" in trial.notes[0]
    assert "repeat in order" in trial.notes[0]
    with pytest.raises(ModelProblem, match="repeat in order"):
        simulate_precisely(Simulate(queue(), path="lanes"), load, parse_precisions("mean within 5 %"))


def test_what_has_no_precision_says_so() -> None:
    changing = OfferedLoad(rate_pps=1e5, arrivals=Arrivals.poisson(), steps=(RateStep(at_s=0.1, rate_pps=2e5),))
    with pytest.raises(ModelProblem, match="changes during the trial"):
        simulate_precisely(Simulate(queue()), changing, ())
    with pytest.raises(ModelProblem, match=r"too coarse for p99 within 0\.1 %"):
        simulate_precisely(Simulate(queue(), path="lanes"), offered(0.5), parse_precisions("p99 within 0.1 %"))
    # A loss that no frame shows is neither 0 nor precise, and the work ends.
    trial = simulate_precisely(Simulate(queue()), offered(0.05), parse_precisions("loss 1e-12"), at_most_s=0.5)
    assert not trial.is_reached
    assert math.isnan(trial.of("loss").half_width)
    assert any("how rare losses are is not known" in note for note in trial.notes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("loss", "is no precision"),
        ("p42 within 1 %", "is no figure"),
        ("loss within 200 %", "below 1"),
        ("loss 0", "above 0"),
        ("forwarded 5", "write"),
        ("mean 3 cats", "cats"),
        ("loss 1e-3, loss 1e-4", "two precisions"),
    ],
)
def test_a_text_that_is_no_precision_is_refused(text: str, says: str) -> None:
    with pytest.raises(QuantityProblem, match=says):
        parse_precisions(text)


def test_half_widths_are_shares_of_what_was_asked() -> None:
    absolute, relative = parse_precisions("loss 1e-6, mean within 2 %")
    assert absolute.share_of(Estimate(figure="loss", value=1e-3, half_width=5e-7)) == pytest.approx(0.5)
    assert relative.share_of(Estimate(figure="mean", value=1e-5, half_width=4e-7)) == pytest.approx(2.0)


def test_the_command_prints_what_it_reached_and_ends_with_1_where_it_did_not(command: Any) -> None:
    router = EXAMPLES / "multicore.router.toml"
    base = ("simulate", router, "--load", "6.2 Mpps", "--arrivals", "poisson")
    done = command(*base, "--precision", "mean within 5 %", "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["is_reached"] is True
    (mean,) = (row for row in document["estimates"] if row["figure"] == "mean")
    assert 0.0 < mean["half_width"] <= 0.05 * mean["value"]
    missed = command(*base, "--precision", "loss 1e-12", "--at-most", "500 ms")
    assert missed.returncode == 1
    assert "not reached: loss 1e-12" in missed.stdout
    assert "Not as precise as asked" in missed.stderr
    for beside in (("--duration", "1 s"), ("--replications", "3"), ("--fail", "x"), ("--half-width", "1%")):
        refused = command(*base, "--precision", "mean within 5 %", *beside)
        assert refused.returncode == 2
        assert f"leave {beside[0]} out" in refused.stderr


@pytest.mark.slow
def test_ctrl_c_leaves_the_figures_so_far(start: Any, until: Any, tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    words = ("simulate", EXAMPLES / "multicore.router.toml", "--load", "5 Mpps", "--arrivals", "poisson", "--json")
    program = "import routecast.cli, sys, time\n"
    program += "import routecast.evaluate.simulate.precision as precision\nnext_of = precision._Source.next\n"
    program += (
        "def told(self, joined):\n    batch = next_of(self, joined)\n    print('batch', file=sys.stderr, flush=True)\n"
    )
    program += "    return batch\nprecision._Source.next = told\n"
    program += "routecast.cli.main(sys.argv[1:])\n"
    with out.open("w") as stdout, err.open("w") as stderr:
        process: subprocess.Popen[str] = start(
            [sys.executable, "-c", program, *words, "--precision", "loss 1e-15"], stdout=stdout, stderr=stderr
        )
        until(lambda: err.read_text().count("batch") >= 4, "four batches are done", process)
        process.send_signal(signal.SIGINT)
        assert process.wait(60.0) == 130
    document = json.loads(out.read_text())
    assert document["was_interrupted"] is True
    assert document["batches"] >= 4
    assert document["is_reached"] is False
    assert "Interrupted after" in err.read_text()


def test_a_trial_without_frames_of_a_figure_has_none_of_it() -> None:
    trial = PreciseTrial(
        router="",
        intended_pps=1.0,
        simulated_s=1.0,
        offered_frames=0,
        dropped_frames=0,
        batches=0,
        worked_s=0.0,
        estimates=(),
        is_reached=False,
        was_interrupted=False,
        left_s=math.nan,
    )
    assert math.isnan(trial.of("p99").value)
