"""Routers on network processors against closed forms: what engines, threads, memories and lines let through."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.evaluate import Simulate, Trial
from routecast.load import Arrivals, Flow, FlowSet, FrameMix, OfferedLoad
from routecast.plan.network_processor import (
    Block,
    Engines,
    Link,
    Memory,
    NetworkProcessor,
    Reference,
    Slice,
    Stage,
    State,
    expectation,
    network_processor,
    parallel,
    pipelined,
)
from routecast.plan.network_processor.builder import flows_of_a_round
from routecast.router.model import RouterModel

SATURATED = 0.02  # the closed form is a bound; what is lost to frames that meet at an engine is less

CHIP = NetworkProcessor(
    name="chip",
    engines=Engines(count=8, threads=8, frequency_hz=1e9),
    memories=(
        Memory(name="sram", channels=2, latency_s=100e-9, bandwidth_bytes_per_s=1e9),
        Memory(name="dram", latency_s=300e-9, bandwidth_bytes_per_s=4e9, least_bytes=16),
    ),
    ports=4,
    link_bps=10e9,
)
STATES = (State(name="routes", memory="sram"), State(name="frames", memory="dram"))
LOOKUP = Block(name="lookup", cycles=100, references=(Reference(state="routes", accesses=2, waits=2),))
COPY = Block(
    name="copy",
    cycles=60,
    references=(Reference(state="frames", accesses=0, accesses_per_byte=1 / 64, access_bytes=64),),
)


def forwarded_pps(model: RouterModel, rate_pps: float, *, frame_bytes: int = 64, steady: bool = True) -> float:
    load = OfferedLoad(
        rate_pps=rate_pps, frames=FrameMix.fixed(frame_bytes), flows=FlowSet.crafted(20, ports=len(model.ports))
    )
    trial = Simulate(model, seed=1, steady_state=steady).trial(load, 2e-3)
    assert trial.offered_frames is not None
    assert trial.forwarded_frames is not None
    assert trial.dropped_frames is not None
    assert trial.in_flight_frames is not None
    counted = trial.forwarded_frames + trial.dropped_frames + trial.in_flight_frames
    assert trial.offered_frames == counted  # S12
    return trial.forwarded_pps


def with_threads(threads: int) -> NetworkProcessor:
    return replace(CHIP, engines=replace(CHIP.engines, threads=threads))


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_threads_hide_latency_until_the_engine_never_idles(threads) -> None:
    """X = min(1 / C, T / (C + W)): C = 100 cycles of 1 GHz, W = 2 waits of 100 ns."""
    chip = with_threads(threads)
    model = network_processor(chip, [LOOKUP], STATES, pipelined(["lookup"]))
    expected_pps = min(1 / 100e-9, threads / 300e-9)
    assert expectation(chip, [LOOKUP], STATES, pipelined(["lookup"])).pps == pytest.approx(expected_pps)
    assert forwarded_pps(model, 1.5 * expected_pps) == pytest.approx(expected_pps, rel=SATURATED)


def test_just_enough_threads_meet_at_the_engine() -> None:
    """Where both bounds are equal (3 threads for C + W = 3 C) neither is reached: threads wait for each other, too."""
    model = network_processor(with_threads(3), [LOOKUP], STATES, pipelined(["lookup"]))
    assert 8e6 < forwarded_pps(model, 15e6) < 0.95 * 10e6


def test_one_thread_waits_for_memory_with_its_engine_idle() -> None:
    model = network_processor(with_threads(1), [LOOKUP], STATES, pipelined(["lookup"]))
    trial = Simulate(model, seed=1).trial(OfferedLoad(rate_pps=5e6, flows=FlowSet.crafted(20, ports=4)), 2e-3)
    used = {resource.name: resource.utilisation_ratio for resource in trial.resources}
    assert used["engine 0"] == pytest.approx(1 / 3, rel=SATURATED)
    assert used["engine 0 threads"] == pytest.approx(1.0, rel=SATURATED)
    assert trial.bottleneck.name == "engine 0 threads"


def test_waiting_for_a_memory_is_no_resource_that_could_be_full() -> None:
    model = network_processor(with_threads(4), [LOOKUP], STATES, pipelined(["lookup"]))
    trial = Simulate(model, seed=1).trial(OfferedLoad(rate_pps=5e6, flows=FlowSet.crafted(20, ports=4)), 2e-3)
    lines = {resource.name for resource in trial.resources if resource.kind == "link"}
    assert {item.name for item in trial.resources} - lines == {"engine 0", "engine 0 threads", "sram"}


@pytest.mark.parametrize("engines", [1, 2, 3, 4])
def test_a_parallel_organisation_is_linear_in_engines(engines) -> None:
    stages = parallel(["lookup"], repeated=["lookup"], count=engines)
    model = network_processor(CHIP, [LOOKUP], STATES, stages)
    assert forwarded_pps(model, 1.2 * engines * 10e6) == pytest.approx(engines * 10e6, rel=SATURATED)


def test_more_engines_than_a_memory_can_serve_bring_nothing() -> None:
    """Two channels of 1 GB/s carry 2 x 32 bytes for a frame 31.25 million times a second; eight engines could 80."""
    hungry = replace(LOOKUP, references=(Reference(state="routes", accesses=2, waits=2, access_bytes=32),))
    stages = parallel(["lookup"], repeated=["lookup"], count=8)
    bound = expectation(CHIP, [hungry], STATES, stages)
    assert (bound.limit.name, bound.pps) == ("sram", pytest.approx(31.25e6))
    model = network_processor(CHIP, [hungry], STATES, stages)
    assert forwarded_pps(model, 45e6) == pytest.approx(31.25e6, rel=SATURATED)


def test_lines_limit_where_nothing_else_does() -> None:
    slow = replace(CHIP, link_bps=1e9)
    stages = parallel(["lookup"], repeated=["lookup"], count=4)
    model = network_processor(slow, [LOOKUP], STATES, stages, port_queue_frames=512)
    line_pps = 4 * 1e9 / (8 * 84)
    assert expectation(slow, [LOOKUP], STATES, stages).pps == pytest.approx(line_pps)
    assert forwarded_pps(model, 2 * line_pps) == pytest.approx(line_pps, rel=SATURATED)


@pytest.mark.parametrize("frame_bytes", [64, 512, 1518])
def test_frames_that_are_copied_meet_the_bandwidth_of_the_memory(frame_bytes) -> None:
    """DRAM of 4 GB/s takes S bytes of a frame once in and once out: 2 GB/s of frames, whatever their size."""
    out = replace(COPY, name="out")
    stages = (Stage(blocks=("copy", "out"), engines=tuple(range(8))),)
    bound = expectation(CHIP, [COPY, out], STATES, stages, frame_bytes=frame_bytes)
    expected_pps = min(4e9 / (2 * frame_bytes), 8 / 120e-9, 64 / (120e-9 + 2 * 300e-9 + 2 * (frame_bytes - 64) / 4e9))
    assert bound.pps == pytest.approx(min(expected_pps, 4 * 10e9 / (8 * (frame_bytes + 20))), rel=1e-9)
    model = network_processor(replace(CHIP, link_bps=100e9), [COPY, out], STATES, stages)
    got_pps = forwarded_pps(model, 1.3 * expected_pps, frame_bytes=frame_bytes)
    assert got_pps == pytest.approx(expected_pps, rel=SATURATED)


def test_the_slowest_stage_of_a_pipeline_is_its_throughput() -> None:
    blocks = [replace(LOOKUP, name=name, cycles=cycles) for name, cycles in (("a", 80), ("b", 200), ("c", 120))]
    for engines, slowest_cycles in (({}, 200), ({"b": 2}, 120)):
        stages = pipelined(["a", "b", "c"], engines=engines)
        model = network_processor(CHIP, blocks, STATES, stages)
        expected_pps = 1e9 / slowest_cycles
        assert forwarded_pps(model, 1.3 * expected_pps) == pytest.approx(expected_pps, rel=SATURATED)


def test_stages_that_share_an_engine_share_its_cycles() -> None:
    blocks = [replace(LOOKUP, name=name, cycles=cycles) for name, cycles in (("a", 80), ("b", 120))]
    stages = (Stage(blocks=("a",), engines=(0,), threads=4), Stage(blocks=("b",), engines=(0,), threads=4))
    model = network_processor(CHIP, blocks, STATES, stages)
    assert expectation(CHIP, blocks, STATES, stages).pps == pytest.approx(1e9 / 200)
    # Threads ask for the engine in turn, so the first stage cannot do more for frames than the second.
    assert forwarded_pps(model, 10e6) == pytest.approx(5e6, rel=SATURATED)
    apart = network_processor(CHIP, blocks, STATES, pipelined(["a", "b"]))
    assert forwarded_pps(apart, 9e6) == pytest.approx(1e9 / 120, rel=SATURATED)


def test_rings_cost_both_sides() -> None:
    """Put and get take cycles on the engines, and an access to the ring's memory each."""
    blocks = [replace(LOOKUP, name="a", references=()), replace(LOOKUP, name="b", references=())]
    stages = pipelined(["a", "b"], link=Link(memory="sram", put_cycles=30, get_cycles=20, access_bytes=8))
    limits = {limit.name: limit.pps for limit in expectation(with_threads(1), blocks, STATES, stages).limits}
    assert limits["engine 0"] == pytest.approx(1e9 / 130)
    assert limits["engine 1"] == pytest.approx(1e9 / 120)
    assert limits["engine 0 threads"] == pytest.approx(1 / 230e-9)
    assert limits["sram"] == pytest.approx(2 / (2 * 8e-9))
    model = network_processor(with_threads(1), blocks, STATES, stages)
    assert forwarded_pps(model, 6e6) == pytest.approx(1 / 230e-9, rel=SATURATED)


