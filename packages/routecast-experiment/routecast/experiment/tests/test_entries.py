"""Entries that responses name: told before anything runs where no run has them, in single runs where some have."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

import routecast
from routecast.cli.run import run
from routecast.errors import FileProblem
from routecast.evaluate.simulate import Simulate
from routecast.experiment.analysis import analyse
from routecast.experiment.answer import missing_entries, response_problem, unchecked_responses
from routecast.experiment.file import parse_experiment
from routecast.experiment.model import Experiment
from routecast.experiment.run import run_experiment
from routecast.router.files import build_router

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"
TEXT = """
name = "t"
router = "multicore.router.toml"
evaluator = "EVALUATOR"
duration = "10 ms"
[[factor]]
name = "cores"
path = "cores"
levels = [2, 4]
[[response]]
name = "rate"
of = "forwarded_pps"
[[response]]
name = "paths"
of = '''OF'''
"""


def read(of: str, evaluator: str = "solve") -> Experiment:
    return parse_experiment(TEXT.replace("OF", of).replace("EVALUATOR", evaluator), folder=EXAMPLES)


@pytest.mark.parametrize("evaluator", ["solve", "simulate"])
@pytest.mark.parametrize(
    ("of", "says"),
    [
        ("resource[cpuu].utilisation_ratio", 'did you mean "cpu"?'),
        ("resource[nix].utilisation_ratio", 'in any of the 2 routers of the design: known are "'),
        ('resource["cpu"].utilisation_ratio', 'did you mean "cpu"?'),
        ("resource[ cpu ].utilisation_ratio", 'did you mean "cpu"?'),
        ("resource[].utilisation_ratio", 'no entry ""'),
        ("resource[a[0]].utilisation_ratio", 'no entry "a[0]"'),
        ("resource[99].utilisation_ratio", 'no entry "99"'),
        ("resource[²].utilisation_ratio", 'no entry "²"'),
        ("resource[cpu", "is not a path"),
        ("resource.utilisation_ratio", "has several entries: name one, resources[…].utilisation_ratio"),
        ("utilisation.cpu9", 'there is no "utilisation" here'),
        ("l2_bps[cpu]", "has no entries"),
        ("task[core 9].busy_ratio", 'did you mean "core 3"?'),  # of the router with four cores
        ("drops[core 9]", 'did you mean "core 3"?'),
        ("energy_j[cpu][active]", "there is none"),  # the router has no power states
    ],
)
def test_an_entry_that_no_run_has_is_reported_at_its_place_when_the_file_is_read(
    of: str, says: str, evaluator: str
) -> None:
    with pytest.raises(FileProblem) as raised:
        read(of, evaluator)
    assert [problem.place for problem in raised.value.problems] == ["response[1].of"]
    assert says in raised.value.problems[0].message


@pytest.mark.parametrize(
    ("of", "says"),
    [
        ("flow[99].loss_ratio", 'known are "0"'),
        ("interval[forwarded_pps][2]", 'no entry "2"'),
        ("over_time[0].forwarded_pps", "steady = true"),
    ],
)
def test_what_only_simulations_have_is_looked_up_there(of: str, says: str) -> None:
    with pytest.raises(FileProblem, match="response") as raised:
        read(of, "simulate")
    assert says in str(raised.value)


@pytest.mark.parametrize("evaluator", ["solve", "simulate"])
@pytest.mark.parametrize(
    "of", ["task[core 3].busy_ratio", "drops[core 3]", "queue_frames[core 3]", "task[4].busy_ratio"]
)
def test_an_entry_of_some_runs_is_missing_in_the_others_which_keep_their_other_answers(of: str, evaluator: str) -> None:
    """Two cores have no third and fourth; the multi-core router's first task unit distributes."""
    results = run_experiment(read(of, evaluator), None)
    two, four = results.answers
    assert "paths" not in two.values
    assert "has no entry" in two.problem
    assert two.values["rate"] > 0.0
    assert four.problem == ""
    assert four.values["paths"] > 0.0
    assert [item.run for item in analyse(results, "paths").missing] == [0]
    assert analyse(results, "rate").missing == ()


@pytest.mark.parametrize("evaluator", ["solve", "simulate"])
def test_a_place_that_loses_nothing_loses_zero(evaluator: str) -> None:
    text = TEXT.replace("OF", "drops[core 0]").replace("EVALUATOR", evaluator)
    text = text.replace("duration", 'set = { "load.rate" = "500 kpps" }\nduration', 1)
    results = run_experiment(parse_experiment(text, folder=EXAMPLES), None)
    assert results.values("paths") == (0.0, 0.0)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.router.toml")), ids=lambda path: path.name)
