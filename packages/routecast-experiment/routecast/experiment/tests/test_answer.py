"""Runs and answers: what a run is known by, what each evaluator answers, and what a level that cannot be is told."""

from __future__ import annotations

import pickle
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

import routecast
from routecast.errors import QuantityProblem, RoutecastError
from routecast.evaluate.executor import Workers, cores, open_executor
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import capacity_pps, lossless_pps
from routecast.experiment.answer import answer, response_problem
from routecast.experiment.file import parse_experiment
from routecast.experiment.model import Experiment, Results
from routecast.experiment.run import join_experiment, run_experiment
from routecast.experiment.runs import levels_of_row, runs_of
from routecast.experiment.sweep import Shard
from routecast.router.files import build_router

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"
SOLVED = """
name = "t"
router = "multicore.router.toml"
[[factor]]
name = "cores"
path = "cores"
levels = [2, 4]
[[factor]]
name = "frames"
path = "load.frames"
levels = ["64 B", "512 B"]
[[response]]
name = "capacity"
of = "capacity_pps"
[[response]]
name = "lossless"
of = "lossless_pps"
[[response]]
name = "busy"
of = "resource[cpu].utilisation_ratio"
"""
SIMULATED = """
name = "t"
router = "multicore.router.toml"
evaluator = "simulate"
duration = "5 ms"
set = { "load.arrivals.kind" = "poisson", "load.rate" = "2.5 Mpps" }
[design]
replications = 3
[[factor]]
name = "cores"
path = "cores"
levels = [2, 4]
[[factor]]
name = "frames"
path = "load.frames"
levels = ["64 B", "512 B"]
[[response]]
name = "latency"
of = "latency.p99_s"
"""


def read(text: str) -> Experiment:
    return parse_experiment(text, folder=EXAMPLES)


def solved(text: str) -> Results:
    return run_experiment(read(text), None)


def test_the_closed_form_answers_what_it_would_alone() -> None:
    experiment = read(SOLVED)
    for run in runs_of(experiment):
        model, load = build_router(run.document)
        assert load is not None
        result = answer(run)
        assert result.values["capacity"] == capacity_pps(model, load)
        assert result.values["lossless"] == lossless_pps(model, load)
        assert 0.0 < result.values["busy"] <= 1.0
        assert result.bottleneck


def test_the_simulator_answers_what_it_would_alone() -> None:
    run = runs_of(read(SIMULATED))[0]
    model, load = build_router(run.document)
    assert load is not None
    trial = Simulate(model, seed=run.seed).trial(load, 5e-3)
    assert trial.latency is not None
    assert answer(run).values == {"latency": trial.latency.p99_s}


def test_runs_stand_in_the_order_of_the_design_with_replications_together() -> None:
    runs = runs_of(read(SIMULATED))
    assert [(run.row, run.replication) for run in runs] == [(row, r) for row in range(4) for r in range(3)]
    assert runs[3].document["cores"] == 4
    assert [level.label for level in levels_of_row(read(SIMULATED), 1)] == ["4", "64 B"]


def test_every_replication_has_a_seed_of_its_own_as_seed_sequence_spawns_them() -> None:
    import numpy as np

    runs = runs_of(read(SIMULATED))
    assert len({run.seed for run in runs}) == len(runs)
    assert len({run.key for run in runs}) == len(runs)
    spawned = np.random.SeedSequence(1).spawn(3)[2].spawn(4)[1].generate_state(1, np.uint64)[0]
    assert next(run.seed for run in runs if (run.row, run.replication) == (1, 2)) == int(spawned) >> 1


def test_more_replications_leave_those_that_are_there_as_they_are() -> None:
    few = {run.key for run in runs_of(read(SIMULATED))}
    many = {run.key for run in runs_of(read(SIMULATED.replace("replications = 3", "replications = 5")))}
    assert few < many


def test_common_random_numbers_give_all_rows_of_a_replication_one_seed() -> None:
    runs = runs_of(read(SIMULATED.replace("[design]", "[design]\ncommon_random_numbers = true")))
    assert len({run.seed for run in runs}) == 3
    assert len({run.key for run in runs}) == len(runs)


