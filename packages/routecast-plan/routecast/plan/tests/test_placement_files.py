"""Placement files: their values, and the messages for invalid files and for problems without placement."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import pytest

import routecast
from routecast.errors import FileProblem
from routecast.load import IntendedRate
from routecast.plan.placement._feasibility import InfeasiblePlacement
from routecast.plan.placement.answer import answer
from routecast.plan.placement.reading import parse_placement, placement_schema, read_placement

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"

SMALL = """
technology = "kvm-vhost-2012"
[[server]]
name = "host"
number = 2
cores = 4
slots = 4
memory = "8 GiB"
{server}
[[element]]
name = "lb"
kind = "balancer"
count = 3
memory = "1 GiB"
[[element]]
name = "br"
kind = "router"
count = 2
memory = "1 GiB"
[traffic]
frames = "64 B"
offered = "300 kpps"
[rules]
{rules}
[plan]
{plan}
"""


def small(**parts: str) -> str:
    return SMALL.format(**{"server": "", "rules": "", "plan": "", **parts})


def conflict(text: str) -> tuple[set[str], str]:
    with pytest.raises(InfeasiblePlacement) as caught:
        answer(parse_placement(text).problems[0], simulate=False)
    return {problem.place for problem in caught.value.conflict}, str(caught.value)


@pytest.mark.slow
def test_every_example_is_as_the_schema_says_and_can_be_read() -> None:
    files = sorted(EXAMPLES.glob("*.placement.toml"))
    assert files
    for file in files:
        jsonschema.validate(tomllib.loads(file.read_text(encoding="utf-8")), placement_schema())
        assert read_placement(file).problems


def test_a_balancer_and_a_router_make_a_multistage_router_without_a_chain() -> None:
    problem = parse_placement(small()).problems[0]
    assert [chain.stages for chain in problem.chains] == [("lb", "br", "lb")]
    assert problem.is_multistage


def test_all_faults_of_a_file_are_reported_at_once_with_their_places() -> None:
    text = small(
        server="interrupt_cores = [4]",
        rules='apart = [["lbb"]]\ntogether = [["lb 1"]]\non = { br = "hosts" }\npins = []',
        plan='objective = "throughput"\ntarget = "1 Mpps"',
    )
    with pytest.raises(FileProblem) as caught:
        parse_placement(text)
    places = {problem.place for problem in caught.value.problems}
    assert places == {
        "server[0].interrupt_cores",
        "rules.apart[0]",
        "rules.together[0]",
        "rules.on.br",
        "rules.pins",
        "plan.target",
    }
    assert 'did you mean "lb"?' in str(caught.value)


def test_invalid_chains_are_refused() -> None:
    text = (
        small() + '[[chain]]\nname = "a"\nstages = ["br", "lb", "xx"]\n[[chain]]\nname = "a"\nstages = ["br", "lb"]\n'
    )
    with pytest.raises(FileProblem) as caught:
        parse_placement(text)
    message = str(caught.value)
    assert '"xx" is no element' in message
    assert '"a" is the name of 2 chains' in message
    assert '"lb" is a balancer: put it first and last' in message


def test_a_function_without_costs_in_the_technology_is_refused() -> None:
    text = (
        small().replace('kind = "router"', 'function = "forwrd"')
        + '[[chain]]\nname = "a"\nstages = ["lb", "br", "lb"]\n'
    )
    with pytest.raises(FileProblem, match=r'no costs of "forwrd".*did you mean "forward"'):
        parse_placement(text)


def test_more_elements_apart_than_servers_contradict_nothing_but_that_rule() -> None:
    places, message = conflict(small(rules='apart = [["lb"], ["br"]]'))
    assert places == {"rules.apart"}
    assert "no placement meets this constraint" in message
    assert "lb: no two on one server" in message


def test_a_conflict_names_all_rules_that_it_needs_and_no_other() -> None:
    rules = 'together = [["lb 1", "br 1"]]\napart = [["lb 2", "br 2"]]\non = { "lb 1" = "host 1", "br 1" = "host 2" }'
    places, message = conflict(small(rules=rules))
    assert places == {"rules.together", "rules.on.lb 1", "rules.on.br 1"}
    assert "without any one of them, a placement exists" in message


def test_a_contradiction_of_one_server_and_its_slots_names_both() -> None:
    places, _ = conflict(small(rules="most_servers = 1"))
    assert places == {"rules.most_servers", "server host.slots"}


def test_too_few_cores_for_unshared_threads_are_a_conflict() -> None:
    places, message = conflict(small(rules="shared_cores = false"))
    assert places == {"rules.shared_cores"}
    assert "no core serves two threads" in message


def test_a_target_beyond_all_cores_is_refused_with_the_greatest_throughput() -> None:
    places, message = conflict(small(plan='objective = "servers"\ntarget = "50 Mpps"'))
    assert places == {"plan.target"}
    assert "The greatest throughput of any mapping without loss is" in message


@pytest.mark.slow
def test_a_target_that_only_a_rule_keeps_out_of_reach_names_the_rule_too() -> None:
    free = answer(parse_placement(small()).problems[0], simulate=False).best.value
    text = small(
        rules='on = { lb = "host 1", br = "host 1" }', plan=f'objective = "servers"\ntarget = "{0.98 * free:.0f} pps"'
    ).replace("slots = 4", "slots = 5")
    places, _ = conflict(text)
    assert "plan.target" in places
    assert places & {"rules.on.lb", "rules.on.br"}


def test_loads_in_bit_s_are_of_each_frame_size() -> None:
    text = small(plan='objective = "servers"\ntarget = "500 Mbit/s"')
    text = text.replace('"64 B"', '["64 B", "512 B"]').replace('"300 kpps"', '"1 Gbit/s"')
    for problem, wire_bytes in zip(parse_placement(text).problems, (84, 532), strict=True):
        assert problem.offered_pps == pytest.approx(1e9 / (8 * wire_bytes))
        assert problem.goal.target_pps == pytest.approx(0.5e9 / (8 * wire_bytes))
    instead = parse_placement(text, offered=IntendedRate.parse("2 Gbit/s")).problems[0]
    assert instead.offered_pps == pytest.approx(2e9 / (8 * 84))
