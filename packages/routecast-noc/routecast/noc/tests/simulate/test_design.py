"""Routers, packets and injection of the flit-level simulation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.noc.simulate import OnOff, Packets, RouterDesign, SimulationPhases


def test_design_of_li_2012_is_that_of_its_section_6_6() -> None:
    scenario = RouterDesign.li2012().scenario()
    assert scenario["queueing"] == {"kind": "virtual_output_queues"}
    assert scenario["allocator"] == {"kind": "greedy_weight"}
    assert scenario["buffer_flits"] == 50


def test_packets_of_li_2012_have_seven_and_a_half_flits_in_the_mean() -> None:
    assert Packets.between(5, 10).mean_flits == pytest.approx(7.5)


def test_weights_need_not_sum_to_one() -> None:
    assert Packets(flits=(1, 5), weights=(30.0, 10.0)).mean_flits == pytest.approx(2.0)


@given(lengths=st.lists(st.integers(1, 64), min_size=1, max_size=5), width=st.floats(0.25, 8.0))
def test_packets_lose_no_bit_in_wider_flits_and_waste_less_than_one(lengths: list[int], width: float) -> None:
    packets = Packets(flits=tuple(lengths))
    wider = packets.in_wider_flits(width)
    for before, after in zip(packets.flits, wider.flits, strict=True):
        assert before <= after * width + 1e-6
        assert (after - 1) * width < before


def test_every_fault_of_a_design_is_named_at_once() -> None:
    with pytest.raises(ModelProblem, match=r"(?s)buffer_flits.*link_cycles"):
        RouterDesign(buffer_flits=0, link_cycles=-1)


def test_packets_without_a_length_and_with_wrong_weights_are_refused() -> None:
    with pytest.raises(ModelProblem, match="at least one length"):
        Packets(flits=())
    with pytest.raises(ModelProblem, match="one for each"):
        Packets(flits=(4,), weights=(1.0, 2.0))
    with pytest.raises(ModelProblem, match="above 0"):
        Packets(flits=(4,), weights=(0.0,))


def test_bursts_shorter_than_a_cycle_are_refused() -> None:
    with pytest.raises(ModelProblem, match="at least 1 cycle"):
        OnOff(on_cycles=0.5, off_cycles=10.0)


def test_a_run_without_measurement_is_refused() -> None:
    with pytest.raises(ModelProblem, match="measure_cycles"):
        SimulationPhases(measure_cycles=0)
