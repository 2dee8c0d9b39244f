"""Cluster files: their values, and the messages for invalid files."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import pytest

import routecast
from routecast.errors import FileProblem, ModelProblem
from routecast.plan.cluster.answer import answer
from routecast.plan.cluster.model import InfeasiblePlan
from routecast.plan.cluster.reading import TrafficChange, cluster_schema, parse_cluster, read_cluster
from routecast.plan.series.reading import read_series
from routecast.plan.series.shapes import mean_day

EXAMPLE = Path(routecast.__file__).parents[3] / "examples" / "li2012.cluster.toml"

SMALL = """
[traffic]
series = "{series}"
{traffic}
[[group]]
name = "small"
capacity = "2 Gbit/s"
power = "50 W"
price = 100
[[group]]
name = "large"
capacity = "5 Gbit/s"
power = "100 W"
price = 300
{group}
[plan]
{plan}
"""


def trace(folder: Path, values: list[str], *, minutes: int = 60) -> Path:
    """Write a series of one value every ``minutes`` from midnight; an empty text is a sample that is missing."""
    lines = [
        f"2020-01-{1 + i * minutes // 1440:02d} {i * minutes // 60 % 24:02d}:{i * minutes % 60:02d}:00,{value}"
        for i, value in enumerate(values)
        if value
    ]
    path = folder / "trace.csv"
    path.write_text("\n".join(["time,Mbit/s", *lines, ""]), encoding="utf-8")
    return path


def small(folder: Path, values: list[str], **parts: str) -> str:
    path = trace(folder, values)
    return SMALL.format(series=path, **{"traffic": "", "group": "", "plan": "", **parts})


DAY = [str(4000 + 100 * hour) for hour in range(24)]


def test_the_example_has_li_2012_groups_and_the_mean_day_of_a_shipped_trace() -> None:
    case = read_cluster(EXAMPLE)
    # Li 2012, sec. 8.3.2.
    assert [(g.name, g.capacity_bps, g.power_w, g.price) for g in case.problem.groups] == [
        ("I", 6.5e9, 75.0, 250.0),
        ("II", 8.7e9, 95.0, 400.0),
        ("III", 10e9, 120.0, 500.0),
        ("IV", 8.5e9, 92.0, 400.0),
    ]
    assert any("2012" in source for source in case.sources)
    day = mean_day(read_series("abilene"), 3600.0)
    assert max(case.problem.traffic_bps) == 50e9
    ratios = [scaled / mean for scaled, mean in zip(case.problem.traffic_bps, day.l2_bps, strict=True)]
    assert ratios == pytest.approx([ratios[0]] * 24)
    assert case.trace is not None
    assert max(case.trace.l2_bps) == 50e9
    assert len(case.trace.l2_bps) % 288 == 0


def test_the_schema_admits_the_example_and_no_unknown_key() -> None:
    document = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    schema = cluster_schema()
    jsonschema.Draft202012Validator(schema).validate(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "clouds": 3}, schema)


def test_all_faults_are_reported_at_once_with_their_places() -> None:
    wrong = """
    [traffic]
    series = "abilene"
    day = "median"
    peak = "50 GB"
    step = "0 min"
    [[group]]
    name = "a"
    capacity = "0 Gbit/s"
    power = "-5 W"
    price = -1
    [[group]]
    name = "b"
    capacity = "10 Gbyte"
    power = 5
    price = 1
    boot_energy = "3 W"
    [plan]
    budgit = 3
    """
    with pytest.raises(FileProblem) as caught:
        parse_cluster(wrong)
    places = {problem.place for problem in caught.value.problems}
    assert places == {
        "traffic.day",
        "traffic.peak",
        "traffic.step",
        "group[0].capacity",
        "group[0].power",
        "group[0].price",
        "group[1].capacity",
        "group[1].power",
        "group[1].boot_energy",
        "plan.budgit",
    }
    assert "budget" in str(caught.value)


def test_groups_that_contradict_themselves_are_refused(tmp_path: Path) -> None:
    extra = '[[group]]\nname = "small"\ncapacity = "1 Gbit/s"\npower = "10 W"\nidle_power = "20 W"\nprice = 1\n'
    with pytest.raises(FileProblem) as caught:
        parse_cluster(small(tmp_path, DAY, group=extra))
    assert {problem.place for problem in caught.value.problems} == {"group[2].name", "group[2].idle_power"}


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("price", "1e-300", "price"),
        ("price", "1e300", "price"),
        ("power", '"9223372036854775808 W"', "power_w"),
        ("power", '"1e-300 W"', "power_w"),
        ("capacity", '"1e-300 bit/s"', "capacity_bps"),
        ("capacity", '"1e300 bit/s"', "capacity_bps"),
        ("boot_time", '"1e300 s"', "boot_s"),
        ("boot_energy", '"1e300 J"', "boot_energy_j"),
    ],
)
def test_figures_that_no_solver_holds_are_refused_with_their_place(
    key: str, value: str, place: str, tmp_path: Path
) -> None:
    figures = {"name": '"odd"', "capacity": '"3 Gbit/s"', "power": '"60 W"', "price": "150", key: value}
    extra = "\n".join(["[[group]]", *(f"{name} = {text}" for name, text in figures.items())])
    with pytest.raises(ModelProblem) as caught:
        answer(parse_cluster(small(tmp_path, DAY, group=extra)))
    assert [problem.place for problem in caught.value.problems] == [f"group[2] 'odd'.{place}"]


@pytest.mark.parametrize("idle", ["1e-300 W", "49.99999999999999 W"])
def test_power_may_rise_with_the_load_by_next_to_nothing_or_from_it(idle: str, tmp_path: Path) -> None:
    group = f'[[group]]\nname = "a"\ncapacity = "2 Gbit/s"\npower = "50 W"\nidle_power = "{idle}"\nprice = 100'
    result = answer(parse_cluster(small(tmp_path, DAY, group=group)))
    assert result.design.energy_j > 0.0
    assert result.design.energy_j >= result.bound.energy_j * (1.0 - 1e-9)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([*DAY[:5], "", *DAY[6:]], "missing steps: 1; choose what to do about gaps: hold, interpolate or drop"),
        ([*DAY[:5], "-3", *DAY[6:]], "-3"),
        ([*DAY[:5], "many", *DAY[6:]], "many"),
    ],
)
def test_a_series_with_gaps_negatives_or_words_is_refused_with_its_place(
    tmp_path: Path, values: list[str], words: str
) -> None:
    with pytest.raises(FileProblem, match=words):
        parse_cluster(small(tmp_path, values))


def test_gaps_are_filled_only_on_request_and_noted(tmp_path: Path) -> None:
    values = [*DAY[:5], "", *DAY[6:]]
    case = parse_cluster(small(tmp_path, values, traffic='gaps = "interpolate"'))
    assert case.problem.traffic_bps[5] == pytest.approx(4.5e9)
    assert any("interpolated" in note for note in case.day.notes)
    with pytest.raises(FileProblem, match="no sample"):
        parse_cluster(small(tmp_path, values, traffic='gaps = "drop"'))
    whole = small(tmp_path, values, traffic='gaps = "drop"\nday = "all"')
    with pytest.raises(FileProblem, match=r"traffic\.gaps"):
        parse_cluster(whole)


def test_a_step_that_does_not_fit_the_series_is_refused_at_its_key(tmp_path: Path) -> None:
    for step in ("30 min", "7 h"):
        with pytest.raises(FileProblem, match=r"traffic\.step"):
            parse_cluster(small(tmp_path, DAY, traffic=f'step = "{step}"'))


def test_a_series_of_zeros_cannot_be_scaled(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="carries no traffic"):
        parse_cluster(small(tmp_path, ["0"] * 24, traffic='peak = "50 Gbit/s"'))


def test_a_budget_below_any_fleet_is_refused_with_the_least_that_does(tmp_path: Path) -> None:
    case = parse_cluster(small(tmp_path, DAY, plan="budget = 250"))
    # 6.3 Gbit/s at the peak: 4 small for 400, 1 small and 1 large for 400.
    with pytest.raises(InfeasiblePlan) as caught:
        answer(case)
    assert caught.value.constraint == "budget"
    assert caught.value.least == 400.0
    assert "150 too small" in str(caught.value)


def test_headroom_is_routed_and_spare_machines_are_bought(tmp_path: Path) -> None:
    plain = answer(parse_cluster(small(tmp_path, DAY)))
    more = answer(parse_cluster(small(tmp_path, DAY, plan="headroom = 0.5")))
    spare = answer(parse_cluster(small(tmp_path, DAY, plan="spare = 1")))
    capacities = (2e9, 5e9)
    assert sum(n * c for n, c in zip(more.design.fleet, capacities, strict=True)) >= 1.5 * 6.3e9
    assert more.design.energy_j > plain.design.energy_j
    for load, on in zip(spare.case.problem.traffic_bps, spare.design.schedule.on, strict=True):
        machines = sorted([2e9] * on[0] + [5e9] * on[1])
        assert sum(machines[:-1]) >= load


def test_a_plan_for_a_quantile_carries_more_than_the_mean_day(tmp_path: Path) -> None:
    days = [str(4000 + 500 * day + 50 * hour) for day in range(4) for hour in range(24)]
    text = small(tmp_path, days, traffic='day = "quantile 1"\npeak = "10 Gbit/s"')
    case = parse_cluster(text)
    assert case.mean is not None
    assert max(case.mean.l2_bps) == 10e9
    # The mean of the last hour is 5900, its highest 6650.
    assert max(case.problem.traffic_bps) == pytest.approx(10e9 * 6650.0 / 5900.0)
    result = answer(case)
    assert result.mean_j is not None
    assert result.mean_j < result.design.energy_j


def test_another_series_from_the_command_forgets_how_the_first_is_read(tmp_path: Path) -> None:
    path = trace(tmp_path, DAY)
    text = EXAMPLE.read_text(encoding="utf-8").replace('day = "mean"', 'day = "mean"\ncolumn = "total_MBITPERSEC"')
    case = parse_cluster(text, change=TrafficChange(series=str(path), peak_bps=20e9, step_s=7200.0))
    assert len(case.problem.traffic_bps) == 12
    assert max(case.problem.traffic_bps) == 20e9
    assert parse_cluster(text, budget=1234.0).problem.budget == 1234.0


def test_a_series_beside_the_cluster_file_is_read(tmp_path: Path) -> None:
    trace(tmp_path, DAY)
    path = tmp_path / "mine.cluster.toml"
    path.write_text(SMALL.format(series="trace.csv", traffic="", group="", plan=""), encoding="utf-8")
    case = read_cluster(path)
    assert case.name == "mine"
    assert case.problem.traffic_bps[0] == pytest.approx(4e9)


@pytest.mark.slow
def test_no_design_needs_less_than_the_bound_and_the_goal_program_no_more_than_others_at_its_price() -> None:
    result = answer(read_cluster(EXAMPLE))
    for design in result.designs:
        assert design.energy_j >= result.bound.energy_j * (1.0 - 1e-9)
        assert design.price == pytest.approx(
            sum(g.price * n for g, n in zip(result.case.problem.groups, design.fleet, strict=True))
        )
        if design.price <= result.design.price:
            assert design.energy_j >= result.design.energy_j * (1.0 - result.case.gap_ratio)
    document = result.to_json()
    assert document["design"]["kwh_per_day"] == pytest.approx(result.design.energy_j / 3.6e6)
    assert len(document["design"]["on"]) == 24


@pytest.mark.slow
def test_on_line_saving_is_within_three_percent_of_off_line_with_half_of_its_switchings_on_a_real_trace() -> None:
    result = answer(read_cluster(EXAMPLE))
    offline, online = result.trace_savings[1], result.trace_savings[3]
    assert online.missed_steps == 0
    assert online.schedule.energy_j <= 1.03 * offline.schedule.energy_j
    assert online.schedule.switchings <= 0.5 * offline.schedule.switchings
