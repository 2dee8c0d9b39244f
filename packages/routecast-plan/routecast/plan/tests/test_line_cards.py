"""Line cards and their crossbar before a network processor: what they add to latency, and when they limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from routecast.errors import FileProblem, ModelProblem
from routecast.evaluate import Simulate, Solve, Trial
from routecast.load import Arrivals, Flow, FlowSet, FrameMix, OfferedLoad
from routecast.plan.network_processor import (
    Block,
    Engines,
    LineCard,
    Memory,
    NetworkProcessor,
    Slice,
    expectation,
    network_processor,
    pipelined,
)
from routecast.quantity.toml_file import parse_toml
from routecast.router.files import build_router, parse_router, read_router_and_load
from routecast.router.model import RouterModel
from routecast.router.variants import vary

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
QUIET_PPS = 20e3
CHIP = NetworkProcessor(
    name="chip",
    engines=Engines(count=2, threads=8, frequency_hz=1e9),
    memories=(Memory(name="sram", latency_s=100e-9, bandwidth_bytes_per_s=1e9),),
    ports=4,
    link_bps=1e9,
    transmit_buffer_bytes=8192,
)
BLOCKS = (Block(name="parse", cycles=150), Block(name="queue", cycles=120))
STAGES = pipelined(["parse", "queue"])
CARD = LineCard(
    per_packet_s=300e-9, per_byte_s=0.5e-9, out_per_packet_s=100e-9, out_per_byte_s=0.25e-9, latency_s=200e-9
)


def router(card: LineCard | None, chip: NetworkProcessor = CHIP, **others: object) -> RouterModel:
    return network_processor(chip, BLOCKS, (), STAGES, line_card=card, **others)


def offered(rate_pps: float, frame_bytes: int = 64, **others: object) -> OfferedLoad:
    return OfferedLoad(
        rate_pps=rate_pps, frames=FrameMix.fixed(frame_bytes), flows=FlowSet.crafted(20, ports=4), **others
    )


def simulated(model: RouterModel, load: OfferedLoad, duration_s: float = 4e-3) -> Trial:
    trial = Simulate(model, seed=1, per_flow=True).trial(load, duration_s)
    counted = (trial.forwarded_frames, trial.dropped_frames, trial.in_flight_frames)
    assert trial.offered_frames == sum(item for item in counted if item is not None)  # S12
    return trial


def solved(model: RouterModel, load: OfferedLoad) -> Trial:
    return Solve(model).trial(load, 1.0)


def mean_s(trial: Trial) -> float:
    assert trial.latency is not None
    assert trial.latency.mean_s is not None
    return trial.latency.mean_s


@pytest.mark.parametrize("frame_bytes", [64, 512, 1518])
def test_a_frame_alone_takes_both_cards_two_crossings_and_two_links_longer(frame_bytes) -> None:
    """By hand for 64 B: 332 + 116 ns of work, 2 x 200 ns of crossbar, 2 x 84 B at 1 Gbit/s = 2 x 672 ns."""
    added_s = (300e-9 + 100e-9) + (0.5e-9 + 0.25e-9) * frame_bytes
    added_s += 2 * 200e-9 + 2 * (frame_bytes + 20) * 8 / 1e9
    if frame_bytes == 64:
        assert added_s == pytest.approx(332e-9 + 116e-9 + 400e-9 + 1344e-9)
    load = offered(QUIET_PPS, frame_bytes)
    plain, switched = (mean_s(simulated(router(card), load, 0.1)) for card in (None, CARD))
    assert switched - plain == pytest.approx(added_s, rel=1e-3)


def test_the_closed_form_says_why_it_knows_no_latency_behind_a_crossbar() -> None:
    """A crossbar has a server for every frame and delays all alike; the engines behind it hold frames in windows."""
    trial = solved(router(CARD), offered(QUIET_PPS))
    assert trial.latency is None
    assert [note for note in trial.notes if note.startswith('no latency: "blade port 0" follows a window')]


def test_a_card_that_does_nothing_still_takes_its_links() -> None:
    load = offered(QUIET_PPS)
    plain, switched = (mean_s(simulated(router(card), load, 0.1)) for card in (None, LineCard()))
    assert switched - plain == pytest.approx(2 * 84 * 8 / 1e9, rel=1e-3)


@pytest.mark.parametrize(
    ("card", "limit", "busiest"),
    [
        (LineCard(per_packet_s=2e-6), "line cards", "line card "),
        (LineCard(out_per_packet_s=2e-6), "line cards out", "line card "),
        (LineCard(per_byte_s=2e-6 / 64), "line cards", "line card "),
        (LineCard(per_packet_s=500e-9), "ports", ""),
    ],
)
def test_a_line_card_limits_where_it_takes_longer_than_all_else(card, limit, busiest) -> None:
    """Four cards of 2 us carry 2 million frames/s, less than four lines of 1 Gbit/s (5.95) or a stage (6.67)."""
    bound = expectation(CHIP, BLOCKS, (), STAGES, line_card=card)
    expected_pps = 2e6 if busiest else 4 * 1e9 / (84 * 8)
    assert (bound.limit.name, bound.pps) == (limit, pytest.approx(expected_pps))
    trial = simulated(router(card), offered(4e9 / (84 * 8)))
    assert trial.forwarded_pps == pytest.approx(expected_pps, rel=0.02)
    assert trial.bottleneck.name.startswith(busiest)
    expected = solved(router(card), offered(4e9 / (84 * 8)))
    assert expected.forwarded_pps == pytest.approx(trial.forwarded_pps, rel=0.02)
    assert expected.bottleneck.name.startswith(busiest)


def test_a_slow_engine_limits_behind_fast_cards() -> None:
    slow = (replace(BLOCKS[0], cycles=500), BLOCKS[1])
    model = network_processor(CHIP, slow, (), STAGES, line_card=CARD)
    trial = simulated(model, offered(5e6))
    assert trial.forwarded_pps == pytest.approx(2e6, rel=0.02)
    assert trial.bottleneck.name.startswith("engine 0")


def test_the_blade_limits_where_lines_outside_are_faster() -> None:
    """Lines of 10 Gbit/s, a switch of 1 Gbit/s: what is too much is lost where cards enter the switch."""
    card = replace(CARD, per_packet_s=10e-9, link_bps=10e9)
    bound = expectation(CHIP, BLOCKS, (), STAGES, line_card=card, frame_bytes=512)
    assert (bound.limit.name, bound.pps) == ("blade ports", pytest.approx(4e9 / (532 * 8)))
    trial = simulated(router(card, frame_bytes=512), offered(1.5 * bound.pps, 512))
    assert trial.forwarded_pps == pytest.approx(bound.pps, rel=0.02)
    assert {place for place, rate_pps in trial.drops_pps.items() if rate_pps} == {
        f"line card {number} to crossbar" for number in range(4)
    }


def test_lines_outside_limit_where_they_are_slower() -> None:
    card = replace(CARD, link_bps=100e6)
    assert expectation(CHIP, BLOCKS, (), STAGES, line_card=card).limit.name == "ports"
    # Two ports send to one, whose line then has twice what it carries, and its card's queue fills.
    flows = tuple(Flow(rss_hash=i, ingress=i, egress=3) for i in range(2))
    load = OfferedLoad(rate_pps=2e8 / (84 * 8), flows=FlowSet(name="to one", flows=flows))
    trial = simulated(router(card), load, 20e-3)
    assert trial.forwarded_pps == pytest.approx(1e8 / (84 * 8), rel=0.02)
    assert {place for place, rate_pps in trial.drops_pps.items() if rate_pps} == {"port 3 out"}


def test_frames_that_collide_at_an_output_wait_in_the_queues_of_the_blade() -> None:
    """Three full lines to one port: a third gets out, the rest is lost before the blade's port, not at the card's."""
    flows = tuple(Flow(rss_hash=i, ingress=i, egress=3) for i in range(3))
    load = OfferedLoad(rate_pps=3e9 / (84 * 8), flows=FlowSet(name="to one", flows=flows))
    model = router(CARD, port_queue_frames=100)
    assert model.task("blade port 3").queue_frames == 100 + 8192 // (4 * 64)
    trial = simulated(model, load)
    assert trial.forwarded_pps == pytest.approx(1e9 / (84 * 8), rel=0.02)
    assert {place for place, rate_pps in trial.drops_pps.items() if rate_pps} == {"blade port 3"}


def test_what_a_card_does_to_one_port_leaves_the_others_alone() -> None:
    """A crossbar does not block: one port beyond what its card can do costs the other three nothing."""
    flows = tuple(Flow(rss_hash=i, ingress=max(0, i - 6), egress=i % 4) for i in range(10))
    card = LineCard(per_packet_s=2e-6)
    load = OfferedLoad(rate_pps=1e6, flows=FlowSet(name="seven to one", flows=flows))
    trial = simulated(router(card), load, 20e-3)
    others_pps = sum(flow.forwarded_pps for flow in trial.flows if flow.number > 6)
    assert others_pps == pytest.approx(3e5, rel=0.01)
    assert trial.forwarded_pps == pytest.approx(3e5 + 5e5, rel=0.01)


@pytest.mark.parametrize("policing", ["none", "policed", "weighted"])
def test_slices_stand_behind_line_cards(policing) -> None:
    slices = (
        Slice(name="modest", bandwidth_bps=0.6e9, share=0.5),
        Slice(name="greedy", bandwidth_bps=0.1e9, share=0.5, policing=policing),
    )
    model = router(CARD, slices=slices, port_queue_frames=30)
    assert all(port.entry.startswith("line card") for port in model.ports)
    load = replace(offered(4e6), flows=FlowSet.crafted(24, ports=4))
    trial = simulated(model, load)
    greedy_pps = sum(flow.forwarded_pps for flow in trial.flows if flow.number // 4 % 2)
    modest_pps = trial.forwarded_pps - greedy_pps
    assert modest_pps == pytest.approx(2e6, rel=0.01)
    assert greedy_pps == pytest.approx(4 * 0.1e9 / (84 * 8) if policing == "policed" else 2e6, rel=0.02)
    assert solved(model, load).forwarded_pps == pytest.approx(trial.forwarded_pps, rel=0.02)


def test_weighted_slices_are_served_at_the_blades_port_and_cross_each_link_once() -> None:
    slices = tuple(Slice(name=name, bandwidth_bps=0.5e9, share=0.5, policing="weighted") for name in ("a", "b"))
    flows = FlowSet.crafted(24, ports=4)
    got_s = [
        mean_s(
            simulated(router(CARD, slices=some, port_queue_frames=64), replace(offered(QUIET_PPS), flows=flows), 0.1)
        )
        for some in ((), slices)
    ]
    assert got_s[1] == pytest.approx(got_s[0], rel=1e-3)


SPANS = st.one_of(st.just(0.0), st.floats(1e-9, 2e-6))


@settings(derandomize=True)
@given(
    card=st.builds(
        LineCard,
        per_packet_s=SPANS,
        per_byte_s=st.sampled_from([0.0, 0.3e-9, 5e-9]),
        out_per_packet_s=SPANS,
        latency_s=st.sampled_from([0.0, 1e-7, 1e-5]),
        queue_frames=st.integers(1, 30),
        link_bps=st.sampled_from([0.0, 0.5e9, 1e9, 10e9]),
    ),
    frame_bytes=st.sampled_from([64, 200, 700]),
    rate_ratio=st.floats(0.2, 1.6),
)
def test_no_card_forwards_more_than_its_bound_and_the_solver_agrees(card, frame_bytes, rate_ratio) -> None:
    bound = expectation(CHIP, BLOCKS, (), STAGES, line_card=card, frame_bytes=frame_bytes)
    model = router(card, frame_bytes=frame_bytes, port_queue_frames=30)
    lines_pps = 4 * (card.link_bps or 1e9) / ((frame_bytes + 20) * 8)
    load = offered(min(rate_ratio * bound.pps, lines_pps), frame_bytes)
    # At the very point where queues begin to grow a trial does not settle in time.
    assume(bound.limit.name == "ports" or abs(load.rate_pps / bound.pps - 1.0) > 0.1)
    got_pps = simulated(model, load, 30e-3).forwarded_pps
    assert got_pps <= 1.02 * bound.pps
    assert solved(model, load).forwarded_pps == pytest.approx(got_pps, rel=0.02)


def test_random_arrivals_wait_at_the_card_for_what_they_did_not_wait_before_the_line() -> None:
    """Queues of constant service in a row: all waits add up to those at the slowest alone (Friedman, OR 13, 1965).

    M/D/1 waits rho s / (2 (1 - rho)): at the cards 1 us, with s = 2 us and rho = 1/2, and 68 ns of it before the line.
    """
    card = LineCard(per_packet_s=2e-6, queue_frames=1000)
    line_s = 84 * 8 / 1e9
    waits_s = [rho * s / (2 * (1 - rho)) for s in (2e-6, line_s) for rho in [0.25e6 * s]]
    alone = mean_s(simulated(router(card), offered(QUIET_PPS), 0.1))
    trial = simulated(router(card), offered(1e6, arrivals=Arrivals.poisson()), 0.4)
    # The four cards' frames meet at the engines for a few nanoseconds besides.
    assert mean_s(trial) - alone == pytest.approx(waits_s[0] - waits_s[1], rel=0.05)


def test_without_line_cards_ports_are_the_processors_own() -> None:
    plain = router(None)
    assert [task.name for task in plain.tasks if "card" in task.name or "blade" in task.name] == []
    assert all(port.entry == "engine 0: parse thread" for port in plain.ports)


def test_all_faults_of_a_card_come_at_once() -> None:
    wrong = LineCard(
        per_packet_s=-1.0,
        per_byte_s=float("nan"),
        out_per_packet_s=float("inf"),
        latency_s=-1e-9,
        queue_frames=0,
        link_bps=-1.0,
    )
    with pytest.raises(ModelProblem) as caught:
        router(wrong)
    assert {problem.place for problem in caught.value.problems} == {
        "line_card.per_packet_s",
        "line_card.per_byte_s",
        "line_card.out_per_packet_s",
        "line_card.latency_s",
        "line_card.queue_frames",
        "line_card.link_bps",
    }


FILE = """
builder = "network_processor"
processor = "ixp2850"
line_card = { per_packet = "300 ns", latency = "2 us" }
load = { rate = "1 Mpps", frames = "78 B", flows = { count = 25 } }
"""


def test_a_file_gives_line_cards_in_a_line_and_experiments_vary_them() -> None:
    document = parse_toml(FILE, "test")
    model, _ = build_router(document)
    assert [port.entry for port in model.ports] == [f"line card {number}" for number in range(5)]
    assert model.task("line card 0").service.per_packet_s == pytest.approx(300e-9)
    assert model.task("crossbar out").service.per_packet_s == pytest.approx(2e-6)
    changed, _ = build_router(
        vary(
            document,
            {
                "line_card.per_packet": "1 us",
                "line_card.per_byte": "0.1 ns/B",
                "line_card.out_per_packet": "50 ns",
                "line_card.link": "10 Gbit/s",
                "line_card.queue": "7 frames",
            },
        )
    )
    assert changed.task("line card 4").service.per_byte_s == pytest.approx(1e-10)
    assert changed.task("line card 4 out").service.per_packet_s == pytest.approx(50e-9)
    assert (changed.ports[0].link_bps, changed.ports[0].tx_ring_frames) == (10e9, 7)


@pytest.mark.parametrize(
    ("table", "places"),
    [
        ('{ per_packet = "-1 ns", queue = "0 frames" }', {"line_card.per_packet", "line_card.queue"}),
        ('{ per_paket = "1 ns", link = "0 bit/s" }', {"line_card.per_paket", "line_card.link"}),
        ('{ latency = 5, per_byte = "1 ns" }', {"line_card.latency", "line_card.per_byte"}),
        ('"fast"', {"line_card"}),
    ],
)
def test_faults_of_a_card_have_their_places_in_the_file(table, places) -> None:
    text = FILE.replace('{ per_packet = "300 ns", latency = "2 us" }', table)
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    assert {problem.place for problem in caught.value.problems} == places


def test_the_diversified_router_has_five_line_cards_and_is_limited_by_its_processor() -> None:
    model, load = read_router_and_load(EXAMPLES / "diversified.router.toml")
    assert load is not None
    assert sum(port.entry.startswith("line card") for port in model.ports) == 5
    trial = simulated(model, load)
    assert trial.bottleneck.name.startswith("engine 5")
    assert solved(model, load).forwarded_pps == pytest.approx(trial.forwarded_pps, rel=0.02)
