"""Functions in a row: one taking in, one handing out, everything else done."""

from __future__ import annotations

import pytest

from routecast.errors import ModelProblem, RoutecastError
from routecast.function.catalogue import read_function
from routecast.function.chain import chain, read_chain
from routecast.function.estimate import estimate
from routecast.function.model import NetworkFunction
from routecast.hardware.catalogue import read_hardware

HOST = "xeon-e5-2690v2"


def cycles(function: NetworkFunction, frame_bytes: int = 64) -> float:
    return estimate(function, read_hardware(HOST), frame_bytes=frame_bytes).packet_cycles


def handing(function: NetworkFunction, operation: str) -> float:
    result = estimate(function, read_hardware(HOST))
    return sum(item.cycles for item in result.operations if item.operation == operation)


def test_a_chain_costs_the_sum_without_the_inner_hand_overs() -> None:
    names = ("acl_firewall", "nat44", "ipv4_router")
    functions = [read_function(name) for name in names]
    made = read_chain(",".join(names))
    inner = sum(handing(function, "mem_io") for function in functions[:-1])
    inner += sum(handing(entry, "io_mem") for entry in functions[1:])
    assert cycles(made) == pytest.approx(sum(cycles(item) for item in functions) - inner)
    operations = [step.operation for step in made.directions[0].steps]
    assert (operations.count("io_mem"), operations.count("mem_io")) == (1, 1)
    assert (operations[0], operations[-1]) == ("io_mem", "mem_io")


def test_a_chain_of_one_is_the_function() -> None:
    assert read_chain("nat44") == chain([read_function("nat44")]) == read_function("nat44")


def test_tables_of_one_name_stay_two_tables() -> None:
    made = read_chain("l2_switch, learning_switch")
    assert [table.name for table in made.tables] == ["mac", "learning_switch_mac"]
    result = estimate(made, read_hardware(HOST), tables={"mac": 1000})
    # The small table fits into L1 and L2; lookup and insertion of the other one do not.
    assert result.dram_accesses == 2.0


def test_later_functions_see_frames_as_the_ones_before_leave_them() -> None:
    # 24 bytes of GRE go on ahead of a balancing by the frame's size: the policer sees 88 bytes of 64.
    made = read_chain("gre_endpoint/encapsulate,rate_policer")
    (direction,) = made.directions
    assert direction.frame_growth_bytes == 24
    last = direction.steps[-1]
    assert last.parameters["data"].evaluate({"frame": 64.0}) == 64 + 24 - 34


def test_there_and_back_again_has_the_first_ones_frames() -> None:
    made = read_chain("gre_endpoint/encapsulate,gre_endpoint/decapsulate")
    assert made.directions[0].frame_growth_bytes == 0
    assert made.directions[0].smallest_frame_bytes == 64
    assert cycles(made) > 0.0


def test_functions_of_two_directions_keep_both() -> None:
    made = read_chain("bng,acl_firewall")
    assert [direction.name for direction in made.directions] == ["access", "core"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("bng,gre_endpoint", "take one of each"),
        ("bng/acess,nat44", 'did you mean "access"'),
        ("nat44,nat45", 'did you mean "nat44"'),
        ("nat44,", "separated by single commas"),
    ],
)
def test_what_does_not_fit_together_is_refused(names: str, words: str) -> None:
    with pytest.raises(RoutecastError, match=words):
        read_chain(names)


def test_a_chain_has_functions() -> None:
    with pytest.raises(ModelProblem, match="has no functions"):
        chain([])
