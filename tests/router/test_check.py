"""A model that contradicts itself is refused, with every fault and its place."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.load import Flow, FlowSet, OfferedLoad
from routecast.router import (
    Activation,
    Contention,
    Need,
    Policy,
    Port,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
    check_load,
    multicore,
    station,
    tandem,
)

PORT = Port(name="p", link_bps=1e9, entry="t")
TASK = TaskUnit(name="t", needs=(Need(pool="cpu"),), service=ServiceCost(per_packet_s=1e-6))
POOL = ResourcePool(name="cpu")


def faults(ports=(PORT,), tasks=(TASK,), pools=(POOL,)):
    with pytest.raises(ModelProblem) as caught:
        RouterModel(name="r", ports=ports, tasks=tasks, pools=pools)
    return {problem.place: problem.message for problem in caught.value.problems}


def test_a_sound_model_is_accepted():
    model = RouterModel(name="r", ports=(PORT,), tasks=(TASK,), pools=(POOL,))
    assert model.task(TASK.name) is TASK


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        ({"needs": (Need(pool="cpuu"),)}, "task[0].needs[0].pool", 'did you mean "cpu"'),
        ({"needs": (Need(pool="cpu", units=2),)}, "task[0].needs[0].units", "needs 2 units"),
        ({"needs": (Need(pool="cpu"), Need(pool="cpu"))}, "task[0].needs[1].pool", "twice"),
        ({"parallel": 2}, "task[0].parallel", "has 1"),
        ({"pin": (1,)}, "task[0].pin[0]", '"cpu" has 1 unit'),
        ({"queue_frames": -1}, "task[0].queue_frames", "got -1"),
        ({"batch_frames": 0}, "task[0].batch_frames", "got 0"),
        ({"weight": math.nan}, "task[0].weight", "finite"),
        ({"service": ServiceCost(per_byte_s=-1.0)}, "task[0].service.per_byte_s", "allowed is 0 to 10 s/B"),
        (
            {"service": ServiceCost(per_packet_s=math.nan)},
            "task[0].service.per_packet_s",
            "got nan s: allowed is 0 to 100000 s",
        ),
        ({"service": ServiceCost(per_packet_cycles=9.0)}, "task[0].service", "no frequency"),
        ({"service": ServiceCost(variation="uniform")}, "task[0].service.scv", "missing"),
        ({"service": ServiceCost(variation="uniform", scv=0.5)}, "task[0].service.scv", "1/3"),
        ({"service": ServiceCost(variation="hyperexponential", scv=0.5)}, "task[0].service.scv", ">= 1"),
        ({"activation": Activation(kind="interrupt", budget_frames=0)}, "task[0].activation.budget_frames", "got 0"),
        ({"route": Route(to=("q",))}, "task[0].route.to[0]", "neither task unit nor port"),
        ({"route": Route(to=("p", "p"))}, "task[0].route.to", "kind single has one"),
        ({"route": Route(kind="rss")}, "task[0].route.to", "empty"),
        ({"route": Route(kind="egress", to=("t",))}, "task[0].route.to[0]", "leads to ports"),
        ({"route": Route(kind="random", to=("p",))}, "task[0].route.weights", "0 entries"),
        ({"route": Route(kind="rss", to=("p",), indirection=(0,))}, "task[0].route.indirection", "RSS has 128"),
        ({"route": Route(to=("t",))}, "task", "t → t"),
    ],
)
def test_each_contradiction_of_a_task_unit_is_named(change, place, says):
    result = faults(tasks=(replace(TASK, **change),))
    assert place in result
    assert says in result[place]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"units": 0}, "pool[0].units"),
        ({"frequency_hz": 0.0}, "pool[0].frequency_hz"),
        ({"unit_speed_ratio": (1.0, 1.0)}, "pool[0].unit_speed_ratio"),
        ({"policy": Policy(kind="fair")}, "pool[0].policy.quantum_s"),
        ({"policy": Policy(kind="fifo", quantum_s=1.0)}, "pool[0].policy.quantum_s"),
        ({"contention": Contention(table=(1.0, 0.0))}, "pool[0].contention.table[1]"),
        ({"contention": Contention(sigma=math.inf)}, "pool[0].contention.sigma"),
        ({"switch_cost_s": -1.0}, "pool[0].switch_cost_s"),
    ],
)
def test_each_contradiction_of_a_pool_is_named(change, place):
    assert place in faults(pools=(replace(POOL, **change),))


def test_cycles_are_named_and_unreachable_task_units_too():
    tasks = (
        replace(TASK, route=Route(to=("a",))),
        TaskUnit(name="a", route=Route(to=("b",))),
        TaskUnit(name="b", route=Route(to=("a",))),
        TaskUnit(name="lost"),
    )
    result = faults(tasks=tasks)
    assert "a → b → a" in result["task"]
    assert "never reached" in result["task[3]"]


def test_a_part_that_task_units_share_is_faulty_at_each_of_them():
    activation, way_on = Activation(budget_frames=0), Route(to=("nowhere",))
    tasks = tuple(replace(TASK, name=name, activation=activation, route=way_on) for name in (TASK.name, "u", "v"))
    result = faults(tasks=tasks)
    for number in range(3):
        assert f"task[{number}].activation.budget_frames" in result
        assert f"task[{number}].route.to[0]" in result


def test_a_service_in_cycles_is_sound_only_where_the_pool_has_a_frequency():
    service = ServiceCost(per_packet_cycles=100.0)
    tasks = tuple(
        replace(TASK, name=name, service=service, needs=(Need(pool=pool),), route=Route(to=to))
        for name, pool, to in ((TASK.name, "clocked", ("u",)), ("u", "cpu", ()))
    )
    result = faults(tasks=tasks, pools=(ResourcePool(name="clocked", frequency_hz=1e9), POOL))
    assert list(result) == ["task[1].service"]


def test_all_faults_come_at_once():
    result = faults(
        ports=(Port(name="p", link_bps=-1.0, tx_ring_frames=0, entry="x"),),
        tasks=(replace(TASK, queue_frames=-1, weight=0.0),),
        pools=(replace(POOL, units=0),),
    )
    assert len(result) >= 6


def test_polling_task_units_may_not_starve_others():
    polling = replace(TASK, activation=Activation(kind="polling"), route=Route(to=("u",)))
    result = faults(tasks=(polling, TaskUnit(name="u", needs=(Need(pool="cpu"),))))
    assert "never gets one" in result["pool[0].units"]


def test_long_chains_of_task_units_are_checked_without_recursion():
    # Three times the depth at which Python gives up on recursion by default.
    assert len(tandem([ServiceCost(per_packet_s=1e-9)] * 3000).tasks) == 3000


@pytest.mark.parametrize("wrong", [64.0, "64", [64]])
def test_a_wrong_value_is_reported_beside_a_task_unit_that_is_alike_but_for_it(wrong):
    sound = replace(TASK, queue_frames=64)
    result = faults(tasks=(sound, replace(sound, name="u", queue_frames=wrong)))
    assert "whole number" in result["task[1].queue_frames"]


def test_the_multicore_router_says_what_is_wrong_with_its_parameters():
    with pytest.raises(ModelProblem) as caught:
        multicore(8, ServiceCost(), units=4, distribution="rs", nic_cap_pps=math.nan, bus_bytes_per_s=-1.0)
    assert [problem.place for problem in caught.value.problems] == [
        "cores",
        "distribution",
        "nic_cap_pps",
        "bus_bytes_per_s",
    ]
    assert "more cores than units" in str(caught.value)


def test_the_multicore_router_has_a_pinned_task_unit_per_core():
    router = multicore(3, ServiceCost(per_packet_s=1e-6), nic_cap_pps=1e6, bus_bytes_per_s=1e9)
    assert [task.name for task in router.tasks] == [
        *("nic", "bus in", "distributor", "core 0", "core 1", "core 2", "bus out")
    ]
    assert [router.task(f"core {core}").pin for core in range(3)] == [(0,), (1,), (2,)]
    assert {port.entry for port in router.ports} == {"nic"}


def test_a_flow_needs_its_ports():
    router = multicore(1, ServiceCost(per_packet_s=1e-6))
    load = OfferedLoad(rate_pps=1.0, flows=FlowSet(name="x", flows=(Flow(rss_hash=0, ingress=2, egress=3),)))
    with pytest.raises(ModelProblem) as caught:
        check_load(router, load)
    assert [problem.place for problem in caught.value.problems] == ["flows[0].ingress", "flows[0].egress"]
    check_load(station(ServiceCost()), OfferedLoad(rate_pps=1.0))


NAMES = st.sampled_from(["a", "b", "c", "p", ""])
NUMBERS = st.floats() | st.sampled_from([0.0, 1.0, 1e-6])
COUNTS = st.integers(-1, 5)


@given(data=st.data())
def test_any_model_is_accepted_or_refused(data):
    draw = data.draw
    tasks = tuple(
        TaskUnit(
            name=draw(NAMES),
            needs=tuple(Need(pool=draw(NAMES), units=draw(COUNTS)) for _ in range(draw(st.integers(0, 2)))),
            service=ServiceCost(per_packet_s=draw(NUMBERS), per_byte_cycles=draw(NUMBERS)),
            queue_frames=draw(COUNTS),
            parallel=draw(COUNTS),
            pin=tuple(draw(st.lists(COUNTS, max_size=3))),
            route=Route(
                kind=draw(st.sampled_from(["single", "rss", "random", "egress", "round_robin", "per_flow"])),
                to=tuple(draw(st.lists(NAMES, max_size=3))),
                weights=tuple(draw(st.lists(NUMBERS, max_size=3))),
            ),
        )
        for _ in range(draw(st.integers(0, 3)))
    )
    try:
        model = RouterModel(
            name="fuzz",
            ports=tuple(Port(name=draw(NAMES), link_bps=draw(NUMBERS), entry=draw(NAMES)) for _ in range(draw(COUNTS))),
            tasks=tasks,
            pools=(ResourcePool(name=draw(NAMES), units=draw(COUNTS), frequency_hz=draw(st.none() | NUMBERS)),),
        )
    except ModelProblem as refused:
        messages = [problem.message for problem in refused.problems]
    else:
        messages = ["accepted"] if model.tasks == tasks else []
    assert messages
    assert all(messages)


class CountedName(str):
    """A name that counts how often it is compared with another: what searching a list does, unseen by Python."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other):
        CountedName.comparisons += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def work_of_checking(make, count):
    """Return bytecodes run and names compared while a model of ``count`` parts is made; times would be no fact."""
    parts = make(count, [CountedName(f"t{n}") for n in range(count)])
    done = 0

    def trace(frame, event, _):
        nonlocal done
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        done += event == "opcode"
        return trace

    CountedName.comparisons = 0
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        RouterModel(name="r", **parts)
    finally:
        sys.settrace(before)
    return done + CountedName.comparisons


