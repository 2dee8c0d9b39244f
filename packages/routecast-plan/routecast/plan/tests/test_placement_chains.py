"""Chains of functions, pins, links: placements whose answer is known by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.load.frames import FrameMix
from routecast.load.offered import line_rate_pps
from routecast.plan.placement._simulation import ElementPlacement, load_of, router_of
from routecast.plan.placement.answer import answer
from routecast.plan.placement.model import (
    Cable,
    Chain,
    ElementGroup,
    Goal,
    PlacementProblem,
    Rules,
    ServerGroup,
    ServerLinks,
)
from routecast.plan.placement.prediction import predict
from routecast.plan.tests.placements import FREE, cost, every_placement, lossless_pps, multistage, technology

BARE = technology(nic_receive=cost(0.0), receive=cost(0.0), send=cost(0.0), switch=cost(0.0))
"""Only functions cost anything."""


def function(name: str, microseconds: float, *, count: int = 1) -> ElementGroup:
    return ElementGroup(name=name, kind="function", count=count, functions={name: cost(microseconds)})


def problem_of(
    *chains: Chain, elements: tuple[ElementGroup, ...], servers: tuple[ServerGroup, ...]
) -> PlacementProblem:
    return PlacementProblem(
        name="test",
        servers=servers,
        elements=elements,
        chains=chains,
        frames=FrameMix.fixed(64),
        offered_pps=1e5,
        outer_bps=1e10,
        interconnect=ServerLinks(link_bps=1e10),
        rules=FREE,
        goal=Goal(seconds=20.0, gap_ratio=0.0),
    )


def test_three_functions_on_two_servers_of_one_core_are_parted_as_evenly_as_they_can_be() -> None:
    problem = problem_of(
        Chain(name="vnf", stages=("fw", "dpi", "nat")),
        elements=(function("fw", 1.0), function("dpi", 3.0), function("nat", 1.5)),
        servers=(ServerGroup(name="s", number=2, cores=1, technology=BARE),),
    )
    result = answer(problem, simulate=False)
    # 3 µs on the one server, 1 + 1.5 µs on the other: 1/3 µs is the most.
    assert result.best.value == pytest.approx(1.0 / 3.0e-6, rel=1e-6)
    where = result.best.placement.servers
    assert where["fw"] == where["nat"] != where["dpi"]
    assert result.best.prediction.lossless_pps == pytest.approx(result.best.value, rel=1e-6)


def test_two_chains_through_one_function_share_it_by_their_parts_of_the_load() -> None:
    problem = problem_of(
        Chain(name="short", stages=("fw",), share=3.0),
        Chain(name="long", stages=("fw", "dpi"), share=1.0),
        elements=(function("fw", 1.0), function("dpi", 8.0)),
        servers=(ServerGroup(name="s", number=2, cores=1, technology=BARE),),
    )
    result = answer(problem, simulate=False)
    # dpi takes a quarter of the frames at 8 µs, fw all of them at 1 µs.
    assert result.best.value == pytest.approx(1.0 / (0.25 * 8.0e-6), rel=1e-6)
    assert result.best.prediction.forwarded_pps == pytest.approx(1e5, rel=1e-6)


def test_a_function_of_two_instances_takes_half_of_the_frames_in_each() -> None:
    problem = problem_of(
        Chain(name="vnf", stages=("fw", "dpi")),
        elements=(function("fw", 1.0), function("dpi", 4.0, count=2)),
        servers=(ServerGroup(name="s", number=3, cores=1, technology=BARE),),
    )
    result = answer(problem, simulate=False)
    assert result.best.value == pytest.approx(1.0 / 2.0e-6, rel=1e-6)
    assert len(result.best.placement.used) == 3


def test_a_narrow_link_keeps_a_chain_on_one_server_and_a_wide_one_parts_it() -> None:
    servers = (ServerGroup(name="s", number=2, cores=1, technology=BARE),)
    wide = problem_of(
        Chain(name="vnf", stages=("fw", "dpi")), elements=(function("fw", 2.0), function("dpi", 2.0)), servers=servers
    )
    narrow_pps = line_rate_pps(1e8, 64)
    narrow = replace(wide, interconnect=ServerLinks(link_bps=1e8))
    assert narrow_pps < 1.0 / 4.0e-6
    for problem, used, carried in ((wide, 2, 1.0 / 2.0e-6), (narrow, 1, 1.0 / 4.0e-6)):
        result = answer(problem, simulate=False)
        assert len(result.best.placement.used) == used
        assert result.best.value == pytest.approx(carried, rel=1e-6)


@pytest.mark.parametrize("by", ["switch", "cables"])
@pytest.mark.slow
def test_a_multistage_router_laid_as_a_chain_is_the_multistage_router(by: str) -> None:
    problem = multistage(2, 2, (ServerGroup(name="s", number=2, cores=2, technology=technology()),))
    problem = replace(problem, interconnect=ServerLinks(by=by, link_bps=1e9))  # type: ignore[arg-type]  # one of its names
    # Another rate of a cable that is not there makes no difference, but has the general builder lay the router.
    as_chain = replace(
        problem, interconnect=replace(problem.interconnect, cables=(Cable(between=("none", "none"), link_bps=1.0),))
    )
    for placement in list(every_placement(problem))[:6]:
        special, general = router_of(problem, placement), router_of(as_chain, placement)
        assert len(special.tasks) == len(general.tasks)
        assert lossless_pps(problem, placement) == pytest.approx(lossless_pps(as_chain, placement), rel=1e-6)
        over = load_of(problem).at(2e6)
        assert predict(special, over).forwarded_pps == pytest.approx(predict(general, over).forwarded_pps, rel=1e-3)


def test_more_ways_of_pinning_never_make_the_answer_worse_and_are_obeyed() -> None:
    servers = (ServerGroup(name="s", cores=2, technology=technology(sigma=0.1, switch_cost=1.0)),)
    free = multistage(2, 2, servers)
    pinned = replace(free, rules=Rules())
    free_answer, pinned_answer = answer(free, simulate=False), answer(pinned, simulate=False)
    assert pinned_answer.best.value >= free_answer.best.value * (1.0 - 1e-9)
    threads = router_of(pinned, pinned_answer.best.placement).tasks
    for task in threads:
        if task.thread in pinned_answer.best.placement.pins:
            assert task.pin == pinned_answer.best.placement.pins[task.thread]


def test_cores_per_thread_and_cores_of_their_own_are_obeyed() -> None:
    servers = (ServerGroup(name="s", number=2, cores=4, technology=technology()),)
    problem = multistage(1, 1, servers, rules=Rules(cores_per_thread=1))
    result = answer(problem, simulate=False)
    tasks = [task for task in router_of(problem, result.best.placement).tasks if task.thread]
    assert tasks
    assert all(len(task.pin) == 1 for task in tasks)
    own = multistage(1, 1, servers, rules=Rules(shared_cores=False))
    placement = answer(own, simulate=False).best.placement
    cores = [
        (placement.servers[next(name for name in placement.servers if thread.startswith(f"{name} "))], pin)
        for thread, pin in placement.pins.items()
    ]
    assert len(cores) == 4
    assert len(set(cores)) == 4


@pytest.mark.slow
def test_the_best_mapping_has_a_simulation_beside_its_prediction() -> None:
    servers = (ServerGroup(name="s", number=2, cores=2, technology=technology()),)
    result = answer(multistage(2, 2, servers, offered_pps=2e5))
    check = result.best.check
    assert check is not None
    assert not check.trouble
    assert check.simulated_pps == pytest.approx(check.predicted_pps, rel=0.15)
    assert check.differs == (abs(check.simulated_pps / check.predicted_pps - 1.0) > 0.05)


def test_sharing_costs_nothing_where_cores_are_left_over() -> None:
    servers = (ServerGroup(name="s", cores=16, technology=technology(balance=3.0)),)
    result = answer(multistage(1, 1, servers), simulate=False)
    assert [server.cost_ratio for server in result.sharing] == pytest.approx([0.0], abs=1e-6)
    crowded = answer(replace(multistage(1, 1, servers), servers=(replace(servers[0], cores=1),)), simulate=False)
    assert crowded.sharing[0].cost_ratio > 0.2


@pytest.mark.parametrize(("ports", "gain"), [(1, 1.0), (2, 1.05)])
def test_local_balancing_spares_the_wire_only_as_far_as_frames_leave_where_they_came_in(
    ports: int, gain: float
) -> None:
    technique = technology(nic_receive=cost(2.0))
    servers = (ServerGroup(name="s", number=2, cores=2, technology=technique),)
    where = ElementPlacement(servers={"lb 1": "s 1", "lb 2": "s 2", "br 1": "s 1", "br 2": "s 2"})
    carried = {}
    for balancing in ("round_robin", "local"):
        problem = multistage(2, 2, servers, balancing=balancing)
        edge = replace(problem.elements[0], ports=ports)
        problem = replace(problem, elements=(edge, problem.elements[1]))
        carried[balancing] = lossless_pps(problem, where)
    # With a port for each balancer all frames leave by the other one: round robin crosses the wire half of the times on
    # the way in and half on the way back, local balancing always on the way back.
    if ports == 1:
        assert carried["local"] == pytest.approx(carried["round_robin"], rel=1e-6)
    else:
        assert carried["local"] > gain * carried["round_robin"]


def test_a_simpler_balancer_makes_local_balancing_the_better_one() -> None:
    costs = {"balance": cost(1.5), "balance_local": cost(1.0), "return": cost(0.5), "forward": cost(0.8)}
    servers = (ServerGroup(name="s", number=2, cores=2, technology=technology(functions=costs)),)
    carried = {
        balancing: answer(multistage(2, 2, servers, balancing=balancing), simulate=False).best.value
        for balancing in ("round_robin", "local")
    }
    assert carried["local"] > carried["round_robin"]