def test_registers_that_threads_lack_are_spilled() -> None:
    """256 registers: 64 for each of 4 threads, 32 for each of 8 (Heller 2006, sec. 5.2); 8 of 40 are then spilled."""
    chip = replace(CHIP, engines=replace(CHIP.engines, registers=256, spill_cycles=5))
    block = replace(LOOKUP, registers=40)
    few = expectation(chip, [block], STATES, pipelined(["lookup"], threads={"lookup": 4}))
    many = expectation(chip, [block], STATES, pipelined(["lookup"]))
    assert (few.pps, many.pps) == (pytest.approx(1e9 / 100), pytest.approx(1e9 / 140))


def test_fractions_of_accesses_are_averages() -> None:
    half = replace(LOOKUP, references=(Reference(state="routes", accesses=0.5),))
    bound = expectation(with_threads(1), [half], STATES, pipelined(["lookup"]))
    assert bound.pps == pytest.approx(1 / (100e-9 + 0.5 * 100e-9))
    ahead = replace(LOOKUP, references=(Reference(state="routes", accesses=2, waits=0),))
    bound = expectation(with_threads(1), [ahead], STATES, pipelined(["lookup"]))
    assert bound.pps == pytest.approx(1 / (100e-9 + 2 * 4e-9))


def slices_model(policing: str) -> RouterModel:
    slices = (
        Slice(name="modest", bandwidth_bps=5e9, share=0.25),
        Slice(name="greedy", bandwidth_bps=0.8e9, share=0.75, policing=policing),
    )
    stages = pipelined(["lookup"])
    return network_processor(CHIP, [LOOKUP], STATES, stages, slices=slices)