@pytest.mark.slow
def test_common_random_numbers_make_a_difference_vary_less() -> None:
    """Law, Simulation Modeling and Analysis, sec. 11.2: positively correlated runs make their difference vary less."""
    text = SIMULATED.replace('levels = ["64 B", "512 B"]', 'levels = ["64 B", "96 B"]')
    text = text.replace("replications = 3", "replications = 12").replace("latency.p99_s", "latency.mean_s")

    def spread(text: str) -> float:
        values = run_experiment(read(text), None).values("latency")
        gaps = [values[12 * 2 + r] - values[r] for r in range(12)]
        mean = sum(gaps) / len(gaps)
        return sum((gap - mean) ** 2 for gap in gaps)

    common = text.replace("[design]", "[design]\ncommon_random_numbers = true")
    assert spread(common) < 0.5 * spread(text)


def test_a_closed_form_needs_no_replications() -> None:
    runs = runs_of(read(SOLVED + "[design]\nreplications = 3\n"))
    assert len(runs) == 12
    assert len({run.key for run in runs}) == 4


def test_a_key_changes_with_whatever_decides_the_answer() -> None:
    experiment = read(SIMULATED)
    keys = [
        runs_of(item)[0].key
        for item in (
            experiment,
            replace(experiment, seed=2),
            replace(experiment, duration_s=1.0),
            replace(experiment, is_steadied=True),
            replace(experiment, document={**experiment.document, "queue": "64 frames"}),
            replace(experiment, responses=(replace(experiment.responses[0], of="latency.mean_s"),)),
        )
    ]
    assert len(set(keys)) == len(keys)
    assert runs_of(replace(experiment, title="another"))[0].key == keys[0]


def test_a_key_changes_with_the_content_of_a_file_that_the_router_names(tmp_path: Path) -> None:
    from routecast.experiment import runs as module

    text = SOLVED.replace('router = "multicore.router.toml"', 'set = { "load.arrivals.trace" = "a.csv" }\n').replace(
        "[[factor]]",
        '[router]\nbuilder = "multicore"\ncores = 1\nservice.per_packet = "1 us"\nload.rate = "1 Mpps"\n[[factor]]',
        1,
    )
    keys = []
    for content in ("one", "two"):
        (tmp_path / "a.csv").write_text(content)
        module._digest.cache_clear()
        keys.append(runs_of(parse_experiment(text, folder=tmp_path))[0].key)
    assert keys[0] != keys[1]


def test_a_run_can_be_pickled() -> None:
    run = runs_of(read(SIMULATED))[0]
    assert pickle.loads(pickle.dumps(run)) == run


def test_a_level_that_makes_the_router_invalid_is_reported_and_the_rest_goes_on() -> None:
    results = solved(SOLVED.replace('levels = ["64 B", "512 B"]', 'levels = ["64 B", "12 B"]'))
    assert [bool(answer.problem) for answer in results.answers] == [False, False, True, True]
    assert "12 B" in results.answers[2].problem
    # Both runs have one cause; tables beside it say which rows they are.
    assert results.answers[2].problem == results.answers[3].problem
    assert results.answers[0].values["capacity"] > 0.0
    assert results.values("capacity")[2] != results.values("capacity")[2]  # NaN