@pytest.mark.slow
def test_every_entry_of_a_trial_may_be_requested(path: Path) -> None:
    """What is foreseen without a packet holds all that the simulator then answers, for every example."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    model, load = build_router(document, folder=EXAMPLES)
    assert load is not None
    duration_s = 300 / load.mean_pps(1.0)
    simulate = Simulate(model, per_flow=True, over_time=True, steady_state=False)
    trial = simulate.trial(load, duration_s)
    paths = [
        *(f"resource[{resource.name}].utilisation_ratio" for resource in trial.resources),
        *(f"task[{entry.name}].busy_ratio" for entry in trial.activity),
        *(f"queue_frames[{name}]" for name in trial.queue_frames),
        *(f"drops[{name}]" for name in trial.drops_pps),
        *(f"energy_j[{pool}][{state}]" for pool, states in trial.energy_j.items() for state in states),
        *(f"flow[{item.number}].loss_ratio" for item in (trial.flows[0], trial.flows[-1])),
        *(f"interval[{name}][0]" for name in trial.interval),
        f"over_time[{len(trial.over_time) - 1}].offered_pps",
    ]
    responses = "\n".join(f"[[response]]\nname = 'r{number}'\nof = '''{of}'''" for number, of in enumerate(paths))
    text = f"""
    name = "t"
    router = "{path.name}"
    evaluator = "simulate"
    duration = "1 s"
    steady = true
    {responses}
    [[factor]]
    name = "rate"
    path = "load.rate"
    levels = ["10 kpps", "20 kpps"]
    """
    experiment = parse_experiment(text, folder=EXAMPLES)
    assert missing_entries(experiment) == ()
    assert len(experiment.responses) == len(paths) > 4


def test_runs_that_cannot_be_built_say_so_themselves() -> None:
    text = TEXT.replace("OF", "task[core 9].busy_ratio").replace("EVALUATOR", "solve")
    experiment = parse_experiment(text.replace("[2, 4]", "[-2, -4]"), folder=EXAMPLES)
    assert all("allowed is 1 to 4096" in answer.problem for answer in run_experiment(experiment, None).answers)
    with pytest.raises(FileProblem, match="in the router: did you mean"):
        parse_experiment(text.replace("[2, 4]", "[2, -4]"), folder=EXAMPLES)


def test_an_entry_of_one_corner_of_a_large_design_is_found() -> None:
    text = TEXT.replace("OF", "task[core 63].busy_ratio").replace("EVALUATOR", "solve")
    text = text.replace("levels = [2, 4]", "between = [1, 64]")
    text += """[design]\nkind = "latin_hypercube"\npoints = 2000\n"""
    text += """[[factor]]\nname = "work"\npath = "service.per_packet"\nbetween = ["1 us", "2 us"]\n"""
    assert len(parse_experiment(text, folder=EXAMPLES).design.coded) == 2000


def test_the_command_line_refuses_it_before_any_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.experiment.toml"
    text = TEXT.replace("OF", "resource[cpuu].utilisation_ratio").replace("EVALUATOR", "simulate")
    file.write_text(text, encoding="utf-8")
    shutil.copy(EXAMPLES / "multicore.router.toml", tmp_path)
    out = tmp_path / "out"
    for option in ([], ["--design-only"], ["--join"]):
        assert run(["experiment", str(file), "--out", str(out), *option]) == 2
        assert 'response[1].of: resources has no entry "cpuu"' in capsys.readouterr().err.replace("\n", " ")
    assert not out.exists()


def test_on_a_wire_only_a_trial_can_know() -> None:
    text = """
    name = "t"
    evaluator = "measure"
    testbed = "namespaces"
    load = { rate = "100 kpps" }
    [[factor]]
    name = "rate"
    path = "load.rate"
    levels = ["100 kpps", "200 kpps"]
    [[response]]
    name = "lost"
    of = "drops[place unknown]"
    [[response]]
    name = "rate out"
    of = "forwarded_pps"
    """
    experiment = parse_experiment(text)
    assert missing_entries(experiment) == ()
    assert unchecked_responses(experiment) == ("drops[place unknown]",)
    assert unchecked_responses(read("drops[core 0]")) == ()
    # What a measured trial never has is told at once, whatever the entry.
    for of in ("flow[0].loss_ratio", "interval[forwarded_pps][0]", "task[x].busy_ratio"):
        assert "measure does not answer it" in response_problem(of, "measure")