def overloaded(model: RouterModel) -> Trial:
    """Offer twice what the engine can do: 5 million frames/s of the modest slice, 15 of the greedy one."""
    load = OfferedLoad(rate_pps=20e6, flows=FlowSet.crafted(16, ports=4), arrivals=Arrivals.poisson())
    return Simulate(model, seed=1, per_flow=True).trial(load, 10e-3)


def test_a_greedy_slice_that_is_policed_hurts_nobody() -> None:
    model = slices_model("policed")
    rates = [0.0, 0.0]
    for flow in overloaded(model).flows:  # 16 flows are a round: four groups of one for each port
        rates["greedy" in model.task("slices").route.to[flow.number]] += flow.forwarded_pps
    modest_pps, greedy_pps = rates
    assert modest_pps == pytest.approx(5e6, rel=SATURATED)  # all that it sends
    assert greedy_pps == pytest.approx(4 * 0.8e9 / (8 * 84), rel=SATURATED)  # what is provisioned on four ports


def test_a_greedy_slice_that_nobody_polices_takes_from_others() -> None:
    trial = overloaded(slices_model("none"))
    assert trial.forwarded_pps == pytest.approx(10e6, rel=SATURATED)
    for flow in trial.flows:  # the ring drops what comes when it is full, whose ever it is
        assert flow.forwarded_pps / flow.offered_pps == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("policing", "spared"), [("weighted", True), ("none", False)])