@pytest.mark.parametrize(("workers", "started"), [(1, 1), (3, 3), (500, 4), (None, min(cores(), 4))])
def test_no_worker_is_started_that_would_have_no_run(
    workers: int | None, started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    def noted(spec: str, workers: int | None) -> AbstractContextManager[Workers]:
        counts.append(workers)
        return open_executor("threads", 1)

    monkeypatch.setattr("routecast.experiment.run.open_executor", noted)
    run_experiment(read(SOLVED), None, executor="processes", workers=workers)
    assert counts == [started]


def test_more_workers_than_any_machine_has_are_refused() -> None:
    with pytest.raises(QuantityProblem, match="99999 workers: at most 1024"):
        run_experiment(read(SOLVED), None, executor="processes", workers=99_999)


def test_what_the_evaluator_does_not_know_for_a_router_is_reported() -> None:
    results = solved(SOLVED.replace("resource[cpu].utilisation_ratio", "power.mean_w"))
    assert all("solve does not know power.mean_w" in answer.problem for answer in results.answers)
    with pytest.raises(RoutecastError, match='did you mean "cpu"'):
        read(SOLVED.replace("resource[cpu]", "resource[cpuu]"))


def test_a_transient_that_does_not_end_is_reported() -> None:
    results = run_experiment(read(SIMULATED.replace('duration = "5 ms"', 'duration = "2 us"')), None)
    assert all(answer.problem for answer in results.answers)


def test_steady_runs_are_cut_and_judged() -> None:
    text = SIMULATED.replace('duration = "5 ms"', 'duration = "5 ms"\nsteady = true').replace(
        "latency.p99_s", "forwarded_pps"
    )
    results = run_experiment(read(text.replace("replications = 3", "replications = 1")), None)
    assert all(not item.problem for item in results.answers)
    # Two cores carry 3.37 Mpps: 562.8 ns and a contention of 0.055.
    assert results.values("latency") == pytest.approx([2.5e6] * 4, rel=0.02)
    short = run_experiment(read(text.replace('"5 ms"', '"20 us"')), None)
    assert any(answer.unsteady or answer.problem for answer in short.answers)


def test_a_latency_that_has_not_settled_is_reported_though_the_rate_has() -> None:
    text = SIMULATED.replace('duration = "5 ms"', 'duration = "5 ms"\nsteady = true')
    text = text.replace('"load.rate" = "2.5 Mpps"', '"load.rate" = "3.6 Mpps", queue = "100000 frames"')
    results = run_experiment(read(text.replace("replications = 3", "replications = 1")), None)
    # 3.6 Mpps are more than two cores carry (3.37 Mpps), and less than four do: their queue grows throughout.
    assert "the latency has not settled" in results.answers[0].unsteady
    assert results.answers[1].unsteady == ""


@pytest.mark.slow
def test_results_do_not_depend_on_where_and_by_how_many_they_are_computed() -> None:
    experiment = read(SIMULATED)
    result = {
        str(run_experiment(experiment, None, executor=executor, workers=workers).answers)
        for executor, workers in (("threads", 1), ("threads", 4), ("processes", 2))
    }
    assert len(result) == 1


def test_what_the_folder_holds_is_not_run_again(tmp_path: Path) -> None:
    experiment = read(SIMULATED)
    first = run_experiment(experiment, tmp_path)
    again = run_experiment(experiment, tmp_path)
    assert (first.resumed, again.resumed) == (0, 12)
    assert again == replace(first, resumed=12)


def test_shards_together_are_the_whole(tmp_path: Path) -> None:
    experiment = read(SIMULATED)
    parts = [run_experiment(experiment, tmp_path, shard=Shard(number, 3)) for number in (1, 2, 3)]
    assert sorted(len(part.answers) for part in parts) == [4, 4, 4]
    assert join_experiment(experiment, tmp_path).answers == run_experiment(experiment, None).answers


def test_shards_that_are_missing_are_named(tmp_path: Path) -> None:
    experiment = read(SIMULATED)
    run_experiment(experiment, tmp_path, shard=Shard(1, 2))
    with pytest.raises(RoutecastError, match="--shard 2/2"):
        join_experiment(experiment, tmp_path)


def test_an_executor_that_there_is_not_is_reported_before_anything_runs() -> None:
    with pytest.raises(QuantityProblem, match='did you mean "threads"'):
        run_experiment(read(SOLVED), None, executor="thread")


def test_a_wire_is_measured_one_trial_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wire itself is measured in the tests of the lab; here a stand-in tells what it is asked."""
    import contextlib
    from collections.abc import Iterator
    from typing import Any

    from routecast.evaluate.trial import Bottleneck, Trial
    from routecast.lab import testbed
    from routecast.lab.testbed.reading import read_testbed
    from routecast.load.offered import OfferedLoad

    trials: list[tuple[int, float]] = []
    running: list[str] = []

    class StandIn:
        def __init__(self, slowdown: int) -> None:
            self.slowdown = slowdown

        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            trials.append((self.slowdown, load.rate_pps))
            return Trial(
                evaluator="measure", duration_s=duration_s, intended_pps=load.rate_pps, offered_pps=load.rate_pps,
                forwarded_pps=load.rate_pps / (1 + self.slowdown), loss_ratio=0.0, l1_bps=0.0, l2_bps=0.0,
                bottleneck=Bottleneck(name="dut", kind="pool", reason="limits"),
                invalid=("the link went down",) if self.slowdown == 500 and load.rate_pps > 1e5 else (),
            )  # fmt: skip

    @contextlib.contextmanager
    def opened(path: Path, **_: Any) -> Iterator[StandIn]:
        assert running == []
        running.append("one")
        yield StandIn(read_testbed(path).dut.options["slowdown"])
        running.pop()

    monkeypatch.setattr(testbed, "open_testbed", opened)
    text = """
    name = "t"
    evaluator = "measure"
    testbed = "namespaces.testbed.toml"
    load = { rate = "100 kpps" }
    [[factor]]
    name = "slow-down"
    path = "dut.slowdown"
    levels = [0, 500]
    [[factor]]
    name = "rate"
    path = "load.rate"
    levels = ["100 kpps", "200 kpps"]
    [[response]]
    name = "forwarded"
    of = "forwarded_pps"
    """
    results = run_experiment(read(text), None, workers=8)
    assert sorted(trials) == [(0, 1e5), (0, 2e5), (500, 1e5), (500, 2e5)]
    assert trials != [(0, 1e5), (500, 1e5), (0, 2e5), (500, 2e5)]  # in random order, not in that of the design
    assert results.values("forwarded")[:3] == pytest.approx((1e5, 1e5 / 501, 2e5))
    assert "the link went down" in results.answers[3].problem
    with pytest.raises(RoutecastError, match="--executor threads"):
        run_experiment(read(text), None, executor="dask://127.0.0.1:1")


@pytest.mark.parametrize(
    ("of", "evaluator", "says"),
    [
        ("l2_bps", "solve", ""),
        ("capacity_pps", "solve", ""),
        ("capacity_pps", "simulate", "only solve computes"),
        ("latency.p99_s", "simulate", ""),
        ("task[core 0].busy_ratio", "simulate", ""),
        ("energy_j[cpu][active]", "solve", ""),
        ("resource[cpu].utilisation_ratio", "measure", "does not answer it"),
        ("flows[0].loss_ratio", "simulate", ""),
        ("latency", "solve", "has parts"),
        ("latency[1]", "solve", "has no entries"),
        ("l2_bps.more", "solve", "has no parts"),
        ("", "solve", "is empty"),
        ("l2 bps", "solve", "is not a path"),
    ],
)
def test_paths_of_responses_are_checked_before_anything_runs(of: str, evaluator: str, says: str) -> None:
    problem = response_problem(of, evaluator)  # type: ignore[arg-type]  # the parameter is a text here
    assert (says in problem) if says else problem == ""


LOOKED_AT = """
name = "t"
router = "multicore.router.toml"
evaluator = "simulate"
duration = "1 ms"
steady = true
set = { cores = 1, "load.rate" = "1 Mpps", "load.flows.count" = 1 }
[[factor]]
name = "work"
path = "service.per_packet"
levels = ["10 us", "20 us"]
[[response]]
name = "steady"
of = "forwarded_pps"
[[response]]
name = "looked at"
of = "forwarded_pps"
read_at = "100 us"
"""


def test_a_look_at_an_instant_says_the_mean_since_the_start() -> None:
    results = run_experiment(read(LOOKED_AT), None)
    # From empty, one frame leaves every 10 (20) us, so that 9 (4) have left after 100 us: the first waited for nothing.
    assert results.values("steady") == pytest.approx([1e5, 5e4], rel=0.03)
    assert results.values("looked at") == pytest.approx([9e4, 4e4], rel=0.12)
    assert all(a < b for a, b in zip(results.values("looked at"), results.values("steady"), strict=True))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('read_at = "100 us"', 'read_at = "2 ms"', "after the end of the trial"),
        ('"forwarded_pps"\nread_at', '"latency.mean_s"\nread_at', "only these responses have readings"),
        ('evaluator = "simulate"', 'evaluator = "solve"', "has no rates over time"),
    ],
)
def test_what_cannot_be_looked_at_is_reported_before_anything_runs(old: str, new: str, says: str) -> None:
    with pytest.raises(RoutecastError, match=says):
        read(LOOKED_AT.replace(old, new))
