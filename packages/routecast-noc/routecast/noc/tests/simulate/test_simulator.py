"""Simulated networks against closed forms, the flow level, scaling laws and conservation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from routecast.errors import ModelProblem
from routecast.noc.patterns import hot_spot, neighbour, transpose, uniform
from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.routing.deadlock import TURN_MODELS
from routecast.noc.routing.model import hop_flow, link_loads
from routecast.noc.routing.policies import routes
from routecast.noc.scaling import Scaling
from routecast.noc.simulate import (
    AdaptiveRouting,
    Fabric,
    OnOff,
    Packets,
    RouterDesign,
    SimulationPhases,
    allocated,
    overload_throughput,
    saturation,
    simulate,
    simulate_all,
    single,
    sweep,
)
from routecast.noc.simulate import _simulator as simulator
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import Traffic, normalised

FOUR = Packets(flits=(4,))
SHORT = SimulationPhases(replications=4, warmup_cycles=2_000, measure_cycles=5_000)


def mesh(columns: int, rows: int) -> Topology:
    return Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)


def fabric(
    topology: Topology,
    traffic: Traffic,
    policy: str = "xy",
    *,
    design: RouterDesign | None = None,
    packets: Packets = FOUR,
) -> Fabric:
    design = design or RouterDesign(virtual_channels=4)
    return single(topology, traffic, routes(policy, topology), design=design, packets=packets)


def zero_load_cycles(design: RouterDesign, routers: float, flits: float) -> float:
    """Return the latency of a packet that meets no other packet, from its creation until its tail arrives.

    The sum over the routers, the links between them, the two channels of the nodes, and the flits in sequence.
    """
    router_cycles = (
        design.routing_cycles + design.vc_allocation_cycles + design.switch_allocation_cycles + design.traversal_cycles
    )
    return routers * router_cycles + (routers - 1) * design.link_cycles + 2 * design.node_link_cycles + flits


@pytest.mark.parametrize("flits", [1, 4, 8])
@pytest.mark.parametrize("routers", [1, 2, 15])
def test_zero_load_law_of_the_reference_design_is_the_one_measured_on_booksim(routers: int, flits: int) -> None:
    # BookSim2, commit 28f4329: 4 hops + packet_flits + 1 (header of booksim_uniform.csv).
    assert zero_load_cycles(RouterDesign.booksim(), routers, flits) == 4 * routers + flits + 1


@pytest.mark.parametrize(
    "design",
    [
        RouterDesign.booksim(1),
        RouterDesign.booksim(4),
        RouterDesign.li2012(),
        RouterDesign(routing_cycles=1, vc_allocation_cycles=2, switch_allocation_cycles=2, link_cycles=3),
        RouterDesign(virtual_channels=2, traversal_cycles=0, node_link_cycles=5, buffer_flits=32),
    ],
)
@pytest.mark.parametrize("length", [1, 5])
def test_latency_at_low_load_is_the_zero_load_law(design: RouterDesign, length: int) -> None:
    # At 0.2 % of a flit per cycle one packet in hundreds meets another one.
    topology = mesh(4, 4)
    of = fabric(topology, uniform(topology).scaled(0.002), design=design, packets=Packets(flits=(length,)))
    answer = simulate(of, SimulationPhases(replications=4, warmup_cycles=100, measure_cycles=50_000))
    assert answer.packet_latency_cycles is not None
    law = zero_load_cycles(design, answer.planes[0].mean_routers.value, length)
    assert answer.packet_latency_cycles.value == pytest.approx(law, rel=0.01)


@pytest.mark.parametrize(
    ("topology", "routers"),
    [
        # Mean distances of uniform traffic: (n^2 - 1) / 3n along each side of a mesh of n, n / 4 of an even ring, over
        # pairs of different routers; of 17 other nodes of the concentrated mesh one is at the own router.
        (Topology(kind=TopologyKind.MESH, columns=4, rows=4), 1 + 2 * 15 / 12 * 16 / 15),
        (Topology(kind=TopologyKind.TORUS, columns=4, rows=4), 1 + 2 * 1 * 16 / 15),
        (
            Topology(kind=TopologyKind.CONCENTRATED_MESH, columns=3, rows=3, concentration=2),
            1 + 16 / 17 * (2 * 8 / 9 * 9 / 8),
        ),
    ],
)
def test_packets_pass_as_many_routers_as_the_grid_says(topology: Topology, routers: float) -> None:
    design = RouterDesign(virtual_channels=4)
    of = fabric(topology, uniform(topology).scaled(0.01), design=design)
    answer = simulate(of, SimulationPhases(replications=4, warmup_cycles=100, measure_cycles=40_000))
    assert answer.planes[0].mean_routers.value == pytest.approx(routers, rel=0.02)
    assert answer.packet_latency_cycles is not None
    assert answer.packet_latency_cycles.value == pytest.approx(zero_load_cycles(design, routers, 4), rel=0.02)


@pytest.mark.parametrize(("policy", "alpha"), [("xy", 1.0), ("xy", 1.5), ("o1turn", 1.0)])
@pytest.mark.slow
def test_link_loads_are_those_of_the_flow_level_within_their_intervals(policy: str, alpha: float) -> None:
    topology = mesh(5, 5)
    routing = routes(policy, topology)
    traffic = normalised(hot_spot(topology), [routing], 0.5)
    # The hot spot is sent 1.2 flits in a cycle: more than one channel to its node takes.
    design = RouterDesign(virtual_channels=4, ejection_channels=4)
    of = single(topology, traffic, routing, design=design, packets=FOUR, alpha=alpha)
    plane = simulate(of, SimulationPhases(replications=8, warmup_cycles=2_000, measure_cycles=10_000)).planes[0]
    assert not plane.is_saturated
    expected = link_loads(routing, traffic.between_routers(topology))
    within = np.abs(plane.link_loads - expected) <= plane.link_half_widths
    # 95 % of 80 links are 76; four standard deviations below are 68.
    assert within.sum() >= 68
    assert plane.link_loads == pytest.approx(expected, abs=0.02)
    assert plane.busy_ratios.max() == pytest.approx(0.5 * alpha, abs=0.02)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_power_is_hop_flow_over_alpha_squared(alpha: float) -> None:
    topology = mesh(4, 4)
    traffic = uniform(topology).scaled(0.1)
    routing = routes("xy", topology)
    of = single(topology, traffic, routing, design=RouterDesign(), packets=FOUR, alpha=alpha)
    answer = simulate(of, SHORT)
    flow = hop_flow(routing, traffic.between_routers(topology)) / alpha**2
    assert answer.power.value == pytest.approx(flow, rel=0.03)
    assert answer.power.half_width < 0.05 * flow


def test_half_the_clock_at_half_the_demand_doubles_latency_in_node_cycles() -> None:
    topology = mesh(4, 4)
    of = fabric(topology, uniform(topology).scaled(0.3))
    slow = single(
        topology, uniform(topology).scaled(0.15), routes("xy", topology), design=of.design, packets=FOUR, alpha=2.0
    )
    run = SimulationPhases(replications=4, warmup_cycles=2_000, measure_cycles=10_000)
    full, half = simulate_all([of, slow], run)
    assert full.packet_latency_cycles is not None
    assert half.packet_latency_cycles is not None
    # Node cycles fall between those of the plane: trials are spread differently, by less than a cycle in forty.
    assert half.packet_latency_cycles.value == pytest.approx(2 * full.packet_latency_cycles.value, rel=0.03)
    assert half.power.value == pytest.approx(full.power.value / 8, rel=0.03)


def test_overload_is_simulated_and_its_latency_is_unbounded() -> None:
    topology = mesh(4, 4)
    answer = simulate(fabric(topology, uniform(topology).scaled(0.95)), SHORT)
    assert answer.is_saturated
    assert answer.overload
    assert answer.packet_latency_cycles is None
    assert answer.packet_percentiles is None
    assert answer.accepted_flits_node_cycle.high < answer.offered_flits_node_cycle.low
    assert answer.to_json()["packet_latency_cycles"] is None


def test_a_hot_spot_that_gets_more_than_its_node_takes_is_named() -> None:
    topology = mesh(5, 5)
    of = fabric(topology, normalised(hot_spot(topology), [routes("xy", topology)], 0.5))
    # All 24 others send 0.6 of what they send to node 12, the centre.
    offered = float(of.planes[0].demand[:, 12].sum())
    assert offered > 1
    assert simulate(of, SHORT).overload[0].startswith(f"the channel to node 12 is offered {offered:.3g} times")


def test_one_link_over_capacity_is_an_overload() -> None:
    # Transposed traffic by XY: the links at the corners saturate first, the other nodes are served.
    topology = mesh(4, 4)
    routing = routes("xy", topology)
    run = SimulationPhases(replications=4, warmup_cycles=5_000, measure_cycles=20_000)
    under, over = sweep(
        fabric(topology, normalised(transpose(topology), [routing], 1.0), design=RouterDesign.li2012()),
        [0.8, 1.05],
        run,
    )
    assert not under.is_saturated
    assert over.is_saturated


def test_all_offered_flits_arrive_below_saturation() -> None:
    topology = mesh(4, 4)
    for answer in sweep(fabric(topology, uniform(topology)), [0.05, 0.2, 0.4], SHORT):
        assert not answer.is_saturated
        assert answer.accepted_flits_node_cycle.value == pytest.approx(answer.demand_flits_node_cycle, rel=0.03)
        assert answer.load == pytest.approx(answer.demand_flits_node_cycle)


def test_latency_does_not_fall_when_load_rises() -> None:
    topology = mesh(4, 4)
    answers = sweep(fabric(topology, uniform(topology)), [0.1, 0.25, 0.4, 0.5], SHORT)
    means = [answer.packet_latency_cycles.value for answer in answers if answer.packet_latency_cycles]
    assert len(means) == 4
    assert means == sorted(means)
    for answer in answers:
        latency = answer.packet_percentiles
        assert latency is not None
        assert latency.p50_cycles.value <= latency.p95_cycles.value <= latency.p99_cycles.value
        assert latency.p99_cycles.value <= latency.max_cycles


def test_bursts_delay_more_than_bernoulli_traffic_of_the_same_rate() -> None:
    topology = mesh(4, 4)
    even = fabric(topology, uniform(topology).scaled(0.3))
    bursts = single(
        topology,
        uniform(topology).scaled(0.3),
        routes("xy", topology),
        design=even.design,
        packets=FOUR,
        injection=OnOff(on_cycles=100, off_cycles=100),
    )
    calm, bursty = simulate_all([even, bursts], SHORT)
    assert calm.packet_latency_cycles is not None
    assert bursty.packet_latency_cycles is not None
    assert bursty.packet_latency_cycles.low > calm.packet_latency_cycles.high


def test_one_seed_gives_one_result_and_another_seed_another() -> None:
    topology = mesh(3, 3)
    of = fabric(topology, uniform(topology).scaled(0.2))
    first, again, other = (
        simulate(of, SimulationPhases(seed=seed, replications=2, warmup_cycles=100, measure_cycles=1_000))
        for seed in (3, 3, 4)
    )
    assert first.to_json() == again.to_json()
    assert first.to_json() != other.to_json()


def test_a_load_in_a_sweep_is_what_it_is_alone() -> None:
    topology = mesh(3, 3)
    of = fabric(topology, uniform(topology))
    run = SimulationPhases(replications=2, warmup_cycles=100, measure_cycles=1_000)
    together = sweep(of, [0.1, 0.3], run)[1]
    alone = sweep(of, [0.3], run)[0]
    assert together.to_json() == alone.to_json()


def test_loads_that_are_simulated_one_after_the_other_are_those_simulated_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topology = mesh(3, 3)
    of = fabric(topology, uniform(topology))
    run = SimulationPhases(replications=2, warmup_cycles=100, measure_cycles=1_000)
    at_once = sweep(of, [0.1, 0.2, 0.3], run)
    monkeypatch.setattr(simulator, "_MAX_CHARACTERS", 1)
    heard: list[float] = []
    in_turn = sweep(of, [0.1, 0.2, 0.3], run, on_progress=heard.append)
    assert [item.to_json() for item in in_turn] == [entry.to_json() for entry in at_once]
    assert heard == sorted(heard)


def test_one_replication_has_the_interval_of_its_batches() -> None:
    topology = mesh(4, 4)
    of = fabric(topology, uniform(topology).scaled(0.3))
    item = simulate(of, SimulationPhases(replications=1, warmup_cycles=2_000, measure_cycles=20_000, batches=20))
    many = simulate(of, SimulationPhases(replications=8, warmup_cycles=2_000, measure_cycles=20_000))
    assert item.packet_latency_cycles is not None
    assert many.packet_latency_cycles is not None
    assert 0 < item.packet_latency_cycles.half_width < 0.1 * item.packet_latency_cycles.value
    gap = abs(item.packet_latency_cycles.value - many.packet_latency_cycles.value)
    assert gap <= 2 * (item.packet_latency_cycles.half_width + many.packet_latency_cycles.half_width)
    assert math.isnan(item.accepted_flits_node_cycle.half_width)


def test_planes_run_on_their_own_and_their_power_adds_up() -> None:
    topology = mesh(4, 4)
    routing = routes("xy", topology)
    traffic = normalised(hot_spot(topology), [routing], 0.6)
    whole = traffic.between_routers(topology)
    to_even = np.where(np.arange(16)[None, :] % 2 == 0, whole, 0.0)
    allocation = Allocation(
        policy="by target",
        planes=tuple(
            Plane(demand=demand, routes=routing, scaling=Scaling(alpha_max=3.0))
            for demand in (to_even, whole - to_even)
        ),
    )
    design = RouterDesign(virtual_channels=4, ejection_channels=4)
    of = allocated(topology, traffic, allocation, design=design, packets=FOUR, busy_ratio=0.7)
    answer = simulate(of, SHORT)
    assert not answer.is_saturated
    assert answer.power.value == pytest.approx(sum(plane.power.value for plane in answer.planes))
    for given, plane, simulated in zip(allocation.planes, of.planes, answer.planes, strict=True):
        assert simulated.link_loads.sum() == pytest.approx(given.link_loads.sum(), rel=0.05)
        assert simulated.power.value == pytest.approx(hop_flow(given.routes, given.demand) / plane.alpha**2, rel=0.05)
        assert simulated.busy_ratios.max() < 0.8
    latencies = [plane.packet_latency.mean_cycles.value for plane in answer.planes if plane.packet_latency]
    assert answer.packet_latency_cycles is not None
    assert min(latencies) < answer.packet_latency_cycles.value < max(latencies)


def test_a_plane_of_twice_the_width_needs_half_the_flits_for_the_same_power() -> None:
    topology = mesh(4, 4)
    routing = routes("xy", topology)
    traffic = uniform(topology).scaled(0.2)
    demand = traffic.between_routers(topology)
    narrow, wide = (
        allocated(
            topology,
            traffic,
            Allocation(
                policy="all on one",
                planes=(Plane(demand=demand, routes=routing, scaling=Scaling(alpha_max=1.0), width=width),),
            ),
            design=RouterDesign(virtual_channels=4),
            packets=FOUR,
        )
        for width in (1.0, 2.0)
    )
    before, after = simulate_all([narrow, wide], SHORT)
    assert after.planes[0].link_loads.sum() == pytest.approx(before.planes[0].link_loads.sum() / 2, rel=0.02)
    assert after.power.value == pytest.approx(before.power.value, rel=0.02)
    assert after.accepted_flits_node_cycle.value == pytest.approx(0.2, rel=0.02)
    assert before.packet_latency_cycles is not None
    assert after.packet_latency_cycles is not None
    # Two flits fewer, one after the other, and less waiting.
    assert after.packet_latency_cycles.value < before.packet_latency_cycles.value - 2


def test_routers_pass_a_flit_once_more_than_links() -> None:
    topology = mesh(4, 4)
    plane = simulate(fabric(topology, uniform(topology).scaled(0.1)), SHORT).planes[0]
    accepted = plane.accepted_flits_node_cycle.value * topology.node_count
    assert plane.router_loads.sum() == pytest.approx(plane.link_loads.sum() + accepted, rel=0.01)
    assert plane.router_loads.sum() == pytest.approx(accepted * plane.mean_routers.value, rel=0.02)


def test_seconds_are_cycles_over_the_clock_of_the_nodes() -> None:
    topology = mesh(3, 3)
    routing = routes("xy", topology)
    of = single(
        topology, uniform(topology).scaled(0.1), routing, design=RouterDesign(), packets=FOUR, alpha=2.0, node_hz=2e9
    )
    answer = simulate(of, SimulationPhases(replications=2, warmup_cycles=100, measure_cycles=1_000))
    assert answer.packet_latency_s is not None
    assert answer.packet_latency_cycles is not None
    assert answer.packet_latency_s.value == pytest.approx(answer.packet_latency_cycles.value * 0.5e-9)


@pytest.mark.slow
def test_the_saturation_that_is_found_lies_between_a_carried_and_a_saturated_load() -> None:
    topology = mesh(4, 4)
    of = fabric(topology, uniform(topology), design=RouterDesign.booksim(1))
    result = saturation(of, SHORT, tolerance=0.05)
    assert 0 < result.factor < result.saturated_factor <= result.factor / 0.95 + 1e-9
    assert all(item.is_saturated == (item.load >= result.saturated_factor) for item in result.simulated)
    # Under uniform traffic all nodes saturate together.
    assert result.flits_node_cycle == pytest.approx(overload_throughput(of, SHORT).value, rel=0.1)


@pytest.mark.parametrize("model", TURN_MODELS)
def test_turn_models_deliver_at_the_zero_load_law(model: str) -> None:
    topology = mesh(4, 4)
    design = RouterDesign(virtual_channels=2)
    adaptive = AdaptiveRouting.turn_model(model, topology)
    of = single(topology, uniform(topology).scaled(0.002), adaptive, design=design, packets=FOUR)
    answer = simulate(of, SimulationPhases(replications=4, warmup_cycles=100, measure_cycles=20_000))
    plane = answer.planes[0]
    assert answer.packet_latency_cycles is not None
    # Shortest ways only: 8/3 links between two of 4 x 4 routers in the mean, and one router more.
    assert plane.mean_routers.value == pytest.approx(8 / 3 + 1, rel=0.03)
    law = zero_load_cycles(design, plane.mean_routers.value, 4)
    assert answer.packet_latency_cycles.value == pytest.approx(law, rel=0.01)


def test_a_choice_of_paths_relieves_the_links_that_xy_fills() -> None:
    # Transposed at the other diagonal all ways are south-east or north-west: XY turns them at the diagonal,
    # negative-first may spread them over their rectangles (C. Glass and L. Ni, "The turn model for adaptive routing",
    # ISCA 1992).
    topology = mesh(6, 6)
    routing = routes("xy", topology)
    demand = np.zeros((36, 36))
    for x, y in np.ndindex(6, 6):
        if x + y != 5:
            demand[topology.router_at(x, y), topology.router_at(5 - y, 5 - x)] = 1.0
    traffic = normalised(Traffic(name="other diagonal", demand=demand), [routing], 0.7)
    design = RouterDesign(virtual_channels=2)
    fixed = single(topology, traffic, routing, design=design, packets=FOUR)
    adaptive = single(
        topology, traffic, AdaptiveRouting.turn_model("negative_first", topology), design=design, packets=FOUR
    )
    by_xy, by_choice = simulate_all([fixed, adaptive], SHORT)
    assert by_choice.planes[0].link_loads.max() < 0.8 * by_xy.planes[0].link_loads.max()
    # The ways are as long: the flow is the same.
    assert by_choice.power.value == pytest.approx(by_xy.power.value, rel=0.03)


def test_nothing_sent_cannot_saturate_and_cannot_be_scaled() -> None:
    topology = mesh(3, 3)
    idle = fabric(topology, uniform(topology).scaled(0.0))
    answer = simulate(idle, SimulationPhases(replications=2, warmup_cycles=0, measure_cycles=100))
    assert not answer.is_saturated
    assert answer.packet_latency_cycles is None
    assert answer.power.value == 0.0
    with pytest.raises(ModelProblem, match="nothing is sent"):
        saturation(idle)


def test_neighbours_with_packets_of_one_flit_get_all_that_nodes_can_make() -> None:
    # In rows of two each node sends to the other, over a link of its own: twice the full load would be two packets in
    # a cycle.
    topology = mesh(2, 4)
    of = fabric(topology, neighbour(topology), packets=Packets(flits=(1,)))
    assert overload_throughput(of, SHORT).value == pytest.approx(1.0, rel=0.02)


def test_an_exception_in_progress_ends_the_simulation() -> None:
    topology = mesh(4, 4)

    def give_up(_share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(
            fabric(topology, uniform(topology).scaled(0.3)),
            SimulationPhases(replications=2, measure_cycles=500_000_000),
            on_progress=give_up,
        )


def test_progress_rises_to_the_end() -> None:
    topology = mesh(4, 4)
    heard: list[float] = []
    sweep(fabric(topology, uniform(topology)), [0.2, 0.3], SHORT, on_progress=heard.append)
    assert heard == sorted(heard)
    assert all(0 <= share <= 1 for share in heard)
