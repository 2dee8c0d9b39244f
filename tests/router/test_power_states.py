"""Power states of router files: read, checked with every fault at once, and moved between P-states."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.errors import FileProblem, ModelProblem
from routecast.evaluate import Solve, lossless_pps
from routecast.load import OfferedLoad
from routecast.router import PerformanceState, PowerDraw, RouterModel, ServiceCost, multicore
from routecast.router.files import parse_router, router_schema
from routecast.router.performance import at_frequency

FILE = """
builder = "multicore"
cores = 1
frequency = "3 GHz"
service = { per_packet = "1500 cycles", memory_accesses = 2.0, memory_latency = "80 ns" }
activation = { kind = "interrupt", linger = "10 us" }
[power]
active = "12 W"
idle = "4 W"
base = "20 W"
scope = "package"
sleep = [
    { name = "C1", power = "2 W", exit = "2 us", after = "0 s" },
    { name = "C6", power = "0.5 W", exit = "50 us", after = "200 us", wake_energy = "30 uJ" },
]
performance = [
    { frequency = "1.5 GHz", active = "5 W", idle = "3 W", voltage = "800 mV" },
    { frequency = "3 GHz", active = "12 W", idle = "4 W" },
]
"""


def router() -> RouterModel:
    return parse_router(FILE)[0]


def faults(text: str) -> dict[str, str]:
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    return {problem.place: problem.message for problem in caught.value.problems}


def test_power_states_are_read_in_base_units() -> None:
    model = router()
    power = model.pool("cpu").power
    assert power is not None
    assert (power.active_w, power.idle_w, power.base_w, power.scope) == (12.0, 4.0, 20.0, "package")
    deep = power.sleep[1]
    assert (deep.name, deep.power_w, deep.exit_s, deep.after_s) == ("C6", 0.5, 50e-6, 200e-6)
    assert deep.wake_energy_j == pytest.approx(30e-6)
    slow = power.performance[0]
    assert (slow.frequency_hz, slow.active_w, slow.idle_w, slow.voltage_v) == (1.5e9, 5.0, 3.0, 0.8)
    assert model.task("core 0").activation.linger_s == pytest.approx(10e-6)


def test_power_states_that_make_no_sense_are_all_named_at_once() -> None:
    wrong = (
        FILE.replace('power = "2 W"', 'power = "6 W"')
        .replace('after = "200 us"', 'after = "0 s"')
        .replace('frequency = "1.5 GHz"', 'frequency = "4 GHz"')
    )
    result = faults(wrong)
    assert "sleep saves power" in result["pool[0].power.sleep[0].power"]
    assert "rising idle time" in result["pool[0].power.sleep[1].after"]
    assert "rising frequency" in result["pool[0].power.performance[1].frequency"]


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ('idle = "4 W"\nbase', 'idle = "40 W"\nbase', "pool[0].power.idle", "at work"),
        ('name = "C6"', 'name = "C1"', "pool[0].power.sleep[1].name", "given twice"),
        ('name = "C6"', 'name = "waking"', "pool[0].power.sleep[1].name", "another state"),
        ('scope = "package"', 'scope = " "', "pool[0].power.scope", "is empty"),
        ('idle = "3 W"', 'idle = "1 W"', "pool[0].power.performance[0].idle", "asleep in C1"),
        ('z", active = "12 W"', 'z", active = "11 W"', "pool[0].power.performance[1]", "other watts"),
        ('kind = "interrupt"', 'kind = "polling"', "activation.linger", "only interrupt does"),
    ],
)
def test_one_wrong_power_state_is_named_with_its_place(old: str, new: str, place: str, words: str) -> None:
    assert old in FILE
    assert words in faults(FILE.replace(old, new))[place]


def test_performance_states_need_a_clock() -> None:
    power = PowerDraw(
        active_w=5.0, idle_w=1.0, performance=(PerformanceState(frequency_hz=1e9, active_w=5.0, idle_w=1.0),)
    )
    with pytest.raises(ModelProblem, match="has no frequency"):
        multicore(1, ServiceCost(per_packet_s=1e-6), power=power)


def test_a_negative_figure_is_refused_and_so_is_one_without_a_unit() -> None:
    assert "W" in faults(FILE.replace('base = "20 W"', "base = 20.0"))["power.base"]
    power = router().pool("cpu").power
    assert power is not None
    bad = replace(power, sleep=(replace(power.sleep[0], wake_energy_j=-1.0),))
    with pytest.raises(ModelProblem, match="wake_energy_j"):
        multicore(1, ServiceCost(per_packet_s=1e-6), power=bad, frequency_hz=3e9)


def test_at_half_the_clock_the_cycles_take_twice_as_long_and_the_memory_does_not() -> None:
    # Bolla 2009, figs. 3 and 4: the gain of a faster clock is sub-linear where a part of the work does not scale.
    fast, slow = router(), at_frequency(router(), 1.5e9)
    load = OfferedLoad(rate_pps=1e4)
    assert lossless_pps(fast, load) == pytest.approx(1.0 / (0.5e-6 + 160e-9))
    assert lossless_pps(slow, load) == pytest.approx(1.0 / (1.0e-6 + 160e-9))
    drawn = slow.pool("cpu").power
    assert drawn is not None
    assert (drawn.active_w, drawn.idle_w) == (5.0, 3.0)
    assert at_frequency(slow, 3e9) == fast
    power = Solve(slow).trial(load, 1.0).power
    assert power is not None


def test_only_the_p_states_that_exist_can_be_run_at() -> None:
    with pytest.raises(ModelProblem, match=r"1\.5 GHz, 3 GHz"):
        at_frequency(router(), 2e9)
    with pytest.raises(ModelProblem, match='"bus" is no pool'):
        at_frequency(router(), 3e9, pool="bus")
    with pytest.raises(ModelProblem, match="no pool has P-states"):
        at_frequency(multicore(1, ServiceCost(per_packet_s=1e-6)), 3e9)


def test_the_schema_says_what_power_states_are() -> None:
    tables = router_schema()["$defs"]
    assert {"power", "exit", "after", "wake_energy", "name"} == set(tables["SleepState"]["properties"])
    assert "J" in tables["SleepState"]["properties"]["wake_energy"]["description"]


def test_a_softirq_router_can_linger_too() -> None:
    model = parse_router('builder = "softirq"\nper_packet = "800 ns"\nlinger = "50 us"')[0]
    assert model.task("core 0").activation.linger_s == pytest.approx(50e-6)