def test_ports_that_serve_slices_by_weight_spare_the_modest(policing, spared) -> None:
    """Each link of 1 Gbit/s gets 0.4 of it from the modest slice and 0.8 from the greedy one, who own a half each."""
    chip = replace(CHIP, link_bps=1e9)
    slices = (
        Slice(name="modest", bandwidth_bps=0.5e9, share=1 / 3, policing=policing),
        Slice(name="greedy", bandwidth_bps=0.5e9, share=2 / 3, policing=policing),
    )
    stages = parallel(["lookup"], repeated=["lookup"], count=2)
    model = network_processor(chip, [LOOKUP], STATES, stages, slices=slices, port_queue_frames=128)
    line_pps = 1e9 / (8 * 84)
    # Two ports send to the other two, so that what comes in fits and what goes out does not.
    flows = tuple(Flow(rss_hash=i, ingress=i % 4, egress=2 + i % 2) for i in range(12))
    load = OfferedLoad(
        rate_pps=2 * 1.2 * line_pps, flows=FlowSet(name="to two", flows=flows), arrivals=Arrivals.poisson()
    )
    trial = Simulate(model, seed=1, per_flow=True).trial(load, 20e-3)
    assert trial.forwarded_pps == pytest.approx(2 * line_pps, rel=SATURATED)
    # The pattern of 1/3 and 2/3 is greedy, modest, greedy: four flows each, one for each port.
    modest_pps = math.fsum(flow.forwarded_pps for flow in trial.flows if flow.number // 4 == 1)
    offered_pps = 2 * 0.4 * line_pps
    assert (modest_pps > 0.99 * offered_pps) is spared
    assert modest_pps <= 1.02 * offered_pps


def test_slices_with_other_programs_share_the_engine_by_their_cycles() -> None:
    slices = (
        Slice(name="plain", bandwidth_bps=10e9, share=0.5),
        Slice(name="heavy", bandwidth_bps=10e9, share=0.5, cycles_ratio={"lookup": 3.0}),
    )
    model = network_processor(CHIP, [LOOKUP], STATES, pipelined(["lookup"]), slices=slices)
    assert flows_of_a_round(slices, 4) == 8
    load = OfferedLoad(rate_pps=8e6, flows=FlowSet.crafted(8, ports=4))
    trial = Simulate(model, seed=1).trial(load, 5e-3)
    assert trial.forwarded_pps == pytest.approx(1e9 / 200, rel=SATURATED)  # (100 + 300) / 2 cycles


def test_buffers_of_the_chip_hold_as_many_frames_as_fit() -> None:
    chip = replace(CHIP, receive_buffer_bytes=8192, transmit_buffer_bytes=8192)
    stages = pipelined(["lookup"])
    small = network_processor(chip, [LOOKUP], STATES, stages, frame_bytes=78)
    large = network_processor(chip, [LOOKUP], STATES, stages, frame_bytes=1518, port_queue_frames=512)
    assert (small.task("engine 0: lookup thread").queue_frames, small.ports[0].tx_ring_frames) == (105, 26)
    assert (large.task("engine 0: lookup thread").queue_frames, large.ports[0].tx_ring_frames) == (5, 513)


@given(
    cycles=st.lists(st.floats(20, 300), min_size=1, max_size=4),
    accesses=st.floats(0, 4),
    waits=st.integers(1, 3),
    threads=st.integers(1, 8),
)
@pytest.mark.slow
def test_no_simulation_exceeds_the_bound(cycles, accesses, waits, threads) -> None:
    chip = with_threads(threads)
    reference = Reference(state="routes", accesses=accesses, waits=waits)
    blocks = [Block(name=f"block {number}", cycles=item, references=(reference,)) for number, item in enumerate(cycles)]
    stages = pipelined([block.name for block in blocks], link=Link(memory="sram", put_cycles=5, get_cycles=5))
    bound_pps = expectation(chip, blocks, STATES, stages).pps
    model = network_processor(chip, blocks, STATES, stages)
    got_pps = forwarded_pps(model, 1.5 * bound_pps, steady=False)
    assert got_pps <= bound_pps * (1 + SATURATED)


@settings(derandomize=True)
@given(
    cycles=st.lists(st.floats(20, 300), min_size=1, max_size=3),
    waits=st.integers(1, 4),
    engines=st.integers(1, 3),
    threads=st.sampled_from([1, 2, 8]),
)
def test_a_bound_that_stands_clear_is_reached(cycles, waits, engines, threads) -> None:
    chip = with_threads(threads)
    reference = Reference(state="routes", accesses=waits, waits=waits)
    blocks = [Block(name=f"block {number}", cycles=item, references=(reference,)) for number, item in enumerate(cycles)]
    names = [block.name for block in blocks]
    stages = parallel(names, repeated=names[:1], count=engines, link=Link(memory="sram", put_cycles=5))
    bounds = expectation(chip, blocks, STATES, stages)
    same = len([limit for limit in bounds.limits if limit.pps < 1.001 * bounds.pps])
    assume(bounds.limits[same].pps > 1.6 * bounds.pps)
    got_pps = forwarded_pps(network_processor(chip, blocks, STATES, stages), 1.3 * bounds.pps, steady=False)
    assert got_pps == pytest.approx(bounds.pps, rel=SATURATED)


def test_all_faults_of_a_mapping_come_at_once() -> None:
    block = replace(LOOKUP, references=(Reference(state="rotues"),), code_words=3000)
    chip = replace(CHIP, engines=replace(CHIP.engines, code_words=4000))
    stages = (
        Stage(blocks=("lookup",), engines=(0, 9), threads=5),
        Stage(blocks=("lookpu", "lookup"), engines=(0,), threads=4, link=Link(memory="scratch")),
    )
    with pytest.raises(ModelProblem) as caught:
        network_processor(chip, [block], STATES, stages, slices=[Slice(name="a", bandwidth_bps=1e9, share=0.5)])
    problems = {problem.place: problem.message for problem in caught.value.problems}
    assert set(problems) == {
        "block[0].references[0].state",
        "stage[0].engines[1]",
        "stage[1].blocks[0]",
        "stage[1].blocks[1]",
        "stage[1].threads",
        "stage[1].engines",
        "stage[1].link.memory",
        "slice",
    }
    assert '"routes"' in problems["block[0].references[0].state"]
    assert "5 + 4 = 9 threads" in problems["stage[1].threads"]
    assert "6000 instructions" in problems["stage[1].engines"]
