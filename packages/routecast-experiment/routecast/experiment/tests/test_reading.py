"""Experiment files: what they make, and what every mistake in them is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import routecast
from routecast.errors import FileProblem
from routecast.experiment.file import experiment_of, experiment_schema, parse_experiment, read_experiment
from routecast.experiment.model import Experiment
from routecast.experiment.run import run_experiment

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"
HEAD = 'name = "t"\nrouter = "multicore.router.toml"\n'
CORES = '[[factor]]\nname = "cores"\npath = "cores"\nlevels = [2, 4]\n'
QUEUE = '[[factor]]\nname = "queue"\npath = "queue"\nlevels = ["64 frames", "512 frames"]\n'
FRAMES = '[[factor]]\nname = "frames"\npath = "load.frames"\nlevels = ["64 B", "512 B"]\n'
CAPACITY = '[[response]]\nname = "capacity"\nof = "capacity_pps"\n'


def read(text: str) -> Experiment:
    return parse_experiment(text, subject="t.experiment.toml", folder=EXAMPLES)


def faults(text: str) -> dict[str, str]:
    with pytest.raises(FileProblem) as caught:
        read(text)
    return {problem.place: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.experiment.toml")), ids=lambda path: path.name)
@pytest.mark.slow
def test_every_example_is_an_experiment(path: Path) -> None:
    experiment = read_experiment(path)
    assert all(len(row) == len(experiment.factors) for row in experiment.design.coded)


def test_a_file_becomes_an_experiment() -> None:
    experiment = read(HEAD + CORES + FRAMES + CAPACITY)
    assert [(factor.letter, factor.name) for factor in experiment.factors] == [("A", "cores"), ("B", "frames")]
    assert experiment.design.coded == ((-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0))
    assert experiment.document["cores"] == 4
    assert experiment.folder == str(EXAMPLES)


def test_the_router_may_stand_in_the_file_itself() -> None:
    text = """
    name = "t"
    [router]
    builder = "multicore"
    cores = 1
    service = { per_packet = "1 us" }
    load = { rate = "1 Mpps" }
    """
    assert read(text + CORES + CAPACITY).document["service"] == {"per_packet": "1 us"}


def test_what_differs_in_every_run_is_set_before_the_levels() -> None:
    experiment = read(HEAD + 'set = { "load.rate" = "1 Mpps" }\n' + CORES + CAPACITY)
    assert experiment.document["load"]["rate"] == "1 Mpps"


def test_another_file_may_inline_the_table_and_bring_the_router() -> None:
    from routecast.experiment.file import ExperimentTable

    table = ExperimentTable.model_validate(
        {
            "name": "t",
            "factor": [{"name": "cores", "path": "cores", "levels": [1, 2]}],
            "response": [{"name": "capacity", "of": "capacity_pps"}],
        }
    )
    router = {"builder": "multicore", "cores": 4, "service": {"per_packet": "1 us"}, "load": {"rate": "1 Mpps"}}
    assert experiment_of(table, router, subject="study").document == router


def test_a_path_that_leads_nowhere_is_reported_the_nearest_name() -> None:
    problems = faults(HEAD + CORES.replace('path = "cores"', 'path = "coers"') + CAPACITY)
    assert 'did you mean "cores"?' in problems["factor[0].path"]


def test_a_wrong_path_or_key_of_a_level_is_reported_at_the_level_that_has_it() -> None:
    changes = '{ label = "a", set = { cores = 1 } }, { LABEL = "b", set = { KEY = 2 } }'
    factor = f'[[factor]]\nname = "cores"\nlevels = [{changes}]\n'
    problems = faults(HEAD + factor.replace("LABEL", "label").replace("KEY", "coers") + CAPACITY)
    assert 'did you mean "cores"?' in problems["factor[0].levels[1].set"]
    problems = faults(HEAD + factor.replace("LABEL", "labelx").replace("KEY", "cores") + CAPACITY)
    assert 'did you mean "label"?' in problems["factor[0].levels[1]"]


def test_all_faults_are_reported_at_once_each_with_its_place() -> None:
    wrong = HEAD + CORES.replace("[2, 4]", "[2]") + QUEUE.replace('path = "queue"', 'path = "queu"')
    problems = faults(wrong + '[[response]]\nname = "y"\nof = "latency.p98_s"\n')
    assert set(problems) == {"factor[0].levels", "factor[1].path", "response[0].of"}
    assert 'did you mean "p99_s"?' in problems["response[0].of"]


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (HEAD + CORES.replace("[2, 4]", "[2]") + CAPACITY, "factor[0].levels", "has one level"),
        (HEAD + CORES.replace("[2, 4]", "[2, 4, 2]") + CAPACITY, "factor[0].levels[2]", "occurs twice"),
        (HEAD + CORES + CORES.replace('name = "cores"', 'name = "b"') + CAPACITY, 'factor "b"', "already"),
        (HEAD + CORES + CORES + CAPACITY, "factor[1].name", "is taken"),
        (HEAD.replace("multicore", "m" * 400) + CORES + CAPACITY, "router", "there is no file"),
        (
            HEAD + CORES + CAPACITY + '[design]\nkind = "listed"\npoints = [{ cores = 1e308 }]\n',
            "design.points[0].cores",
            "too far from the levels 2 and 4",
        ),
        (HEAD.replace("multicore", "multicor") + CORES + CAPACITY, "router", 'did you mean "multicore.router.toml"'),
        (HEAD + 'evaluator = "simulate"\n' + CORES + CAPACITY, "response[0].of", "only solve computes"),
        (HEAD + 'evaluator = "measure"\n' + CORES + CAPACITY, "testbed", "needs it"),
        (HEAD + "steady = true\n" + CORES + CAPACITY, "steady", "leave this key out"),
        (
            HEAD + CORES + CAPACITY.replace('name = "capacity"', 'name = "cores"'),
            "response[0].name",
            "is the name of a factor",
        ),
        (HEAD + 'set = { "lode.rate" = "1 Mpps" }\n' + CORES + CAPACITY, "set.lode.rate", 'did you mean "load"'),
        (HEAD + CORES + '[[response]]\nname = "y"\nof = "bottleneck.name"\n', "response[0].of", "is not a number"),
        (HEAD + CORES + '[[response]]\nname = "y"\nof = "resources"\n', "response[0].of", "several entries"),
        (HEAD + CORES + '[[response]]\nname = "y"\nof = "forwarded_frames"\n', "response[0].of", "does not answer"),
        (HEAD + CORES + CAPACITY + '[design]\nkind = "ful"\n', "design.kind", 'did you mean "full"'),
        (HEAD + CORES + CAPACITY + "[design]\npoints = 4\n", "design.points", 'is not for kind "full"'),
        (
            HEAD + CORES + QUEUE + FRAMES + CAPACITY + '[design]\nkind = "fractional"\ngenerators = ["C=AX"]\n',
            "design.generators[0]",
            '"X" is no factor',
        ),
        (
            HEAD + CORES + QUEUE + FRAMES + CAPACITY + '[design]\nkind = "fractional"\n',
            "design.generators",
            "is missing",
        ),
        (HEAD + CORES.replace("[2, 4]", "[1, 2, 4]") + CAPACITY, "design.kind", 'take kind "multilevel"'),
        (
            HEAD + CORES + CAPACITY + '[design]\nkind = "latin_hypercube"\npoints = 10_000_000\n',
            "design.points",
            "from 2 to 1,000,000",
        ),
        (
            HEAD + CORES + CAPACITY + '[design]\nkind = "latin_hypercube"\n',
            "design.points",
            "give the number of points",
        ),
        (
            HEAD + CORES + CAPACITY + '[design]\nkind = "listed"\npoints = [{ cores = 3 }, { core = 2 }]\n',
            "design.points[1].core",
            'did you mean "cores"',
        ),
    ],
)
def test_a_mistake_is_reported_at_its_place(text: str, place: str, says: str) -> None:
    assert says in faults(text)[place]


def test_axial_points_that_no_router_can_have_are_reported() -> None:
    ccd = '[design]\nkind = "central_composite"\n'
    far = QUEUE.replace("64 frames", "400 frames")
    problems = faults(HEAD + CORES.replace("[2, 4]", "[2, 12]") + far + CAPACITY + ccd)
    assert '"cores" would be 0 at an axial point' in problems["design.shape"]
    for remedy in ('shape = "inscribed"\n', 'shape = "face_centred"\n'):
        assert len(read(HEAD + CORES + FRAMES + CAPACITY + ccd + remedy).design.coded) == 13
    logs = HEAD + CORES.replace("levels", "log = true\nlevels") + FRAMES.replace("levels", "log = true\nlevels")
    assert len(read(logs + CAPACITY + ccd).design.coded) == 13


def test_a_screening_design_is_read() -> None:
    text = HEAD + CORES + QUEUE + FRAMES + CAPACITY + '[design]\nkind = "plackett_burman"\n'
    experiment = read(text)
    assert len(experiment.design.coded) == 8
    assert all(sum(row[number] for row in experiment.design.coded) == 0.0 for number in range(3))


def test_points_that_are_listed_are_tried() -> None:
    points = '[{ cores = 2, queue = "512 frames" }, { A = 4, B = "288 frames" }]'
    experiment = read(HEAD + CORES + QUEUE + CAPACITY + f'[design]\nkind = "listed"\npoints = {points}\n')
    assert experiment.design.coded == ((-1.0, 1.0), (1.0, 0.0))


def test_a_router_without_a_load_asks_for_one() -> None:
    text = 'name = "t"\n[router]\nbuilder = "multicore"\ncores = 1\nservice = { per_packet = "1 us" }\n'
    assert "the router file has none" in faults(text + CORES + CAPACITY)["set"]


def test_a_test_bed_document_has_the_load_beside_it() -> None:
    text = """
    name = "t"
    evaluator = "measure"
    testbed = "namespaces"
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
    experiment = read(text)
    assert experiment.document["load"] == {"rate": "100 kpps"}
    assert experiment.document["kind"] == "namespaces"
    assert 'did you mean "slowdown"' in faults(text.replace("dut.slowdown", "dut.slowdwn"))["factor[0].path"]
    wrong = faults(text.replace("dut.slowdown", "cors.tester").replace('"100 kpps" }', '"100 kHz" }'))
    assert "is a frequency" in wrong["load.rate"]


def test_a_list_written_as_one_table_is_reported_how_to_write_it() -> None:
    assert "write [[factor]]" in faults(HEAD + CORES.replace("[[factor]]", "[factor]") + CAPACITY)["factor"]


def test_the_schema_accepts_the_examples() -> None:
    import tomllib

    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(experiment_schema())
    for path in EXAMPLES.glob("*.experiment.toml"):
        assert list(validator.iter_errors(tomllib.loads(path.read_text(encoding="utf-8")))) == []
    assert list(validator.iter_errors({"name": "t"})) != []


def test_levels_of_a_load_may_be_bit_rates_of_the_frames_of_each_run() -> None:
    load = '[[factor]]\nname = "load"\npath = "load.rate"\nlevels = ["1 Gbit/s", "2 Gbit/s"]\n'
    offered = '[[response]]\nname = "offered"\nof = "intended_pps"\n'
    results = run_experiment(read(HEAD + 'evaluator = "solve"\n' + load + FRAMES + offered), None)
    # 20 B of gap and preamble a frame (S1).
    rates_pps = [answer.values["offered"] for answer in results.answers]
    assert rates_pps == [pytest.approx(rate * 1e9 / (8 * size)) for size in (84, 532) for rate in (1, 2)]