def chain(count, names, **rest):
    """One task unit after the other, with a pool of its own each."""
    ways_on = [*(Route(to=(name,)) for name in names[1:]), Route()]
    needs = [(Need(pool=f"pool of {name}"),) for name in names]
    return {
        "ports": (replace(PORT, entry=names[0]),),
        "tasks": tuple(
            TaskUnit(name=name, needs=need, route=way_on, **rest)
            for name, need, way_on in zip(names, needs, ways_on, strict=True)
        ),
        "pools": tuple(ResourcePool(name=need.pool) for (need,) in needs),
    }


def threads(count, names):
    return chain(count, names, activation=Activation(kind="polling"), thread="")


def line_cards(count, names):
    """A port with a task unit each, all of which lead to all ports."""
    ports = tuple(Port(name=CountedName(f"p{n}"), link_bps=1e9, entry=names[n]) for n in range(count))
    to_all = Route(kind="egress", to=tuple(port.name for port in ports))
    return {"ports": ports, "tasks": tuple(TaskUnit(name=name, route=to_all) for name in names)}


def windows(count, names):
    """One window after the other."""
    made = chain(count, names)
    first, second = made["tasks"][::2], made["tasks"][1::2]
    opened = (
        replace(item, needs=(replace(item.needs[0], until=two.name),), request="frame")
        for item, two in zip(first, second, strict=True)
    )
    return {**made, "tasks": (*opened, *second)}


def one_window_of_all(count, names):
    """A window around a chain that holds frames back."""
    made = chain(count, names, activation=Activation(kind="polling"))
    first, *others = made["tasks"]
    opened = replace(first, needs=(Need(pool="window", until=names[-1]),), request="frame", activation=Activation())
    holding = (replace(other, holds_back=True) for other in others[:-1])
    return {**made, "tasks": (opened, *holding, others[-1]), "pools": (*made["pools"], ResourcePool(name="window"))}


def copied_to_all(count, names):
    first, *others = names
    tasks = (TaskUnit(name=first, route=Route(copies=tuple(others))), *(TaskUnit(name=n) for n in others))
    return {"ports": (replace(PORT, entry=first),), "tasks": tasks}


@pytest.mark.parametrize(
    "make", [chain, threads, line_cards, windows, one_window_of_all, copied_to_all], ids=lambda item: item.__name__
)
def test_the_work_of_checking_grows_as_the_model_does(make):
    once, twice = (work_of_checking(make, count) for count in (150, 300))
    # What is the same for every model makes the ratio less than 2; comparing all with all would make it 4.
    assert twice < 2.1 * once
