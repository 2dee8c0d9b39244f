"""Times, rates and factors that no simulation could hold are refused, each where it stands."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from routecast.errors import FileProblem, ModelProblem
from routecast.evaluate import Simulate
from routecast.load import FlowSet, OfferedLoad
from routecast.router import (
    Activation,
    Contention,
    Interruptions,
    Need,
    Policy,
    Port,
    RandomTime,
    ResourcePool,
    RouterModel,
    ServiceCost,
    TaskUnit,
)
from routecast.router.files import parse_router
from routecast.router.model import PowerDraw, SleepState

PORT = Port(name="p", link_bps=1e9, entry="t")
TASK = TaskUnit(name="t", needs=(Need(pool="cpu"),), service=ServiceCost(per_packet_s=1e-6))
POOL = ResourcePool(name="cpu", frequency_hz=1e9)
SLICED = ResourcePool(name="cpu", policy=Policy(kind="linux", quantum_s=3e-3))
VIRTUAL = """
builder = "virtual"
technology = { base = "kvm-vhost-2012" }
server = [{ name = "host", cores = 4 }]
machine = [{ name = "vm" }]
"""


def faults(*, port: Port = PORT, task: TaskUnit = TASK, pool: ResourcePool = POOL) -> dict[str, str]:
    with pytest.raises(ModelProblem) as caught:
        RouterModel(name="r", ports=(port,), tasks=(task,), pools=(pool,))
    return dict(caught.value.problems)


def file_faults(text: str) -> dict[str, str]:
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    return dict(caught.value.problems)


@pytest.mark.parametrize(
    ("task", "place"),
    [
        (replace(TASK, service=ServiceCost(per_packet_s=2e7)), "service.per_packet_s"),
        (replace(TASK, service=ServiceCost(per_byte_s=100.0)), "service.per_byte_s"),
        (replace(TASK, service=ServiceCost(per_batch_s=1e30)), "service.per_batch_s"),
        (replace(TASK, service=ServiceCost(per_packet_cycles=1e15)), "service.per_packet_cycles"),
        (replace(TASK, service=ServiceCost(memory_accesses=1e9, memory_latency_s=1.0)), "service.memory_accesses"),
        (replace(TASK, activation=Activation(kind="interrupt", moderation_s=1e20)), "activation.moderation_s"),
        (replace(TASK, activation=Activation(kind="interrupt", linger_s=1e6)), "activation.linger_s"),
        (
            replace(TASK, activation=Activation(kind="thread", wakeup=RandomTime(mean_s=1e9))),
            "activation.wakeup.mean_s",
        ),
    ],
)
def test_a_task_unit_whose_time_is_longer_than_a_day_is_refused(task: TaskUnit, place: str) -> None:
    problems = faults(task=task)
    assert list(problems) == [f"task[0].{place}"]
    assert re.search("allowed is 0 to|at most", problems[f"task[0].{place}"])


@pytest.mark.parametrize(
    ("pool", "place"),
    [
        (replace(POOL, switch_cost_s=1e30), "switch_cost_s"),
        (replace(POOL, migration_cost_s=1e40), "migration_cost_s"),
        (replace(POOL, contention=Contention(sigma=1e300)), "contention.sigma"),
        (replace(POOL, contention=Contention(kappa=1e7)), "contention.kappa"),
        (replace(POOL, contention=Contention(table=(1e7,))), "contention.table[0]"),
        (replace(POOL, unit_speed_ratio=(1e-300,)), "unit_speed_ratio[0]"),
        (replace(POOL, frequency_hz=1e-3), "frequency_hz"),
        (
            replace(POOL, interruptions=Interruptions(rate_hz=1.0, duration=RandomTime(mean_s=1e30))),
            "interruptions.duration.mean_s",
        ),
        (
            replace(
                POOL,
                power=PowerDraw(
                    active_w=9.0, idle_w=5.0, sleep=(SleepState(name="C1", power_w=1.0, exit_s=1e9, after_s=1e-6),)
                ),
            ),
            "power.sleep[0].exit_s",
        ),
        (replace(SLICED, policy=replace(SLICED.policy, quantum_s=1e30)), "policy.quantum_s"),
    ],
)
def test_a_pool_whose_times_or_factors_are_beyond_all_bounds_is_refused(pool: ResourcePool, place: str) -> None:
    problems = faults(pool=pool)
    assert list(problems) == [f"pool[0].{place}"]
    assert re.search(r"allowed is \S+ to \S+", problems[f"pool[0].{place}"])


@pytest.mark.parametrize("kind", ["round_robin", "fair", "linux"])
def test_a_time_slice_is_ten_nanoseconds_at_least(kind) -> None:
    problems = faults(pool=replace(POOL, policy=Policy(kind=kind, quantum_s=1e-12)))
    assert problems == {"pool[0].policy.quantum_s": "got 1e-12 s: allowed is 1e-08 to 100000 s"}
    shortest = replace(POOL, policy=Policy(kind=kind, quantum_s=1e-8))
    assert RouterModel(name="r", ports=(PORT,), tasks=(TASK,), pools=(shortest,)).pools == (shortest,)


@pytest.mark.parametrize("link_bps", [1e-300, 1e19])
def test_a_link_carries_a_bit_per_second_at_least_and_1e18_at_most(link_bps: float) -> None:
    assert faults(port=replace(PORT, link_bps=link_bps)) == {
        "port[0].link_bps": f"got {link_bps} bit/s: allowed is 1 to 1e+18 bit/s"
    }


def test_what_takes_as_long_as_is_allowed_forwards_next_to_nothing() -> None:
    slow = replace(TASK, service=ServiceCost(per_packet_s=1e5))
    model = RouterModel(name="r", ports=(PORT,), tasks=(slow,), pools=(POOL,))
    load = OfferedLoad(rate_pps=1e6, flows=FlowSet.random(4, ports=1))
    assert Simulate(model, steady_state=False).trial(load, 1e-3).forwarded_pps == 0.0


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ('receive = { per_packet = "2e7 s" }', "technology.receive.per_packet"),
        ('switch_cost = "1e30 s"', "technology.switch_cost"),
        ('migration_cost = "1e40 s"', "technology.migration_cost"),
        ("contention = { sigma = 1e300 }", "technology.contention.sigma"),
        ('policy = { kind = "linux", quantum = "1e-12 s" }', "technology.policy.quantum"),
        ('guest_wakeup = { mean = "1e30 s" }', "technology.guest_wakeup.mean"),
        ('functions = { forward = { per_batch = "1e9 s" } }', "technology.functions.forward.per_batch"),
    ],
)
def test_what_a_technique_cannot_cost_is_reported_where_the_file_says_it(given: str, place: str) -> None:
    shared = VIRTUAL.replace(' base = "kvm-vhost-2012"', f' base = "kvm-vhost-2012", {given}')
    assert list(file_faults(shared)) == [place]
    table = '{ base = "kvm-vhost-2012", ' + given + " }"
    own = VIRTUAL.replace('technology = { base = "kvm-vhost-2012" }\n', "").replace(
        "cores = 4", f"cores = 4, technology = {table}"
    )
    assert list(file_faults(own)) == [f"server[0].{place}"]


def test_a_virtual_routers_links_speeds_and_cores_are_bounded_where_the_file_says_them() -> None:
    text = VIRTUAL.replace("cores = 4", "cores = 4, speed = 1e300").replace(
        "server =", 'link = "1e-300 bit/s"\nserver ='
    )
    assert set(file_faults(text)) == {"server[0].speed", "link"}
    problems = file_faults(VIRTUAL.replace("cores = 4", "cores = 513"))
    assert problems == {"server[0].cores": "got 513: allowed is 1 to 512"}


def test_a_multistage_routers_links_are_bounded_where_the_file_says_them() -> None:
    problems = file_faults("""
builder = "multistage"
technology = "kvm-vhost-2012"
link = "1e-300 bit/s"
server = [{ name = "a", cores = 4 }, { name = "b", cores = 4 }]
balancer = [{ name = "lb", server = "a" }]
router = [{ name = "br", server = "b" }]
interconnect = { joined = "switch", link = "1e-300 bit/s", switch = "1e30 bit/s" }
""")
    assert set(problems) == {"link", "interconnect.link", "interconnect.switch"}
