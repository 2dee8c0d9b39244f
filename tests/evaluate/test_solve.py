"""The closed-form evaluator against Meyer et al. 2014, queueing theory, arithmetic, and conservation."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.solve import Solve, capacity_pps, lossless_pps
from routecast.evaluate.solve.flow import FlowGraph, RatesUnderLoss, flow_graph
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad, line_rate_pps
from routecast.router import (
    Activation,
    Contention,
    Need,
    Policy,
    Port,
    PowerDraw,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
    multicore,
    station,
    tandem,
)
from routecast.router.files import read_router_and_load

MICROSECOND = ServiceCost(per_packet_s=1e-6)
EXPONENTIAL = ServiceCost(per_packet_s=1e-6, variation="exponential")
POISSON = Arrivals.poisson()
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.router.toml"))


def solve(model, rate, *, flows=None, frames=None, arrivals=POISSON):
    load = OfferedLoad(
        rate_pps=rate, flows=flows or FlowSet.crafted(1), frames=frames or FrameMix.fixed(64), arrivals=arrivals
    )
    return Solve(model=model).trial(load, 1.0)


def eq7_core_s(frame_bytes, cores):
    """Service time of a core by Meyer et al. 2014, eq. 7 with the parameters of Table I(b)."""
    a, a0, b, b0 = 0.011392, 0.002708, 0.227037, 0.063321
    return (frame_bytes + 20) * 8 / (((a + a0 / cores) * frame_bytes + b + b0 / cores) * 1e9)


# Meyer et al. 2014, Table II, simulated throughput in Gbit/s (flows, frame bytes, D_sim).
TABLE_II = [
    *((1, 64, 1.1943), (1, 128, 2.0968), (1, 256, 3.9033), (1, 512, 7.5237), (1, 1024, 9.9276), (1, 1518, 9.8951)),
    *((2, 64, 2.1516), (2, 128, 3.7849), (2, 256, 7.0583), (2, 512, 13.5834)),
    *((3, 64, 3.1073), (3, 128, 5.4744), (3, 256, 10.1926), (3, 512, 16.4304)),
    *((4, 64, 4.0686), (4, 128, 7.1573), (4, 256, 13.3450)),
    *((100, 64, 4.0686), (100, 128, 7.1574), (100, 256, 13.3461)),
]


@pytest.mark.parametrize(("flows", "size", "simulated_gbps"), TABLE_II)
def test_table_ii_of_paper_000_is_reproduced(flows, size, simulated_gbps):
    router = multicore(4, ServiceCost(per_packet_s=eq7_core_s(size, min(flows, 4))))
    trial = solve(
        router,
        20e9 / (8 * (size + 20)),
        flows=FlowSet.crafted(flows),
        frames=FrameMix.fixed(size),
        arrivals=Arrivals.cbr(),
    )
    # The paper's links carry a little less than 10 Gbit/s; where one limits, 1.1 % is allowed.
    linked = (flows, size) in {(1, 1024), (1, 1518), (3, 512)}
    assert trial.l1_bps / 1e9 == pytest.approx(simulated_gbps, rel=0.011 if linked else 0.007)


def test_three_flows_of_512_bytes_fill_one_link_and_one_core():
    # By hand: flows 1 and 3 share 10 Gbit/s, flow 2 gets its core's rate by eq. 7.
    router = multicore(4, ServiceCost(per_packet_s=eq7_core_s(512, 3)))
    trial = solve(
        router, 20e9 / (8 * 532), flows=FlowSet.crafted(3), frames=FrameMix.fixed(512), arrivals=Arrivals.cbr()
    )
    assert trial.l1_bps == pytest.approx(10e9 + 8 * 532 / eq7_core_s(512, 3), rel=1e-9)
    assert trial.bottleneck.name == "port 0 in"
    assert set(trial.drops_pps) == {"core 1"}


def test_equation_1_counts_the_bus_twice():
    # mu = min(mu_CPU, mu_Bus/2, mu_NIC): 64 B at 256 MB/s cross once at 4 Mpps, so 2 Mpps pass.
    router = multicore(4, MICROSECOND, bus_bytes_per_s=256e6, nic_cap_pps=10e6)
    trial = solve(router, 8e6, flows=FlowSet.crafted(4), arrivals=Arrivals.cbr())
    assert trial.forwarded_pps == pytest.approx(2e6, rel=1e-6)
    assert trial.bottleneck.name == "bus"
    capacities = {resource.name: resource.capacity_pps for resource in trial.resources}
    assert capacities["bus"] == pytest.approx(2e6)
    assert capacities["cpu"] == pytest.approx(4e6)
    assert capacities["nic"] == pytest.approx(10e6)
    margins = {resource.name: resource.margin_ratio for resource in trial.resources}
    assert margins["bus"] == 0.0
    assert margins["cpu"] == pytest.approx(1.0)


def test_rss_imbalance_lowers_the_throughput_without_loss_more_than_the_one_under_overload():
    flows = FlowSet.random(100, seed=1)
    router = multicore(4, MICROSECOND)
    load = OfferedLoad(rate_pps=1.0, flows=flows)
    largest = max(flows.share_per_core(4))
    assert lossless_pps(router, load) == pytest.approx(1e6 / largest)
    assert capacity_pps(router, load) == pytest.approx(4e6)
    trial = solve(router, 3.8e6, flows=flows, arrivals=Arrivals.cbr())
    expected = sum(min(3.8e6 * share, 1e6) for share in flows.share_per_core(4))
    assert trial.forwarded_pps == pytest.approx(expected)


@pytest.mark.parametrize("busy", [1, 2, 3, 4])
def test_contention_follows_the_number_of_cores_that_have_flows(busy):
    contention = Contention(sigma=0.05, kappa=0.01)
    router = multicore(4, MICROSECOND, contention=contention)
    load = OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(busy))
    # S5 with k = busy units; all of them are busy all the time.
    factor = 1.0 + 0.05 * (busy - 1) + 0.01 * busy * (busy - 1)
    assert capacity_pps(router, load) == pytest.approx(busy * 1e6 / factor, rel=1e-6)
    assert lossless_pps(router, load) == pytest.approx(busy * 1e6 / factor, rel=1e-6)


def test_contention_below_saturation_is_a_fixed_point():
    router = multicore(2, MICROSECOND, contention=Contention(sigma=0.2))
    trial = solve(router, 1e6, flows=FlowSet.crafted(2), arrivals=Arrivals.cbr())
    # u = 0.5·(1 + 0.2·u), both cores alike: u = 0.5/0.9.
    used = next(resource.utilisation_ratio for resource in trial.resources if resource.name == "cpu")
    assert used == pytest.approx(0.5 / 0.9, rel=1e-6)


def test_the_theory_stations_are_recognised():
    cases = [
        (station(EXPONENTIAL), 0.8e6, "M/M/1", 5e-6),
        (station(EXPONENTIAL, servers=4), 3.2e6, "M/M/4", 1.7455405897e-6),
        (station(EXPONENTIAL, queue_frames=49), 0.9e6, "M/M/1/50", 9.740976290e-6),
        (station(MICROSECOND), 0.8e6, "M/D/1", 3e-6),
        (station(ServiceCost(per_packet_s=1e-6, variation="gamma", scv=2.0)), 0.5e6, "M/G/1", 2.5e-6),
        (tandem([EXPONENTIAL] * 3), 0.5e6, "Jackson tandem of M/M/1", 6e-6),
    ]
    for model, rate, method, mean_s in cases:
        trial = solve(model, rate)
        assert trial.latency is not None
        assert trial.latency.method == method
        assert trial.latency.mean_s == pytest.approx(mean_s, rel=1e-6)


def test_a_frame_mix_makes_service_vary():
    mix = FrameMix.imix()
    trial = solve(station(ServiceCost(per_byte_s=1e-9)), 1e6, frames=mix)
    second = sum(share * (size * 1e-9) ** 2 for size, share in mix.share_by_bytes.items())
    wait_s = 1e6 * second / (2 * (1 - 1e6 * mix.mean_bytes * 1e-9))
    assert trial.waiting is not None
    assert trial.waiting.mean_s == pytest.approx(wait_s)


def test_a_bus_visited_twice_is_the_jackson_network():
    # NIC 0.15 us, bus 0.1 us twice, four cores 1 us, NIC 0.15 us at 3.2 Mpps: mean 2.878019 us by product form.
    model, load = read_router_and_load(next(path for path in EXAMPLES if path.name == "bus.router.toml"))
    assert load is not None
    trial = Solve(model=model).trial(load, 1.0)
    assert trial.latency is not None
    assert trial.latency.mean_s == pytest.approx(2.878019e-6, rel=1e-3)  # and the wait for a 100 Gbit/s link


def test_poisson_flows_on_cores_of_their_own_are_md1_each():
    trial = solve(multicore(4, MICROSECOND, link_bps=1e12), 2e6, flows=FlowSet.crafted(4))
    assert trial.latency is not None
    assert trial.latency.method == "M/D/1"
    assert trial.latency.mean_s == pytest.approx(1.5e-6)
    assert not math.isnan(trial.latency.p99_s)


def test_bursts_beyond_the_range_of_approximations_get_no_latency():
    bursts = Arrivals.on_off(burst_frames=8.0, peak_ratio=4.0)
    assert solve(station(MICROSECOND), 0.5e6, arrivals=bursts).latency is None
    mild = Arrivals.on_off(burst_frames=2.0, peak_ratio=4.0)
    trial = solve(station(MICROSECOND), 0.5e6, arrivals=mild)
    assert trial.latency is not None
    assert "approximation" in trial.latency.method


def test_utilisation_counts_only_what_is_served():
    trial = solve(station(EXPONENTIAL, queue_frames=9), 0.9e6)
    assert trial.resources[0].utilisation_ratio == pytest.approx(trial.forwarded_pps * 1e-6)


def test_equal_gaps_wait_for_nothing():
    trial = solve(multicore(2, MICROSECOND), 1.9e6, flows=FlowSet.crafted(2), arrivals=Arrivals.cbr())
    assert trial.latency is not None
    assert trial.waiting is not None
    assert trial.latency.p99_s == pytest.approx(1e-6)
    assert trial.waiting.mean_s == 0.0
    assert trial.loss_ratio == 0.0


def test_where_no_result_applies_the_trial_says_so():
    napi = multicore(1, MICROSECOND, activation=Activation(kind="interrupt", interrupt_cost_s=2e-6))
    trial = solve(napi, 0.5e6)
    assert trial.latency is None
    assert any("activated by interrupts" in note for note in trial.notes)


def test_interrupts_cost_below_saturation_and_nothing_at_it():
    napi = multicore(1, MICROSECOND, activation=Activation(kind="interrupt", budget_frames=64, interrupt_cost_s=2e-6))
    assert capacity_pps(napi, OfferedLoad(rate_pps=1.0)) == pytest.approx(1e6)
    used = solve(napi, 0.2e6).resources[0].utilisation_ratio
    # By the recursion of test_gated_polls: 0.477 (and 0.2 without interrupts).
    assert used == pytest.approx(0.477, rel=0.02)


def test_batches_share_their_cost_under_overload():
    router = multicore(1, ServiceCost(per_packet_s=1e-7, per_batch_s=2e-6), batch_frames=32)
    assert capacity_pps(router, OfferedLoad(rate_pps=1.0)) == pytest.approx(1.0 / (1e-7 + 2e-6 / 32))


def two_on_one(policy, *, batch=(1, 1), priority=(0, 0), weight=(1.0, 1.0)):
    """Two task units with a port each on one unit."""
    names = ("a", "b")
    return RouterModel(
        name="shared",
        ports=tuple(Port(name=f"port {i}", link_bps=1e12, entry=names[i]) for i in range(2)),
        pools=(ResourcePool(name="cpu", policy=policy),),
        tasks=tuple(
            TaskUnit(
                name=names[i],
                needs=(Need(pool="cpu"),),
                service=ServiceCost(per_packet_s=(1e-6, 3e-6)[i]),
                batch_frames=batch[i],
                priority=priority[i],
                weight=weight[i],
            )
            for i in range(2)
        ),
    )


@pytest.mark.parametrize(
    ("model", "a_pps", "b_pps"),
    [
        (two_on_one(Policy()), 0.25e6, 0.25e6),
        (two_on_one(Policy(), batch=(3, 1)), 0.5e6, 1e6 / 6),
        (two_on_one(Policy(kind="fair", quantum_s=1e-6), weight=(3.0, 1.0)), 0.75e6, 0.25e6 / 3),
        (two_on_one(Policy(kind="round_robin", quantum_s=0.5e-6)), 0.5e6, 0.5e6 / 3),
        (two_on_one(Policy(kind="preemptive"), priority=(1, 0)), 1e6, 0.0),
        (two_on_one(Policy(kind="priority"), priority=(0, 1)), 0.0, 1e6 / 3),
    ],
)
def test_policies_divide_an_overloaded_unit(model, a_pps, b_pps):
    trial = solve(model, 4e6, flows=FlowSet.crafted(2), arrivals=Arrivals.cbr())
    assert 2e6 - trial.drops_pps.get("a", 0.0) == pytest.approx(a_pps, abs=1.0)
    assert 2e6 - trial.drops_pps.get("b", 0.0) == pytest.approx(b_pps, abs=1.0)


def test_what_one_does_not_want_the_others_get():
    trial = solve(two_on_one(Policy()), 0.4e6, flows=FlowSet.crafted(2), arrivals=Arrivals.cbr())
    assert set(trial.drops_pps) <= {"b"}
    assert trial.forwarded_pps == pytest.approx(0.4e6)


def test_a_task_unit_with_needs_of_two_pools_is_limited_by_the_scarcer():
    model, load = read_router_and_load(next(path for path in EXAMPLES if path.name == "two_pools.router.toml"))
    assert load is not None
    trial = Solve(model=model).trial(load, 1.0)
    # 960 cycles at 2.4 GHz and 4 x 80 ns are 720 ns; two memory channels carry 2/720 ns.
    assert trial.forwarded_pps == pytest.approx(2.0 / 720e-9)
    assert trial.bottleneck.name == "memory"


def test_links_cut_the_intended_load():
    trial = solve(multicore(4, ServiceCost()), 40e6, flows=FlowSet.crafted(2), arrivals=Arrivals.cbr())
    assert trial.intended_pps == 40e6
    assert trial.offered_pps == pytest.approx(2 * line_rate_pps(10e9, 64))
    assert trial.loss_ratio == 0.0
    assert trial.bottleneck.kind == "link"


def test_energy_is_power_by_state_and_time():
    router = multicore(2, MICROSECOND, power=PowerDraw(active_w=10.0, idle_w=2.0))
    load = OfferedLoad(rate_pps=1e6, flows=FlowSet.crafted(2))
    energy = Solve(model=router).trial(load, 3.0).energy_j["cpu"]
    # One of two cores' time is used: 1 x 10 W x 3 s and 1 x 2 W x 3 s.
    assert energy["active"] == pytest.approx(30.0)
    assert energy["idle"] == pytest.approx(6.0)


def test_solve_is_an_evaluator_and_its_trial_is_json():
    evaluator = Solve(model=station(MICROSECOND))
    assert isinstance(evaluator, Evaluator)
    assert evaluator.trial(OfferedLoad(rate_pps=1e5), 1.0).to_json()["evaluator"] == "solve"


def test_flows_without_their_ports_are_refused():
    with pytest.raises(ModelProblem, match="names port"):
        solve(multicore(1, MICROSECOND, ports=1), 1e6, flows=FlowSet.crafted(2))


@given(
    rate=st.floats(1e3, 2e7),
    cores=st.integers(1, 6),
    flows=st.integers(1, 20),
    sigma=st.floats(0.0, 0.5),
    kappa=st.floats(0.0, 0.1),
    poisson=st.booleans(),
    nic=st.none() | st.floats(1e5, 1e7),
    bus=st.none() | st.floats(1e7, 1e10),
    distribution=st.sampled_from(["rss", "round_robin", "per_flow"]),
    queue=st.integers(1, 600),
)
def test_any_multicore_router_conserves_frames(
    rate, cores, flows, sigma, kappa, poisson, nic, bus, distribution, queue
):
    router = multicore(
        cores,
        MICROSECOND,
        contention=Contention(sigma=sigma, kappa=kappa),
        nic_cap_pps=nic,
        bus_bytes_per_s=bus,
        distribution=distribution,
        queue_frames=queue,
    )
    arrivals = POISSON if poisson else Arrivals.cbr()
    trial = solve(router, rate, flows=FlowSet.random(flows, seed=2), frames=FrameMix.imix(), arrivals=arrivals)
    # S12; and nothing works more than all the time.
    assert trial.offered_pps == pytest.approx(trial.forwarded_pps + sum(trial.drops_pps.values()))
    assert 0.0 <= trial.min_loss_ratio <= 1.0
    assert all(drop >= -1e-9 for drop in trial.drops_pps.values())
    assert all(0.0 <= resource.utilisation_ratio <= 1.0 + 1e-9 for resource in trial.resources)
    assert trial.offered_pps <= trial.intended_pps * (1 + 1e-9)
    assert min(resource.margin_ratio for resource in trial.resources) == 0.0
    if trial.latency is not None and trial.waiting is not None:
        assert trial.latency.mean_s >= trial.waiting.mean_s - 1e-15 >= -1e-15


@given(rate=st.floats(1e5, 5e6), factor=st.floats(0.01, 100.0))
def test_rescaling_time_rescales_the_results(rate, factor):
    item = solve(station(MICROSECOND, queue_frames=20), rate)
    other = solve(station(ServiceCost(per_packet_s=1e-6 * factor), queue_frames=20), rate / factor)
    assert other.forwarded_pps * factor == pytest.approx(item.forwarded_pps)
    assert item.latency is not None
    assert other.latency is not None
    assert other.latency.mean_s == pytest.approx(item.latency.mean_s * factor, rel=1e-6)


@given(low=st.floats(1e5, 8e6), more=st.floats(1.0, 3.0))
def test_more_load_never_forwards_less(low, more):
    router = multicore(4, MICROSECOND, nic_cap_pps=5e6)
    flows = FlowSet.random(50, seed=4)
    assert solve(router, low * more, flows=flows).forwarded_pps >= solve(router, low, flows=flows).forwarded_pps - 1e-3


def test_random_and_round_robin_routes_split_by_their_weights():
    model = RouterModel(
        name="split",
        ports=(Port(name="p", link_bps=1e12, entry="s"),),
        tasks=(
            TaskUnit(name="s", route=Route(kind="random", to=("a", "b"), weights=(3.0, 1.0))),
            TaskUnit(name="a", service=MICROSECOND),
            TaskUnit(name="b", service=MICROSECOND),
        ),
    )
    trial = solve(model, 2e6, arrivals=Arrivals.cbr())
    assert trial.drops_pps == {"a": pytest.approx(0.5e6)}
    assert {resource.kind for resource in trial.resources} == {"task", "link"}


def meshed_tasks(count: int, seed: int) -> RouterModel:
    """Task units of one pool, each with up to three of those after it to go to."""
    draw = random.Random(seed)
    names = [f"task {number}" for number in range(count)]
    after = [{names[number], *draw.sample(names[number:], min(2, count - number))} for number in range(1, count)]
    routes = [Route(kind="round_robin", to=tuple(sorted(to))) for to in after] + [Route()]
    return RouterModel(
        name="mesh",
        ports=(Port(name="in", link_bps=1e11, entry=names[0]),),
        tasks=tuple(
            TaskUnit(
                name=name,
                needs=(Need(pool="cpu"),),
                service=ServiceCost(per_packet_s=1e-7, variation="exponential"),
                route=route,
            )
            for name, route in zip(names, routes, strict=True)
        ),
        pools=(ResourcePool(name="cpu", units=4),),
    )


@given(seed=st.integers(0, 10_000), lost=st.lists(st.integers(0, 11), min_size=1, unique=True))
def test_losses_reported_singly_give_the_same_rates_as_all_together(seed: int, lost: list[int]) -> None:
    graph = flow_graph(meshed_tasks(12, seed), OfferedLoad(rate_pps=1e6))
    offered, admitted = graph.offered(1e6), np.ones(graph.exit + 1)
    rates_under_loss = RatesUnderLoss(graph, offered, admitted)
    for index in lost:
        admitted[index] = 0.9
        rates_under_loss.apply_losses([index])
    whole = graph.arriving(offered, admitted)[: len(graph.tasks)]
    assert (rates_under_loss.rates[: len(graph.tasks)] == whole).all()
    assert (rates_under_loss.total[: len(graph.tasks)] == whole.sum(axis=1)).all()


def test_how_often_the_graph_is_walked_does_not_grow_with_its_task_units(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []
    whole = FlowGraph.arriving

    def counted(graph: FlowGraph, *rates: object) -> object:
        walks[-1] += 1
        return whole(graph, *rates)  # type: ignore[arg-type]

    monkeypatch.setattr(FlowGraph, "arriving", counted)
    for count in (5, 40):
        walks.append(0)
        load = OfferedLoad(rate_pps=1e5, arrivals=Arrivals(kind="poisson"))
        assert Solve(model=meshed_tasks(count, 1)).trial(load, 1.0).forwarded_pps == pytest.approx(1e5)
    assert walks[0] == walks[1]
