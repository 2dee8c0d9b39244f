"""The simulation of a file's fabric: clocks, routings and refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import routecast
from routecast.errors import FileProblem
from routecast.noc.answer.simulate import fabrics_of, simulation_answer
from routecast.noc.file import NocChange, parse_noc, read_noc
from routecast.noc.routing.model import Routes

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"
GRID = """
[topology]
columns = 3
rows = 3
[traffic]
pattern = "transpose"
load = [0.1, 0.3]
[routing]
policies = ["xy"]
"""
SHORT = "warmup_cycles = 500\nmeasure_cycles = 3000\nreplications = 2\npacket_flits = 4\n"


def test_a_routing_that_can_deadlock_is_refused_with_a_cycle_that_closes() -> None:
    case = parse_noc(GRID + '[simulation]\nrouting = "2p_es"\nvirtual_channels = 1\n')
    with pytest.raises(FileProblem) as caught:
        simulation_answer(case)
    assert caught.value.problems[0].place == "simulation.virtual_channels"
    links = re.findall(r"\((\d), (\d)\)->\((\d), (\d)\)", caught.value.problems[0].message)
    assert len(links) >= 4
    for before, after in zip(links, links[1:] + links[:1], strict=True):
        assert before[2:] == after[:2]
    assert "2 virtual channels" in caught.value.problems[0].message
    with pytest.raises(FileProblem, match=r"simulation\.queueing"):
        simulation_answer(parse_noc(GRID + '[simulation]\nrouting = "2p_es"\nqueueing = "virtual_output_queues"\n'))


def test_a_torus_is_advised_no_more_channels_than_its_datelines_need() -> None:
    text = """
[topology]
kind = "torus"
columns = 5
rows = 5
[traffic]
pattern = "uniform"
load = 0.1
[simulation]
routing = "xy"
"""
    with pytest.raises(FileProblem, match="give routers 2 virtual channels"):
        simulation_answer(parse_noc(text + "virtual_channels = 1\n"))
    case = parse_noc(text + "virtual_channels = 2\n")
    assert case.simulation is not None
    ((_, _, fabric),) = fabrics_of(case, case.simulation)
    assert isinstance(fabric.planes[0].routing, Routes)
    assert fabric.planes[0].routing.layer_count == 2


def test_with_a_channel_for_each_class_the_same_routing_runs() -> None:
    case = parse_noc(GRID + '[simulation]\nrouting = ["2p_es", "odd_even"]\nvirtual_channels = 2\n' + SHORT)
    result = simulation_answer(case)
    assert result.keys == ("2p_es", "odd_even")
    for row in result.rows:
        assert not row.simulated.is_saturated
        # What is carried is what is asked for: rate times hops, of shortest paths.
        assert row.simulated.power.value == pytest.approx(row.flow_power, rel=0.15)
        assert row.of_flow_power_ratio is not None
    assert result.saturated_from("2p_es") is None


def test_a_load_above_saturation_is_simulated_and_reported_as_saturated() -> None:
    case = parse_noc(GRID + "[simulation]\nvirtual_channels = 2\nloads = [0.2, 1.5]\n" + SHORT.replace("3000", "4000"))
    result = simulation_answer(case)
    low, high = result.rows
    assert not low.simulated.is_saturated
    assert high.simulated.is_saturated
    assert high.simulated.packet_latency_cycles is None
    assert result.saturated_from("xy") == 1.5
    assert "latency is unbounded" in result.notes[0]
    assert result.to_json()["saturated_from"] == {"xy": 1.5}


def test_a_scaled_clock_keeps_the_worst_link_within_the_busy_ratio() -> None:
    case = parse_noc(GRID + '[simulation]\nclock = "scaled"\nbusy_ratio = 0.5\nloads = [0.1, 0.3, 0.5]\n')
    assert case.simulation is not None
    alphas = [fabric.planes[0].alpha for _, _, fabric in fabrics_of(case, case.simulation)]
    assert alphas == pytest.approx([3.0, 0.5 / 0.3, 1.0])


def test_an_overloaded_fabric_is_simulated_at_full_clock() -> None:
    case = parse_noc(GRID + '[simulation]\nclock = "scaled"\nloads = [1.5]\n' + SHORT)
    (row,) = simulation_answer(case).rows
    assert row.alphas == (1.0,)
    assert row.simulated.is_saturated
    planes = GRID + '[planes]\ncount = 2\n[simulation]\nallocation = "mini"\nloads = [3.0]\n' + SHORT
    (row,) = simulation_answer(parse_noc(planes)).rows
    assert row.alphas == (1.0, 1.0)
    assert row.simulated.is_saturated
    assert row.simulated.demand_flits_node_cycle == pytest.approx(3.0 * parse_noc(planes).traffic.demand.sum() / 9)


def test_a_turn_model_has_no_scaled_clock() -> None:
    case = parse_noc(GRID + '[simulation]\nclock = "scaled"\nrouting = "odd_even"\n')
    with pytest.raises(FileProblem, match=r'simulation\.clock.*take "full"'):
        simulation_answer(case)


def test_planes_are_simulated_with_the_allocation_and_the_clocks_that_it_allows() -> None:
    case = read_noc(EXAMPLES / "mpeg4.noc.toml", change=NocChange(load="0.2"))
    assert case.simulation is not None
    ((name, load, fabric),) = fabrics_of(case, case.simulation)
    assert (name, load) == ("four_phase", 0.2)
    assert len(fabric.planes) == 2
    total = sum(plane.demand for plane in fabric.planes)
    assert total == pytest.approx(case.traffic.demand * 0.2)


def test_paths_that_a_search_chose_get_the_classes_that_free_them_from_deadlock() -> None:
    text = GRID.replace("transpose", "uniform") + "[planes]\ncount = 2\nallocations = ['search']\n"
    free = parse_noc(text + "[simulation]\nvirtual_channels = 2\nloads = [0.2]\n" + SHORT)
    (row,) = simulation_answer(free).rows
    assert not row.simulated.is_saturated
    # The simulator refuses paths whose channels wait for each other in a circle.
    assert row.simulated.power.value == pytest.approx(row.flow_power, rel=0.15)


def test_a_file_without_a_simulation_is_refused_with_the_keys_to_add() -> None:
    with pytest.raises(FileProblem, match=r"simulation: is missing"):
        simulation_answer(parse_noc(GRID))


def test_one_seed_has_one_answer_and_another_another() -> None:
    text = GRID + "[simulation]\nloads = [0.2]\n" + SHORT
    same, again, other = (
        simulation_answer(parse_noc(text, change=NocChange(seed=seed))).to_json()["rows"] for seed in (1, 1, 2)
    )
    assert same == again
    assert same != other


@pytest.mark.slow
def test_a_load_that_the_search_cannot_place_is_simulated_and_saturates() -> None:
    case = parse_noc(
        """
[topology]
columns = 4
rows = 4
[traffic]
task_graph = "vopd"
load = [0.3, 1.4]
normalised_by = "xy"
[planes]
count = 2
freedom = "plane"
"""
        + '[simulation]\nallocation = "search"\nvirtual_channels = 2\nbusy_ratio = 0.5\n'
        + SHORT
    )
    low, high = simulation_answer(case).rows
    assert not low.simulated.is_saturated
    assert high.simulated.is_saturated
    assert high.alphas == (1.0, 1.0)
    assert high.simulated.demand_flits_node_cycle == pytest.approx(low.simulated.demand_flits_node_cycle * 1.4 / 0.3)
